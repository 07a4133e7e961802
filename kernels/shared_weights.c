/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/shared_weights.h"

#include <pthread.h>

#include "base/base.h"

#define BUCKETS 256u
#define SHARED_FROM_BYTES 1024u             /* smaller ones are not worth their entry */
#define CLEARED_TO_BYTES ((size_t)64 << 10) /* larger ones are mapped, and come cleared */

struct krn_shared {
    struct krn_shared *next; /* of its bucket */
    const struct krn_primitive *primitive;
    uint64_t digest;         /* of the file and the operator's name */
    struct krn_pages pages;  /* owned */
    struct krn_shelf *shelf; /* owned reference */
    uint64_t nodes;          /* where they were asked to be, as krn_pages_near() */
    size_t users;
};

/* Guards the buckets, and the counts of entries and shelves. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct krn_shared *buckets[BUCKETS];

struct krn_shelf *krn_shelf_new(void)
{
    struct krn_shelf *shelf = calloc(1, sizeof(*shelf));

    if (shelf) {
        shelf->refs = 1;
    }
    return shelf;
}

void krn_shelf_unref(struct krn_shelf *shelf)
{
    bool last = false;

    if (shelf) {
        pthread_mutex_lock(&lock);
        last = --shelf->refs == 0;
        pthread_mutex_unlock(&lock);
    }
    if (last) {
        krn_store_deinit(&shelf->store);
        free(shelf);
    }
}

static uint64_t mix(uint64_t digest, const char *text)
{
    for (; text && *text; text++) {
        digest ^= (uint8_t)*text;
        digest = base_splitmix64(&digest);
    }
    return digest;
}

static struct krn_shared like_of(const struct krn_packing *p)
{
    return (struct krn_shared){
        .primitive = p->primitive,
        .digest = mix(mix(1, p->m->hash), p->m->ops[p->op].name),
        .pages.bytes = p->bytes,
        .nodes = p->nodes,
    };
}

static struct krn_shared **bucket_of(uint64_t digest)
{
    return &buckets[digest % BUCKETS];
}

static void unlink_entry(struct krn_shared *s)
{
    struct krn_shared **at = bucket_of(s->digest);

    while (*at != s) {
        at = &(*at)->next;
    }
    *at = s->next;
}

/* Return: whether @s had its last user, and is the caller's alone to free. */
static bool unuse(struct krn_shared *s)
{
    bool last = --s->users == 0;

    if (last) {
        unlink_entry(s);
    }
    return last;
}

static void entry_free(struct krn_shared *s)
{
    krn_pages_free(&s->pages);
    krn_shelf_unref(s->shelf);
    free(s);
}

/* Return: @s or the first entry behind it that may be equal to @like; NULL: there is none. The
 * caller holds the lock. */
static struct krn_shared *like_from(const struct krn_shared *like, struct krn_shared *s)
{
    while (s && (s->digest != like->digest || s->primitive != like->primitive ||
                 s->pages.bytes != like->pages.bytes)) {
        s = s->next;
    }
    return s;
}

static bool is_any_like(const struct krn_shared *like)
{
    bool any;

    pthread_mutex_lock(&lock);
    any = like_from(like, *bucket_of(like->digest)) != NULL;
    pthread_mutex_unlock(&lock);
    return any;
}

/* Return: the next entry behind @after (NULL: the first) that may be equal to @like, with one more
 * user; NULL: there is none. @after loses a user. */
static struct krn_shared *next_like(const struct krn_shared *like, struct krn_shared *after)
{
    struct krn_shared *s;
    bool last;

    pthread_mutex_lock(&lock);
    s = like_from(like, after ? after->next : *bucket_of(like->digest));
    if (s) {
        s->users++;
    }
    last = after && unuse(after);
    pthread_mutex_unlock(&lock);
    if (last) {
        entry_free(after);
    }
    return s;
}

/* Return: the entry with the bytes of @like, with one more user; NULL: there is none. */
static struct krn_shared *find_equal(const struct krn_shared *like)
{
    struct krn_shared *s = next_like(like, NULL);

    while (s && memcmp(s->pages.at, like->pages.at, like->pages.bytes) != 0) {
        s = next_like(like, s);
    }
    return s;
}

