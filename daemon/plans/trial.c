/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/plans/trial.h"

#include "daemon/models/models.h"
#include "daemon/plans/planner.h"
#include "daemon/plans/plans.h"
#include "tuner/span.h"

/* A trial in which no frame comes out ends after this many budgets. */
#define BUDGETS_MAX 10u
/* Before this part of the budget a figure may look sure by chance: other programs come and go on
 * the cores within tens of milliseconds. */
#define BUDGET_PART 20u

/* ---- pace ---- */

void dmn_pace_begin(struct dmn_pace *p, uint64_t at_ns, size_t batch)
{
    *p = (struct dmn_pace){.start_ns = at_ns,
                           .last_ns = at_ns,
                           .batch_from_ns = at_ns,
                           .batch_frames = base_max(batch, (size_t)1)};
}

void dmn_pace_add(struct dmn_pace *p, uint64_t at_ns)
{
    p->last_ns = base_max(p->last_ns, at_ns);
    p->count++;
    if (++p->in_batch < p->batch_frames) {
        return;
    }
    if (p->batches == DMN_PACE_BATCHES) {
        for (size_t i = 0; i < DMN_PACE_BATCHES / 2; i++) {
            p->batch_ns[i] = (p->batch_ns[2 * i] + p->batch_ns[2 * i + 1]) / 2;
        }
        p->batches /= 2;
        p->batch_frames *= 2;
        return; /* the batch that was full is now half of a larger one */
    }
    p->batch_ns[p->batches++] = (double)(p->last_ns - p->batch_from_ns) / (double)p->batch_frames;
    p->batch_from_ns = p->last_ns;
    p->in_batch = 0;
}

double dmn_pace_mean_ns(const struct dmn_pace *p)
{
    return p->count ? (double)(p->last_ns - p->start_ns) / (double)p->count : 0;
}

double dmn_student(size_t freedom)
{
    static const double t[] = {INFINITY, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447,
                               2.365,    2.306,  2.262, 2.228, 2.201, 2.179, 2.160,
                               2.145,    2.131,  2.120, 2.110, 2.101, 2.093, 2.086};

    return freedom < base_array_count(t) ? t[freedom] : 1.96 + 2.5 / (double)freedom;
}

double dmn_pace_half_ns(const struct dmn_pace *p)
{
    double mean = 0, sum = 0;

    if (p->batches < 2) {
        return INFINITY;
    }
    for (size_t i = 0; i < p->batches; i++) {
        mean += p->batch_ns[i] / (double)p->batches;
    }
    for (size_t i = 0; i < p->batches; i++) {
        sum += (p->batch_ns[i] - mean) * (p->batch_ns[i] - mean);
    }
    return dmn_student(p->batches - 1) * sqrt(sum / (double)(p->batches - 1) / (double)p->batches);
}

/* ---- trials ---- */

/* Frames that may come out at once: the teams of the last stage can finish together. */
static size_t burst(const struct pl_plan *plan)
{
    return pl_stage_teams(&plan->stages[plan->stage_count - 1]);
}

void dmn_trial_begin(struct dmn_trial *t, const struct dmn_model *m,
                     const struct dmn_trial_limits *limits)
{
    *t = (struct dmn_trial){.limits = *limits,
                            .epoch = pl_epoch(m->pipe),
                            .began_ns = base_now_ns(),
                            .depth = pl_depth(m->pipe)};
}

static void open_window(struct dmn_trial *t, struct dmn_model *m)
{
    struct pl_team_stats team;

    t->window_ns = base_now_ns();
    dmn_pace_begin(&t->pace, t->last_ns, burst(pl_current_plan(m->pipe)));
    for (size_t i = 0; dmn_model_team(m, i, &team); i++) {
        t->before[i] = team.service;
    }
    dmn_planner_mark(m);
}

/* @there: frames behind one that leaves. This one, and another that its client may be reading, are
 * not missing. */
