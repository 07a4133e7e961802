/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A retune as a chain of steps on the loop thread. Each waits for the old plan of a switch to run
 * dry, for frames of a measurement, or for the search to think; dmn_retune_step() is called again
 * whenever frames came out or time passed.
 */
#include "daemon/retune.h"

#include <stdio.h>
#include <string.h>

#include "base.h"
#include "daemon/daemon.h"
#include "daemon/service/log.h"
#include "daemon/service/messages.h"
#include "daemon/retune_private.h"

#define STEP_MS 5u
/* two measurements of one plan differ by about this much; less is no reason to prefer one */
#define NOISE 0.03
/* A gain below this may be drift of the machine between two measurements: the two are compared
 * again, one right after the other. */
#define SURE_GAIN 0.1
/* doubt of a figure that may decide what serves */
#define SURE 0.05
/* a plan that takes so much longer than the best one is not measured to the end */
#define STOP_FACTOR 1.5
/* plans in a row that could not be built: threads or memory are gone */
#define FAILURES_MAX 8u
/* The log of a search keeps all of them, 8 kB each. */
#define TRIALS_MAX 10000u
/* frames of a plan that only shows what a shape of team takes */
#define SHAPE_FRAMES 8u

static void advance(struct dmn_model *m);
static void compare_again(struct dmn_model *m);
static void compared(struct dmn_model *m);
static void conclude(struct dmn_model *m, const char *outcome);

/* Fastest of what was measured, for the bound of clearly worse. */
static double stop_ns(const struct dmn_retune *r)
{
    const struct tun_trial *seen[] = {&r->first, &r->shape, &r->best};
    double best = 0;

    if (r->q.goal.objective == TUN_LATENCY && r->rule.bounds.period_max_ns <= 0) {
        return 0; /* a slow pipeline may be a short one */
    }
    for (size_t i = 0; i < base_array_count(seen); i++) {
        double ns = seen[i]->frames && !seen[i]->failed ? seen[i]->measured.bottleneck_ns : 0;

        best = ns > 0 && (best <= 0 || ns < best) ? ns : best;
    }
    if (r->q.goal.objective != TUN_THROUGHPUT) {
        best = base_max(best, r->rule.bounds.period_max_ns);
    }
    return STOP_FACTOR * best;
}

/* Switches if need be, and measures. Return: 0, or why the plan cannot be run. */
static int measure(struct dmn_model *m, const struct pl_plan *plan)
{
    const struct dmn_config *config = m->daemon->config;
    struct dmn_retune *r = m->retune;
    struct dmn_trial_limits limits = {
        .frames = (uint64_t)dmn_config_int(config, DMN_KEY_PLANNER_FRAMES),
        .budget_ns = (uint64_t)dmn_config_int(config, DMN_KEY_PLANNER_MS) * BASE_NS_PER_MS,
    };

    if (r->phase == DMN_RETUNE_SHAPES) {
        limits.frames = base_min(limits.frames, (uint64_t)SHAPE_FRAMES);
        limits.every_team = true;
    }
    if (r->phase == DMN_RETUNE_SHAPES || r->phase == DMN_RETUNE_SEARCH) {
        limits.stop_ns = stop_ns(r);
    }
    if (!pl_plan_equal(plan, pl_current_plan(m->pipe))) {
        int error = pl_switch(m->pipe, plan);

        if (error) {
            return error > 0 ? -EBUSY : error;
        }
        dmn_model_plan_changed(m); /* clients may send as much as the new plan can hold */
    }
    dmn_trial_begin(&r->trial, m, &limits);
    r->measuring = true;
    return 0;
}

/* What the search does next, told of the last trial or, at first, of nothing. */
static void think(struct dmn_model *m, bool tell)
{
    struct dmn_retune *r = m->retune;

    if (dmn_retune_job_start(r->job, tell ? &r->last : NULL, base_take(r->samples)) < 0) {
        snprintf(r->why, sizeof(r->why), "no work thread");
        conclude(m, "failed");
    }
}

