/* SPDX-License-Identifier: Apache-2.0 */
/* piped-http: the connections, and a thread that cuts slow ones. */
#include <sys/socket.h>

#include "apps/http/pool.h"

#define TICK_MOST_NS BASE_NS_PER_S
/* Of the connections that were cut, so many may be ending; more are accepted later, each by so much
 * at most. */
#define ENDING_MOST 16u
#define ENDING_NS (BASE_NS_PER_S / 10)

struct web_conn {
    LIST_ENTRY(web_conn) linked;
    const struct web_listener *listener; /* borrowed */
    struct web_owner *owner;             /* one of its connections */
    int fd;
    uint64_t since_ns; /* of what it does now */
    bool works, owes, cut;
    struct web_target target; /* only its own thread has it */
};

struct web_watch {
    struct web *web; /* borrowed */
    pthread_t thread;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t ended, idle, left;
    bool ends;
    size_t count, owed, ending;
    LIST_HEAD(, web_conn) conns;
};

/* Its thread sees the end of the stream, and closes it. */
static void cut(struct web_watch *w, struct web_conn *c, _Atomic uint64_t *count)
{
    shutdown(c->fd, SHUT_RDWR);
    c->cut = true;
    w->ending++;
    ++*count;
}

static void *watch_thread(void *arg)
{
    struct web_watch *w = arg;
    uint64_t limit_ns = (uint64_t)(w->web->o.request_s * 1e9);
    uint64_t tick_ns = base_min(limit_ns / 4, (uint64_t)TICK_MOST_NS);

    pthread_mutex_lock(&w->lock);
    while (!w->ends) {
        uint64_t now = base_now_ns();
        struct web_conn *c;

        LIST_FOREACH(c, &w->conns, linked) {
            if (!c->works && !c->cut && now > c->since_ns + limit_ns) {
                cut(w, c, &w->web->count.cut);
            }
        }
        pthread_mutex_unlock(&w->lock);
        web_pool_tidy(w->web->pool, now);
        pthread_mutex_lock(&w->lock);
        if (!w->ends) {
            web_cond_wait(&w->ended, &w->lock, now + tick_ns);
        }
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

int web_watch_new(struct web *web, struct web_watch **ret)
{
    struct web_watch *w = calloc(1, sizeof(*w));
    int rc;

    if (!w) {
        return -ENOMEM;
    }
    w->web = web;
    pthread_mutex_init(&w->lock, NULL);
    web_cond_init(&w->ended);
    web_cond_init(&w->idle);
    web_cond_init(&w->left);
    rc = pthread_create(&w->thread, NULL, watch_thread, w);
    if (rc) {
        free(w);
        return -rc;
    }
    *ret = w;
    return 0;
}

struct web_watch *web_watch_free(struct web_watch *w)
{
    if (w) {
        pthread_mutex_lock(&w->lock);
        w->ends = true;
        pthread_cond_signal(&w->ended);
        pthread_mutex_unlock(&w->lock);
        pthread_join(w->thread, NULL);
        pthread_cond_destroy(&w->ended);
        pthread_cond_destroy(&w->idle);
        pthread_cond_destroy(&w->left);
        pthread_mutex_destroy(&w->lock);
        free(w);
    }
    return NULL;
}

/* The client has closed it, and its thread has not noticed yet. */
static bool is_over(const struct web_conn *c)
{
    char byte;

    return !c->owes && recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* How many connections each owner has at the listener. @exact: but for those that are over.
 * Return: of all. */
static size_t count_here(struct web_watch *w, const struct web_listener *l, bool exact)
{
    struct web_conn *c;
    size_t all = 0;

    LIST_FOREACH(c, &w->conns, linked) {
        c->owner->here = 0;
    }
    LIST_FOREACH(c, &w->conns, linked) {
        if (c->listener == l && !c->cut && (!exact || !is_over(c))) {
            c->owner->here++;
            all++;
        }
    }
    return all;
}

/* Whose place a new connection gets: of those who have more than its owner, the one with most.
 * Return: NULL: nobody's. */
static struct web_conn *least_needed(struct web_watch *w, const struct web_conn *by)
{
    struct web_conn *c, *found = NULL;

    LIST_FOREACH(c, &w->conns, linked) {
        size_t more = c->owner->here;

        if (c->listener == by->listener && !c->cut && !c->works && more > by->owner->here &&
            (!found || more > found->owner->here ||
             (more == found->owner->here && c->since_ns < found->since_ns))) {
            found = c;
        }
    }
    return found;
}

/* Under the lock, when it is in the list. */
static void find_place(struct web_watch *w, struct web_conn *c)
{
    const struct web_options *o = &w->web->o;
    unsigned own = c->owner->who.user ? o->per_user : o->per_address;
    size_t all = count_here(w, c->listener, false);
    struct web_conn *other;

    if (c->owner->here > own || all > o->connections) {
        all = count_here(w, c->listener, true);
    }
    if (c->owner->here > own) {
        cut(w, c, &w->web->count.refused);
    } else if (all > o->connections) {
        other = least_needed(w, c);
        cut(w, other ? other : c, other ? &w->web->count.cut : &w->web->count.refused);
    }
}

struct web_conn *web_conn_add(struct web_watch *w, const struct web_listener *l, int fd)
{
    struct web_peer who = web_peer_of(&w->web->peers, fd);
    struct web_conn *c = calloc(1, sizeof(*c));

    if (!c) {
        return NULL;
    }
    c->owner = web_owner_enter(&w->web->memory, &who);
    if (!c->owner) {
        free(c);
        return NULL;
    }
    c->listener = l;
    c->fd = fd;
    c->since_ns = base_now_ns();
    pthread_mutex_lock(&w->lock);
    LIST_INSERT_HEAD(&w->conns, c, linked);
    w->count++;
    find_place(w, c);
    /* In the thread that accepts: who dials again and again has to wait for his threads to end, or
     * they would take what libmicrohttpd allows of all. */
    while (w->ending > ENDING_MOST &&
           web_cond_wait(&w->left, &w->lock, c->since_ns + ENDING_NS) == 0) {
        continue;
    }
    pthread_mutex_unlock(&w->lock);
    return c;
}

struct web_owner *web_conn_owner(struct web_conn *c)
{
    return c ? c->owner : NULL;
}

struct web_target *web_conn_target(struct web_conn *c)
{
    return c ? &c->target : NULL;
}

void web_conn_remove(struct web_watch *w, struct web_conn *c)
{
    pthread_mutex_lock(&w->lock);
    LIST_REMOVE(c, linked);
    w->count--;
    if (c->cut) {
        w->ending--;
        pthread_cond_broadcast(&w->left);
    }
    pthread_mutex_unlock(&w->lock);
    web_owner_leave(&w->web->memory, c->owner);
    free(c);
}

void web_conn_works(struct web_watch *w, struct web_conn *c, bool works)
{
    if (c) {
        web_locked(&w->lock);

        c->works = works;
        c->since_ns = base_now_ns();
    }
}

void web_conn_owes(struct web_watch *w, struct web_conn *c, bool owes)
{
    web_locked(&w->lock);

    w->owed += owes ? 1u : (size_t)-1;
    if (c) {
        c->owes = owes;
    }
    if (w->owed == 0) {
        pthread_cond_broadcast(&w->idle);
    }
}

size_t web_watch_connections(struct web_watch *w, size_t *ret_owed)
{
    web_locked(&w->lock);

    *ret_owed = w->owed;
    return w->count;
}

void web_watch_drain(struct web_watch *w, double s)
{
    uint64_t end_ns = base_now_ns() + (uint64_t)(s * 1e9);
    web_locked(&w->lock);

    while (w->owed > 0 && web_cond_wait(&w->idle, &w->lock, end_ns) != ETIMEDOUT) {
        continue;
    }
}
