/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides what a retune does next. Each function learns what has just happened and returns what to
 * do; retune.c does it.
 *
 *     BEFORE -> KNOWN -> SHAPES -> SEARCH -> AGAIN -> (conclude) LAST -> OVER
 *
 * KNOWN is skipped if there is no such plan, SHAPES if the search does not read the cost table,
 * AGAIN if the gain exceeds the uncertainty.
 */
#include "daemon/machine/machine.h"
#include "daemon/plans/plans.h"
#include "daemon/plans/retune_private.h"
#include "tuner/learn.h"

/* two measurements of one plan differ by about this much; a smaller gain is no reason to switch */
#define NOISE 0.03
/* A smaller gain may be drift of the machine between two measurements: both plans are measured
 * again, one right after the other. */
#define SURE_GAIN 0.1
/* greatest uncertainty of a figure that decides which plan serves */
#define SURE 0.05
/* a plan that takes this much longer than the best one is not measured to the end */
#define STOP_FACTOR 1.5
/* plans in a row that could not be built: out of threads or memory */
#define FAILURES_MAX 8u
/* the log of a search keeps all trials, 8 kB each */
#define TRIALS_MAX 10000u

static struct dmn_retune_next measure(const struct pl_plan *plan)
{
    return (struct dmn_retune_next){.what = DMN_NEXT_MEASURE, .plan = *plan};
}

static struct dmn_retune_next think(bool tell)
{
    return (struct dmn_retune_next){.what = DMN_NEXT_THINK, .tell = tell};
}

static struct dmn_retune_next conclude(enum dmn_event_outcome outcome)
{
    return (struct dmn_retune_next){.what = DMN_NEXT_CONCLUDE, .outcome = outcome};
}

/* ---- the search, as queued work ---- */

/* Work thread: it alone uses the search until it is done. */
static void job_run(struct dmn_job *work)
{
    struct dmn_retune_job *j = base_container_of(work, struct dmn_retune_job, work);

    j->result = 0;
    if (!j->search) {
        j->result =
            tun_search_new(j->algorithm->name, &j->problem, &j->options, j->error, &j->search);
        tun_problem_deinit(&j->problem);
    } else if (j->tell) {
        j->trial.samples = j->samples;
        j->result = tun_search_tell(j->search, &j->trial);
    }
    if (j->result == 0) {
        j->result = tun_search_ask(j->search, &j->plan);
    }
}

static void job_done(struct dmn_job *work)
{
    struct dmn_retune_job *j = base_container_of(work, struct dmn_retune_job, work);

    j->done(j->model);
}

static void job_drop(struct dmn_job *work)
{
    struct dmn_retune_job *j = base_container_of(work, struct dmn_retune_job, work);

    tun_search_free(j->search);
    tun_problem_deinit(&j->problem);
    free(j->samples);
    free(j);
}

/* @p: taken on success. Return: 0 or -ENOMEM. */
static int job_new(const struct tun_algorithm *a, struct tun_problem *p,
                   const struct tun_options *o, struct dmn_retune_job **ret)
{
    struct dmn_retune_job *j = calloc(1, sizeof(*j));

    if (!j) {
        return -ENOMEM;
    }
    j->work = (struct dmn_job){.run = job_run, .done = job_done, .drop = job_drop};
    j->algorithm = a;
    j->problem = *p;
    j->options = *o;
    if (o->from) {
        j->from = *o->from;
        j->options.from = &j->from;
    }
    *p = TUN_PROBLEM_NULL;
    *ret = j;
    return 0;
}

void dmn_retune_job_start(struct dmn_retune_job *j, struct dmn_model *m,
                          void (*on_done)(struct dmn_model *m), const struct tun_trial *t,
                          struct tun_sample *samples)
{
    j->model = m;
    j->done = on_done;
    free(j->samples);
    j->samples = samples;
    j->tell = t != NULL;
    if (t) {
        j->trial = *t;
    }
    dmn_work_do(m->planning->of->machine->beside, &j->work);
}

struct dmn_retune_job *dmn_retune_job_leave(struct dmn_retune_job *j)
{
    if (j) {
        dmn_job_leave(&j->work);
    }
    return NULL;
}

/* ---- comparing ---- */

double dmn_retune_stop_ns(const struct dmn_retune *r)
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

