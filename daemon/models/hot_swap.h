/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/models/hot_swap.h - replaces a served model with another build of it
 *
 * A work thread builds the new model while the old one serves. Then the new one takes its place, as
 * in a reload: clients go on, and no frame is lost. The requester provides the steps. One hot swap
 * runs at a time; one whose arrival gives way is called off by the next. Threads: the loop thread,
 * except prepare().
 */
#pragma once

#include "daemon/models/arrival.h"

struct dmn_hot_swap {
    struct dmn_arrival arrival;
    struct dmn_models *models; /* borrowed */
    bool told;                 /* the requester knows the outcome */
    char in_way[160];          /* why another cannot begin; written by hot_swap.c */
    struct dmn_load *load;     /* owned */
    int error;                 /* of prepare() */
    enum dmn_cause cause;      /* of the history event */
    void *of;                  /* owned: the requester's data; NULL: none */
    /* Work thread, before the load; may be NULL. Return: 0: go on; positive: there is nothing to
     * load; negative, with load->error set. */
    int (*prepare)(struct dmn_hot_swap *r);
    /* The last of the next three calls reports the outcome. loaded(): the model is loaded, or error
     * is positive; may be NULL. Return: it is to serve; false: the requester needs nothing more. */
    bool (*loaded)(struct dmn_hot_swap *r);
    void (*serves)(struct dmn_hot_swap *r); /* the new model serves */
    void (*failed)(struct dmn_hot_swap *r, const struct dmn_outcome *o);
    void (*end)(struct dmn_hot_swap *r); /* frees what is in `of`; NULL: nothing to free */
};

/**
 * dmn_hot_swap_new() - prepares a hot swap of @m with its configured sources
 *
 * @cause: for the history. Return: owned by the caller until dmn_hot_swap_begin(); NULL, with
 * @ret_why set, if a hot swap that does not give way, or a change of plan, is in progress, or if
 * out of memory.
 */
struct dmn_hot_swap *dmn_hot_swap_new(struct dmn_model *m, enum dmn_cause cause,
                                      struct dmn_outcome *ret_why);
/** dmn_hot_swap_begin() - starts @r, whose functions are set, and takes it. */
void dmn_hot_swap_begin(struct dmn_hot_swap *r);
/** dmn_hot_swap_cancel() - calls off the hot swap of model @name, if one is in progress. @why:
 * static. */
void dmn_hot_swap_cancel(const struct dmn_models *models, const char *name, const char *why);
/** dmn_hot_swap_free() - frees one that was not begun; calls its end(). */
void dmn_hot_swap_free(struct dmn_hot_swap *r);
