/* SPDX-License-Identifier: Apache-2.0 */
/* What a retune leaves: the history event, the log messages, its trials, and what it measured for
 * later predictions. */

#include "daemon/machine/machine.h"
#include "daemon/plans/plans.h"
#include "daemon/plans/retune_private.h"
#include "daemon/plans/switch.h"
#include "daemon/service/log.h"

/* Later trials are listed only if they are the best so far; all are counted. */
#define LISTED_MAX 256u

struct dmn_history_trial dmn_retune_note_trial(struct dmn_model *m, enum dmn_trial_role role,
                                               double ci, double predicted_ns)
{
    struct dmn_retune *r = m->planning->retune;
    const struct tun_trial *t = &r->last;
    const struct dmn_history_trial trial = {.role = role,
                                            .bottleneck_ns = t->measured.bottleneck_ns,
                                            .predicted_ns = predicted_ns,
                                            .latency_ns = t->measured.latency_ns,
                                            .ci = ci,
                                            .spent_ns = t->spent_ns,
                                            .frames = t->frames,
                                            .stopped = t->stopped,
                                            .failed = t->failed};

    if (t->failed || t->spent_ns > 0) { /* else it is the last one again */
        m->planning->counts.trials[t->failed    ? DMN_TRIAL_FAILED
                                   : t->stopped ? DMN_TRIAL_STOPPED
                                                : DMN_TRIAL_COMPLETED]++;
        m->planning->counts.trial_s += t->spent_ns / 1e9;
    }
    if (r->note_count >= LISTED_MAX &&
        (t->failed || t->stopped || !tun_better(&r->rule, &t->measured, &r->best.measured))) {
        return trial;
    }
    if (base_room(&r->notes, sizeof(*r->notes), r->note_count, &r->note_room)) {
        r->notes[r->note_count++] = (struct dmn_retune_note){.plan = t->plan, .trial = trial};
    } /* else the event lists one less */
    return trial;
}

void dmn_retune_note_predicted(struct dmn_retune *r)
{
    size_t count;
    const struct tun_trial *log = tun_search_log(r->job->search, &count);

    if (count > 0 && r->note_count > 0 && log[count - 1].predicted_ns > 0) {
        r->notes[r->note_count - 1].trial.predicted_ns = log[count - 1].predicted_ns;
    }
}

void dmn_retune_plan_text(const struct dmn_model *m, const struct pl_plan *plan,
                          char ret[PL_PLAN_TEXT_MAX])
{
    const struct dmn_retune *r = m->planning->retune;

    if (r->q.over.ctx) {
        r->q.over.text(r->q.over.ctx, &r->problem, plan, ret);
    } else {
        pl_plan_format(plan, &m->planning->of->machine->eps, ret, PL_PLAN_TEXT_MAX);
    }
}

/* The trials for the event. Return: owned; NULL: out of memory. */
static struct dmn_history_trial *list_trials(struct dmn_model *m)
{
    struct dmn_retune *r = m->planning->retune;
    struct dmn_history_trial *list = calloc(base_max(r->note_count, (size_t)1), sizeof(*list));

    for (size_t i = 0; i < r->note_count && list; i++) {
        char plan[PL_PLAN_TEXT_MAX];

        dmn_retune_plan_text(m, &r->notes[i].plan, plan);
        list[i] = r->notes[i].trial;
        list[i].plan = strdup(plan);
    }
    return list;
}

/* ---- what was measured, for later predictions ---- */

/* The figures of a plan that objectives compare. */
struct figures {
    double bottleneck_ns, latency_ns;
};

struct tried_plan {
    struct pl_plan plan;
    struct figures measured, expected; /* expected: by the cost table of that time */
};

struct dmn_tried {
    struct dmn_goal goal;
    const struct tun_algorithm *algorithm;
    size_t count, room;        /* plans[0] is the one that the retune chose */
    struct tried_plan plans[]; /* distinct */
};

static bool expect(const struct tun_problem *p, const struct pl_plan *plan, struct figures *ret)
{
    struct tun_outcome o;

    if (tun_eval(p, plan, &o) != 0 || o.bottleneck_ns <= 0 || o.latency_ns <= 0) {
        return false;
    }
    *ret = (struct figures){o.bottleneck_ns, o.latency_ns};
    return true;
}

