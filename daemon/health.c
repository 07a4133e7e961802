/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the daemon is well: its state, the status line (STATUS=) for the service manager, and the
 * watchdog. */

#include "base/base.h"
#include "daemon/daemon.h"
#include "daemon/plans/plans.h"
#include "daemon/plans/profile.h"
#include "daemon/service/log.h"
#include "daemon/service/service.h"

#define GAP_NS (2 * BASE_NS_PER_S) /* between two looks, at least one of which is due each second */

/* A process that was stopped, or a machine that slept, has no stalled stages: time counts from when
 * it goes on. */
static uint64_t runs_for_ns(struct dmn_daemon *d, uint64_t now_ns)
{
    if (now_ns - d->looked_ns > GAP_NS) {
        d->runs_since_ns = now_ns;
    }
    d->looked_ns = now_ns;
    return now_ns - d->runs_since_ns;
}

static bool healthy(struct dmn_daemon *d, struct dmn_model *m, uint64_t now_ns, uint64_t runs_for)
{
    uint64_t limit = (uint64_t)dmn_config_int(d->config, DMN_KEY_STALLED_MS) * BASE_NS_PER_MS;
    bool stalled = base_min(pl_stalled_ns(m->pipe, now_ns), runs_for) > limit;

    if (stalled && !m->stalled) {
        dmn_log_with(LOG_ERR, (struct dmn_log_fields){.id = DMN_MSG_STALLED, .model = m->name},
                     "model %s: a stage made no progress for %lld ms", m->name,
                     (long long)dmn_config_int(d->config, DMN_KEY_STALLED_MS));
    } else if (!stalled && m->stalled) {
        dmn_log_with(LOG_NOTICE, (struct dmn_log_fields){.id = DMN_MSG_STALLED, .model = m->name},
                     "model %s: all stages progress again", m->name);
    }
    m->stalled = stalled;
    return !stalled;
}

bool dmn_watchdog_healthy(struct dmn_daemon *d)
{
    uint64_t now = base_now_ns(), runs_for = runs_for_ns(d, now);
    bool all = true;

    for (struct dmn_model *m = dmn_model_first(&d->models); m; m = dmn_model_next(m)) {
        all &= healthy(d, m, now, runs_for);
    }
    return all;
}

static void on_watchdog(uv_timer_t *timer)
{
    struct dmn_daemon *d = timer->data;

    if (dmn_watchdog_healthy(d)) {
        dmn_notify(&d->notify, "WATCHDOG=1");
    }
}

void dmn_watchdog_start(struct dmn_daemon *d)
{
    uint64_t us = dmn_service_watchdog_us();

    if (us) {
        uint64_t ms = base_max(us / 2000, (uint64_t)1);

        dmn_notify(&d->notify, "WATCHDOG=1");
        uv_timer_start(&d->watchdog, on_watchdog, ms, ms);
    }
}

/* ---- state ---- */

enum dmn_state dmn_daemon_state(const struct dmn_daemon *d)
{
    if (d->draining) {
        return DMN_STATE_DRAINING;
    }
    for (const struct dmn_model *m = d->models.models; m; m = m->next) {
        if (m->stalled) {
            return DMN_STATE_DEGRADED;
        }
    }
    if (!STAILQ_EMPTY(&d->models.failed) || !d->models.models || d->unreachable[0]) {
        return DMN_STATE_DEGRADED;
    }
    for (const struct dmn_model *m = d->models.models; m; m = m->next) {
        if (m->planning->retune) {
            return DMN_STATE_TUNING;
        }
    }
    return dmn_profiling(&d->plans) ? DMN_STATE_TUNING : DMN_STATE_SERVING;
}

void dmn_daemon_status(struct dmn_daemon *d)
{
    char text[sizeof(d->status_text)];

    snprintf(text, sizeof(text), "STATUS=%s:%s", dmn_state_names[dmn_daemon_state(d)],
             d->unreachable[0] ? " new clients cannot connect;" : "");
    for (const struct dmn_model *m = d->models.models; m; m = m->next) {
        base_append(text, sizeof(text), " %s %zu stage%s %.1f fps;", m->name,
                    pl_current_plan(m->pipe)->stage_count,
                    base_plural(pl_current_plan(m->pipe)->stage_count),
                    dmn_model_fps(m, base_now_ns()));
    }
    if (strcmp(text, d->status_text) != 0) {
        memcpy(d->status_text, text, sizeof(text));
        dmn_notify(&d->notify, text);
    }
}
