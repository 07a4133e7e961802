/* SPDX-License-Identifier: Apache-2.0 */
/* Forwards events of the other rooms to subscribers, and tells them how far work that takes long
 * is. */
#include "base/base.h"
#include "base/json_text.h"
#include "daemon/boards/board_model.h"
#include "daemon/control/control.h"
#include "daemon/control/methods.h"
#include "daemon/control/tracing.h"
#include "daemon/models/arrival.h"
#include "daemon/models/model_copies.h"
#include "daemon/plans/history.h"
#include "daemon/plans/profile.h"

static void on_plan_changed(void *ctx, struct dmn_model *m)
{
    char plan[PL_PLAN_TEXT_MAX];

    dmn_model_plan_text(m, plan);
    dmn_control_event(ctx, json_pack("{s:s, s:s, s:s, s:I, s:s}", "event", "plan", "model", m->name,
                                     "plan", plan, "epoch", (json_int_t)pl_epoch(m->pipe),
                                     "algorithm", dmn_origin_name(m->origin)));
}

static void on_retune(void *ctx, struct dmn_model *m, const struct tun_algorithm *a)
{
    dmn_control_event(ctx, json_pack("{s:s, s:s, s:s}", "event", "retune", "model", m->name,
                                     "algorithm", a->name));
}

/* The event keeps its old name, which subscribers know. */
static void on_profile(void *ctx)
{
    dmn_control_event(ctx, json_pack("{s:s}", "event", "calibration"));
}

static void on_trial(void *ctx, struct dmn_model *m, const struct dmn_history_trial *t)
{
    char text[PL_PLAN_TEXT_MAX];

    dmn_model_plan_text(m, text);
    dmn_control_event(ctx,
                      json_pack("{s:s, s:s, s:s, s:s, s:f, s:f, s:I, s:b, s:b}", "event", "trial",
                                "model", m->name, "plan", text, "role",
                                dmn_trial_role_names[t->role], "bottleneck_ms",
                                t->bottleneck_ns / 1e6, "spent_ms", t->spent_ns / 1e6, "frames",
                                (json_int_t)t->frames, "stopped", t->stopped, "failed", t->failed));
}

static void on_started(void *ctx, struct dmn_model *m, enum dmn_cause cause, const char *detail)
{
    char plan[PL_PLAN_TEXT_MAX];

    dmn_tracing_model(ctx, m);
    dmn_model_plan_text(m, plan);
    dmn_control_event(
        ctx, json_pack("{s:s, s:s, s:s}", "event", "model_loaded", "model", m->name, "plan", plan));
}

static void on_unloading(void *ctx, struct dmn_model *m)
{
    dmn_control_event(ctx, json_pack("{s:s, s:s}", "event", "model_unloaded", "model", m->name));
}

void dmn_control_draining(struct dmn_control *control)
{
    dmn_control_event(control, json_pack("{s:s, s:s}", "event", "state", "state",
                                         dmn_state_names[DMN_STATE_DRAINING]));
    dmn_tracing_end(control, "the daemon is stopping");
}

/* What it was loaded from may be a copy that a call of Load made. */
static void on_gone(void *ctx, struct dmn_model *m)
{
    struct dmn_control *control = ctx;

    if (m->path) {
        dmn_copy_leave(control->models, m->path);
    }
}

static void on_serving_changed(void *ctx, struct dmn_model *m)
{
    const struct dmn_board_model *bm = dmn_boards_of(m);

    dmn_control_event(ctx, json_pack("{s:s, s:s, s:s, s:I}", "event", "route", "model", m->name,
                                     "route", bm && bm->serving ? bm->text : "", "number",
                                     (json_int_t)(bm ? bm->serving : 0)));
}

void dmn_control_listen(struct dmn_control *control)
{
    control->plans_listener = (struct dmn_plans_listener){.ctx = control,
                                                          .plan_changed = on_plan_changed,
                                                          .retune_begun = on_retune,
                                                          .profile_begun = on_profile,
                                                          .trial_ended = on_trial};
    control->models_listener = (struct dmn_models_listener){
        .ctx = control, .started = on_started, .unloading = on_unloading, .gone = on_gone};
    control->boards_listener =
        (struct dmn_boards_listener){.ctx = control,
                                     .routes_changed = dmn_link_routes_changed,
                                     .serving_changed = on_serving_changed};
    dmn_boards_listen(control->boards, &control->boards_listener);
    dmn_plans_listen(control->plans, &control->plans_listener);
    dmn_models_listen(control->models, &control->models_listener);
}

/* ---- progress: subscribers lose nothing by missing one, so a step that is over between two ticks
 * is not told; trials of a retune are events of their own ---- */

struct told {
    uint64_t digest;
    json_t *events; /* owned */
};

/* @model: "": of no model */
static void add(struct told *t, const char *model, const char *doing, size_t done, size_t of)
{
    t->digest = t->digest * 31 + (uintptr_t)doing;
    t->digest = t->digest * 31 + done;
    json_array_append_new(t->events, json_pack("{s:s, s:s, s:s, s:I, s:I}", "event", "progress",
                                               "model", model, "doing", doing, "done",
                                               (json_int_t)done, "of", (json_int_t)of));
}

void dmn_control_progress(struct dmn_control *control)
{
    struct told t = {0};
    const struct dmn_arrival *a;

    if (LIST_EMPTY(&control->subscribers)) {
        return;
    }
    t.events = json_array();
    LIST_FOREACH(a, &control->models->arrivals, linked) {
        for (size_t i = 0; i < a->count; i++) {
            const struct mdl_progress *p = &a->loads[i]->progress;
            const char *doing = atomic_load_explicit(&p->what, memory_order_relaxed);

            if (doing) {
                add(&t, a->loads[i]->name, doing,
                    atomic_load_explicit(&p->done, memory_order_relaxed),
                    atomic_load_explicit(&p->of, memory_order_relaxed));
            }
        }
    }
    if (dmn_profiling(control->plans)) {
        size_t of, done = dmn_profile_progress(control->plans, &of);

        add(&t, "", "measuring widths of teams", done, of);
    }
    if (t.digest != control->told) {
        json_text_each(t.events, i, event) {
            dmn_control_event(control, json_incref(event));
        }
    }
    control->told = t.digest;
    json_decref(t.events);
}
