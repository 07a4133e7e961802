/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/models/arrival.h - the one chain of steps from a file to a model that may serve
 *
 * A work thread reads and compiles the files (dmn_load_run()). The loop prepares planning
 * (dmn_planner_ops.prepare). A work thread finds the first plans (dmn_planner_ops.first). Then
 * end() is called, and its owner may start the models (dmn_model_start()).
 *
 * The loads of one arrival succeed together or not at all, but for those that may fail
 * (dmn_load.may_fail). The EPs must not change while models->arrivals is not empty.
 *
 * Threads: the loop thread, except before().
 */
#pragma once

#include "daemon/models/models.h"
#include "daemon/service/work.h"

/* Embedded in the requester's struct. The requester sets the first part and zeroes the rest. */
struct dmn_arrival {
    struct dmn_models *models;       /* borrowed */
    const struct dmn_config *config; /* to serve under, borrowed; NULL: the one in force */
    struct dmn_load **loads;         /* borrowed until end(); used by a work thread until then */
    size_t count;
    bool gives_way; /* nobody waits for it: beside frames, at low priority */
    /* Work thread, before the first load; may be NULL. Return: 0: go on; positive: there is nothing
     * to load; negative, with the error in the first load. */
    int (*before)(struct dmn_arrival *a);
    /* Called when all are loaded, or when a->error is positive; may be NULL. Return: go on; false:
     * the requester needs nothing more. */
    bool (*loaded)(struct dmn_arrival *a);
    /* The daemon stops: answer whoever waits now; end() follows. NULL: nobody waits. */
    void (*leave)(struct dmn_arrival *a);
    /* Called once, at the end; the requester owns the arrival again. @o: NULL: the models can be
     * started; else why not, with text NULL if loaded() returned false. */
    void (*end)(struct dmn_arrival *a, const struct dmn_outcome *o);
    /* set by arrival.c */
    struct dmn_job work;
    LIST_ENTRY(dmn_arrival) linked;
    int error;
    struct dmn_load *failed; /* one of loads; NULL: none */
    const char *cancelled;   /* static: why it was called off; NULL: it was not */
};

/** dmn_arrival_begin() - starts the chain; end() will be called, later. */
void dmn_arrival_begin(struct dmn_arrival *a);
/** dmn_arrival_cancel() - calls it off. end() follows as soon as the step in work has noticed; the
 * models are not started. @why: static. A second call does nothing. */
void dmn_arrival_cancel(struct dmn_arrival *a, const char *why);
/** dmn_arrivals_leave() - the daemon stops: calls off every arrival in progress. */
void dmn_arrivals_leave(struct dmn_models *models);
