/* SPDX-License-Identifier: Apache-2.0 */
/** apps/http/pool_private.h - what pool.c and place.c share. Threads: as pool.h. */
#pragma once

#include <sys/queue.h>

#include "apps/http/pool.h"

#define MODEL_BYTES 64u /* IPC_NAME_BYTES */

struct form {
    struct piped_stream *stream;      /* NULL: not open */
    size_t picture_bytes, slot_bytes; /* that it takes; claimed */
    struct piped_decoder *decoder;    /* owned; NULL: not asked for yet */
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

/* A request that waits, on its thread's stack. The next place of its model is handed to the first
 * of the owner who has fewest. So a request that comes just then does not overtake it, and only one
 * thread wakes. */
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

/* place.c: pool.c calls it, and not the other way */
/** web_place_slots() - Return: bytes of its slots. */
size_t web_place_slots(const struct web_place *place);
/** web_place_hold() - tells the memory whether a request has slots of it. */
void web_place_hold(struct web_place *place, bool holds);
/** web_place_close() - an idle one that is out of the list; NULL: nothing happens. */
void web_place_close(struct web_place *place);
/** web_place_oldest_idle() - takes the place out that has been idle for longest. Under the lock.
 * Return: NULL: all are busy. */
struct web_place *web_place_oldest_idle(struct web_pool *p);
