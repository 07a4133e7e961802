/* SPDX-License-Identifier: Apache-2.0 */
/* Methods that plan: AutoPlan, Costs, PlanFront, PlanExplain. Solving is queued work on copies.
 * When it is done the model is looked up again. If the caller has gone meanwhile, the answer is
 * dropped. */

#include "base/base.h"
#include "daemon/boards/board_model.h"
#include "daemon/config/config.h"
#include "daemon/control/json.h"
#include "daemon/control/methods.h"
#include "daemon/machine/machine.h"
#include "daemon/plans/plans.h"
#include "daemon/plans/retune.h"
#include "tuner/json/costs_json.h"

#define FRONT_DEFAULT 16
#define FRONT_MAX 256

struct job {
    struct dmn_job work;
    struct dmn_control *control;
    struct dmn_call *call;                            /* held by the job until it is done */
    void (*run)(struct job *j);                       /* on a work thread */
    void (*done)(struct job *j, struct dmn_model *m); /* on the loop; m: NULL if it is gone */
    const char *key;                                  /* of the result in the reply; for answer() */
    char model[64];
    uint64_t loaded_ns;         /* with the name: identifies the model */
    struct dmn_explain explain; /* its problem is used by every job */
    size_t max;
    bool energy;
    struct tun_solution *solution;  /* owned */
    struct dmn_spread_query *query; /* over boards, owned; NULL: none */
    bool fixed;                     /* the route is not planned */
    json_t *route;                  /* of an explanation, owned */
    json_t *chosen, *mix;           /* of an explanation, owned */
    json_t *result;                 /* owned */
    int error;
};

static void job_free(struct job *j)
{
    tun_problem_deinit(&j->explain.problem);
    if (j->query) {
        dmn_spread_query_deinit(j->query);
        free(j->query);
    }
    json_decref(j->route);
    json_decref(j->chosen);
    json_decref(j->mix);
    json_decref(j->result);
    free(j->solution);
    free(j);
}

static void job_run(struct dmn_job *work)
{
    struct job *j = base_container_of(work, struct job, work);

    j->run(j);
}

static void job_done(struct dmn_job *work)
{
    struct job *j = base_container_of(work, struct job, work);
    struct dmn_control *control = j->control;

    if (control->models->stopping) {
        dmn_call_error(j->call, "Busy", "the daemon is stopping");
    } else {
        j->done(j, dmn_model_loaded(control->models, j->model, j->loaded_ns));
    }
    job_free(j);
}

/* Makes a job with a copy of what is known of @m. Return: NULL: it failed, and the call was
 * answered. */
static struct job *job_new(struct dmn_call *c, struct dmn_model *m)
{
    struct job *j = calloc(1, sizeof(*j));
    int error = -ENOMEM;

    dmn_planner_learn(m);
    if (j && (j->solution = calloc(1, sizeof(*j->solution)))) {
        error = dmn_planner_problem(m, NULL, &j->explain.problem);
    }
    if (error) {
        if (j) {
            job_free(j);
        }
        dmn_method_cannot_plan(c, error);
        return NULL;
    }
    j->control = c->control;
    j->call = c;
    j->work = (struct dmn_job){.run = job_run, .done = job_done};
    j->loaded_ns = m->loaded_ns;
    memcpy(j->model, m->name, sizeof(j->model));
    return j;
}

static void job_queue(struct job *j)
{
    dmn_work_do(j->control->machine->awaited, &j->work);
}

static void auto_run(struct job *j)
{
    j->error = tun_solve(&j->explain.problem, j->solution);
}

static void auto_done(struct job *j, struct dmn_model *m)
{
    if (!m) {
        dmn_call_error(j->call, "NotFound", "the model was unloaded meanwhile");
    } else if (j->error < 0) {
        dmn_call_error(j->call, "InvalidPlan", "no plan was found");
    } else {
        struct dmn_goal goal = dmn_goal_config(dmn_machine_config(j->control->machine));
        struct dmn_origin origin = DMN_ORIGIN_EXACT;
        const struct pl_plan *plan =
            dmn_tried_best(m->planning->tried, &j->explain.problem, &goal, j->solution, &origin);

        dmn_method_switch(m, j->call, plan, origin);
    }
}

