/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The default search: solve the table exactly, run the answer, correct the table by what every unit
 * and stage took, solve again, until nothing better is predicted than what was measured.
 *
 * An uncertain table is first asked everything at once: one stage with a one-core team on every
 * core runs every unit on every EP in one trial, at a throughput near the best there is. From then
 * on only what the plan's stages share (width, hand-off, memory) is left to be wrong.
 *
 * A plan can do worse than the corrected table says, when its stages disturb each other in a way
 * that no table of single units expresses. The ratio of measured to predicted, common to the plans
 * run so far, is taken into account for those that were not; what is special to one plan makes the
 * runners-up look better than it, and they are tried.
 */

#include "tuner/learn.h"
#include "tuner/search/search_private.h"
#include "tuner/solve/solve.h"

#define TRIALS_MAX 5
#define CANDIDATES_MAX 32
#define GAIN 0.003     /* predicted gain that is worth one of the first trials */
#define GAIN_LATE 0.01 /* and one of the last */
#define TRIALS_FIRST 3
#define GAIN_LATENCY 0.05   /* the same for the latency of plans of equal throughput */
#define UNCERTAIN 0.03      /* mean sigma of the table above which it is asked everything */
#define UNCERTAIN_SHARE 0.8 /* throughput that this trial must have of the best predicted */
/* Of the slack the solver may use: the rest is for what prediction and measurement differ by. */
#define SLACK_SHARE 0.67
#define COMMON_PRIOR 0.25
#define MARGIN 0.01 /* of the bounds, for the same */

struct exact {
    uint8_t *hole; /* [cells] owned: was unknown at the start */
    bool asked_everything;
    double least_ns; /* of the table as it was last solved, the bottleneck alone; 0: not solved */
    struct tun_solution candidates[CANDIDATES_MAX];
    size_t count;
};

/* Predictions of the start are made anew from what is known now. */
static void tell(struct tun_search *s, const struct tun_trial *t)
{
    struct exact *x = s->state;
    struct tun_costs *c = &s->problem.costs;

    for (size_t i = 0; i < tun_cell_count(c); i++) {
        if (x->hole[i] && c->cells[i].source != TUN_MEASURED) {
            c->cells[i].ns = -1;
        }
    }
    tun_learn(&s->problem, t);
    tun_fill(&s->problem);
}

static int start(struct tun_search *s)
{
    struct exact *x = s->state;
    const struct tun_costs *c = &s->problem.costs;

    x->hole = calloc(tun_cell_count(c), 1);
    if (!x->hole) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < tun_cell_count(c); i++) {
        x->hole[i] = !tun_cell_known(&c->cells[i]);
    }
    tun_fill(&s->problem);
    return tun_problem_check(&s->problem, s->reason);
}

static void stop(struct tun_search *s)
{
    struct exact *x = s->state;

    free(x->hole);
}

/* One stage with a one-core team on every core. Return: false if that is no plan here. */
static bool everything(const struct tun_problem *p, struct pl_plan *ret)
{
    struct pl_stage_plan *stage = &ret->stages[0];
    size_t teams = 0;

    *ret = (struct pl_plan){.stage_count = 1};
    stage->last_unit = (uint16_t)(p->unit_count - 1);
    if (p->ep_count > TUN_GROUP_MAX) {
        return false;
    }
    for (size_t k = 0; k < p->ep_count; k++) {
        stage->groups[stage->group_count++] = (struct pl_group){(uint16_t)k, 1, p->eps[k].cores};
        teams += p->eps[k].cores;
    }
    return teams <= PL_TEAM_MAX && tun_fits(p, ret);
}

/* Mean sigma of the table, every cell weighed by its time. */
static double uncertainty(const struct tun_problem *p)
{
    double sum = 0, weight = 0;

    for (size_t i = 0; i < tun_cell_count(&p->costs); i++) {
        const struct tun_cell *c = &p->costs.cells[i];

        sum += base_max(0.0, c->sigma) * c->ns;
        weight += c->ns;
    }
    return sum / weight;
}

/* Return: it is time for the trial that measures everything, given the best predicted plan. */
static bool ask_everything(struct tun_search *s, const struct tun_outcome *best,
                           struct pl_plan *ret)
{
    struct exact *x = s->state;
    const struct tun_problem *p = &s->problem;
    struct tun_outcome o;

