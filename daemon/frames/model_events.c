/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/frames/model_events.h"

#include "daemon/frames/submit.h"

static int on_starting(void *ctx, struct dmn_model *m)
{
    m->clients = dmn_clients_new(m);
    return m->clients ? 0 : -ENOMEM;
}

static void on_room(void *ctx, struct dmn_model *m)
{
    dmn_submit_waiting(m->clients);
}

static size_t on_waiting(void *ctx, const struct dmn_model *m)
{
    return m->clients->admission.waiting;
}

static bool on_busy(void *ctx, const struct dmn_model *m)
{
    const struct dmn_stream *s;

    /* frames of streams that a hot swap moved here may still be in the previous model's pipeline */
    LIST_FOREACH(s, &m->clients->streams, linked) {
        if (s->running > 0) {
            return true;
        }
    }
    return m->clients->admission.waiting > 0;
}

static void on_unloading(void *ctx, struct dmn_model *m)
{
    struct dmn_stream *s;

    LIST_FOREACH(s, &m->clients->streams, linked) {
        dmn_stream_event(s, IPC_EVENT_UNLOADING, pl_epoch(m->pipe));
    }
}

static void on_replaced(void *ctx, struct dmn_model *m, struct dmn_model *by)
{
    while (!LIST_EMPTY(&m->clients->streams)) {
        dmn_stream_move(LIST_FIRST(&m->clients->streams), by->clients);
    }
}

static void on_gone(void *ctx, struct dmn_model *m)
{
    while (m->clients && !LIST_EMPTY(&m->clients->streams)) {
        dmn_stream_detach(LIST_FIRST(&m->clients->streams));
    }
    m->clients = dmn_clients_free(m->clients);
}

struct dmn_models_listener dmn_model_events(void)
{
    return (struct dmn_models_listener){.starting = on_starting,
                                        .room = on_room,
                                        .waiting = on_waiting,
                                        .busy = on_busy,
                                        .unloading = on_unloading,
                                        .replaced = on_replaced,
                                        .gone = on_gone};
}

void dmn_model_events_plan(struct dmn_model *m)
{
    struct dmn_stream *s;

    LIST_FOREACH(s, &m->clients->streams, linked) {
        dmn_stream_event(s, IPC_EVENT_PLAN, pl_epoch(m->pipe));
        dmn_stream_more_credits(s, dmn_model_depth(m));
    }
}
