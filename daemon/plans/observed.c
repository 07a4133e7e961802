/* SPDX-License-Identifier: Apache-2.0 */
/* The clocks of the serving plan as a trial: serving is measuring. */
#include <math.h>

#include "daemon/models/choosing.h"
#include "daemon/plans/planner.h"
#include "daemon/plans/plans.h"
#include "tuner/learn.h"

#define WINDOW_FRAMES 32u /* a figure is the mean of at least this many, if there are as many */
#define FRAMES_MIN 4u     /* fewer in a window do not replace a measured figure */

/* All clocks at one time. */
struct dmn_clocks {
    uint32_t epoch;
    uint64_t at_ns;
    size_t team_count;
    struct {
        struct pl_team_stats stats;
        size_t first, count; /* its units: units[first..first + count) */
    } * teams;               /* owned */
    struct pl_series *units; /* owned */
};

static struct dmn_clocks *clocks_free(struct dmn_clocks *c)
{
    if (c) {
        free(c->teams);
        free(c->units);
        free(c);
    }
    return NULL;
}

/* Return: 0 or -ENOMEM. */
static int clocks_take(const struct dmn_model *m, struct dmn_clocks **ret)
{
    const struct pl_plan *plan = pl_current_plan(m->pipe);
    struct dmn_clocks *c = calloc(1, sizeof(*c));
    size_t units = 0;

    if (!c || !(c->teams = calloc(pl_team_count(m->pipe), sizeof(*c->teams)))) {
        clocks_free(c);
        return -ENOMEM;
    }
    c->epoch = pl_epoch(m->pipe);
    c->at_ns = base_now_ns();
    c->team_count = pl_team_count(m->pipe);
    for (size_t t = 0; t < c->team_count; t++) {
        const struct pl_stage_plan *stage;

        pl_team_stats(m->pipe, t, &c->teams[t].stats);
        stage = &plan->stages[c->teams[t].stats.stage];
        c->teams[t].first = units;
        c->teams[t].count = (size_t)(stage->last_unit - stage->first_unit) + 1;
        units += c->teams[t].count;
    }
    c->units = calloc(units, sizeof(*c->units));
    if (!c->units) {
        clocks_free(c);
        return -ENOMEM;
    }
    for (size_t t = 0; t < c->team_count; t++) {
        size_t unit = plan->stages[c->teams[t].stats.stage].first_unit;

        for (size_t i = 0; i < c->teams[t].count; i++) {
            pl_team_unit_stats(m->pipe, t, unit + i, &c->units[c->teams[t].first + i]);
        }
    }
    *ret = c;
    return 0;
}

/* Return: @before if it is of the same plan; else NULL: there is no difference to take. */
static const struct dmn_clocks *comparable(const struct dmn_clocks *before,
                                           const struct dmn_clocks *now)
{
    return before && before->epoch == now->epoch && before->team_count == now->team_count ? before
                                                                                          : NULL;
}

static void add_window(struct pl_series *to, const struct pl_series *before,
                       const struct pl_series *now)
{
    struct pl_series window = *now;

    if (before) {
        pl_series_since(before, now, &window);
    }
    if (window.count > 0) {
        pl_series_merge(to, &window);
    }
}

static bool of_group(const struct pl_team_stats *t, size_t stage, const struct pl_group *group)
{
    return t->stage == stage && t->ep == group->ep && t->width == pl_group_width(group);
}

/* What the teams of a group did since @before. */
struct group_times {
    struct pl_series service, work;
    double at_once; /* frames that they took at once on average; 1: none yet */
};

static struct group_times group_times(const struct dmn_clocks *before, const struct dmn_clocks *now,
                                      size_t stage, const struct pl_group *group)
{
    struct group_times all = {.at_once = 1};
    uint64_t frames = 0, runs = 0;

    for (size_t t = 0; t < now->team_count; t++) {
        const struct pl_team_stats *then = before ? &before->teams[t].stats : NULL;
        const struct pl_team_stats *is = &now->teams[t].stats;

        if (of_group(is, stage, group)) {
            add_window(&all.service, then ? &then->service : NULL, &is->service);
            add_window(&all.work, then ? &then->work : NULL, &is->work);
            frames += is->frames - (then ? then->frames : 0);
            runs += is->runs - (then ? then->runs : 0);
        }
    }
    if (frames > runs && runs > 0) {
        all.at_once = (double)frames / (double)runs;
    }
    return all;
}

/* Relative standard error of the mean; unknown for a single value. */
static double relative_error(const struct pl_series *s)
{
    if (s->count < 2 || s->mean_ns <= 0) {
        return 1;
    }
    return sqrt(base_max(s->m2, 0.0) / (double)(s->count - 1) / (double)s->count) / s->mean_ns;
}

