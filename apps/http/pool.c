/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/http/pool_private.h"

struct web_pool *web_pool_new(const struct web_options *o, struct web_memory *m)
{
    struct web_pool *p = calloc(1, sizeof(*p));

    if (p) {
        p->o = o;
        p->memory = m;
        TAILQ_INIT(&p->places);
        TAILQ_INIT(&p->waiters);
        pthread_mutex_init(&p->lock, NULL);
    }
    return p;
}

/* Its slots are of a request now. */
static void lend_slots(struct web_place *place, struct web_owner *by)
{
    place->by = by;
    web_memory_lend(place->pool->memory, by, web_place_slots(place));
    web_place_hold(place, web_place_slots(place) > 0);
}

/* Nobody's. */
static void return_slots(struct web_place *place)
{
    web_place_worked(place);
    web_memory_return(place->pool->memory, place->by, web_place_slots(place));
    place->by = NULL;
    web_place_hold(place, false);
}

struct web_pool *web_pool_free(struct web_pool *p)
{
    struct web_place *place;

    if (p) {
        while ((place = TAILQ_FIRST(&p->places))) {
            TAILQ_REMOVE(&p->places, place, linked);
            web_place_close(place);
        }
        pthread_mutex_destroy(&p->lock);
        free(p);
    }
    return NULL;
}

/* Places that are somebody's now. @model: only those of this one; NULL: of all. */
static size_t busy_of(const struct web_pool *p, const struct web_owner *by, const char *model)
{
    const struct web_place *place;
    size_t count = 0;

    TAILQ_FOREACH(place, &p->places, linked) {
        count += place->busy && place->by == by && (!model || strcmp(place->model, model) == 0);
    }
    return count;
}

/* The last eighth of the places, of a model and of all, is for owners that have fewer. */
static bool may_have(const struct web_pool *p, const struct web_owner *by, const char *model)
{
    size_t of_model = p->o->streams, of_all = p->o->streams_total;

    return !by || (busy_of(p, by, model) < of_model - of_model / 8 &&
                   busy_of(p, by, NULL) < of_all - of_all / 8);
}

/* An idle place of the model; if there is none, how many it has. */
static struct web_place *find(struct web_pool *p, const char *model, size_t *ret_count)
{
    struct web_place *place;

    *ret_count = 0;
    TAILQ_FOREACH(place, &p->places, linked) {
        if (strcmp(place->model, model) == 0) {
            if (!place->busy) {
                return place;
            }
            ++*ret_count;
        }
    }
    return NULL;
}

static int add(struct web_pool *p, const char *model, struct web_place **ret)
{
    struct web_place *place = calloc(1, sizeof(*place));

    if (!place) {
        return -ENOMEM;
    }
    place->pool = p;
    snprintf(place->model, sizeof(place->model), "%s", model);
    TAILQ_INSERT_HEAD(&p->places, place, linked);
    p->count++;
    *ret = place;
    return 0;
}

/* Under the lock. @ret_evicted: to be closed without it. Return: 0: no place is free. */
static int try_take(struct web_pool *p, const char *model, struct web_owner *by,
                    struct web_place **ret, struct web_place **ret_evicted)
{
    size_t count;
    struct web_place *place;
    int rc = 0;

    if (!may_have(p, by, model)) {
        return 0;
    }
    place = find(p, model, &count);
    if (!place && count < p->o->streams) {
        if (p->count >= p->o->streams_total) {
            *ret_evicted = web_place_oldest_idle(p);
        }
        if (p->count < p->o->streams_total) {
            rc = add(p, model, &place);
        }
    }
    if (place) {
        place->busy = true;
        lend_slots(place, by);
        p->busy++;
        *ret = place;
        rc = 1;
    }
    return rc;
}

/* Under the lock. Return: 0: @ret is set, or there was news; -ETIMEDOUT. */
static int wait_turn(struct web_pool *p, const char *model, struct web_owner *by, uint64_t until_ns,
                     struct web_place **ret)
{
    struct waiter w = {.model = model, .by = by};
    int rc;