    if (x->asked_everything || uncertainty(p) <= UNCERTAIN || !everything(p, ret) ||
        tun_eval(p, ret, &o) != 0 || o.bottleneck_ns * UNCERTAIN_SHARE > best->bottleneck_ns ||
        (p->bounds.latency_max_ns > 0 && o.latency_ns > p->bounds.latency_max_ns)) {
        return false;
    }
    x->asked_everything = true;
    return true;
}

/* The candidates by the table as it is now, best first. What must be kept is asked for with a
 * margin for the noise of measuring it, as long as there is a plan that has it. */
static int solve(struct tun_search *s)
{
    struct exact *x = s->state;
    struct tun_problem p = s->problem; /* shallow: read only */
    size_t top = base_min(base_max(s->options.top, (size_t)1), (size_t)CANDIDATES_MAX);
    int error;

    p.bounds.slack *= SLACK_SHARE;
    p.bounds.period_max_ns *= 1 - MARGIN;
    p.bounds.latency_max_ns *= 1 - MARGIN;
    error = tun_solve_top(&p, top, x->candidates, &x->count);
    if (error == TUN_E_IMPOSSIBLE) {
        p.bounds = s->problem.bounds;
        error = tun_solve_top(&p, top, x->candidates, &x->count);
    }
    if (error == TUN_E_IMPOSSIBLE) { /* nothing keeps the bounds: the fastest plan, then */
        error = tun_solve(&p, &x->candidates[0]);
        x->count = 1;
    }
    if (error == 0 && p.objective == TUN_THROUGHPUT) {
        struct tun_solution fastest;

        p.bounds.slack = 0;
        error = tun_solve(&p, &fastest);
        x->least_ns = fastest.outcome.bottleneck_ns;
    }
    return error == TUN_E_IMPOSSIBLE ? 0 : error > 0 ? -ENOTRECOVERABLE : error;
}

static void scale(struct tun_outcome *o, double by)
{
    o->bottleneck_ns *= by;
    o->latency_ns *= by;
    o->energy_nj *= by;
}

/* What a trial measured; what it did not measure is taken from the table. */
static struct tun_outcome seen(const struct tun_search *s, size_t i)
{
    struct tun_outcome o = s->log[i].measured, table;

    if ((o.latency_ns <= 0 || o.energy_nj <= 0) &&
        tun_eval(&s->problem, &s->log[i].plan, &table) == 0) {
        o.latency_ns = o.latency_ns > 0 ? o.latency_ns : table.latency_ns;
        o.energy_nj = o.energy_nj > 0 ? o.energy_nj : table.energy_nj;
    }
    return o;
}

/* Measured over predicted by the table as it is now, common to the trials: mean of log ratios,
 * shrunk towards 0 by a share of a trial, since what one plan shows need not be common. */
static double common_error(const struct tun_search *s)
{
    double sum = 0, count = COMMON_PRIOR;

    for (size_t i = 0; i < s->count; i++) {
        struct tun_outcome table;

        if (tun_trial_ran(&s->log[i]) && tun_eval(&s->problem, &s->log[i].plan, &table) == 0) {
            sum += log(s->log[i].measured.bottleneck_ns / table.bottleneck_ns);
            count++;
        }
    }
    return exp(sum / count);
}

/* The trial that should serve: the best by the objective; of throughput's plans within the slack of
 * the fastest (measured, or predicted by the corrected table), the one with the lowest latency.
 * SIZE_MAX: none. */
static size_t result(const struct tun_search *s)
{
    const struct exact *x = s->state;
    size_t best = SIZE_MAX, chosen;
    struct tun_outcome fastest, lowest;
    double limit_ns;

    for (size_t i = 0; i < s->count; i++) {
        struct tun_outcome o = seen(s, i);

        if (tun_trial_ran(&s->log[i]) &&
            (best == SIZE_MAX || tun_better(&s->problem, &o, &fastest))) {
            best = i;
            fastest = o;
        }
    }
    if (best == SIZE_MAX || s->problem.objective != TUN_THROUGHPUT) {
        return best;
    }
    chosen = best;
    lowest = fastest;
    limit_ns = fastest.bottleneck_ns;
    if (x->least_ns > 0) {
        limit_ns = base_min(limit_ns, x->least_ns * common_error(s));
    }
    limit_ns *= 1 + s->problem.bounds.slack;
    for (size_t i = 0; i < s->count; i++) {
        struct tun_outcome o = seen(s, i);

        if (tun_trial_ran(&s->log[i]) && o.latency_ns < lowest.latency_ns &&
            o.bottleneck_ns <= limit_ns &&
            (s->problem.bounds.latency_max_ns <= 0 ||
             fastest.latency_ns > s->problem.bounds.latency_max_ns ||
             o.latency_ns <= s->problem.bounds.latency_max_ns)) {
            chosen = i;
            lowest = o;
        }
    }
    return chosen;
}