/* Times of a unit on the teams of a group since @before. */
static struct pl_series group_unit(const struct dmn_clocks *before, const struct dmn_clocks *now,
                                   size_t stage, const struct pl_group *group, size_t unit)
{
    struct pl_series all = {0};

    for (size_t t = 0; t < now->team_count; t++) {
        size_t at = now->teams[t].first + unit;

        if (of_group(&now->teams[t].stats, stage, group)) {
            add_window(&all, before ? &before->units[at] : NULL, &now->units[at]);
        }
    }
    return all;
}

/* Winsorising removes more from short units than from their teams (pipeline/stats.h). Interrupts
 * hit a team at any moment, so what the units' sum lacks is spread over all units in proportion:
 * what slows a core slows each of its units. */
static double missing_factor(const struct pl_series *work, double unit_sum_ns)
{
    return work->count > 0 && unit_sum_ns > 0 && work->mean_ns > unit_sum_ns
               ? work->mean_ns / unit_sum_ns
               : 1;
}

/* Writes the samples of one group's units. Return: how many were written to @ret. */
static size_t group_samples(const struct dmn_model *m, const struct dmn_clocks *before,
                            const struct dmn_clocks *now, size_t s, const struct pl_group *group,
                            struct tun_sample *ret)
{
    const struct pl_stage_plan *stage = &pl_current_plan(m->pipe)->stages[s];
    struct group_times of = group_times(before, now, s, group);
    double sum = 0, factor;
    size_t count = 0;

    for (size_t u = stage->first_unit; u <= stage->last_unit; u++) {
        struct pl_series all = group_unit(before, now, s, group, u - stage->first_unit);
        const struct tun_cell *cell =
            tun_cell_at(&m->planning->problem.costs, group->ep, group->width, u);

        sum += all.mean_ns;
        if (all.count == 0 || (all.count < FRAMES_MIN && cell->source == TUN_MEASURED)) {
            continue;
        }
        ret[count] = (struct tun_sample){.ep = group->ep,
                                         .width = group->width,
                                         .unit = (uint32_t)u,
                                         .ns = base_max(all.mean_ns, 1.0),
                                         .sigma = relative_error(&all),
                                         .frames = of.at_once};
        memcpy(ret[count++].also, group->also, sizeof(group->also));
    }
    factor = missing_factor(&of.work, sum);
    for (size_t i = 0; i < count; i++) {
        ret[i].ns *= factor;
    }
    return count;
}

static bool seen_before(const struct pl_stage_plan *stage, size_t group)
{
    for (size_t g = 0; g < group; g++) {
        if (stage->groups[g].ep == stage->groups[group].ep &&
            pl_group_width(&stage->groups[g]) == pl_group_width(&stage->groups[group])) {
            return true;
        }
    }
    return false;
}

/* Enters a stage into the trial; a group without a frame has its figures from the table. Stages
 * are compared by the wall clock. A team's own time teaches the table, so it is the team's work.
 * Return: frames. */
static uint64_t stage_trial(const struct dmn_model *m, const struct dmn_clocks *before,
                            const struct dmn_clocks *now, size_t s, struct tun_trial *ret)
{
    const struct pl_stage_plan *stage = &ret->plan.stages[s];
    double rate = 0, slowest = 0;
    uint64_t frames = 0;

    for (size_t g = 0; g < stage->group_count; g++) {
        const struct pl_group *group = &stage->groups[g];
        struct group_times t = group_times(before, now, s, group);
        uint64_t count = t.service.count;
        double ns =
            count ? base_max(t.service.mean_ns, 1.0)
                  : tun_group_ns(&m->planning->problem, stage->first_unit, stage->last_unit, group);

        frames += seen_before(stage, g) ? 0 : count;
        if (ns > 0) {
            ret->measured.team_ns[s][g] = t.work.count ? base_max(t.work.mean_ns, 1.0) : ns;
            rate += group->count / ns;
            slowest = base_max(slowest, ns * (count ? t.at_once : (double)pl_group_batch(group)));
        }
    }
    ret->failed |= frames == 0;
    ret->measured.stage_ns[s] = rate > 0 ? 1 / rate : 0;
    ret->measured.bottleneck_ns = base_max(ret->measured.bottleneck_ns, ret->measured.stage_ns[s]);
    ret->measured.latency_ns += slowest;
    return frames;
}

static int trial_between(const struct dmn_model *m, const struct dmn_clocks *before,
                         const struct dmn_clocks *now, struct tun_trial *ret,
                         struct tun_sample **ret_samples)
{
    struct tun_trial trial = {.plan = *pl_current_plan(m->pipe)};
    struct tun_sample *samples = NULL;
    size_t room = 0, count = 0;

