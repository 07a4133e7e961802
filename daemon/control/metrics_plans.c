/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of plans and units. */
#include "base/base.h"
#include "daemon/control/control.h"
#include "daemon/control/metrics_text.h"
#include "daemon/plans/planning.h"

/* Alert rules watch these: their rows are there before anything is counted, or the first event
 * would be no increase. */
static bool always(int cause, int outcome)
{
    return cause > TUN_CAUSE_NONE && cause < (int)TUN_CAUSE_COUNT &&
           (outcome == DMN_OUTCOME_SWITCHED || outcome == DMN_OUTCOME_ROLLED_BACK);
}

static void event_rows(FILE *to, const struct dmn_model *m)
{
    const struct dmn_plan_counts *counts = &m->planning->counts;

    for (int c = 0; c < DMN_CAUSE_COUNT; c++) {
        for (int o = DMN_OUTCOME_NONE + 1; o < DMN_OUTCOME_COUNT; o++) {
            if (counts->events[c][o] || always(c, o)) {
                fprintf(to,
                        "piped_plan_events_total{model=\"%s\",cause=\"%s\",outcome=\"%s\"} "
                        "%llu\n",
                        m->name, dmn_cause_name((enum dmn_cause)c),
                        dmn_event_outcome_name((enum dmn_event_outcome)o),
                        (unsigned long long)counts->events[c][o]);
            }
        }
    }
}

static void trials(FILE *to, const struct dmn_control *control)
{
    static const char *const ends[DMN_TRIAL_ENDS] = {[DMN_TRIAL_COMPLETED] = "completed",
                                                     [DMN_TRIAL_STOPPED] = "stopped",
                                                     [DMN_TRIAL_FAILED] = "failed"};

    dmn_metric_head(to, "trials_total", "counter", "Plans that served to be measured, by outcome.");
    for (const struct dmn_model *m = control->models->models; m; m = m->next) {
        for (int e = 0; e < DMN_TRIAL_ENDS; e++) {
            fprintf(to, "piped_trials_total{model=\"%s\",outcome=\"%s\"} %llu\n", m->name, ends[e],
                    (unsigned long long)m->planning->counts.trials[e]);
        }
    }
    dmn_metric_head(to, "trial_seconds_total", "counter", "Time for which trials served.");
    for (const struct dmn_model *m = control->models->models; m; m = m->next) {
        fprintf(to, "piped_trial_seconds_total{model=\"%s\"} %.17g\n", m->name,
                m->planning->counts.trial_s);
    }
}

static void units(FILE *to, const struct dmn_control *control)
{
    dmn_metric_head(to, "unit_seconds", "summary", "Time of a unit, over all plans.");
    for (const struct dmn_model *m = control->models->models; m; m = m->next) {
        for (size_t u = 0; u < m->model->unit_count; u++) {
            const struct mdl_op *op = &m->model->ops[m->model->units[u].heavy_op];
            struct pl_unit_total t;

            pl_unit_total(m->pipe, u, &t);
            fprintf(to,
                    "piped_unit_seconds_sum{model=\"%s\",unit=\"%zu\",kind=\"%s\"} %.17g\n"
                    "piped_unit_seconds_count{model=\"%s\",unit=\"%zu\",kind=\"%s\"} %llu\n",
                    m->name, u, mdl_op_kind_name(op->kind), t.ns / 1e9, m->name, u,
                    mdl_op_kind_name(op->kind), (unsigned long long)t.frames);
        }
    }
}

void dmn_plans_metrics(FILE *to, const struct dmn_control *control, enum dmn_left_out less)
{
    dmn_metric_head(to, "plan_events_total", "counter",
                    "Events of the history, by cause and outcome.");
    for (const struct dmn_model *m = control->models->models; m; m = m->next) {
        event_rows(to, m);
    }
    trials(to, control);
    if (less < DMN_LEFT_OUT_UNITS) {
        units(to, control);
    }
}