static void begin_search(struct dmn_model *m)
{
    struct dmn_retune *r = m->retune;
    struct tun_problem p = TUN_PROBLEM_NULL;
    int error = dmn_planner_problem(m, &m->retune->q.goal, &p);

    r->phase = DMN_RETUNE_SEARCH;
    if (!error) {
        error = dmn_retune_job_new(m, r->q.algorithm, &p, &r->q.options, &r->job);
    }
    tun_problem_deinit(&p);
    if (error) {
        snprintf(r->why, sizeof(r->why), "%s", strerror(-error));
        conclude(m, "failed");
        return;
    }
    think(m, false);
}

static bool reads_costs(const struct tun_algorithm *a)
{
    return strcmp(a->name, "exact") == 0 || strcmp(a->name, "pipe-it") == 0;
}

/* The next plan that shows unknown shapes of team, or the search when there is none. */
static void next_shape(struct dmn_model *m)
{
    struct dmn_retune *r = m->retune;
    struct tun_problem p = TUN_PROBLEM_NULL;
    struct pl_plan plan;
    bool more;

    r->phase = DMN_RETUNE_SHAPES;
    do {
        more = reads_costs(r->q.algorithm) && dmn_planner_problem(m, &r->q.goal, &p) == 0 &&
               dmn_shapes_next(&r->shapes, &p,
                               r->first.failed ? 0 : r->first.measured.bottleneck_ns, &plan);
        tun_problem_deinit(&p);
    } while (more && measure(m, &plan) != 0);
    if (!more) {
        begin_search(m);
    }
}

/* A trial of the plan that the search asked for, which could not be run. */
static void tell_failure(struct dmn_model *m, const struct pl_plan *plan)
{
    struct dmn_retune *r = m->retune;

    r->last = (struct tun_trial){.plan = *plan, .failed = true};
    r->trials++;
    dmn_retune_note_trial(m, "search", 0, 0);
    if (++r->failures > FAILURES_MAX) {
        snprintf(r->why, sizeof(r->why), "no plan could be built any more");
        conclude(m, "failed");
        return;
    }
    think(m, true);
}

/* Was it the last one that was measured to the end: nothing new would come out. */
static bool measured_last(const struct dmn_retune *r, const struct pl_plan *plan)
{
    return r->last.frames && !r->last.stopped && !r->last.failed && r->job->samples &&
           !r->trial.limits.every_team && pl_plan_equal(plan, &r->last.plan);
}

void dmn_retune_job_done(struct dmn_model *m)
{
    struct dmn_retune *r = m->retune;
    struct dmn_retune_job *j = r->job;

    if (j->search && j->tell) {
        dmn_retune_note_predicted(r);
    }
    if (j->result == TUN_E_DONE) {
        compare_again(m);
    } else if (j->result != 0) {
        snprintf(r->why, sizeof(r->why), "%s",
                 j->error[0] ? j->error : strerror(j->result < 0 ? -j->result : ENOTRECOVERABLE));
        conclude(m, "failed");
    } else if (measured_last(r, &j->plan)) {
        r->samples = base_take(j->samples);
        r->last.spent_ns = 0;
        dmn_retune_note_trial(m, "search", r->last_ci, 0);
        advance(m);
    } else if (measure(m, &j->plan) != 0) {
        tell_failure(m, &j->plan);
    }
}

/* The measurement is over: r->last. */
static void take_result(struct dmn_model *m)
{
    static const char *const roles[] = {"before", "shapes", "search", "again"};
    struct dmn_retune *r = m->retune;
    struct tun_outcome predicted;
    double predicted_ns = 0;

    r->measuring = false;
    if (dmn_planner_expect(m, pl_current_plan(m->pipe), &predicted)) {
        predicted_ns = predicted.bottleneck_ns;
    }
    free(base_take(r->samples));
    if (dmn_trial_result(&r->trial, m, base_now_ns(), &r->last, &r->samples, &r->last_ci) != 0) {
        r->last = (struct tun_trial){.plan = *pl_current_plan(m->pipe), .failed = true};
    }
    r->last.samples = NULL;
    dmn_planner_learn(m);
    dmn_retune_note_trial(m, roles[r->phase], r->last_ci, predicted_ns);
}

