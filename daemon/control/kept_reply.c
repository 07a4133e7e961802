/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/control/kept_reply.h"

#include <stdio.h>

#include "base.h"
#include "daemon/config/state_lock.h"

struct waiting {
    struct dmn_call *call;
    json_t *reply, *noted; /* noted: borrowed from reply */
    void (*failed)(struct dmn_call *c, int error);
};

static void note(json_t *in, int error)
{
    char text[128];

    snprintf(text, sizeof(text), "not kept for the next start: %s", dmn_state_why(error));
    json_object_set_new(in, "note", json_string(text));
}

static void answer(const struct waiting *w, int error)
{
    if (error && !w->noted && w->failed) {
        json_decref(w->reply);
        w->failed(w->call, error);
        return;
    }
    if (error && w->noted) {
        note(w->noted, error);
    }
    dmn_call_reply(w->call, w->reply, false);
}

static void kept(void *ctx, int error)
{
    struct waiting *w = ctx;

    answer(w, error);
    free(w);
}

static void nobody(void *ctx, int error)
{
    (void)ctx;
    (void)error;
}

struct dmn_state_kept dmn_kept_reply(struct dmn_call *c, json_t *reply, json_t *noted,
                                     void (*failed)(struct dmn_call *c, int error))
{
    struct waiting of = {c, reply, noted, failed}, *w = malloc(sizeof(*w));

    if (!w) { /* it may be kept all the same */
        answer(&of, -ENOMEM);
        return (struct dmn_state_kept){nobody, NULL};
    }
    *w = of;
    return (struct dmn_state_kept){kept, w};
}