    web_cond_init(&w.woken);
    TAILQ_INSERT_TAIL(&p->waiters, &w, linked);
    p->waiting++;
    rc = -web_cond_wait(&w.woken, &p->lock, until_ns);
    p->waiting--;
    TAILQ_REMOVE(&p->waiters, &w, linked);
    pthread_cond_destroy(&w.woken);
    *ret = w.place;
    return w.place ? 0 : rc;
}

/* An owner may fill three quarters of the queue. */
static bool may_wait(const struct web_pool *p, const struct web_owner *by)
{
    size_t most = p->o->queue, own = 0;
    struct waiter *w;

    TAILQ_FOREACH(w, &p->waiters, linked) {
        own += by && w->by == by;
    }
    return p->waiting < most && own < most - most / 4;
}

int web_pool_take(struct web_pool *p, const char *model, struct web_owner *by, uint64_t until_ns,
                  struct web_place **ret)
{
    struct web_place *evicted = NULL, *place = NULL;
    int rc;

    pthread_mutex_lock(&p->lock);
    rc = try_take(p, model, by, &place, &evicted);
    if (rc == 0 && !may_wait(p, by)) {
        rc = -EAGAIN;
    }
    while (rc == 0) {
        rc = wait_turn(p, model, by, until_ns, &place);
        if (rc == 0) {
            rc = place ? 1 : try_take(p, model, by, &place, &evicted);
        }
    }
    pthread_mutex_unlock(&p->lock);
    web_place_close(evicted);
    *ret = place;
    return rc > 0 ? 0 : rc;
}

/* Can a request that waits use the place of @model that gets free? Itself, or its room, or what it
 * was of its owner's part. */
static bool can_use(struct web_pool *p, const struct waiter *w, const char *model)
{
    size_t count;

    if (w->called || !may_have(p, w->by, w->model)) {
        return false;
    }
    if (strcmp(w->model, model) == 0) {
        return true;
    }
    return find(p, w->model, &count) || count < p->o->streams;
}

/* Of the requests that can use the place, the first of an owner who has fewest places. */
static struct waiter *next_waiter(struct web_pool *p, const char *model)
{
    struct waiter *w, *next = NULL;
    size_t least = SIZE_MAX;

    TAILQ_FOREACH(w, &p->waiters, linked) {
        size_t has = can_use(p, w, model) ? busy_of(p, w->by, NULL) : SIZE_MAX;

        if (has < least) {
            least = has;
            next = w;
        }
    }
    return next;
}

void web_pool_give(struct web_pool *p, struct web_place *place, bool broken)
{
    struct waiter *next;

    pthread_mutex_lock(&p->lock);
    return_slots(place); /* under the lock: what is nobody's can be found as idle */
    next = next_waiter(p, place->model);
    if (next && !broken && strcmp(next->model, place->model) == 0) {
        next->place = place; /* it stays busy */
        lend_slots(place, next->by);
    } else {
        place->busy = false;
        place->idle_ns = base_now_ns();
        p->busy--;
        TAILQ_REMOVE(&p->places, place, linked);
        if (broken) {
            p->count--;
        } else {
            TAILQ_INSERT_HEAD(&p->places, place, linked);
        }
    }
    if (next) {
        next->called = true;
        pthread_cond_signal(&next->woken);
    }
    pthread_mutex_unlock(&p->lock);
    if (broken) {
        web_place_close(place);
    }
}

void web_pool_tidy(struct web_pool *p, uint64_t now_ns)
{
    struct places old = TAILQ_HEAD_INITIALIZER(old);
    struct web_place *place, *next;

    pthread_mutex_lock(&p->lock);
    for (place = TAILQ_FIRST(&p->places); place; place = next) {
        next = TAILQ_NEXT(place, linked);
        if (!place->busy && now_ns > place->idle_ns + WEB_IDLE_S * BASE_NS_PER_S) {
            TAILQ_REMOVE(&p->places, place, linked);
            TAILQ_INSERT_TAIL(&old, place, linked);
            p->count--;
        }
    }
    pthread_mutex_unlock(&p->lock);
    while ((place = TAILQ_FIRST(&old))) {
        TAILQ_REMOVE(&old, place, linked);
        web_place_close(place);
    }
}

struct web_pool_counts web_pool_count(struct web_pool *p)
{
    web_locked(&p->lock);

    return (struct web_pool_counts){p->count, p->busy, p->waiting};
}