/* Return: an entry for what was packed, with one user; NULL: no memory for it, and the weights stay
 * the caller's own. */
static struct krn_shared *publish(const struct krn_shared *like, const struct krn_pages *packed,
                                  struct krn_shelf *shelf)
{
    struct krn_shared *s = malloc(sizeof(*s));

    if (!s) {
        return NULL;
    }
    *s = *like;
    s->pages = *packed;
    s->shelf = shelf;
    s->users = 1;
    pthread_mutex_lock(&lock);
    shelf->refs++;
    s->next = *bucket_of(s->digest);
    *bucket_of(s->digest) = s;
    pthread_mutex_unlock(&lock);
    return s;
}

static int pack_into(const struct krn_packing *p, struct krn_pages *to)
{
    int r = krn_pages_new(p->bytes, p->nodes, to);

    if (r == 0) {
        if (p->bytes < CLEARED_TO_BYTES) { /* padding that pack() leaves out is compared, too */
            memset(to->at, 0, p->bytes);
        }
        p->primitive->pack(p->m, &p->m->ops[p->op], to->at);
    }
    return r;
}

/* Moves what was packed apart to the net's own place. */
static int move_in(const struct krn_packing *p, const struct krn_pages *apart,
                   struct krn_pages *packed)
{
    int r = krn_pages_new(p->bytes, p->nodes, packed);

    if (r == 0) {
        memcpy(packed->at, apart->at, p->bytes);
    }
    return r;
}

bool krn_shared_may_know(const struct krn_packing *p)
{
    const struct krn_shared like = like_of(p);

    return p->m->hash[0] && p->bytes >= SHARED_FROM_BYTES && is_any_like(&like);
}

/* If there may be equal weights, it packs apart: pages of the net's place that were written and
 * given back would break up its huge pages. */
int krn_shared_pack(const struct krn_packing *p, struct krn_pages *packed,
                    struct krn_shared **ret_shared)
{
    struct krn_shared like = like_of(p);
    struct krn_pages apart = {.at = NULL};
    bool shares = p->m->hash[0] && p->bytes >= SHARED_FROM_BYTES;
    bool any = shares && is_any_like(&like);
    struct krn_pages *to = any ? &apart : packed;
    int r = pack_into(p, to);

    *ret_shared = NULL;
    if (r < 0 || !shares) {
        return r;
    }
    like.pages.at = to->at;
    *ret_shared = find_equal(&like); /* also where another thread was just faster */
    if (*ret_shared) {
        krn_pages_free(to);
        packed->at = (*ret_shared)->pages.at;
        packed->bytes = p->bytes;
        return 0;
    }
    if (any) {
        r = move_in(p, &apart, packed);
        krn_pages_free(&apart);
    }
    if (r == 0) {
        *ret_shared = publish(&like, packed, p->shelf);
    }
    return r;
}

void krn_shared_place(struct krn_shared *s, uint64_t nodes, struct krn_lying *ret)
{
    pthread_mutex_lock(&lock);
    *ret = (struct krn_lying){&s->pages, &s->shelf->store, s->nodes != nodes};
    s->nodes = nodes;
    pthread_mutex_unlock(&lock);
}

/* A net's place under weights that another net still uses goes with them. */
void krn_shared_drop(struct krn_shared *s, const struct krn_shelf *shelf, struct krn_pages *packed)
{
    struct krn_pages place = {.slot = packed->slot, .slot_bytes = packed->slot_bytes};
    bool last;

    pthread_mutex_lock(&lock);
    last = unuse(s);
    if (!last && place.slot == s->pages.slot) {
        place = (struct krn_pages){.slot = NULL};
    } else if (last && !place.slot && s->shelf == shelf) {
        place = (struct krn_pages){.slot = s->pages.slot, .slot_bytes = s->pages.slot_bytes};
    }
    pthread_mutex_unlock(&lock);
    if (last) {
        entry_free(s);
    }
    *packed = place;
}

size_t krn_shared_users(const struct krn_shared *s)
{
    size_t users;

    pthread_mutex_lock(&lock);
    users = s->users;
    pthread_mutex_unlock(&lock);
    return users;
}
