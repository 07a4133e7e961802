/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/http/web_pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#define MODEL_BYTES 64u /* IPC_NAME_BYTES */

struct form {
    struct piped_stream *stream;      /* NULL: not open */
    size_t picture_bytes, slot_bytes; /* that it takes; claimed */
    struct piped_decoder *decoder;    /* owned; NULL: not asked for yet */
    char *described;                  /* owned: what the decoder was made of */
};

struct web_place {
    TAILQ_ENTRY(web_place) linked;
    struct web_pool *pool; /* borrowed */
    char model[MODEL_BYTES];
    struct piped *client; /* NULL: not connected */
    struct form forms[WEB_FORMS];
    struct web_owner *by; /* borrowed while it is busy */
    size_t work_bytes;    /* claimed */
    bool busy, holds;     /* holds: told web_memory_hold() */
    uint64_t idle_ns;     /* since */
};

TAILQ_HEAD(places, web_place);

/* A request that waits, on its thread's stack. The first that waits for a model gets the next place
 * of that model handed. So a request that comes just then does not overtake it, and only one thread
 * wakes. */
struct waiter {
    TAILQ_ENTRY(waiter) linked;
    const char *model;
    struct web_owner *by;
    pthread_cond_t woken;
    bool called;
    struct web_place *place; /* handed over; NULL: look again */
};

struct web_pool {
    const struct web_options *o; /* borrowed */
    struct web_memory *memory;   /* borrowed */
    pthread_mutex_t lock;        /* of all below */
    struct places places;        /* those last used first */
    TAILQ_HEAD(, waiter) waiters;
    size_t count, busy, waiting;
};

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

static void forget_decoder(struct form *f)
{
    f->decoder = piped_decoder_free(f->decoder);
    free(base_take(f->described));
}

static size_t slots_of(const struct web_place *place)
{
    size_t bytes = 0;

    for (size_t i = 0; i < WEB_FORMS; i++) {
        bytes += place->forms[i].slot_bytes;
    }
    return bytes;
}

static void hold(struct web_place *place, bool holds)
{
    web_memory_hold(place->pool->memory, &place->holds, holds);
}

/* Its slots are of a request now. */
static void lend_slots(struct web_place *place, struct web_owner *by)
{
    place->by = by;
    web_memory_lend(place->pool->memory, by, slots_of(place));
    hold(place, slots_of(place) > 0);
}

/* Nobody's. */
static void return_slots(struct web_place *place)
{
    web_place_worked(place);
    web_memory_return(place->pool->memory, place->by, slots_of(place));
    place->by = NULL;
    hold(place, false);
}

/* An idle one. */
static void close_place(struct web_place *place)
{
    if (place) {
        struct web_memory *m = place->pool->memory;
        size_t bytes = slots_of(place);

        for (size_t i = 0; i < WEB_FORMS; i++) {
            forget_decoder(&place->forms[i]);
        }
        piped_close(place->client); /* and its streams */
        web_memory_lend(m, NULL, bytes);
        web_memory_give(m, NULL, bytes);
        free(place);
    }
}

struct web_pool *web_pool_free(struct web_pool *p)
{
    struct web_place *place;

    if (p) {
        while ((place = TAILQ_FIRST(&p->places))) {
            TAILQ_REMOVE(&p->places, place, linked);
            close_place(place);
        }
        pthread_mutex_destroy(&p->lock);
        free(p);
    }
    return NULL;
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

/* Takes the place out that has been idle for longest; NULL: all are busy. */
static struct web_place *oldest_idle(struct web_pool *p)
{
    struct web_place *place;