/* Adds what was measured of another plan; only the first of a plan counts. */
static void tried_add(struct dmn_tried *t, const struct tun_problem *p, const struct pl_plan *plan,
                      double bottleneck_ns, double latency_ns)
{
    struct tried_plan *new = &t->plans[t->count];

    for (size_t i = 0; i < t->count; i++) {
        if (pl_plan_equal(&t->plans[i].plan, plan)) {
            return;
        }
    }
    if (t->count < t->room && bottleneck_ns > 0 && latency_ns > 0 &&
        expect(p, plan, &new->expected)) {
        new->plan = *plan;
        new->measured = (struct figures){bottleneck_ns, latency_ns};
        t->count++;
    }
}

/* Keeps @chosen, a measured trial of the plan that a search for @goal chose. @room: how many other
 * plans can be added. @p: the costs of this time. Return: owned (free); NULL: out of memory,
 * nothing was measured, or @goal is POWER: trials do not measure energy. */
static struct dmn_tried *tried_new(const struct tun_problem *p, const struct dmn_goal *goal,
                                   const struct tun_algorithm *algorithm,
                                   const struct tun_trial *chosen, size_t room)
{
    struct dmn_tried *t;

    if (chosen->failed || !chosen->frames || goal->objective == TUN_POWER) {
        return NULL;
    }
    t = calloc(1, sizeof(*t) + (room + 1) * sizeof(t->plans[0]));
    if (t) {
        t->goal = *goal;
        t->algorithm = algorithm;
        t->room = room + 1;
        tried_add(t, p, &chosen->plan, chosen->measured.bottleneck_ns, chosen->measured.latency_ns);
    }
    if (t && !t->count) {
        free(base_take(t));
    }
    return t;
}

void dmn_retune_keep_tried(struct dmn_model *m)
{
    const struct dmn_retune *r = m->planning->retune;
    const struct tun_problem *p = &m->planning->problem;

    free(base_take(m->planning->tried));
    if (r->chosen && !r->q.over.ctx) { /* plans over boards are not this board's */
        m->planning->tried = tried_new(p, &r->q.goal, r->q.algorithm, r->chosen, r->note_count);
    }
    for (size_t i = r->note_count; m->planning->tried && i-- > 0;) { /* the newest comes first */
        const struct dmn_retune_note *n = &r->notes[i];

        if (!n->trial.stopped && !n->trial.failed) {
            tried_add(m->planning->tried, p, &n->plan, n->trial.bottleneck_ns, n->trial.latency_ns);
        }
    }
}

static double fps(const struct tun_trial *t)
{
    return t && !t->failed && t->measured.bottleneck_ns > 0 ? 1e9 / t->measured.bottleneck_ns : -1;
}

/* Gain of the new plan over the previous one, by the present table; 0: unknown. */
static double predicted_gain(struct dmn_model *m, const struct pl_plan *after)
{
    base_cleanup(tun_problem_deinit) struct tun_problem p = TUN_PROBLEM_NULL;
    struct dmn_retune *r = m->planning->retune;
    struct tun_outcome a, b;
    bool known = r->q.over.ctx ? tun_problem_copy(&r->problem, &p) == 0
                               : dmn_planner_problem(m, &r->q.goal, &p) == 0;

    return known && tun_eval(&p, after, &a) == 0 && tun_eval(&p, &r->before, &b) == 0 &&
                   a.bottleneck_ns > 0
               ? b.bottleneck_ns / a.bottleneck_ns - 1
               : 0;
}

static void detail_text(const struct dmn_retune *r, char *ret, size_t bytes)
{
    snprintf(ret, bytes, "%s%s%s for %s: %zu trial%s", r->happened, r->happened[0] ? "; " : "",
             r->q.algorithm->name, tun_objective_names[r->q.goal.objective], r->trials,
             base_plural(r->trials));
    if (r->shape_trials) {
        base_append(ret, bytes, " after %zu of team shapes", r->shape_trials);
    }
    base_append(ret, bytes, ", measured %s",
                r->idle         ? "under a synthetic load"
                : r->q.over.ctx ? "under live traffic and a synthetic load"
                                : "under live traffic");
    if (r->why[0]) {
        base_append(ret, bytes, "; %s", r->why);
    }
}