static void keep_better(const struct dmn_retune *r, struct tun_trial *best)
{
    const struct tun_trial *t = &r->last;

    if (!t->failed && !t->stopped && t->frames &&
        (!best->frames || tun_better(&r->rule, &t->measured, &best->measured))) {
        *best = *t;
    }
}

/* A measurement is over: what comes next. */
static void advance(struct dmn_model *m)
{
    struct dmn_retune *r = m->retune;

    switch (r->phase) {
    case DMN_RETUNE_BEFORE:
        r->first = r->last;
        next_shape(m);
        break;
    case DMN_RETUNE_SHAPES:
        r->shape_trials++;
        if (r->last_ci > 0 && r->last_ci <= SURE) { /* few frames: often good for a look only */
            keep_better(r, &r->shape);
        }
        next_shape(m);
        break;
    case DMN_RETUNE_SEARCH:
        r->trials++;
        r->failures = 0;
        keep_better(r, &r->best);
        if (pl_plan_equal(&r->last.plan, &r->shape.plan)) {
            r->shape.frames = 0; /* known better now */
        }
        if (r->trials < TRIALS_MAX) {
            think(m, true);
        } else {
            snprintf(r->why, sizeof(r->why), "no search may have more trials");
            compare_again(m);
        }
        break;
    case DMN_RETUNE_AGAIN:
        compared(m);
        break;
    case DMN_RETUNE_LAST:
    case DMN_RETUNE_OVER:
        break;
    }
}

/* Is @a better than @b by more than the relative @margin. */
static bool better_by(const struct dmn_retune *r, const struct tun_trial *a,
                      const struct tun_trial *b, double margin)
{
    struct tun_outcome o = b->measured;

    if (!a->frames || a->failed) {
        return false;
    }
    if (!b->frames || b->failed) {
        return true;
    }
    o.bottleneck_ns *= 1 - margin;
    o.latency_ns *= 1 - margin;
    o.energy_nj *= 1 - margin;
    return tun_better(&r->rule, &a->measured, &o);
}

/* Of all that was measured what is to be compared with the plan before: the search's choice, unless
 * a plan of the shapes was clearly better. Into r->result. Return: is there another plan at all. */
static bool nominate(struct dmn_retune *r)
{
    const struct tun_trial *found = NULL;

    if (r->job && !r->job->at_work && r->job->search) {
        found = tun_search_result(r->job->search);
    }
    found = found ? found : r->best.frames ? &r->best : NULL;
    if (r->shape.frames && (!found || better_by(r, &r->shape, found, NOISE))) {
        found = &r->shape;
    }
    if (!found) {
        return false;
    }
    r->result = *found;
    r->result.frames = base_max(r->result.frames, (uint64_t)1);
    return !pl_plan_equal(&r->result.plan, &r->before);
}

/* Between the plan before and the one nominated. */
static const char *choose(struct dmn_retune *r, bool nominated)
{
    r->chosen = &r->first;
    if (!nominated) {
        return "kept";
    }
    if (better_by(r, &r->first, &r->result, NOISE)) {
        return "reverted";
    }
    r->chosen = &r->result;
    return "switched";
}

static void leave_for(struct dmn_model *m, const char *outcome)
{
    struct dmn_retune *r = m->retune;

    r->outcome = outcome;
    r->first.plan = r->before;
    r->after = r->chosen->plan;
    r->job = dmn_retune_job_leave(r->job);
    r->measuring = false;
    r->phase = DMN_RETUNE_LAST;
}

/* On to the plan that is to serve. @outcome: NULL: what the choice says; "cancelled": the plan
 * before. */
static void conclude(struct dmn_model *m, const char *outcome)
{
    struct dmn_retune *r = m->retune;
    const char *choice = "kept";

    if (outcome && strcmp(outcome, "cancelled") == 0) {
        r->chosen = &r->first;
    } else {
        choice = choose(r, r->phase == DMN_RETUNE_AGAIN || nominate(r));
    }
    leave_for(m, outcome ? outcome : choice);
}