static bool is_starved(const struct dmn_trial *t, size_t there)
{
    return there == 0 || there + 2 < t->depth;
}

void dmn_trial_collected(struct dmn_trial *t, struct dmn_model *m, const struct pl_frame *f)
{
    if (f->epoch != t->epoch || f->status != PL_FRAME_OK || pl_switching(m->pipe)) {
        return;
    }
    t->last_ns = base_max(t->last_ns, f->done_ns);
    if (t->seen++ == 0) {
        dmn_pace_begin(&t->early, t->last_ns, burst(pl_current_plan(m->pipe)));
    } else if (!t->window_ns) {
        dmn_pace_add(&t->early, t->last_ns);
    }
    t->starved += is_starved(t, pl_in_flight(m->pipe) + dmn_model_waiting(m));
    if (t->window_ns) {
        dmn_pace_add(&t->pace, t->last_ns);
    } else if (t->seen >= t->depth) {
        t->starved = 0;
        open_window(t, m);
    }
}

/* Return: the pipeline had frames whenever it could take one. */
static bool saturated(const struct dmn_trial *t)
{
    const struct dmn_pace *p = t->window_ns ? &t->pace : &t->early;

    return p->count > 0 && t->starved * 10 <= p->count;
}

/* What team @i took since counting began. Where few frames are under way it may have had none:
 * then what another one of its group took. Return: there is one. */
static bool service_of(const struct dmn_trial *t, const struct dmn_model *m, size_t i,
                       const struct pl_team_stats *team, struct pl_series *ret_service)
{
    struct pl_team_stats other;

    pl_series_since(&t->before[i], &team->service, ret_service);
    for (size_t k = 0; ret_service->count == 0 && dmn_model_team(m, k, &other); k++) {
        if (other.stage == team->stage && other.ep == team->ep && other.width == team->width) {
            pl_series_since(&t->before[k], &other.service, ret_service);
        }
    }
    return ret_service->count > 0;
}

/* The slowest stage by its teams' clocks, 1 / sum 1/T, with the uncertainty that follows from
 * theirs. Return: every team has computed a frame since counting began, or one like it has. */
static bool slowest_stage(const struct dmn_trial *t, const struct dmn_model *m, double *ret_ns,
                          double *ret_half_ns)
{
    double rate[PL_STAGE_MAX] = {0}, uncertainty[PL_STAGE_MAX] = {0};
    struct pl_team_stats team;
    bool all = true;

    *ret_ns = 0;
    *ret_half_ns = INFINITY;
    for (size_t i = 0; dmn_model_team(m, i, &team); i++) {
        struct pl_series s;
        double half;

        all &= service_of(t, m, i, &team, &s);
        if (s.count == 0 || s.mean_ns <= 0) {
            continue;
        }
        half = s.count < 2 ? INFINITY
                           : dmn_student(s.count - 1) *
                                 sqrt(s.m2 / (double)(s.count - 1) / (double)s.count) / s.mean_ns;
        rate[team.stage] += 1 / s.mean_ns;
        uncertainty[team.stage] += half * half / (s.mean_ns * s.mean_ns);
    }
    for (size_t i = 0; i < PL_STAGE_MAX; i++) {
        if (rate[i] > 0 && 1 / rate[i] > *ret_ns) {
            *ret_ns = 1 / rate[i];
            *ret_half_ns = sqrt(uncertainty[i]) / rate[i] * *ret_ns;
        }
    }
    return all;
}

void dmn_trial_figures(const struct dmn_trial *t, const struct dmn_model *m, double *ret_pace_ns,
                       double *ret_clock_ns)
{
    double half;

    *ret_pace_ns = t->window_ns && saturated(t) ? dmn_pace_mean_ns(&t->pace) : 0;
    if (!t->window_ns || !slowest_stage(t, m, ret_clock_ns, &half)) {
        *ret_clock_ns = 0;
    }
}

