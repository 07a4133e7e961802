/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/remake.h - a model is made anew on a work thread while it serves, and the new one takes
 * its place as a reload would put it there: its clients go on, and no frame is lost
 *
 * Who asks gives the steps; one remake runs at a time. Threads: the loop's, but for prepare().
 */
#pragma once

#include <uv.h>

#include "daemon/models.h"

struct dmn_remake {
    uv_work_t work;
    struct dmn_daemon *daemon;
    struct dmn_remake *next;
    struct dmn_call *call; /* NULL: nobody waits any more */
    struct dmn_load *load; /* owned */
    int error;
    const char *cause; /* of the history event; static */
    void *of;          /* of the asker */
    /* Work thread: before the load; NULL: nothing is to be done before. Return: 0; positive: there
     * is nothing to load; negative with load->error. */
    int (*prepare)(struct dmn_remake *r);
    /* Loaded, or error is positive. Return: true: it is to serve; false: the call was answered. */
    bool (*loaded)(struct dmn_remake *r);
    void (*serves)(struct dmn_remake *r); /* the new one does: answers the call */
    void (*end)(struct dmn_remake *r);    /* frees what is of the asker; NULL: nothing */
};

/**
 * dmn_remake_new() - a load of @m as it is configured, to be begun
 * @cause: what is asked for, of the history event; static
 * Return: owned by the caller until dmn_remake_begin(); NULL: the call was answered (Busy where a
 * remake or a change of plan is under way).
 */
struct dmn_remake *dmn_remake_new(struct dmn_call *c, struct dmn_model *m, const char *cause);
/** dmn_remake_begin() - takes @r and the call, which is answered in the end. */
void dmn_remake_begin(struct dmn_remake *r, struct dmn_call *c);
/** dmn_remake_free() - of one that was not begun; its end() runs. */
void dmn_remake_free(struct dmn_remake *r);
/** dmn_remake_fail() - answers the call, if there still is one. */
void dmn_remake_fail(struct dmn_remake *r, const char *error, const char *why);
/** dmn_remake_reply() - the same with a result. @parameters: stolen. */
void dmn_remake_reply(struct dmn_remake *r, json_t *parameters);
/** dmn_remake_detach() - at the end: gives up what is under way. */
void dmn_remake_detach(struct dmn_daemon *d);
