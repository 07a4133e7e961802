/* SPDX-License-Identifier: Apache-2.0 */
#include "base.h"
#include "daemon/daemon.h"
#include "daemon/service/log.h"
#include "daemon/service/messages.h"

static bool idle(const struct dmn_daemon *d)
{
    const struct dmn_model *lists[] = {d->models, d->leaving};

    for (size_t i = 0; i < base_array_count(lists); i++) {
        for (const struct dmn_model *m = lists[i]; m; m = m->next) {
            if (m->running > 0 || m->admission.waiting > 0) {
                return false;
            }
        }
    }
    return dmn_frames_drained(d);
}

static void on_deadline(uv_timer_t *timer)
{
    struct dmn_daemon *d = timer->data;

    dmn_log_with(LOG_WARNING, (struct dmn_log_fields){.id = DMN_MSG_DRAIN},
                 "not everything in flight was answered within %lld ms; stopping anyway",
                 (long long)dmn_config_int(d->config, DMN_KEY_DRAIN_MS));
    d->drained = true;
    uv_stop(&d->loop);
}

void dmn_drain_begin(struct dmn_daemon *d)
{
    if (d->draining) { /* a second request: now */
        d->drained = true;
        uv_stop(&d->loop);
        return;
    }
    dmn_notify(&d->notify, "STOPPING=1\nSTATUS=draining");
    dmn_log_with(LOG_NOTICE, (struct dmn_log_fields){.id = DMN_MSG_DRAIN},
                 "stopping: answering what is in flight");
    dmn_frames_stop_accepting(d);
    dmn_control_stop_accepting(d);
    for (struct dmn_model *m = d->models; m; m = m->next) {
        dmn_retune_abort(m, "the daemon is going down");
    }
    dmn_calibrate_abort(d, "the daemon is going down");
    dmn_frames_drain_begin(d);
    dmn_control_event(d, json_pack("{s:s, s:s}", "event", "state", "state", "draining"));
    uv_timer_start(&d->drain, on_deadline, (uint64_t)dmn_config_int(d->config, DMN_KEY_DRAIN_MS),
                   0);
    dmn_daemon_settle(d);
}

void dmn_drain_check(struct dmn_daemon *d)
{
    struct dmn_conn *next;

    if (!d->draining || d->drained || !idle(d)) {
        return;
    }
    for (struct dmn_conn *c = d->frames.conns; c; c = next) {
        next = c->next;
        dmn_conn_read(c); /* what came since gets its answer too: "unavailable" */
        if (!c->closed) {
            dmn_conn_mark(c);
        }
    }
    dmn_frames_settle(d);
    if (idle(d)) {
        d->drained = true;
        uv_stop(&d->loop);
    }
}