void dmn_method_auto_plan(struct dmn_call *c, struct dmn_model *m)
{
    struct job *j = dmn_method_may_switch(m, c) ? job_new(c, m) : NULL;

    if (!j) {
        return;
    }
    dmn_planner_beside(m, &j->explain.problem);
    j->run = auto_run;
    j->done = auto_done;
    job_queue(j);
}

static const char *unit_name(const void *model, size_t unit)
{
    return ((const struct mdl_model *)model)->units[unit].name;
}

/* In the form that pipesim reads. */
static json_t *problem_json(const struct dmn_model *m)
{
    struct tun_problem p = TUN_PROBLEM_NULL;
    json_t *json;

    if (dmn_planner_problem(m, &(struct dmn_goal){.objective = TUN_THROUGHPUT}, &p) < 0) {
        return json_null();
    }
    json = tun_problem_json(&p, m->name, true, unit_name, m->model);
    tun_problem_deinit(&p);
    return json;
}

void dmn_method_costs(struct dmn_call *c, struct dmn_model *m)
{
    dmn_planner_learn(m);
    dmn_call_reply(c, json_pack("{s:o}", "problem", problem_json(m)), false);
}

static void answer(struct job *j, struct dmn_model *m)
{
    if (!j->result) {
        dmn_call_error(j->call, "Unsupported", "%s",
                       j->error == -ENOMEM ? "out of memory" : "no plan was found");
    } else {
        dmn_call_reply(j->call, json_pack("{s:o}", j->key, base_take(j->result)), false);
    }
}

static void front_run(struct job *j)
{
    j->error = dmn_front_json(&j->explain.problem, j->max, j->energy, &j->result);
}

/* ---- over boards ---- */

/* Gives the job what is known of boards. Return: 0; -EOPNOTSUPP, -ENODATA: there is nothing. */
static int take_query(struct job *j, const struct dmn_board_model *bm)
{
    int r;

    j->query = calloc(1, sizeof(*j->query));
    r = j->query ? dmn_auto_query(bm, j->query) : -ENOMEM;
    if (r < 0) {
        free(base_take(j->query));
    }
    return r;
}

/* Every board that is there counts, also one that was away a moment ago. */
static size_t use_all(struct dmn_spread_query *q)
{
    size_t count = 0;

    for (size_t i = 0; i < q->report.board_count; i++) {
        q->may.usable[i] = true;
        count += q->report.board[i].up && q->report.board[i].known;
    }
    q->may.gap_count = 0;
    return count;
}

static void boards_front_run(struct job *j)
{
    j->error = dmn_boards_front_json(j->query, j->max, j->energy, &j->result);
}

static void boards_front_done(struct job *j, struct dmn_model *m)
{
    if (j->result) {
        dmn_call_reply(j->call, base_take(j->result), false);
    } else {
        dmn_call_error(j->call, "Unsupported", "%s",
                       j->error == -ENODATA  ? "no board that is there is linked with this one"
                       : j->error == -ENOENT ? "no plan fits in the memory of the boards"
                       : j->error == -ENOMEM ? "out of memory"
                                             : "no plan was found");
    }
}

/* Answers the call, and frees the job, if it cannot be. Return: it can. */
static bool boards_front(struct job *j, const struct dmn_board_model *bm)
{
    int r = bm ? take_query(j, bm) : -ENOENT;

    if (r == 0 && use_all(j->query) > 0) {
        return true;
    }
    if (r == -EOPNOTSUPP) {
        dmn_call_error(j->call, "Unsupported", "the model cannot be spread over boards: %.400s",
                       bm->why);
    } else {
        dmn_call_error(j->call, "Unsupported", "%s",
                       r == -ENOENT ? "the model's key boards is \"" DMN_BOARDS_OFF
                                      "\"; set it to \"" DMN_BOARDS_AUTO "\" and reload"
                       : r == -ENODATA ? "piped-link is away; start the service piped-link"
                       : r < 0         ? strerror(-r)
                                       : "no other board is there; pipectl board list shows their "
                                         "links");
    }
    job_free(j);
    return false;
}

/* ---- methods ---- */

