/* SPDX-License-Identifier: Apache-2.0 */
/* piped-http: how much memory requests may take. */
#include "apps/http/memory.h"

/* On the stack of its thread, in the order in which they came. */
struct web_memory_waiter {
    TAILQ_ENTRY(web_memory_waiter) linked;
};

void web_memory_init(struct web_memory *m, size_t most)
{
    *m = (struct web_memory){.most = most};
    LIST_INIT(&m->owners);
    TAILQ_INIT(&m->waiters);
    pthread_mutex_init(&m->lock, NULL);
    web_cond_init(&m->given);
}

static bool same(const struct web_peer *a, const struct web_peer *b)
{
    return a->user == b->user && a->uid == b->uid &&
           (a->user || memcmp(a->address, b->address, sizeof(a->address)) == 0);
}

struct web_owner *web_owner_enter(struct web_memory *m, const struct web_peer *who)
{
    struct web_owner *o;
    web_locked(&m->lock);

    LIST_FOREACH(o, &m->owners, linked) {
        if (same(&o->who, who)) {
            break;
        }
    }
    if (!o) {
        o = calloc(1, sizeof(*o));
        if (o) {
            o->who = *who;
            LIST_INSERT_HEAD(&m->owners, o, linked);
        }
    }
    if (o) {
        o->connections++;
    }
    return o;
}

void web_owner_leave(struct web_memory *m, struct web_owner *o)
{
    web_locked(&m->lock);

    if (--o->connections == 0) {
        LIST_REMOVE(o, linked);
        free(o);
    }
}

bool web_memory_claim(struct web_memory *m, struct web_owner *o, size_t bytes, bool *holds)
{
    size_t kept = m->most / 8, after;
    bool fits;
    web_locked(&m->lock);

    fits = base_add(m->used, bytes, &after) && after <= m->most &&
           (after <= m->most - kept || (o && bytes <= kept && o->bytes <= kept - bytes));
    if (fits) {
        m->used = after;
        if (o) {
            o->bytes += bytes;
        }
        m->holders += holds && !*holds;
        if (holds) {
            *holds = true;
        }
    }
    return fits;
}

/* Under the lock. */
static void note_gift(struct web_memory *m)
{
    m->gifts++;
    pthread_cond_broadcast(&m->given);
}

void web_memory_give(struct web_memory *m, struct web_owner *o, size_t bytes)
{
    web_locked(&m->lock);

    m->used -= bytes;
    if (o) {
        o->bytes -= bytes;
    }
    note_gift(m);
}

void web_memory_hold(struct web_memory *m, bool *holds, bool now)
{
    web_locked(&m->lock);

    if (now && !*holds) {
        m->holders++;
    } else if (!now && *holds) {
        m->holders--;
        note_gift(m);
    }
    *holds = now;
}

void web_memory_lend(struct web_memory *m, struct web_owner *o, size_t bytes)
{
    web_locked(&m->lock);

    m->idle -= bytes;
    if (o) {
        o->bytes += bytes;
    }
}

void web_memory_return(struct web_memory *m, struct web_owner *o, size_t bytes)
{
    web_locked(&m->lock);

    m->idle += bytes;
    if (o) {
        o->bytes -= bytes;
    }
    note_gift(m);
}

uint64_t web_memory_gifts(struct web_memory *m)
{
    web_locked(&m->lock);

    return m->gifts;
}

bool web_memory_wait(struct web_memory *m, uint64_t gifts, uint64_t until_ns)
{
    struct web_memory_waiter w;
    int rc = 0;
    web_locked(&m->lock);

    TAILQ_INSERT_TAIL(&m->waiters, &w, linked);
    /* Where nobody has a slot, the last that came gives up, and its body is memory for others. */
    while (m->gifts == gifts && rc != ETIMEDOUT && (m->holders > 0 || TAILQ_NEXT(&w, linked))) {
        rc = web_cond_wait(&m->given, &m->lock, until_ns);
    }
    TAILQ_REMOVE(&m->waiters, &w, linked);
    pthread_cond_broadcast(&m->given);
    return m->gifts != gifts;
}

size_t web_memory_in_use(struct web_memory *m, size_t *ret_idle)
{
    web_locked(&m->lock);

    *ret_idle = m->idle;
    return m->used - m->idle;
}
