/* SPDX-License-Identifier: Apache-2.0 */
/* A retune is a chain of steps on the loop thread. Each waits for the old plan of a switch to
 * drain, for frames of a measurement, or for the search. dmn_retune_step() is called whenever
 * frames came out or time passed. retune_next.c decides what comes next. */

#include "daemon/machine/machine.h"
#include "daemon/plans/plans.h"
#include "daemon/plans/retune_private.h"
#include "daemon/plans/switch.h"
#include "daemon/service/listeners.h"
#include "daemon/service/log.h"

#define STEP_MS 5u
/* frames of a plan that only measures shapes of team */
#define SHAPE_FRAMES 8u

/* Switches if necessary, and measures. Return: 0, or an error if the plan cannot run. */
static int measure(struct dmn_model *m, const struct pl_plan *plan)
{
    const struct dmn_config *config = dmn_machine_config(m->planning->of->machine);
    struct dmn_retune *r = m->planning->retune;
    struct dmn_trial_limits limits = {
        .frames = (uint64_t)dmn_config_int(config, DMN_KEY_PLANNER_FRAMES),
        .budget_ns = (uint64_t)dmn_config_int(config, DMN_KEY_PLANNER_MS) * BASE_NS_PER_MS,
        .anew = r->phase == DMN_RETUNE_AGAIN,
    };

    if (r->phase == DMN_RETUNE_SHAPES) {
        limits.frames = base_min(limits.frames, (uint64_t)SHAPE_FRAMES);
        limits.every_team = true;
    }
    if (r->phase >= DMN_RETUNE_KNOWN && r->phase <= DMN_RETUNE_SEARCH) {
        limits.stop_ns = dmn_retune_stop_ns(r);
    }
    r->serves = *plan;
    if (r->q.over.ctx) {
        int began = r->q.over.begin(r->q.over.ctx, plan, &limits);

        r->elsewhere = began == 0;
        r->measuring = began == 0;
        if (began <= 0) {
            return began;
        }
    }
    if (!pl_plan_equal(plan, pl_current_plan(m->pipe))) {
        int error =
            dmn_plan_switch(m, &(struct dmn_switch){.plan = plan, .kind = DMN_SWITCH_TRIAL});

        if (error) {
            return error;
        }
    }
    dmn_trial_begin(&r->trial, m, &limits);
    r->measuring = true;
    return 0;
}

static void perform(struct dmn_model *m, struct dmn_retune_next n);

static void on_thought(struct dmn_model *m)
{
    perform(m, dmn_retune_thought(m));
}

/* Does what comes next, until it has to wait. */
static void perform(struct dmn_model *m, struct dmn_retune_next n)
{
    struct dmn_retune *r = m->planning->retune;

    while (n.what == DMN_NEXT_MEASURE) {
        struct pl_plan plan = n.plan;

        if (measure(m, &plan) == 0) {
            return;
        }
        n = dmn_retune_refused(m, &plan);
    }
    if (n.what == DMN_NEXT_THINK) {
        dmn_retune_job_start(r->job, m, on_thought, n.tell ? &r->last : NULL,
                             base_take(r->samples));
        return;
    }
    dmn_retune_conclude(r, n.outcome);
}

/* What a measurement showed. Over boards, memory and energy are those of the table. */
static int measured(struct dmn_model *m, struct tun_trial *ret, struct tun_sample **ret_samples,
                    double *ret_ci)
{
    struct dmn_retune *r = m->planning->retune;
    struct tun_outcome o;
    int error;

    if (r->elsewhere) {
        return r->q.over.result(r->q.over.ctx, &r->problem, ret, ret_samples, ret_ci);
    }
    error = dmn_trial_result(&r->trial, m, base_now_ns(), ret, ret_samples, ret_ci);
    if (!error && r->q.over.ctx && tun_eval(&r->problem, &r->serves, &o) == 0) {
        ret->measured.most_memory_bytes = o.most_memory_bytes;
        ret->measured.most_energy_nj = o.most_energy_nj;
        memcpy(ret->measured.board_energy_nj, o.board_energy_nj, sizeof(o.board_energy_nj));
    }
    return error;
}

