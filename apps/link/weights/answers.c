/* SPDX-License-Identifier: Apache-2.0 */
/* Fetches: the head's side, which answers from the files of its routes. */

#include "apps/link/weights/fetch_private.h"
#include "apps/link/weights/source.h"
#include "base/base.h"

#define ASKED_MAX 512u /* of one peer; it asks again for what is dropped */
#define SENDING_MAX 2u /* leaves in the transport: borders shall not wait behind many */
#define REFUSED_NS (10 * BASE_NS_PER_S)

struct asked {
    uint8_t identity[LNK_HASH_BYTES];
    uint64_t leaf;
};

struct reading {
    struct fetch_reading is; /* first */
    struct answers *answers;
    size_t peer;
    struct asked of;
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
    struct fetch_source *sources;
    struct asker peer[BRD_MAX];
};

int answers_new(struct fetch *f, struct answers **ret)
{
    struct answers *a = calloc(1, sizeof(*a));

    if (!a) {
        return -ENOMEM;
    }
    a->fetch = f;
    *ret = a;
    return 0;
}

void answers_peer_gone(struct answers *a, size_t peer)
{
    struct asker *p = &a->peer[peer];

    free(p->data);
    p->data = NULL;
    p->reading = NULL; /* it ends for nobody */
    p->count = 0;
}

struct answers *answers_free(struct answers *a)
{
    for (size_t i = 0; i < BRD_MAX; i++) {
        answers_peer_gone(a, i);
    }
    while (a->sources) {
        struct fetch_source *s = a->sources;

        a->sources = s->next;
        fetch_source_free(s);
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

void answers_want(struct answers *a, size_t peer, const struct lnk_message *m)
{
    if (m->want.leaf_count == 0) {
        add(&a->peer[peer], m->want.model, LNK_LEAF_LIST);
    }
    for (size_t i = 0; i < m->want.leaf_count; i++) {
        add(&a->peer[peer], m->want.model, lnk_number(m, i));
    }
}

/* Return: NULL: no memory. */
static struct fetch_source *source_of(struct answers *a, const uint8_t *identity, const char *path)
{
    struct fetch_source *s = a->sources;

    while (s && memcmp(s->identity, identity, LNK_HASH_BYTES) != 0) {
        s = s->next;
    }
    if (!s) {
        s = fetch_source_new(identity, path);
        if (s) {
            s->next = a->sources;
            a->sources = s;
            fetch_source_hash(s, a->fetch->jobs);
        }
    }
    return s;
}

/* Files without a route are closed; those that were of no use are tried again some time. */
static void drop_sources(struct answers *a)
{
    uint64_t now_ns = a->fetch->now_ns;

    for (struct fetch_source **at = &a->sources; *at;) {
        struct fetch_source *s = *at;
        bool over = !a->fetch->path_of(a->fetch->link, s->identity);

        if (s->state == FETCH_REFUSED && s->refused_ns == 0) {
            s->refused_ns = now_ns;
        }
        over |= s->state == FETCH_REFUSED && now_ns - s->refused_ns > REFUSED_NS;
        if (over && s->state != FETCH_HASHING && s->readers == 0) {
            *at = s->next;
            fetch_source_free(s);
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

    r->is.source->readers--;
    if (p->reading == r) {
        p->reading = NULL;
        if (r->is.ok) {
            put_out(p, &r->of, r->of.leaf, base_take(r->is.data), r->is.bytes);
            forget(p, &r->of);
        } else if (!j->dropped && r->is.source->state == FETCH_READY) {
            fetch_source_hash(r->is.source, r->answers->fetch->jobs);
        }
    }
    free(r->is.data);
    free(r);
}

static void read_leaf(struct answers *a, size_t peer, const struct asked *of,
                      struct fetch_source *s)
{
    struct reading *r = calloc(1, sizeof(*r));

    if (r) {
        r->is.job.done = read_done;
        r->is.source = s;
        r->is.leaf = (size_t)of->leaf;
        r->answers = a;
        r->peer = peer;
        r->of = *of;
        a->peer[peer].reading = r;
        fetch_source_read(&r->is, a->fetch->jobs);
    }
}

static void answer(struct answers *a, size_t peer, const struct asked *of, struct fetch_source *s)
{
    struct asker *p = &a->peer[peer];
    unsigned char *list;

    if (s->state == FETCH_REFUSED) {
        refuse(p, of, s->why);
    } else if (of->leaf != LNK_LEAF_LIST && of->leaf < s->leaves.count) {
        read_leaf(a, peer, of, s);
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
        struct fetch_source *s = path ? source_of(a, of.identity, path) : NULL;
        size_t before = p->count;

        if (!path) {
            refuse(p, &of, "this board has no route of the model");
        } else if (s && s->state != FETCH_HASHING) {
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
    if (rc == 0) {
        p->data = NULL;
        return true;
    }
    if (rc != LNK_E_FULL) { /* it is gone, or will ask again */
        p->data = NULL;
    } else {
        s->data = NULL;
    }
    sent_released(s);
    return rc != LNK_E_FULL;
}

static void serve_asker(struct answers *a, size_t peer)
{
    struct asker *p = &a->peer[peer];

    do {
        next(a, peer);
    } while (p->data && send_out(a, peer));
}

void answers_go(struct answers *a)
{
    for (size_t i = 0; i < a->fetch->link->boards.count; i++) {
        serve_asker(a, i);
    }
    drop_sources(a);
}