/* Return: a predicted outcome is so much better than a measured one that it is worth a trial. */
static bool worth(const struct tun_problem *p, double gain, const struct tun_outcome *predicted,
                  const struct tun_outcome *best)
{
    struct tun_outcome gained = *predicted;

    if (p->objective == TUN_THROUGHPUT && predicted->latency_ns < best->latency_ns &&
        predicted->bottleneck_ns <= best->bottleneck_ns * (1 + SLACK_SHARE * p->bounds.slack)) {
        return predicted->latency_ns < best->latency_ns * (1 - GAIN_LATENCY) ||
               predicted->bottleneck_ns < best->bottleneck_ns * (1 - gain);
    }
    scale(&gained, 1 / (1 - gain));
    return tun_better(p, &gained, best);
}

/* What a measured plan stands for in comparisons: the corrected table's figure, in which the noise
 * of all trials is averaged, unless the measurement denies it. */
static struct tun_outcome stands_for(const struct tun_search *s, size_t i, double common)
{
    struct tun_outcome o = seen(s, i), table;

    if (tun_eval(&s->problem, &s->log[i].plan, &table) == 0 &&
        fabs(log(o.bottleneck_ns / (table.bottleneck_ns * common))) < UNCERTAIN) {
        o.bottleneck_ns = table.bottleneck_ns * common;
        o.latency_ns = table.latency_ns * common;
        o.energy_nj = table.energy_nj * common;
    }
    return o;
}

/* What a candidate must be better than: the plan that would serve, and no less than any other that
 * was measured, since noise may have chosen between them. */
static struct tun_outcome reference(const struct tun_search *s, size_t best, double common)
{
    struct tun_outcome o = stands_for(s, best, common);

    for (size_t i = 0; i < s->count; i++) {
        struct tun_outcome other;

        if (!tun_trial_ran(&s->log[i])) {
            continue;
        }
        other = stands_for(s, i, common);
        if (s->problem.objective == TUN_THROUGHPUT) {
            o.bottleneck_ns = base_min(o.bottleneck_ns, other.bottleneck_ns);
        } else if (tun_better(&s->problem, &other, &o)) {
            o = other;
        }
    }
    return o;
}

static int ask(struct tun_search *s, struct pl_plan *ret)
{
    const struct exact *x = s->state;
    size_t best = result(s);
    struct tun_outcome reference_outcome;
    double common = common_error(s), gain = s->count < TRIALS_FIRST ? GAIN : GAIN_LATE;
    int error;

    if (s->count >= TRIALS_MAX) {
        return TUN_E_DONE;
    }
    error = solve(s);
    if (error < 0) {
        return error;
    }
    if (ask_everything(s, &x->candidates[0].outcome, ret) && tun_search_seen(s, ret) == SIZE_MAX) {
        return 0;
    }
    if (best != SIZE_MAX) {
        reference_outcome = reference(s, best, common);
    }
    for (size_t i = 0; i < x->count; i++) {
        struct tun_outcome predicted = x->candidates[i].outcome;

        scale(&predicted, common);
        if (tun_search_seen(s, &x->candidates[i].plan) == SIZE_MAX &&
            (best == SIZE_MAX || worth(&s->problem, gain, &predicted, &reference_outcome))) {
            *ret = x->candidates[i].plan;
            return 0;
        }
    }
    return TUN_E_DONE;
}

const struct tun_search_code tun_exact_code = {
    .state_bytes = sizeof(struct exact),
    .start = start,
    .ask = ask,
    .tell = tell,
    .result = result,
    .stop = stop,
};
