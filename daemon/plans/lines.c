/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/plans/lines.h"

#include "base/base.h"
#include "daemon/machine/machine.h"
#include "daemon/plans/planning.h"
#include "daemon/plans/profile.h"
#include "daemon/plans/retune.h"
#include "daemon/service/log.h"

static void on_button(void *ctx)
{
    struct dmn_plans *plans = ctx;
    const struct dmn_config *config = dmn_machine_config(plans->machine);

    if (plans->models->stopping) {
        return;
    }
    for (struct dmn_model *m = plans->models->models; m; m = m->next) {
        struct dmn_retune_request q = dmn_retune_configured(config, DMN_CAUSE_GPIO);
        int error = dmn_profiling(plans) ? -EBUSY : dmn_retune_begin(m, &q);

        if (error) {
            dmn_log_limited(LOG_NOTICE, (struct dmn_log_fields){.model = m->name},
                            "model %s: the button asked for a retune, which cannot start: %s",
                            m->name, strerror(-error));
        }
    }
}

static void on_power(void *ctx, bool active)
{
    struct dmn_plans *plans = ctx;

    for (struct dmn_model *m = plans->models->models; m; m = m->next) {
        char plan[PL_PLAN_TEXT_MAX];

        if (pl_plan_format(pl_current_plan(m->pipe), &plans->machine->eps, plan, sizeof(plan)) <
            0) {
            continue;
        }
        dmn_plan_event(m, &(struct dmn_history_event){.cause = DMN_CAUSE_GPIO,
                                                      .detail = active ? "power line active"
                                                                       : "power line inactive",
                                                      .plan_before = plan,
                                                      .plan_after = plan,
                                                      .fps_before = -1,
                                                      .fps_after = -1,
                                                      .outcome = DMN_OUTCOME_NOTED});
    }
}

void dmn_lines_listen(struct dmn_plans *plans)
{
    plans->lines =
        (struct dmn_gpio_listener){.ctx = plans, .pressed = on_button, .power = on_power};
    dmn_gpio_listen(plans->machine, &plans->lines);
}