    before = comparable(before, now);
    for (size_t s = 0; s < trial.plan.stage_count; s++) {
        const struct pl_stage_plan *stage = &trial.plan.stages[s];

        room += ((size_t)(stage->last_unit - stage->first_unit) + 1) * stage->group_count;
    }
    samples = calloc(room, sizeof(*samples));
    if (!samples) {
        return -ENOMEM;
    }
    trial.measured.stage_count = trial.plan.stage_count;
    for (size_t s = 0; s < trial.plan.stage_count; s++) {
        const struct pl_stage_plan *stage = &trial.plan.stages[s];

        trial.frames = stage_trial(m, before, now, s, &trial);
        for (size_t g = 0; g < stage->group_count; g++) {
            if (!seen_before(stage, g)) {
                count += group_samples(m, before, now, s, &stage->groups[g], samples + count);
            }
        }
    }
    trial.spent_ns = before ? (double)(now->at_ns - before->at_ns) : 0;
    trial.samples = samples;
    trial.sample_count = count;
    *ret = trial;
    *ret_samples = samples;
    return 0;
}

void dmn_planner_mark(struct dmn_model *m)
{
    struct dmn_clocks *now;

    if (clocks_take(m, &now) == 0) {
        clocks_free(m->planning->clocks.mark);
        m->planning->clocks.mark = now;
    }
}

int dmn_planner_trial(const struct dmn_model *m, struct tun_trial *ret,
                      struct tun_sample **ret_samples)
{
    struct dmn_clocks *now;
    int error = clocks_take(m, &now);

    if (!error) {
        error = trial_between(m, m->planning->clocks.mark, now, ret, ret_samples);
        clocks_free(now);
    }
    return error;
}

void dmn_planner_clocks_free(struct dmn_model *m)
{
    m->planning->clocks.mark = clocks_free(m->planning->clocks.mark);
    m->planning->clocks.base[0] = clocks_free(m->planning->clocks.base[0]);
    m->planning->clocks.base[1] = clocks_free(m->planning->clocks.base[1]);
}

void dmn_costs_swap(struct dmn_model *m, struct tun_problem *costs)
{
    struct tun_problem before = m->planning->problem;

    m->planning->problem = *costs;
    *costs = before;
    dmn_planner_clocks_free(m);
}

struct dmn_costs_hold dmn_costs_held(const struct dmn_model *m)
{
    const struct dmn_plans *plans = m->planning->of;

    return plans->held ? plans->held(m) : (struct dmn_costs_hold){0};
}

static uint64_t frames_of(const struct dmn_clocks *c)
{
    uint64_t frames = 0;

    for (size_t t = 0; c && t < c->team_count; t++) {
        frames += c->teams[t].stats.stage == 0 ? c->teams[t].stats.service.count : 0;
    }
    return frames;
}

/* Leaves out what would replace figures that were measured, or follow from times of operators. */
static void only_unknown(const struct tun_problem *p, struct tun_trial *t,
                         struct tun_sample *samples)
{
    size_t count = 0;

    for (size_t i = 0; i < t->sample_count; i++) {
        const struct tun_cell *c =
            tun_cell_at(&p->costs, samples[i].ep, samples[i].width, samples[i].unit);

        if (c->source < TUN_SAVED && c->sigma > DMN_CHOOSE_SIGMA) {
            samples[count++] = samples[i];
        }
    }
    t->sample_count = count;
}

/* The window begins at base[1]; base[0] follows WINDOW_FRAMES later. */
static void next_window(struct dmn_clocks **base, struct dmn_clocks *now, bool cold)
{
    bool full = frames_of(now) >= frames_of(base[0] ? base[0] : base[1]) + WINDOW_FRAMES;

    if (cold) {
        clocks_free(base[0]);
        clocks_free(base[1]);
        base[0] = NULL;
        base[1] = now;
    } else if (!full) {
        clocks_free(now);
    } else if (!base[1]) {
        base[1] = now;
    } else {
        if (base[0]) {
            clocks_free(base[1]);
            base[1] = base[0];
        }
        base[0] = now;
    }
}

void dmn_planner_learn(struct dmn_model *m)
{
    base_autofree struct tun_trial *trial = calloc(1, sizeof(*trial));
    base_autofree struct tun_sample *samples = NULL;
    struct dmn_clocks *now, **base = m->planning->clocks.base;
    struct dmn_costs_hold held = dmn_costs_held(m);

    if (!trial || (m->planning->retune ? held.trials : held.learning) ||
        m->planning->clocks.collected == m->stats.collected || clocks_take(m, &now) < 0) {
        return;
    }
    m->planning->clocks.collected = m->stats.collected;
    for (size_t i = 0; i < 2; i++) {
        base[i] = comparable(base[i], now) ? base[i] : clocks_free(base[i]);
    }
    if (trial_between(m, base[1], now, trial, &samples) == 0) {
        if (held.cold) {
            only_unknown(&m->planning->problem, trial, samples);
        }
        if (trial->sample_count > 0) {
            tun_learn(&m->planning->problem, trial);
            m->planning->clocks.learned = true;
        }
    }
    next_window(base, now, held.cold);
}