/* Estimated watts rank kinds of core; they are not good enough for energy. */
static bool watts_known(const struct dmn_machine *on)
{
    bool known = on->eps.count > 0, measured;

    for (size_t e = 0; e < on->eps.count; e++) {
        known &= dmn_planner_ep_watts(on, e, &measured) > 0;
    }
    return known;
}

void dmn_method_plan_front(struct dmn_call *c, struct dmn_model *m)
{
    bool boards = dmn_call_asks(c, "boards");
    json_int_t max = FRONT_DEFAULT;
    struct job *j;

    if (!dmn_call_integer(c, "max", 1, FRONT_MAX, &max) || !(j = job_new(c, m))) {
        return;
    }
    j->max = (size_t)max;
    j->energy = watts_known(c->control->machine);
    j->run = boards ? boards_front_run : front_run;
    j->done = boards ? boards_front_done : answer;
    j->key = "front";
    if (!boards || boards_front(j, dmn_boards_of(m))) {
        job_queue(j);
    }
}

static void explain_run(struct job *j)
{
    j->error = -EINVAL;
    j->result = dmn_explain_json(&j->explain);
    if (j->query && json_is_object(j->route)) {
        j->error = dmn_boards_explain_json(j->query, j->fixed, j->route);
    }
    if (j->result && j->route) {
        json_object_set(j->result, "boards", j->route);
    }
    if (j->result) {
        json_object_set(j->result, "chosen", j->chosen);
        json_object_set(j->result, "mix", j->mix);
    }
}

/* What this thread knows of the model's route, and what the work thread needs for the rest. */
static void take_route(struct job *j, const struct dmn_model *m)
{
    const struct dmn_board_model *bm = dmn_boards_of(m);

    j->route = dmn_route_json(j->control->boards, m);
    if (bm) {
        json_object_set_new(j->route, "measured_fps",
                            bm->serving ? json_real(dmn_model_fps(m, base_now_ns())) : json_null());
        j->fixed = bm->set || strcmp(bm->config, DMN_BOARDS_AUTO) != 0;
        take_query(j, bm);
    }
}

/* Since when the present plan serves, and who chose it; null: the history does not say. */
static json_t *chosen_json(const struct dmn_model *m)
{
    const struct dmn_history_event *e;
    char plan[PL_PLAN_TEXT_MAX];

    dmn_model_plan_text(m, plan);
    e = dmn_history_chosen(&m->planning->of->history, m->name, plan);
    return e ? json_pack("{s:s, s:s, s:s, s:o}", "at", e->at, "by", dmn_event_chooser(e), "cause",
                         dmn_cause_name(e->cause), "detail", json_text_shown(e->detail))
             : json_null();
}

/* The plan for all models, if this one is served by it, and which of its models that is. */
static json_t *mix_json(const struct dmn_control *control, const struct dmn_model *m)
{
    const struct dmn_mix *mix = control->plans->mix;
    json_t *json =
        mix && m->origin.from == DMN_FROM_MIX ? dmn_mix_json(mix, control->models) : json_null();

    json_object_set_new(json, "model", json_string(m->name));
    return json;
}

void dmn_method_plan_explain(struct dmn_call *c, struct dmn_model *m)
{
    struct tun_sample *samples = NULL;
    struct job *j = job_new(c, m);

    if (!j) {
        return;
    }
    if (dmn_planner_trial(m, &j->explain.trial, &samples) < 0) {
        dmn_call_error(c, "Unsupported", "out of memory");
        job_free(j);
        return;
    }
    free(samples);
    j->explain.trial.samples = NULL;
    if (j->explain.trial.failed && m->planning->measured.frames &&
        pl_plan_equal(&m->planning->measured.plan, &j->explain.trial.plan)) {
        j->explain.trial =
            m->planning->measured; /* no frame since: use what the last retune measured */
        memcpy(j->explain.measured_at, m->planning->measured_at, sizeof(m->planning->measured_at));
    }
    j->explain.expected = m->planning->expected;
    j->explain.expects = m->planning->expects;
    j->explain.algorithm = dmn_origin_name(m->origin);
    dmn_model_busy(m, j->explain.busy);
    take_route(j, m);
    j->chosen = chosen_json(m);
    j->mix = mix_json(c->control, m);
    j->run = explain_run;
    j->done = answer;
    j->key = "explanation";
    job_queue(j);
}
