/* SPDX-License-Identifier: Apache-2.0 */
/* Fetches: the head's side, which answers from the files of its routes. */
#include "apps/link/weights/fetch_private.h"

#define ASKED_MAX 512u /* of one peer; it asks again for what is dropped */
#define SENDING_MAX 2u /* leaves in the transport: borders shall not wait behind many */
#define REFUSED_NS (10 * BASE_NS_PER_S)
#define SLICE_LEAVES 8u /* hashed at a time, before others have their turn */
#define HASHED_MAX 3u   /* a file that changes under our hands is given up */

struct asked {
    uint8_t identity[LNK_HASH_BYTES];
    uint64_t leaf;
};

/* The file of a route, of which other boards get leaves. */
struct source {
    struct job job; /* first */
    struct source *next;
    uint8_t identity[LNK_HASH_BYTES];
    char *path; /* owned */
    enum source_state { HASHING, READY, REFUSED } state;
    unsigned readers; /* jobs that read from it */
    uint64_t refused_ns;
    char why[STORE_WHY_BYTES]; /* REFUSED */
    unsigned times;            /* that it was hashed */
    /* the thread's while it hashes; then only read */
    int fd;
    struct mdl_leaves leaves;
    size_t hashed;
    enum source_state outcome;
};

struct reading {
    struct job job; /* first */
    struct source *source;
    struct answers *answers;
    size_t peer;
    struct asked of;
    size_t bytes;
    void *data; /* owned */
    bool ok;    /* data are the leaf's bytes; else the file has changed */
};

struct asker {
    struct asked asked[ASKED_MAX]; /* the first one asked first */
    size_t count;
    struct reading *reading; /* the thread's; NULL: nothing is read */
    /* what goes to it next */
    struct lnk_message out;
    void *data; /* owned; NULL: nothing */
    size_t bytes;
    unsigned sending; /* the transport has so many */
};

struct answers {
    struct fetch *fetch;
    struct source *sources;
    struct asker peer[BRD_MAX];
};

/* ---- the file of a route, on the thread ---- */