/* What the serving plan takes by the table; 0: unknown. */
static double predicted_ns(struct dmn_model *m)
{
    struct dmn_retune *r = m->planning->retune;
    struct tun_outcome o;
    bool known = r->q.over.ctx ? tun_eval(&r->problem, &r->serves, &o) == 0
                               : dmn_planner_expect(m, pl_current_plan(m->pipe), &o);

    return known ? o.bottleneck_ns : 0;
}

/* The measurement is over; its result becomes r->last. */
static void take_result(struct dmn_model *m)
{
    static const enum dmn_trial_role roles[] = {[DMN_RETUNE_BEFORE] = DMN_ROLE_BEFORE,
                                                [DMN_RETUNE_KNOWN] = DMN_ROLE_KNOWN,
                                                [DMN_RETUNE_SHAPES] = DMN_ROLE_SHAPES,
                                                [DMN_RETUNE_SEARCH] = DMN_ROLE_SEARCH,
                                                [DMN_RETUNE_AGAIN] = DMN_ROLE_AGAIN};
    struct dmn_retune *r = m->planning->retune;
    struct dmn_history_trial trial;
    double predicted = predicted_ns(m);

    r->measuring = false;
    free(base_take(r->samples));
    if (measured(m, &r->last, &r->samples, &r->last_ci) != 0) {
        r->last = (struct tun_trial){.failed = true};
    }
    r->last.plan = r->serves;
    r->last.samples = NULL;
    dmn_planner_learn(m);
    trial = dmn_retune_note_trial(m, roles[r->phase], r->last_ci, predicted);
    DMN_TELL(m->planning->of->listeners, trial_ended, m, &trial);
}

static void finish(struct dmn_model *m)
{
    struct dmn_retune *r = m->planning->retune;

    struct dmn_origin found = {.from = DMN_FROM_SEARCH, .algorithm = r->q.algorithm};

    r->phase = DMN_RETUNE_OVER;
    if (r->chosen->frames && !r->chosen->failed && !r->elsewhere) {
        m->planning->measured = *r->chosen;
        dmn_history_now(m->planning->measured_at);
    }
    dmn_retune_keep_tried(m);
    dmn_retune_write_event(m);
    if (!r->elsewhere) {
        dmn_plan_adopt(
            m, &(struct dmn_switch){.origin = r->chosen == &r->first ? r->origin_before : found,
                                    .keep = !dmn_costs_held(m).trials});
    }
    if (r->q.over.ctx) {
        r->q.over.adopt(r->q.over.ctx, &r->after, r->chosen != &r->first);
    }
}

/* Return: the final plan serves, or never will. */
static bool arrive(struct dmn_model *m)
{
    struct dmn_retune *r = m->planning->retune;
    int error = 1;

    if (r->q.over.ctx && !m->leaving) {
        error = r->q.over.begin(r->q.over.ctx, &r->after, NULL);
        r->elsewhere = error == 0;
    }
    if (r->elsewhere || error < 0) { /* a route that cannot serve now is wanted again by itself */
        return true;
    }
    if (m->leaving || pl_plan_equal(pl_current_plan(m->pipe), &r->after)) {
        return m->leaving || !pl_switching(m->pipe);
    }
    if (pl_switching(m->pipe)) {
        return false;
    }
    error = dmn_plan_switch(m, &(struct dmn_switch){.plan = &r->after, .kind = DMN_SWITCH_AHEAD});
    if (error) {
        r->outcome = DMN_OUTCOME_FAILED;
        snprintf(r->why, sizeof(r->why), "cannot build the plan that was to serve: %s",
                 strerror(-error));
        r->result = (struct tun_trial){.plan = *pl_current_plan(m->pipe), .failed = true};
        r->chosen = &r->result;
        return true;
    }
    return false;
}

static bool deadline_passed(const struct dmn_model *m, uint64_t now_ns)
{
    uint64_t limit = (uint64_t)dmn_config_int(dmn_machine_config(m->planning->of->machine),
                                              DMN_KEY_PLANNER_TUNE_S);

    return now_ns - m->planning->retune->began_ns > limit * BASE_NS_PER_S;
}

