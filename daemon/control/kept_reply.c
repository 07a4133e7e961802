/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/control/kept_reply.h"

#include "daemon/config/state_lock.h"

static void note(json_t *in, int error)
{
    char text[128];

    snprintf(text, sizeof(text), "not kept for the next start: %s", dmn_state_why(error));
    json_object_set_new(in, "note", json_string(text));
}

static void kept(void *call, int error)
{
    struct dmn_call *c = call;

    if (error && !c->kept.noted && c->kept.failed) {
        json_decref(c->kept.reply);
        c->kept.failed(c, error);
        return;
    }
    if (error && c->kept.noted) {
        note(c->kept.noted, error);
    }
    dmn_call_reply(c, c->kept.reply, false);
}

struct dmn_state_kept dmn_kept_reply(struct dmn_call *c, json_t *reply, json_t *noted,
                                     void (*failed)(struct dmn_call *c, int error))
{
    c->kept.reply = reply;
    c->kept.noted = noted;
    c->kept.failed = failed;
    return (struct dmn_state_kept){kept, c};
}
