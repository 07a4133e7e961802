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
    struct piped_stream *stream; /* NULL: not open */
    uint32_t width, height;
};

struct web_place {
    TAILQ_ENTRY(web_place) linked;
    const struct web_options *o; /* borrowed */
    char model[MODEL_BYTES];
    struct piped *client; /* NULL: not connected */
    struct form forms[WEB_FORMS];
    bool busy;
    uint64_t idle_ns; /* since */
};

TAILQ_HEAD(places, web_place);

struct web_pool {
    const struct web_options *o; /* borrowed */
    pthread_mutex_t lock;        /* of all below */
    pthread_cond_t freed;
    struct places places; /* those last used first */
    size_t count, busy, waiting;
};

struct web_pool *web_pool_new(const struct web_options *o)
{
    struct web_pool *p = calloc(1, sizeof(*p));
    pthread_condattr_t attr;

    if (p) {
        p->o = o;
        TAILQ_INIT(&p->places);
        pthread_mutex_init(&p->lock, NULL);
        pthread_condattr_init(&attr);
        pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
        pthread_cond_init(&p->freed, &attr);
        pthread_condattr_destroy(&attr);
    }
    return p;
}

static void close_place(struct web_place *place)
{
    if (place) {
        piped_close(place->client); /* and its streams */
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
        pthread_cond_destroy(&p->freed);
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
    place->o = p->o;
    snprintf(place->model, sizeof(place->model), "%s", model);
    TAILQ_INSERT_HEAD(&p->places, place, linked);
    p->count++;
    *ret = place;
    return 0;
}

/* Under the lock. @ret_evicted: to be closed without it. Return: 0: no place is free. */
static int try_take(struct web_pool *p, const char *model, struct web_place **ret,
                    struct web_place **ret_evicted)
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
        p->busy++;
        *ret = place;
        rc = 1;
    }
    return rc;
}

int web_pool_take(struct web_pool *p, const char *model, uint64_t until_ns, struct web_place **ret)
{
    struct timespec until = {.tv_sec = (time_t)(until_ns / BASE_NS_PER_S),
                             .tv_nsec = (long)(until_ns % BASE_NS_PER_S)};
    struct web_place *evicted = NULL;
    int rc;

    pthread_mutex_lock(&p->lock);
    rc = try_take(p, model, ret, &evicted);
    if (rc == 0 && p->waiting >= (size_t)p->o->queue) {
        rc = -EAGAIN;
    }
    while (rc == 0) {
        p->waiting++;
        rc = -pthread_cond_timedwait(&p->freed, &p->lock, &until);
        p->waiting--;
        rc = rc == 0 ? try_take(p, model, ret, &evicted) : rc;
    }
    pthread_mutex_unlock(&p->lock);
    close_place(evicted);
    return rc > 0 ? 0 : rc;
}

void web_pool_give(struct web_pool *p, struct web_place *place, bool broken)
{
    pthread_mutex_lock(&p->lock);
    place->busy = false;
    place->idle_ns = base_now_ns();
    p->busy--;
    TAILQ_REMOVE(&p->places, place, linked);
    if (broken) {
        p->count--;
    } else {
        TAILQ_INSERT_HEAD(&p->places, place, linked);
    }
    pthread_cond_broadcast(&p->freed);
    pthread_mutex_unlock(&p->lock);
    if (broken) {
        close_place(place);
    }
}

static int open_client(struct web_place *place)
{
    struct piped_options o = {
        .size = sizeof(o),
        .path = place->o->frames_path,
        .client = "piped-http",
        .reconnect_ms = (uint32_t)(place->o->reconnect_s * 1e3),
        .answer_ms = (uint32_t)(place->o->answer_s * 1e3),
    };

    return piped_connect(&o, &place->client);
}

int web_place_stream(struct web_place *place, enum web_form form, uint32_t width, uint32_t height,
                     struct piped_stream **ret, bool *ret_fresh)
{
    static const uint32_t pixfmt[] = {PIPED_TENSOR, PIPED_TENSOR, PIPED_RGB24, PIPED_GRAY8};
    struct form *f = &place->forms[form];
    struct piped_stream_options o = {
        .size = sizeof(o),
        .model = place->model,
        .pixfmt = pixfmt[form],
        .policy = strcmp(place->o->policy, "reject") == 0 ? PIPED_REJECT : PIPED_BLOCK,
        .credits = 1,
        .slots = 1,
        .input_dtype = form == WEB_FORM_HALF ? PIPED_F16 : 0,
    };
    int rc = 0;

    *ret_fresh = false;
    if (f->stream && (width > f->width || height > f->height)) {
        web_place_close_stream(place, form);
    }
    if (!f->stream) {
        f->width = o.width = base_max(f->width, width);
        f->height = o.height = base_max(f->height, height);
        rc = place->client ? 0 : open_client(place);
        rc = rc < 0 ? rc : piped_stream_open(place->client, &o, &f->stream);
        *ret_fresh = true;
    }
    *ret = f->stream;
    return rc;
}

bool web_place_connected(const struct web_place *place)
{
    return place->client != NULL;
}

void web_place_close_stream(struct web_place *place, enum web_form form)
{
    place->forms[form].stream = piped_stream_close(place->forms[form].stream);
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
