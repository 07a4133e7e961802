/* SPDX-License-Identifier: Apache-2.0 */
/* Start and end of this room, and its reactions to events of models. */
#include "daemon/machine/machine.h"
#include "daemon/plans/plans.h"
#include "daemon/plans/profile.h"
#include "daemon/plans/retune.h"
#include "daemon/plans/switch.h"
#include "daemon/service/log.h"

/* interval for saving what was learned, besides each change of plan and the end */
#define SAVE_NS (300 * BASE_NS_PER_S)
/* answers after which clients are taken to be there, for the search at the start */
#define START_FRAMES 24u

/* ---- of models ---- */

static int prepare(void *ctx, const struct dmn_config *config, struct dmn_load *l)
{
    struct dmn_plans *plans = ctx;

    return dmn_planner_prepare(plans, plans->machine, config, l);
}

static const struct dmn_planner_ops planner_ops = {.read = dmn_kept_read,
                                                   .prepare = prepare,
                                                   .first = dmn_planner_first,
                                                   .forget = dmn_planning_free,
                                                   .changing = dmn_plan_changing};

static void started(void *ctx, struct dmn_model *m, enum dmn_cause cause, const char *detail)
{
    struct dmn_planning *p = m->planning;
    char plan[PL_PLAN_TEXT_MAX];

    if (p->streams) {
        dmn_streams_take(p->of, p->streams);
        free(base_take(p->streams));
        dmn_profile_save(p->of, (struct dmn_state_kept){0});
    }
    p->expects = dmn_planner_expect(m, pl_current_plan(m->pipe), &p->expected);
    dmn_model_plan_text(m, plan);
    dmn_plan_event(m, &(struct dmn_history_event){.cause = cause,
                                                  .detail = detail,
                                                  .origin = m->origin,
                                                  .plan_after = plan,
                                                  .fps_before = -1,
                                                  .fps_after = -1,
                                                  .outcome = DMN_OUTCOME_SERVING});
}

static void collected(void *ctx, struct dmn_model *m, const struct pl_frame *f)
{
    if (m->planning->retune) {
        dmn_retune_collected(m, f);
    }
}

/* Runs the search whose seed serves since the start, on the frames that came. */
static void search_from_start(struct dmn_model *m)
{
    struct dmn_planning *p = m->planning;
    struct dmn_retune_request q =
        dmn_retune_configured(dmn_machine_config(p->of->machine), DMN_CAUSE_START);
    bool seeded = m->origin.from == DMN_FROM_SEARCH && m->origin.algorithm == p->start;

    if (!seeded || m->stats.answered < START_FRAMES || dmn_profiling(p->of)) {
        p->start_due = seeded; /* or something else has found a plan */
        return;
    }
    q.algorithm = p->start;
    q.options.from = pl_current_plan(m->pipe);
    p->start_due = dmn_retune_begin(m, &q) == -EBUSY;
}

static void second(void *ctx, struct dmn_model *m, uint64_t now_ns)
{
    struct dmn_planning *p = m->planning;

    if (p->start_due) {
        search_from_start(m);
    }
    dmn_planner_watts(p->of->machine, &p->problem);
    dmn_planner_learn(m);
    if (!p->expects) { /* nothing was known when the plan began */
        p->expects = dmn_planner_expect(m, pl_current_plan(m->pipe), &p->expected);
    }
    if (p->clocks.learned && now_ns - p->clocks.saved_ns > SAVE_NS && !p->retune) {
        dmn_kept_save(m);
    }
}

static void unloading(void *ctx, struct dmn_model *m)
{
    dmn_retune_abort(m, "the model is being unloaded");
    dmn_refuse(&m->planning->switched, DMN_REFUSED_NOT_FOUND, "the model is being unloaded");
}

static void ending(void *ctx, struct dmn_model *m)
{
    if (!m->planning->retune) { /* else the serving plan is on trial */
        dmn_planner_learn(m);
        if (m->planning->clocks.learned) {
            dmn_kept_save(m);
        }
    }
}

static void gone(void *ctx, struct dmn_model *m)
{
    if (m->planning) {
        dmn_retune_free(m);
        dmn_planner_deinit(m);
    }
}

void dmn_plans_settle(struct dmn_model *m)
{
    if (m->planning->switched.fn && !pl_switching(m->pipe)) {
        dmn_done(&m->planning->switched, NULL);
    }
    if (m->planning->retune) {
        dmn_retune_step(m);
    }
}

/* ---- GPIO lines: the button starts a retune of every model, the power line adds an event ---- */

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

        dmn_model_plan_text(m, plan);
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

/* ---- start and end ---- */

void dmn_plans_init(struct dmn_plans *plans)
{
    plans->hears = (struct dmn_models_listener){.ctx = plans,
                                                .started = started,
                                                .collected = collected,
                                                .second = second,
                                                .unloading = unloading,
                                                .ending = ending,
                                                .gone = gone};
    plans->models->planner = &planner_ops;
    plans->models->planner_ctx = plans;
    dmn_models_listen(plans->models, &plans->hears);
    plans->lines =
        (struct dmn_gpio_listener){.ctx = plans, .pressed = on_button, .power = on_power};
    dmn_gpio_listen(plans->machine, &plans->lines);
}

int dmn_plans_start(struct dmn_plans *plans)
{
    int64_t events = dmn_config_int(dmn_machine_config(plans->machine), DMN_KEY_HISTORY_EVENTS);

    uv_timer_init(plans->machine->loop, &plans->timer);
    plans->timer.data = plans;
    plans->timing = true;
    return dmn_history_init(&plans->history, (size_t)events) < 0 ? -ENOMEM
                                                                 : dmn_profile_init(plans);
}

void dmn_plans_give_up(struct dmn_plans *plans, const char *why)
{
    for (struct dmn_model *m = plans->models->models; m; m = m->next) {
        dmn_retune_abort(m, why);
    }
    dmn_profile_abort(plans, why);
}

void dmn_plans_stop(struct dmn_plans *plans)
{
    dmn_profile_abort(plans, "the daemon is stopping");
    free(base_take(plans->profile));
    if (plans->timing) {
        plans->timing = false;
        uv_close((uv_handle_t *)&plans->timer, NULL);
    }
}