void dmn_retune_step(struct dmn_model *m)
{
    struct dmn_retune *r = m->planning->retune;
    uint64_t now = base_now_ns();

    if (r->phase < DMN_RETUNE_LAST && deadline_passed(m, now)) {
        dmn_retune_conclude(r, r->phase == DMN_RETUNE_AGAIN ? DMN_OUTCOME_NONE /* was searched */
                                                            : DMN_OUTCOME_DEADLINE);
    }
    while (r->phase < DMN_RETUNE_LAST) {
        if (!r->measuring) {
            return; /* the search is busy */
        }
        if (r->elsewhere) {
            if (!r->q.over.over(r->q.over.ctx, base_now_ns())) {
                return;
            }
        } else {
            dmn_synthetic_fill(&r->synthetic, m);
            if (pl_switching(m->pipe) || !dmn_trial_over(&r->trial, m, base_now_ns())) {
                return;
            }
        }
        take_result(m);
        perform(m, dmn_retune_measured(m));
    }
    if (r->phase == DMN_RETUNE_LAST && arrive(m)) {
        finish(m);
    }
    if (r->phase == DMN_RETUNE_OVER && r->synthetic.outstanding == 0 &&
        !(r->q.over.ctx && r->q.over.busy(r->q.over.ctx))) {
        dmn_retune_free(m);
    }
}

