/* SPDX-License-Identifier: Apache-2.0 */
/* The end: frames in flight are answered, up to a deadline. */
#include "base/base.h"
#include "daemon/daemon.h"
#include "daemon/models/arrival.h"
#include "daemon/service/log.h"

static bool idle(const struct dmn_daemon *d)
{
    for (const struct dmn_model *m = dmn_model_first(&d->models); m; m = dmn_model_next(m)) {
        if (m->running > 0 || dmn_model_waiting(m) > 0) {
            return false;
        }
    }
    return dmn_frames_drained(&d->frames);
}

static void on_deadline(uv_timer_t *timer)
{
    struct dmn_daemon *d = timer->data;

    dmn_log_with(LOG_WARNING, (struct dmn_log_fields){.id = DMN_MSG_DRAIN},
                 "some frames in flight were not answered within %lld ms; stopping anyway",
                 (long long)dmn_config_int(d->config, DMN_KEY_DRAIN_MS));
    d->drained = true;
    uv_stop(&d->loop);
}

void dmn_drain_begin(struct dmn_daemon *d)
{
    if (d->draining) { /* a second request: stop now */
        d->drained = true;
        uv_stop(&d->loop);
        return;
    }
    dmn_notify(&d->notify, "STOPPING=1\nSTATUS=draining");
    dmn_log_with(LOG_NOTICE, (struct dmn_log_fields){.id = DMN_MSG_DRAIN},
                 "stopping: answering the frames in flight");
    dmn_acceptor_stop(&d->frames.acceptor);
    dmn_control_stop_accepting(&d->control);
    dmn_plans_give_up(&d->plans, "the daemon is stopping");
    dmn_boards_stop(&d->boards);
    dmn_frames_drain_begin(&d->frames);
    d->draining = d->models.stopping = true;
    dmn_control_draining(&d->control);
    dmn_arrivals_leave(&d->models); /* what they load would serve nobody */
    uv_timer_start(&d->drain, on_deadline, (uint64_t)dmn_config_int(d->config, DMN_KEY_DRAIN_MS),
                   0);
}

void dmn_drain_check(struct dmn_daemon *d)
{
    if (!d->draining || d->drained || !idle(d)) {
        return;
    }
    dmn_frames_take_in(&d->frames); /* frames sent since get an answer too: "unavailable" */
    if (idle(d)) {
        d->drained = true;
        uv_stop(&d->loop);
    }
}