static void keep_better(const struct dmn_retune *r, struct tun_trial *best)
{
    const struct tun_trial *t = &r->last;

    if (!t->failed && !t->stopped && t->frames &&
        (!best->frames || tun_better(&r->rule, &t->measured, &best->measured))) {
        *best = *t;
    }
}

/* Return: @a is better than @b by more than the relative @margin. */
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

/* Sets r->result, the candidate to replace the previous plan: the search's choice, unless a plan of
 * the phases KNOWN and SHAPES was clearly better. Return: the candidate differs from the previous
 * plan. */
static bool nominate(struct dmn_retune *r)
{
    const struct tun_trial *found = NULL;

    if (r->job && !r->job->work.at && r->job->search) {
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

/* Chooses between the previous plan and the candidate. */
static enum dmn_event_outcome choose(struct dmn_retune *r, bool nominated)
{
    r->chosen = &r->first;
    if (!nominated) {
        return DMN_OUTCOME_KEPT;
    }
    if (better_by(r, &r->first, &r->result, NOISE)) {
        return DMN_OUTCOME_REVERTED;
    }
    r->chosen = &r->result;
    return DMN_OUTCOME_SWITCHED;
}

void dmn_retune_conclude(struct dmn_retune *r, enum dmn_event_outcome outcome)
{
    enum dmn_event_outcome choice = DMN_OUTCOME_KEPT;

    if (outcome == DMN_OUTCOME_CANCELLED) {
        r->chosen = &r->first;
    } else {
        choice = choose(r, r->phase == DMN_RETUNE_AGAIN || nominate(r));
    }
    r->outcome = outcome != DMN_OUTCOME_NONE ? outcome : choice;
    r->first.plan = r->before;
    r->after = r->chosen->plan;
    r->job = dmn_retune_job_leave(r->job);
    r->measuring = false;
    r->phase = DMN_RETUNE_LAST;
}

/* ---- the phases ---- */

/* A copy of the costs that the search is told. */
static int problem_now(const struct dmn_model *m, struct tun_problem *ret)
{
    const struct dmn_retune *r = m->planning->retune;

    return r->problem.unit_count ? tun_problem_copy(&r->problem, ret)
                                 : dmn_planner_problem(m, &r->q.goal, ret);
}

/* The model's table learned from the last trial; costs of the request's own do it here. */
static void learn_last(struct dmn_retune *r)
{
    struct tun_trial t = r->last;

    t.samples = r->samples;
    if (r->problem.unit_count && r->samples) {
        tun_learn(&r->problem, &t);
    }
}

static struct dmn_retune_next begin_search(struct dmn_model *m)
{
    base_cleanup(tun_problem_deinit) struct tun_problem p = TUN_PROBLEM_NULL;
    struct dmn_retune *r = m->planning->retune;
    int error = problem_now(m, &p);

    r->phase = DMN_RETUNE_SEARCH;
    error = error ? error : job_new(r->q.algorithm, &p, &r->q.options, &r->job);
    if (error) {
        snprintf(r->why, sizeof(r->why), "%s", strerror(-error));
        return conclude(DMN_OUTCOME_FAILED);
    }
    return think(false);
}

/* Measures the next plan that shows unknown shapes of team; if there is none, begins the search. */
static struct dmn_retune_next next_shape(struct dmn_model *m)
{
    base_cleanup(tun_problem_deinit) struct tun_problem p = TUN_PROBLEM_NULL;
    struct dmn_retune *r = m->planning->retune;
    double present_ns = r->first.failed ? 0 : r->first.measured.bottleneck_ns;
    struct pl_plan plan;

    r->phase = DMN_RETUNE_SHAPES;
    return r->q.algorithm->reads_costs && !r->q.over.ctx && problem_now(m, &p) == 0 &&
                   dmn_shapes_next(&r->shapes, &p, present_ns, &plan)
               ? measure(&plan)
               : begin_search(m);
}

static struct dmn_retune_next next_known(struct dmn_model *m)
{
    struct dmn_retune *r = m->planning->retune;

    if (r->known.stage_count == 0 || pl_plan_equal(&r->known, &r->before)) {
        return next_shape(m);
    }
    r->phase = DMN_RETUNE_KNOWN;
    return measure(&r->known);
}

/* The search is done. The machine may have drifted since the previous plan was measured. If that
 * could decide, measures it again, and the candidate too if another plan was measured in
 * between. */
static struct dmn_retune_next compare_again(struct dmn_retune *r)
{
    if (!nominate(r) || better_by(r, &r->result, &r->first, SURE_GAIN)) {
        return conclude(DMN_OUTCOME_NONE);
    }
    r->fresh = !r->last.failed && !r->last.stopped && !r->trial.limits.every_team &&
               pl_plan_equal(&r->last.plan, &r->result.plan);
    r->phase = DMN_RETUNE_AGAIN;
    return measure(&r->before);
}

static struct dmn_retune_next compared(struct dmn_retune *r)
{
    bool of_before = pl_plan_equal(&r->last.plan, &r->before);

    if (!r->last.failed && of_before) {
        r->first = r->last;
    } else if (!r->last.failed) {
        r->result = r->last;
    }
    return !of_before || r->fresh ? conclude(DMN_OUTCOME_NONE) : measure(&r->result.plan);
}

static struct dmn_retune_next searched(struct dmn_retune *r)
{
    r->trials++;
    r->failures = 0;
    keep_better(r, &r->best);
    if (pl_plan_equal(&r->last.plan, &r->shape.plan)) {
        r->shape.frames = 0; /* known better now */
    }
    if (r->trials < TRIALS_MAX) {
        return think(true);
    }
    snprintf(r->why, sizeof(r->why), "the limit of trials is reached");
    return compare_again(r);
}

struct dmn_retune_next dmn_retune_measured(struct dmn_model *m)
{
    struct dmn_retune *r = m->planning->retune;

    switch (r->phase) {
    case DMN_RETUNE_BEFORE:
        r->first = r->last;
        return next_known(m);
    case DMN_RETUNE_KNOWN:
        keep_better(r, &r->shape);
        return next_shape(m);
    case DMN_RETUNE_SHAPES:
        r->shape_trials++;
        learn_last(r);
        if (r->last_ci > 0 && r->last_ci <= SURE) { /* few frames often give only a first look */
            keep_better(r, &r->shape);
        }
        return next_shape(m);
    case DMN_RETUNE_SEARCH:
        return searched(r);
    default:
        return compared(r);
    }
}

struct dmn_retune_next dmn_retune_refused(struct dmn_model *m, const struct pl_plan *plan)
{
    struct dmn_retune *r = m->planning->retune;

    if (r->phase == DMN_RETUNE_KNOWN || r->phase == DMN_RETUNE_SHAPES) {
        return next_shape(m);
    }
    if (r->phase != DMN_RETUNE_SEARCH) {
        return conclude(DMN_OUTCOME_NONE);
    }
    r->last = (struct tun_trial){.plan = *plan, .failed = true};
    r->trials++;
    dmn_retune_note_trial(m, DMN_ROLE_SEARCH, 0, 0);
    if (++r->failures > FAILURES_MAX) {
        snprintf(r->why, sizeof(r->why), "no further plan could be built");
        return conclude(DMN_OUTCOME_FAILED);
    }
    return think(true);
}

/* Return: @plan was measured last, to the end; measuring it again would show nothing new. */
static bool measured_last(const struct dmn_retune *r, const struct pl_plan *plan)
{
    return r->last.frames && !r->last.stopped && !r->last.failed && r->job->samples &&
           !r->trial.limits.every_team && pl_plan_equal(plan, &r->last.plan);
}

struct dmn_retune_next dmn_retune_thought(struct dmn_model *m)
{
    struct dmn_retune *r = m->planning->retune;
    struct dmn_retune_job *j = r->job;

    if (j->search && j->tell) {
        dmn_retune_note_predicted(r);
    }
    if (j->result == TUN_E_DONE) {
        return compare_again(r);
    }
    if (j->result != 0) {
        snprintf(r->why, sizeof(r->why), "%s",
                 j->error[0] ? j->error : strerror(j->result < 0 ? -j->result : ENOTRECOVERABLE));
        return conclude(DMN_OUTCOME_FAILED);
    }
    if (measured_last(r, &j->plan)) {
        r->samples = base_take(j->samples);
        r->last.spent_ns = 0;
        dmn_retune_note_trial(m, DMN_ROLE_SEARCH, r->last_ci, 0);
        return searched(r);
    }
    return measure(&j->plan);
}