/* The bottleneck so far. @ret_half_ns: half width of its confidence interval. */
static double bottleneck_ns(const struct dmn_trial *t, const struct dmn_model *m,
                            double *ret_half_ns)
{
    const struct dmn_pace *p = t->window_ns && t->pace.count ? &t->pace : &t->early;
    double ns;

    if (saturated(t)) {
        *ret_half_ns = dmn_pace_half_ns(p);
        return dmn_pace_mean_ns(p);
    }
    slowest_stage(t, m, &ns, ret_half_ns);
    return ns;
}

static bool every_team_ran(const struct dmn_model *m)
{
    struct pl_team_stats team;

    for (size_t i = 0; dmn_model_team(m, i, &team); i++) {
        if (team.service.count < 2) {
            return false;
        }
    }
    return true;
}

bool dmn_trial_over(struct dmn_trial *t, struct dmn_model *m, uint64_t now_ns)
{
    uint64_t frames = t->window_ns ? t->pace.count : t->early.count;
    double ns, half;

    if (t->seen == 0 || frames == 0) {
        if (t->seen && !t->window_ns && now_ns - t->began_ns >= t->limits.budget_ns) {
            open_window(t, m);
        }
        return now_ns - t->began_ns >= BUDGETS_MAX * t->limits.budget_ns;
    }
    ns = bottleneck_ns(t, m, &half);
    if (t->limits.stop_ns > 0 && frames >= DMN_TRIAL_STOP_FRAMES && ns - half > t->limits.stop_ns &&
        (!t->limits.every_team || every_team_ran(m))) {
        t->stopped = true;
        return true;
    }
    if (!t->window_ns) {
        if (now_ns - t->began_ns >= t->limits.budget_ns) {
            open_window(t, m);
        }
        return false;
    }
    if (now_ns - t->window_ns >= t->limits.budget_ns) {
        return true;
    }
    return frames >= t->limits.frames &&
           now_ns - t->window_ns >= t->limits.budget_ns / BUDGET_PART &&
           (t->limits.every_team ? every_team_ran(m) : half <= DMN_TRIAL_UNCERTAINTY * ns);
}

/* Energy of one frame, by the teams' times: tuner/eval.h. */
static double energy_nj(const struct dmn_model *m, const struct tun_trial *t)
{
    double sum = 0;

    for (size_t s = 0; s < t->plan.stage_count; s++) {
        const struct pl_stage_plan *stage = &t->plan.stages[s];
        double rate = 0, watts = 0;

        for (size_t g = 0; g < stage->group_count; g++) {
            const struct pl_group *group = &stage->groups[g];

            if (t->measured.team_ns[s][g] <= 0) {
                return 0;
            }
            rate += group->count / t->measured.team_ns[s][g];
            watts += group->count * tun_group_watts(&m->planning->problem, group);
        }
        sum += watts / rate; /* share of a team = (1/T) / rate; energy of its frame = T * w watts */
    }
    return sum;
}

int dmn_trial_result(const struct dmn_trial *t, const struct dmn_model *m, uint64_t now_ns,
                     struct tun_trial *ret, struct tun_sample **ret_samples, double *ret_ci)
{
    const struct dmn_pace *p = t->window_ns && t->pace.count ? &t->pace : &t->early;
    double half, ns = bottleneck_ns(t, m, &half);
    int error = dmn_planner_trial(m, ret, ret_samples);

    if (error) {
        return error;
    }
    ret->plan = *pl_current_plan(m->pipe);
    ret->frames = p->count ? p->count : t->seen;
    ret->spent_ns = (double)(now_ns - t->began_ns);
    ret->stopped = t->stopped;
    ret->failed = ns <= 0 || t->seen == 0;
    ret->measured.bottleneck_ns = ns;
    ret->measured.energy_nj = energy_nj(m, ret);
    *ret_ci = ns > 0 && isfinite(half) ? half / ns : 0;
    return 0;
}
