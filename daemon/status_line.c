/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's state, and the status line (STATUS=) for the service manager. */

#include "base/base.h"
#include "daemon/daemon.h"
#include "daemon/plans/planning.h"
#include "daemon/plans/profile.h"

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
    size_t used;

    used = (size_t)snprintf(text, sizeof(text), "STATUS=%s:%s", dmn_state_name(dmn_daemon_state(d)),
                            d->unreachable[0] ? " new clients cannot connect;" : "");
    for (const struct dmn_model *m = d->models.models; m && used < sizeof(text); m = m->next) {
        used += (size_t)snprintf(text + used, sizeof(text) - used, " %s %zu stage%s %.1f fps;",
                                 m->name, pl_current_plan(m->pipe)->stage_count,
                                 base_plural(pl_current_plan(m->pipe)->stage_count),
                                 dmn_model_fps(m, base_now_ns()));
    }
    if (strcmp(text, d->status_text) != 0) {
        memcpy(d->status_text, text, sizeof(text));
        dmn_notify(&d->notify, text);
    }
}