    TAILQ_FOREACH_REVERSE(place, &p->places, places, linked)
    {
        if (!place->busy) {
            TAILQ_REMOVE(&p->places, place, linked);
            p->count--;
            return place;
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
    struct web_place *place = find(p, model, &count);
    int rc = 0;

    if (!place && count < (size_t)p->o->streams) {
        if (p->count >= (size_t)p->o->streams_total) {
            *ret_evicted = oldest_idle(p);
        }
        if (p->count < (size_t)p->o->streams_total) {
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
    struct timespec until = {.tv_sec = (time_t)(until_ns / BASE_NS_PER_S),
                             .tv_nsec = (long)(until_ns % BASE_NS_PER_S)};
    struct waiter w = {.model = model, .by = by};
    pthread_condattr_t attr;
    int rc;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&w.woken, &attr);
    pthread_condattr_destroy(&attr);
    TAILQ_INSERT_TAIL(&p->waiters, &w, linked);
    p->waiting++;
    rc = -pthread_cond_timedwait(&w.woken, &p->lock, &until);
    p->waiting--;
    TAILQ_REMOVE(&p->waiters, &w, linked);
    pthread_cond_destroy(&w.woken);
    *ret = w.place;
    return w.place ? 0 : rc;
}

/* An owner may fill three quarters of the queue. */
static bool may_wait(const struct web_pool *p, const struct web_owner *by)
{
    size_t most = (size_t)p->o->queue, own = 0;
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
    close_place(evicted);
    *ret = place;
    return rc > 0 ? 0 : rc;
}

/* The first request that waits and can use the place that gets free: one for its model, or one for
 * another model that lacks room for a place of its own. */
static struct waiter *next_waiter(struct web_pool *p, const char *model, bool broken)
{
    bool full = p->count >= (size_t)p->o->streams_total;
    struct waiter *w;

    TAILQ_FOREACH(w, &p->waiters, linked) {
        size_t count;

        if (w->called) {
            continue;
        }
        if (strcmp(w->model, model) == 0) {
            return w;
        }
        if (full || broken) {
            find(p, w->model, &count);
            if (count < (size_t)p->o->streams) {
                return w;
            }
        }
    }
    return NULL;
}

void web_pool_give(struct web_pool *p, struct web_place *place, bool broken)
{
    struct waiter *next;

    pthread_mutex_lock(&p->lock);
    return_slots(place); /* under the lock: what is nobody's can be found as idle */
    next = next_waiter(p, place->model, broken);
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
        close_place(place);
    }
}

/* Closes a slot that no request needs now. Return: false: there is none. */
static bool close_spare(struct web_place *place, enum web_form form)
{
    struct web_pool *p = place->pool;
    struct web_place *idle;
    bool closes = false;

    for (size_t i = 0; i < WEB_FORMS; i++) {
        if (i != (size_t)form && place->forms[i].stream) {
            web_place_close_stream(place, (enum web_form)i);
            return true;
        }
    }
    pthread_mutex_lock(&p->lock);
    idle = oldest_idle(p);
    if (idle) {
        web_memory_hold(p->memory, &closes, true);
    }
    pthread_mutex_unlock(&p->lock);
    close_place(idle);
    web_memory_hold(p->memory, &closes, false);
    return idle != NULL;
}

/* Claims memory for the place's request. A request with a slot does not wait for others with one.
 * Return: false: there is not enough. */
static bool claim(struct web_place *place, enum web_form form, size_t bytes, uint64_t until_ns)
{
    struct web_memory *m = place->pool->memory;

    for (;;) {
        uint64_t gifts = web_memory_gifts(m);

        if (web_memory_claim_slot(m, place->by, bytes, &place->holds)) {
            return true;
        }
        if (close_spare(place, form)) {
            hold(place, slots_of(place) > 0); /* one of its own, perhaps */
        } else if (place->holds || !web_memory_wait(m, gifts, until_ns)) {
            return false;
        }
    }
}

void web_place_worked(struct web_place *place)
{
    web_memory_give(place->pool->memory, place->by, place->work_bytes);
    place->work_bytes = 0;
}

/* Opens a stream whose picture, and work, are claimed. What its tensors take is known then. */
static int open_stream(struct web_place *place, enum web_form form, const struct web_need *need)
{
    struct form *f = &place->forms[form];
    const struct piped_stream_info *info;
    size_t more;
    int rc = web_open_stream(place->pool->o, place->model, form, need, &place->client, &f->stream);

    if (rc < 0) {
        return rc;
    }
    info = piped_stream_info(f->stream);
    more = (size_t)info->output_bytes + (need->width ? 0 : (size_t)info->input_bytes);
    if (!claim(place, form, more, need->until_ns)) {
        return WEB_E_MEMORY;
    }
    f->slot_bytes += more;
    return 0;
}

int web_place_stream(struct web_place *place, enum web_form form, const struct web_need *need,
                     struct piped_stream **ret, bool *ret_fresh)
{
    struct form *f = &place->forms[form];
    size_t picture = (size_t)need->width * need->height * (form == WEB_FORM_RGB ? 3 : 1);
    int rc;

    *ret_fresh = false;
    if (f->stream && (picture > f->picture_bytes ||
                      !web_memory_claim(place->pool->memory, place->by, need->work_bytes))) {
        web_place_close_stream(place, form);
        hold(place, slots_of(place) > 0);
    } else if (f->stream) {
        place->work_bytes = need->work_bytes;
        *ret = f->stream;
        return 0;
    }
    if (!claim(place, form, picture + need->work_bytes, need->until_ns)) {
        return WEB_E_MEMORY;
    }
    place->work_bytes = need->work_bytes;
    f->picture_bytes = f->slot_bytes = picture;
    rc = open_stream(place, form, need);
    if (rc) {
        web_place_close_stream(place, form);
    }
    *ret = f->stream;
    *ret_fresh = true;
    return rc;
}

/* A daemon that was started again may describe the same outputs in another way. */
int web_place_decoder(struct web_place *place, enum web_form form, struct piped_decoder **ret)
{
    struct form *f = &place->forms[form];
    const struct piped_stream_info *info = piped_stream_info(f->stream);
    const char *description = piped_stream_description(f->stream);
    int rc = 0;

    if (f->decoder && strcmp(f->described, description) != 0) {
        forget_decoder(f);
    }
    if (!f->decoder) {
        f->described = strdup(description);
        rc = f->described
                 ? piped_decoder_new(description, info->outputs, info->output_count, &f->decoder)
                 : -ENOMEM;
    }
    if (rc < 0) {
        forget_decoder(f);
    } else {
        *ret = f->decoder;
    }
    return rc;
}

bool web_place_connected(const struct web_place *place)
{
    return place->client != NULL;
}

void web_place_close_stream(struct web_place *place, enum web_form form)
{
    struct form *f = &place->forms[form];

    forget_decoder(f);
    f->stream = piped_stream_close(f->stream);
    web_memory_give(place->pool->memory, place->by, f->slot_bytes);
    f->picture_bytes = f->slot_bytes = 0;
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
        close_place(place);
    }
}

struct web_pool_counts web_pool_count(struct web_pool *p)
{
    struct web_pool_counts c;

    pthread_mutex_lock(&p->lock);
    c = (struct web_pool_counts){p->count, p->busy, p->waiting};
    pthread_mutex_unlock(&p->lock);
    return c;
}