void dmn_retune_collected(struct dmn_model *m, const struct pl_frame *f)
{
    struct dmn_retune *r = m->planning->retune;

    if (r->measuring && !r->elsewhere) {
        dmn_trial_collected(&r->trial, m, f);
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct dmn_plans *plans = timer->data;
    bool any = false;

    for (struct dmn_model *m = plans->models->models; m; m = m->next) {
        if (m->planning->retune) {
            dmn_retune_step(m);
        }
        any |= m->planning->retune != NULL;
    }
    if (!any) {
        uv_timer_stop(timer);
    }
}

struct dmn_retune_request dmn_retune_configured(const struct dmn_config *config,
                                                enum dmn_cause cause)
{
    return (struct dmn_retune_request){
        .algorithm = dmn_planner_algorithm(config),
        .goal = dmn_goal_config(config),
        .options = {.seed = 1,
                    .alpha = (unsigned)dmn_config_int(config, DMN_KEY_PLANNER_ALPHA),
                    .heuristic = (unsigned)dmn_config_int(config, DMN_KEY_PLANNER_HEURISTIC)},
        .cause = cause};
}

/* Copies what the request points to. Return: 0 or -ENOMEM. */
static int take_request(struct dmn_retune *r, const struct dmn_model *m,
                        const struct dmn_retune_request *q)
{
    if (q->problem && tun_problem_copy(q->problem, &r->problem) < 0) {
        return -ENOMEM;
    }
    r->q = *q;
    r->q.decided = dmn_decided_ref(q->decided);
    r->q.problem = NULL;
    if (q->known) {
        r->known = *q->known;
        r->q.known = NULL;
    }
    snprintf(r->happened, sizeof(r->happened), "%s", q->why ? q->why : "");
    r->q.why = NULL;
    r->before = q->before ? *q->before : *pl_current_plan(m->pipe);
    r->q.before = NULL;
    r->q.options.from = q->options.from ? &r->before : NULL;
    return 0;
}

/* A retune for the request. Return: owned; NULL: out of memory. */
static struct dmn_retune *retune_new(const struct dmn_model *m, const struct dmn_retune_request *q)
{
    struct dmn_retune *r = calloc(1, sizeof(*r));

    if (r && ((!pl_asleep(m->pipe) && dmn_synthetic_init(&r->synthetic, m) < 0) ||
              take_request(r, m, q) < 0)) {
        dmn_synthetic_deinit(&r->synthetic);
        free(base_take(r));
    }
    return r;
}

static int begin(struct dmn_model *m, const struct dmn_retune_request *q)
{
    base_cleanup(tun_problem_deinit) struct tun_problem p = TUN_PROBLEM_NULL;
    struct dmn_plans *plans = m->planning->of;
    struct dmn_retune *r;
    int error;

    if (dmn_plan_changing(m) || pl_switching(m->pipe) || m->leaving || plans->models->stopping) {
        return -EBUSY;
    }
    if (pl_asleep(m->pipe) && !q->over.ctx) {
        return -ENODATA;
    }
    error = dmn_planner_problem(m, &q->goal, &p);
    if (error) {
        return error;
    }
    r = retune_new(m, q);
    if (!r) {
        return -ENOMEM;
    }
    r->rule.objective = p.objective;
    r->rule.bounds = p.bounds;
    r->began_ns = base_now_ns();
    r->idle = dmn_synthetic_idle(m, r->began_ns);
    r->first.plan = r->before;
    r->origin_before = m->origin;
    r->collected = m->stats.collected;
    r->answered = m->stats.answered;
    r->failed = m->stats.failed;
    m->planning->retune = r;
    dmn_retune_plan_text(m, &r->before, r->plan_before);
    return 0;
}

int dmn_retune_begin(struct dmn_model *m, const struct dmn_retune_request *q)
{
    struct dmn_plans *plans = m->planning->of;
    int error = begin(m, q);

    if (error) {
        if (q->over.ctx) {
            q->over.free(q->over.ctx);
        }
        return error;
    }
    dmn_log_with(LOG_INFO, (struct dmn_log_fields){.id = DMN_MSG_RETUNE_BEGIN, .model = m->name},
                 "model %s: retune started, by %s", m->name, q->algorithm->name);
    DMN_TELL(plans->listeners, retune_begun, m, q->algorithm);
    uv_timer_start(&plans->timer, on_timer, STEP_MS, STEP_MS);
    if (measure(m, &m->planning->retune->before) < 0) { /* a route that is not there any more */
        m->planning->retune->last =
            (struct tun_trial){.plan = m->planning->retune->before, .failed = true};
        perform(m, dmn_retune_measured(m));
    }
    dmn_retune_step(m);
    return 0;
}

bool dmn_retune_cancel(struct dmn_model *m)
{
    if (!m->planning->retune || m->planning->retune->phase >= DMN_RETUNE_LAST) {
        return false;
    }
    dmn_retune_conclude(m->planning->retune, DMN_OUTCOME_CANCELLED);
    dmn_retune_step(m);
    return true;
}

static void answer(struct dmn_retune *r, const struct dmn_outcome *o)
{
    dmn_retune_done_fn done = base_take(r->q.done);

    if (done) {
        done(r->q.done_ctx, o, o ? NULL : r->event);
    }
}

void dmn_retune_abort(struct dmn_model *m, const char *why)
{
    struct dmn_retune *r = m->planning->retune;

    if (!r) {
        return;
    }
    answer(r, &(struct dmn_outcome){.reason = DMN_REFUSED_BUSY, .text = why});
    if (r->phase < DMN_RETUNE_LAST) {
        snprintf(r->why, sizeof(r->why), "%s", why);
        dmn_retune_cancel(m);
    }
}

void dmn_retune_free(struct dmn_model *m)
{
    struct dmn_retune *r = m->planning->retune;

    if (!r) {
        return;
    }
    if (r->phase < DMN_RETUNE_OVER) { /* the model ends before the plan could be restored */
        r->outcome = DMN_OUTCOME_CANCELLED;
        r->chosen = NULL;
        r->first.plan = r->before;
        dmn_retune_write_event(m);
    }
    m->planning->retune = NULL;
    dmn_retune_job_leave(r->job);
    answer(r, r->event ? NULL
                       : &(struct dmn_outcome){.reason = DMN_REFUSED_BUSY,
                                               .text = "the daemon is stopping"});
    dmn_event_unref(r->event);
    dmn_decided_unref(r->q.decided);
    if (r->q.over.ctx) {
        r->q.over.free(r->q.over.ctx);
    }
    free(r->notes);
    dmn_synthetic_deinit(&r->synthetic);
    tun_problem_deinit(&r->problem);
    free(r->samples);
    free(r);
}
