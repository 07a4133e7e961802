/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/models/done.h - how a lengthy operation reports its end to the caller
 *
 * The caller passes a function and a context; the function is called exactly once. The context must
 * stay valid until then, even if the client has gone. Header-only. Threads: the loop thread.
 */
#pragma once

#include <stddef.h>

enum dmn_refusal {
    DMN_REFUSED_BUSY, /* something else is in progress, or the daemon is stopping */
    DMN_REFUSED_LOAD,
    DMN_REFUSED_NOT_FOUND,
    DMN_REFUSED_PLAN, /* the plan does not fit or could not be built */
    DMN_REFUSED_RELOAD,
};

/* Why an operation was not done. */
struct dmn_outcome {
    enum dmn_refusal reason;
    const char *text; /* borrowed: a phrase for people */
};

/* @o: NULL: success. */
typedef void (*dmn_done_fn)(void *ctx, const struct dmn_outcome *o);

/* A callback; fn NULL: nobody waits. */
struct dmn_done {
    dmn_done_fn fn;
    void *ctx;
};

/** dmn_done() - calls the callback, once. @o: NULL: success. */
static inline void dmn_done(struct dmn_done *d, const struct dmn_outcome *o)
{
    struct dmn_done to = *d;

    *d = (struct dmn_done){0};
    if (to.fn) {
        to.fn(to.ctx, o);
    }
}

static inline void dmn_refuse(struct dmn_done *d, enum dmn_refusal reason, const char *text)
{
    dmn_done(d, &(struct dmn_outcome){.reason = reason, .text = text});
}