void dmn_retune_write_event(struct dmn_model *m)
{
    struct dmn_retune *r = m->planning->retune;
    uint64_t answered = m->stats.answered - r->answered;
    uint64_t own =
        m->stats.collected - r->collected + (r->q.over.ctx ? r->q.over.done(r->q.over.ctx) : 0);
    uint64_t frames = answered ? answered : own;
    double took_ns = (double)(base_now_ns() - r->began_ns);
    const struct pl_plan *plan = r->chosen ? &r->chosen->plan : &r->before;
    char after[PL_PLAN_TEXT_MAX], detail[512];
    struct dmn_history_trial *trials = list_trials(m);

    dmn_retune_plan_text(m, plan, after);
    detail_text(r, detail, sizeof(detail));
    r->event = dmn_event_ref(
        dmn_plan_event(m, &(struct dmn_history_event){
                              .cause = r->q.cause,
                              .detail = detail,
                              .origin = {.from = DMN_FROM_SEARCH, .algorithm = r->q.algorithm},
                              .trials = trials,
                              .trial_count = trials ? r->note_count : 0,
                              .plan_before = r->plan_before,
                              .plan_after = after,
                              .fps_before = fps(&r->first),
                              .fps_after = fps(r->chosen ? r->chosen : &r->first),
                              .predicted_gain = predicted_gain(m, plan),
                              .duration_ms = took_ns / 1e6,
                              .lost = m->stats.failed - r->failed,
                              .outcome = r->outcome,
                              .searched = true,
                              .objective = r->q.goal.objective,
                              .asked = r->trials,
                              .fps_during = (double)frames * 1e9 / took_ns,
                              .decided = r->q.decided,
                          }));
    dmn_log_limited(
        LOG_NOTICE,
        ((struct dmn_log_fields){.id = DMN_MSG_RETUNE_END, .model = m->name, .plan = after}),
        "model %s: retune %s (%s): plan %s, %.1f frames/s before, %.1f after, %.0f ms", m->name,
        dmn_event_outcome_names[r->outcome], detail, after, base_max(fps(&r->first), 0.0),
        base_max(fps(r->chosen ? r->chosen : &r->first), 0.0), took_ns / 1e6);
}

static bool same_goal(const struct dmn_goal *a, const struct dmn_goal *b)
{
    return a->objective == b->objective && a->fps == b->fps && a->latency_ms == b->latency_ms;
}

/* What the measurement would be now. Return: false: the plan no longer fits. */
static bool outcome_now(const struct tried_plan *t, const struct tun_problem *p,
                        struct tun_outcome *ret)
{
    struct figures now;

    if (!tun_fits(p, &t->plan) || !expect(p, &t->plan, &now)) {
        return false;
    }
    *ret = (struct tun_outcome){
        .bottleneck_ns = t->measured.bottleneck_ns * now.bottleneck_ns / t->expected.bottleneck_ns,
        .latency_ns = t->measured.latency_ns * now.latency_ns / t->expected.latency_ns};
    return true;
}

const struct pl_plan *dmn_tried_best(const struct dmn_tried *t, const struct tun_problem *p,
                                     const struct dmn_goal *goal,
                                     const struct tun_solution *predicted,
                                     struct dmn_origin *origin)
{
    const struct pl_plan *best = NULL;
    struct tun_outcome outcome, other;
    bool measured = false;

    if (!t || !same_goal(&t->goal, goal) || !outcome_now(&t->plans[0], p, &outcome)) {
        return &predicted->plan;
    }
    best = &t->plans[0].plan;
    outcome.bottleneck_ns *= 1 - DMN_TRIAL_UNCERTAINTY;
    outcome.latency_ns *= 1 - DMN_TRIAL_UNCERTAINTY;
    for (size_t i = 0; i < t->count; i++) {
        measured |= pl_plan_equal(&t->plans[i].plan, &predicted->plan);
        if (i > 0 && outcome_now(&t->plans[i], p, &other) && tun_better(p, &other, &outcome)) {
            best = &t->plans[i].plan;
            outcome = other;
        }
    }
    if (!measured && tun_better(p, &predicted->outcome, &outcome)) {
        return &predicted->plan;
    }
    *origin = (struct dmn_origin){.from = DMN_FROM_SEARCH, .algorithm = t->algorithm};
    return best;
}