/* The search is done. The plan before was measured at the beginning and the machine may have
 * drifted since: where that could decide, it is measured again, and so is the one nominated if
 * another one came between. */
static void compare_again(struct dmn_model *m)
{
    struct dmn_retune *r = m->retune;

    if (!nominate(r) || better_by(r, &r->result, &r->first, SURE_GAIN)) {
        conclude(m, NULL);
        return;
    }
    r->fresh = !r->last.failed && !r->last.stopped && !r->trial.limits.every_team &&
               pl_plan_equal(&r->last.plan, &r->result.plan);
    r->phase = DMN_RETUNE_AGAIN;
    if (measure(m, &r->before) != 0) {
        conclude(m, NULL);
    }
}

static void compared(struct dmn_model *m)
{
    struct dmn_retune *r = m->retune;
    bool of_before = pl_plan_equal(&r->last.plan, &r->before);

    if (!r->last.failed && of_before) {
        r->first = r->last;
    } else if (!r->last.failed) {
        r->result = r->last;
    }
    if (!of_before || r->fresh || measure(m, &r->result.plan) != 0) {
        conclude(m, NULL);
    }
}

static void finish(struct dmn_model *m)
{
    struct dmn_retune *r = m->retune;

    m->algorithm = r->chosen == &r->first ? r->algorithm_before : r->q.algorithm->name;
    r->phase = DMN_RETUNE_OVER;
    if (r->chosen->frames && !r->chosen->failed) {
        m->measured = *r->chosen;
        dmn_history_now(m->measured_at);
    }
    dmn_retune_write_event(m);
    if (!m->leaving) {
        dmn_model_plan_changed(m);
        dmn_state_save(m);
    }
}

/* Return: the plan that is to serve does, or never will. */
static bool arrive(struct dmn_model *m)
{
    struct dmn_retune *r = m->retune;
    int error;

    if (m->leaving || pl_plan_equal(pl_current_plan(m->pipe), &r->after)) {
        return m->leaving || !pl_switching(m->pipe);
    }
    if (pl_switching(m->pipe)) {
        return false;
    }
    error = pl_switch(m->pipe, &r->after);
    if (error) {
        r->outcome = "failed";
        snprintf(r->why, sizeof(r->why), "the plan that was to serve could not be built: %s",
                 strerror(error < 0 ? -error : EBUSY));
        r->result = (struct tun_trial){.plan = *pl_current_plan(m->pipe), .failed = true};
        r->chosen = &r->result;
        return true;
    }
    return false;
}

static bool deadline_passed(const struct dmn_model *m, uint64_t now_ns)
{
    uint64_t limit = (uint64_t)dmn_config_int(m->daemon->config, DMN_KEY_PLANNER_TUNE_S);

    return now_ns - m->retune->began_ns > limit * BASE_NS_PER_S;
}

void dmn_retune_step(struct dmn_model *m)
{
    struct dmn_retune *r = m->retune;
    uint64_t now = base_now_ns();

    if (r->phase < DMN_RETUNE_LAST && deadline_passed(m, now)) {
        conclude(m, r->phase == DMN_RETUNE_AGAIN ? NULL : "deadline"); /* the search was done */
    }
    while (r->phase < DMN_RETUNE_LAST) {
        if (!r->measuring) {
            return; /* the search thinks */
        }
        dmn_feed_fill(&r->feed, m);
        if (pl_switching(m->pipe) || !dmn_trial_over(&r->trial, m, base_now_ns())) {
            return;
        }
        take_result(m);
        advance(m);
    }
    if (r->phase == DMN_RETUNE_LAST && arrive(m)) {
        finish(m);
    }
    if (r->phase == DMN_RETUNE_OVER && r->feed.outstanding == 0) {
        dmn_retune_free(m);
    }
}