static int open_source(struct source *s)
{
    struct stat st;

    base_close_fd(&s->fd);
    mdl_leaves_deinit(&s->leaves);
    s->fd = open(s->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (s->fd < 0 || fstat(s->fd, &st) < 0) {
        return -errno;
    }
    if (!S_ISREG(st.st_mode)) {
        return -EINVAL;
    }
    if ((uint64_t)st.st_size > (LNK_LEAF_BYTES / MDL_HASH_BYTES - 1) * MDL_HASH_LEAF_BYTES) {
        return -E2BIG; /* its list would be more than a leaf */
    }
    return mdl_leaves_new((size_t)st.st_size, &s->leaves);
}

static void refuse_source(struct source *s, const char *why)
{
    s->outcome = REFUSED;
    snprintf(s->why, sizeof(s->why), "%.160s: %s", s->path, why);
}

static void settle(struct source *s)
{
    uint8_t bytes[LNK_HASH_BYTES];
    char hash[65];

    mdl_leaves_hash(&s->leaves, hash);
    sodium_hex2bin(bytes, sizeof(bytes), hash, 64, NULL, NULL, NULL);
    if (memcmp(bytes, s->identity, sizeof(bytes)) == 0) {
        s->outcome = READY;
    } else {
        refuse_source(s, "the file has changed since the model was loaded");
    }
}

static bool run_hash(struct job *j)
{
    struct source *s = (struct source *)j;
    base_autofree uint8_t *data = malloc(MDL_HASH_LEAF_BYTES);
    int r = !data ? -ENOMEM : s->hashed == 0 ? open_source(s) : 0;

    for (size_t n = 0; r == 0 && n < SLICE_LEAVES && s->hashed < s->leaves.count; n++) {
        struct mdl_hash h;

        r = mdl_leaf_read(s->fd, &s->leaves, s->hashed, data);
        mdl_hash_init(&h);
        mdl_hash_update(&h, data, r == 0 ? mdl_leaf_bytes(&s->leaves, s->hashed) : 0);
        mdl_hash_end(&h, s->leaves.hashes[s->hashed++]);
    }
    if (r < 0) {
        refuse_source(s, strerror(-r));
        return false;
    }
    if (s->hashed < s->leaves.count) {
        return true;
    }
    settle(s);
    return false;
}

static bool run_read(struct job *j)
{
    struct reading *r = (struct reading *)j;

    r->bytes = mdl_leaf_bytes(&r->source->leaves, (size_t)r->of.leaf);
    r->data = malloc(r->bytes + 1);
    r->ok = r->data &&
            mdl_leaf_read(r->source->fd, &r->source->leaves, (size_t)r->of.leaf, r->data) == 0 &&
            mdl_leaf_ok(&r->source->leaves, (size_t)r->of.leaf, r->data, r->bytes);
    return false;
}

/* ---- on the loop ---- */

static void hash_done(struct job *j)
{
    struct source *s = (struct source *)j;

    s->state = s->outcome;
}

/* Opens the file, and hashes it in slices: HASHING until done. */
static void hash_source(struct source *s, struct jobs *jobs)
{
    s->hashed = 0;
    s->outcome = REFUSED;
    if (++s->times > HASHED_MAX) {
        refuse_source(s, "the file changes");
        s->state = REFUSED;
        return;
    }
    s->state = HASHING;
    s->job = (struct job){.run = run_hash, .done = hash_done};
    jobs_add(jobs, &s->job);
}

static struct source *new_source(const uint8_t identity[LNK_HASH_BYTES], const char *path)
{
    struct source *s = calloc(1, sizeof(*s));
    char *copy = strdup(path);

    if (!s || !copy) {
        free(s);
        free(copy);
        return NULL;
    }
    s->fd = -1;
    s->path = copy;
    memcpy(s->identity, identity, sizeof(s->identity));
    return s;
}

/* When it is not HASHING and has no readers. */
static void free_source(struct source *s)
{
    base_close_fd(&s->fd);
    mdl_leaves_deinit(&s->leaves);
    free(s->path);
    free(s);
}

struct answers *answers_new(struct fetch *f)
{
    struct answers *a = calloc(1, sizeof(*a));

    if (a) {
        a->fetch = f;
    }
    return a;
}

void answers_peer_gone(struct answers *a, size_t peer)
{
    struct asker *p = &a->peer[peer];

    free(base_take(p->data));
    p->reading = NULL; /* it ends for nobody */
    p->count = 0;
}

struct answers *answers_free(struct answers *a)
{
    for (size_t i = 0; i < BRD_MAX; i++) {
        answers_peer_gone(a, i);
    }
    while (a->sources) {
        struct source *s = a->sources;

        a->sources = s->next;
        free_source(s);
    }
    free(a);
    return NULL;
}

/* ---- what is asked ---- */

static void add(struct asker *p, const uint8_t *identity, uint64_t leaf)
{
    for (size_t i = 0; i < p->count; i++) {
        if (p->asked[i].leaf == leaf &&
            memcmp(p->asked[i].identity, identity, LNK_HASH_BYTES) == 0) {
            return;
        }
    }
    if (p->count < ASKED_MAX) {
        memcpy(p->asked[p->count].identity, identity, LNK_HASH_BYTES);
        p->asked[p->count++].leaf = leaf;
    }
}

static void forget(struct asker *p, const struct asked *of)
{
    for (size_t i = 0; i < p->count; i++) {
        if (memcmp(&p->asked[i], of, sizeof(*of)) == 0) {
            p->count--;
            memmove(&p->asked[i], &p->asked[i + 1], (p->count - i) * sizeof(*p->asked));
            return;
        }
    }
}

void fetch_want(struct link *l, size_t peer, const struct lnk_message *m)
{
    struct asker *p = &l->fetch->answers->peer[peer];

    if (m->want.leaf_count == 0) {
        add(p, m->want.model, LNK_LEAF_LIST);
    }
    for (size_t i = 0; i < m->want.leaf_count; i++) {
        add(p, m->want.model, lnk_number(m, i));
    }
}

/* Return: NULL: no memory. */
static struct source *source_of(struct answers *a, const uint8_t *identity, const char *path)
{
    struct source *s = a->sources;

    while (s && memcmp(s->identity, identity, LNK_HASH_BYTES) != 0) {
        s = s->next;
    }
    if (!s) {
        s = new_source(identity, path);
        if (s) {
            s->next = a->sources;
            a->sources = s;
            hash_source(s, a->fetch->jobs);
        }
    }
    return s;
}

/* Files without a route are closed; those that were of no use are tried again some time. */
static void drop_sources(struct answers *a)
{
    uint64_t now_ns = a->fetch->now_ns;

    for (struct source **at = &a->sources; *at;) {
        struct source *s = *at;
        bool over = !a->fetch->path_of(a->fetch->link, s->identity);

        if (s->state == REFUSED && s->refused_ns == 0) {
            s->refused_ns = now_ns;
        }
        over |= s->state == REFUSED && now_ns - s->refused_ns > REFUSED_NS;
        if (over && s->state != HASHING && s->readers == 0) {
            *at = s->next;
            free_source(s);
        } else {
            at = &s->next;
        }
    }
}

/* ---- answers ---- */

/* @data: becomes owned. */
static void put_out(struct asker *p, const struct asked *of, uint64_t leaf, void *data,
                    size_t bytes)
{
    p->out = (struct lnk_message){.header.type = LNK_LEAF};
    memcpy(p->out.leaf.model, of->identity, LNK_HASH_BYTES);
    p->out.leaf.leaf = leaf;
    p->data = data;
    p->bytes = bytes;
}

static void refuse(struct asker *p, const struct asked *of, const char *why)
{
    char *text = strdup(why);

    if (text) {
        put_out(p, of, LNK_LEAF_REFUSED, text, strlen(text));
        forget(p, of);
    }
}

static void read_done(struct job *j)
{
    struct reading *r = (struct reading *)j;
    struct asker *p = &r->answers->peer[r->peer];

    r->source->readers--;
    if (p->reading == r) {
        p->reading = NULL;
        if (r->ok) {
            put_out(p, &r->of, r->of.leaf, base_take(r->data), r->bytes);
            forget(p, &r->of);
        } else if (!j->dropped && r->source->state == READY) {
            hash_source(r->source, r->answers->fetch->jobs);
        }
    }
    free(r->data);
    free(r);
}

static void begin_reading(struct answers *a, size_t peer, const struct asked *of, struct source *s)
{
    struct reading *r = calloc(1, sizeof(*r));

    if (r) {
        r->job = (struct job){.run = run_read, .done = read_done};
        r->source = s;
        r->answers = a;
        r->peer = peer;
        r->of = *of;
        a->peer[peer].reading = r;
        s->readers++;
        jobs_add(a->fetch->jobs, &r->job);
    }
}

static void answer(struct answers *a, size_t peer, const struct asked *of, struct source *s)
{
    struct asker *p = &a->peer[peer];
    unsigned char *list;

    if (s->state == REFUSED) {
        refuse(p, of, s->why);
    } else if (of->leaf != LNK_LEAF_LIST && of->leaf < s->leaves.count) {
        begin_reading(a, peer, of, s);
    } else if (of->leaf != LNK_LEAF_LIST) {
        forget(p, of); /* no leaf of this file */
    } else if ((list = malloc(mdl_leaves_bytes(&s->leaves))) != NULL) {
        mdl_leaves_write(&s->leaves, list);
        put_out(p, of, LNK_LEAF_LIST, list, mdl_leaves_bytes(&s->leaves));
        forget(p, of);
    }
}

/* Begins the answer to the first that can be answered. */
static void next(struct answers *a, size_t peer)
{
    struct asker *p = &a->peer[peer];

    for (size_t i = 0; i < p->count && !p->data && !p->reading;) {
        struct asked of = p->asked[i];
        const char *path = a->fetch->path_of(a->fetch->link, of.identity);
        struct source *s = path ? source_of(a, of.identity, path) : NULL;
        size_t before = p->count;

        if (!path) {
            refuse(p, &of, "this board has no route of the model");
        } else if (s && s->state != HASHING) {
            answer(a, peer, &of, s);
        }
        i += p->count == before;
    }
}

/* A part that the transport has. */
struct sent {
    struct asker *to;
    void *data; /* owned */
};

static void sent_released(void *arg)
{
    struct sent *s = arg;

    s->to->sending--;
    free(s->data);
    free(s);
}

/* Return: false: it must wait. */
static bool send_out(struct answers *a, size_t peer)
{
    struct asker *p = &a->peer[peer];
    struct lnk_bytes range = {p->data, p->bytes};
    struct sent *s = p->sending < SENDING_MAX ? malloc(sizeof(*s)) : NULL;
    int rc;

    if (!s) {
        return false;
    }
    *s = (struct sent){p, p->data};
    p->sending++;
    rc = link_put(a->fetch->link, peer, LNK_BULK, &p->out, &range, 1, sent_released, s);
    if (rc == LNK_E_FULL) {
        s->data = NULL;
    } else {
        p->data = NULL; /* it is sent, or the peer is gone or will ask again */
    }
    if (rc != 0) {
        sent_released(s);
    }
    return rc != LNK_E_FULL;
}

void answers_go(struct answers *a)
{
    for (size_t i = 0; i < a->fetch->link->boards.count; i++) {
        do {
            next(a, i);
        } while (a->peer[i].data && send_out(a, i));
    }
    drop_sources(a);
}