void dmn_retune_collected(struct dmn_model *m, const struct pl_frame *f)
{
    struct dmn_retune *r = m->retune;

    if (!f->owner) {
        dmn_feed_back(&r->feed, f);
    }
    if (r->measuring) {
        dmn_trial_collected(&r->trial, m, f);
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct dmn_daemon *d = timer->data;
    bool any = false;

    for (struct dmn_model *m = d->models; m; m = m->next) {
        if (m->retune) {
            dmn_retune_step(m);
        }
        any |= m->retune != NULL;
    }
    if (!any) {
        uv_timer_stop(timer);
    }
    dmn_daemon_settle(d);
}

int dmn_retune_begin(struct dmn_model *m, const struct dmn_retune_request *q)
{
    struct tun_problem p = TUN_PROBLEM_NULL;
    struct dmn_daemon *d = m->daemon;
    struct dmn_retune *r;
    int error;

    if (m->retune || m->switch_call || pl_switching(m->pipe) || m->leaving || d->draining) {
        return -EBUSY;
    }
    error = dmn_planner_problem(m, &q->goal, &p);
    if (error) {
        return error;
    }
    r = calloc(1, sizeof(*r));
    if (!r || !(r->trials_json = json_array()) || dmn_feed_init(&r->feed, m) < 0) {
        tun_problem_deinit(&p);
        json_decref(r ? r->trials_json : NULL);
        free(r);
        return -ENOMEM;
    }
    r->rule.objective = p.objective;
    r->rule.bounds = p.bounds;
    tun_problem_deinit(&p);
    r->q = *q;
    r->began_ns = base_now_ns();
    r->idle = dmn_feed_idle(m, r->began_ns);
    r->before = *pl_current_plan(m->pipe);
    r->first.plan = r->before;
    dmn_model_plan_text(m, r->plan_before);
    r->algorithm_before = m->algorithm;
    r->collected = m->stats.collected;
    r->answered = m->stats.answered;
    r->failed = m->stats.failed;
    m->retune = r;
    dmn_log_with(LOG_INFO, (struct dmn_log_fields){.id = DMN_MSG_RETUNE_BEGIN, .model = m->name},
                 "model %s: retune by %s begins", m->name, q->algorithm->name);
    dmn_control_event(d, json_pack("{s:s, s:s, s:s}", "event", "retune", "model", m->name,
                                   "algorithm", q->algorithm->name));
    uv_timer_start(&d->retune, on_timer, STEP_MS, STEP_MS);
    measure(m, &r->before); /* it serves: nothing to switch */
    dmn_retune_step(m);
    return 0;
}

bool dmn_retune_cancel(struct dmn_model *m)
{
    if (!m->retune || m->retune->phase >= DMN_RETUNE_LAST) {
        return false;
    }
    conclude(m, "cancelled");
    dmn_retune_step(m);
    return true;
}

void dmn_retune_abort(struct dmn_model *m, const char *why)
{
    struct dmn_retune *r = m->retune;

    if (!r) {
        return;
    }
    if (r->q.call) {
        dmn_call_error(base_take(r->q.call), "Busy", "why", why);
    }
    if (r->phase < DMN_RETUNE_LAST) {
        snprintf(r->why, sizeof(r->why), "%s", why);
        dmn_retune_cancel(m);
    }
}

void dmn_retune_free(struct dmn_model *m)
{
    struct dmn_retune *r = m->retune;

    if (!r) {
        return;
    }
    if (r->phase < DMN_RETUNE_OVER) { /* the model goes before the plan could be restored */
        r->outcome = "cancelled";
        r->chosen = NULL;
        r->first.plan = r->before;
        dmn_retune_write_event(m);
    }
    m->retune = NULL;
    dmn_retune_job_leave(r->job);
    if (r->q.call && r->event) {
        dmn_call_reply(r->q.call, json_pack("{s:O}", "event", r->event), false);
    } else if (r->q.call) {
        dmn_call_error(r->q.call, "Busy", "why", "the daemon is going down");
    }
    json_decref(r->event);
    json_decref(r->trials_json);
    dmn_feed_deinit(&r->feed);
    free(r->samples);
    free(r);
}
