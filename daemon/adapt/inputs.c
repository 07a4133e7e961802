/* SPDX-License-Identifier: Apache-2.0 */
/* Turns snapshots and clocks into windows for the watch. */

#include "daemon/adapt/adapter_private.h"

/* If even the busiest teams waited for more of the window than this, clients sent too few frames.
 * In a busy pipeline the other teams wait as well, and their times are equally valid. */
#define STARVED 0.5
#define COLD_FRAMES 24u /* after a rest: each slot of a frame a few times */
#define COLD_NS (2 * BASE_NS_PER_S)
#define LATE_KEEPS 0.97 /* of what was counted, from window to window */
#define HELD_LONG 2.0   /* times as long as by the table: a frame that is not done yet shows it */
#define PACE_WINDOWS 5u /* of DMN_ADAPT_PACE, that say how fast the plan is of late, */
#define PACE_NEWEST 3u  /* or these, if it is faster in them */

void dmn_adapt_eps(const struct dmn_machine *m, struct tun_ep_seen *ret)
{
    for (size_t e = 0; e < m->eps.count; e++) {
        const struct pl_ep *ep = &m->eps.eps[e];
        const struct gov_cores cores = {ep->name, ep->cpus, ep->cpu_count};
        struct gov_cores_now n;

        gov_cores_now(dmn_sensors_now(m), &cores, &n);
        ret[e] = (struct tun_ep_seen){.cores = (uint16_t)ep->cpu_count,
                                      .governor = n.policies_id,
                                      .khz = n.khz,
                                      .limit_khz = n.limit_khz,
                                      .thermal = n.heated,
                                      .throttles = n.throttles};
    }
}

/* @count divided by @of, both since the previous reading; 0 if either is unknown or nothing
 * passed. */
static double share(uint64_t count, uint64_t of)
{
    return count <= of && of > 0 ? (double)count / (double)of : 0;
}

void dmn_adapt_felt(struct dmn_felt *f, const struct gov_snapshot *s)
{
    if (!s || s->sequence == f->sequence) {
        return;
    }
    f->now = (struct tun_felt){0};
    if (f->sequence != 0 && s->cgroup.version != 0 && s->cgroup.nr_periods != GOV_UNKNOWN &&
        s->cgroup.nr_periods >= f->periods && s->cgroup.nr_throttled >= f->throttles) {
        f->now.throttled =
            share(s->cgroup.nr_throttled - f->throttles, s->cgroup.nr_periods - f->periods);
    }
    if (f->sequence != 0 && s->psi_cpu.some_total_us != GOV_UNKNOWN && s->at_ns > f->at_ns &&
        s->psi_cpu.some_total_us >= f->waited_us) {
        f->now.pressure =
            share(s->psi_cpu.some_total_us - f->waited_us, (s->at_ns - f->at_ns) / 1000);
    }
    f->sequence = s->sequence;
    f->at_ns = s->at_ns;
    f->periods = s->cgroup.nr_periods;
    f->throttles = s->cgroup.nr_throttled;
    f->waited_us = s->psi_cpu.some_total_us;
}

/* The first group of the stage that the team may belong to: equal groups count as one. */
static size_t group_of(const struct pl_stage_plan *stage, const struct pl_team_stats *t)
{
    size_t g = 0;

    while (g + 1 < stage->group_count &&
           !(stage->groups[g].ep == t->ep && pl_group_width(&stage->groups[g]) == t->width)) {
        g++;
    }
    return g;
}

static struct tun_team_seen *seen_of(struct tun_team_seen *seen, size_t *count, size_t stage,
                                     size_t group)
{
    for (size_t i = 0; i < *count; i++) {
        if (seen[i].stage == stage && seen[i].group == group) {
            return &seen[i];
        }
    }
    seen[*count] = (struct tun_team_seen){.stage = (uint16_t)stage, .group = (uint16_t)group};
    return &seen[(*count)++];
}

/* By how much longer a frame takes alone than as one of @frames, by the table. The watch compares
 * times of single frames, so fewer frames at once are no slow core. */
static double alone(const struct dmn_model *m, const struct pl_stage_plan *stage, size_t group,
                    double frames)
{
    const struct tun_problem *p = &m->planning->problem;
    const struct pl_group *g = &stage->groups[group];
    double one, each;

    if (!(frames > 1) || g->ep >= p->ep_count) {
        return 1;
    }
    if (pl_group_spans(g)) {
        return 1;
    }
    one = tun_team_ns(p, stage->first_unit, stage->last_unit, g->ep, g->width);
    each = tun_frames_ns(p, stage->first_unit, stage->last_unit, g->ep, g->width, frames);
    return one > 0 && each > 0 ? one / each : 1;
}

/* @runs: in which the team computed the frames of @service. */
static void note_alone(struct dmn_model *m, const struct pl_team_stats *t,
                       const struct pl_series *service, uint64_t runs)
{
    const struct pl_stage_plan *stage = &pl_current_plan(m->pipe)->stages[t->stage];
    const struct tun_problem *p = &m->planning->problem;
    struct dmn_adapt_model *a = m->adapt;

    if (t->width == 1 && service->count > 0 && t->ep < p->ep_count) {
        double frames = (double)service->count / base_max((double)runs, 1.0);
        double ns = service->mean_ns * alone(m, stage, group_of(stage, t), frames);
        double expected_ns = tun_team_ns(p, stage->first_unit, stage->last_unit, t->ep, 1);

        a->alone[a->alone_count++] =
            (struct tun_core_seen){.ep = t->ep, .cpu = t->cpus[0], .level = log(ns / expected_ns)};
    }
}

/* Return: a team that has held what it computes for so long is slow. */
static bool is_long(const struct dmn_model *m, const struct pl_team_stats *t, uint64_t holds_ns)
{
    const struct pl_stage_plan *stage = &pl_current_plan(m->pipe)->stages[t->stage];
    struct pl_group one = stage->groups[group_of(stage, t)];
    double frames = (double)pl_group_batch(&one), one_ns;

    one.more = 0;
    one_ns = tun_group_ns(&m->planning->problem, stage->first_unit, stage->last_unit, &one);
    return one_ns > 0 && (double)holds_ns > HELD_LONG * one_ns * frames;
}

/* Return: frames wait for every team that could take one. */
static bool fed(const struct dmn_model *m)
{
    /* one that has just left and one that its client reads are not missing */
    return pl_in_flight(m->pipe) + dmn_model_waiting(m) + 2 >= pl_depth(m->pipe);
}

/* What the teams of a group did in a window, added up. */
struct sums {
    uint64_t held_ns, runs, teams;
};

/* What interrupts, the loop and clients take of a core, even on a quiet machine. */
static void note_taken(struct dmn_adapt_model *a, const struct pl_team_stats *t,
                       const struct dmn_adapt_count *before, const struct pl_series *service)
{
    struct pl_series work;

    pl_series_since(&before->work, &t->work, &work);
    if (!a->cold && work.count > 0 && service->count > 0) {
        a->held_ns += (double)service->count * service->mean_ns;
        a->work_ns += (double)service->count * work.mean_ns;
    }
}

/* Adds what the team did since @before. @holds_ns: for how long it has held what it computes. */
static void add_team(struct dmn_model *m, const struct pl_team_stats *t,
                     const struct dmn_adapt_count *before, uint64_t holds_ns,
                     struct tun_team_seen *seen, struct sums *sums)
{
    uint64_t held_ns = t->busy_ns + holds_ns;
    struct pl_series service;

    pl_series_since(&before->service, &t->service, &service);
    seen->frames += service.count;
    /* all cores of a wider team wait for one that is taken: no exception to be cut */
    seen->service_ns += t->width > 1 ? (double)(t->busy_ns - before->busy_ns)
                                     : (double)service.count * service.mean_ns;
    seen->cpu_ns += (double)(t->cpu_ns - before->cpu_ns);
    if (service.count == 0 && is_long(m, t, holds_ns)) {
        seen->frames++;
        seen->service_ns += (double)holds_ns;
    }
    sums->runs += t->runs - before->runs;
    sums->held_ns += held_ns - base_min(held_ns, before->held_ns);
    sums->teams++;
    note_taken(m->adapt, t, before, &service);
    note_alone(m, t, &service, t->runs - before->runs);
}

/* For how much of a window teams were busy, at most: those of a core take turns. */
static double busiest_of_all(const struct dmn_model *m)
{
    double sum = 0;

    for (const struct dmn_model *each = m->of->models; each; each = each->next) {
        sum += each->adapt ? each->adapt->busiest : 0;
    }
    return sum;
}

/* @begins: the plan does. */
static void note_rest(struct dmn_model *m, bool begins, uint64_t now_ns)
{
    struct dmn_adapt_model *a = m->adapt;

    if (begins || a->starved) {
        a->rest_ns = now_ns;
        a->rested_at = m->stats.collected;
    }
    a->cold = m->stats.collected - a->rested_at < COLD_FRAMES && now_ns - a->rest_ns < COLD_NS;
    a->warm_from = a->cold ? m->stats.collected : a->warm_from;
}

size_t dmn_adapt_window(struct dmn_model *m, uint64_t now_ns, struct tun_team_seen *ret,
                        uint64_t *ret_start_ns)
{
    const struct pl_plan *plan = pl_current_plan(m->pipe);
    struct dmn_adapt_model *a = m->adapt;
    struct sums sums[PL_TEAM_MAX] = {0};
    struct pl_team_stats t;
    size_t count = 0;
    double busiest = 0;
    bool first = a->window_ns == 0 || a->counts_epoch != pl_epoch(m->pipe);

    *ret_start_ns = a->window_ns;
    a->alone_count = 0;
    if (!a->cold) {
        a->held_ns *= LATE_KEEPS;
        a->work_ns *= LATE_KEEPS;
    }
    for (size_t i = 0; dmn_model_team(m, i, &t); i++) {
        struct dmn_adapt_count *before = &a->counts[i];
        uint64_t holds_ns = t.held_since_ns ? now_ns - base_min(t.held_since_ns, now_ns) : 0;

        if (!first) {
            struct tun_team_seen *seen =
                seen_of(ret, &count, t.stage, group_of(&plan->stages[t.stage], &t));

            add_team(m, &t, before, holds_ns, seen, &sums[seen - ret]);
        }
        *before = (struct dmn_adapt_count){.service = t.service,
                                           .work = t.work,
                                           .runs = t.runs,
                                           .busy_ns = t.busy_ns,
                                           .held_ns = t.busy_ns + holds_ns,
                                           .cpu_ns = t.cpu_ns};
    }
    for (size_t i = 0; i < count; i++) {
        double room = (double)(now_ns - a->window_ns) * (double)sums[i].teams;
        double by = alone(m, &plan->stages[ret[i].stage], ret[i].group,
                          (double)ret[i].frames / base_max((double)sums[i].runs, 1.0)) /
                    base_max((double)ret[i].frames, 1.0);

        ret[i].service_ns *= by;
        ret[i].cpu_ns *= by;
        ret[i].busy = base_min((double)sums[i].held_ns / room, 1.0);
        busiest = base_max(busiest, ret[i].busy);
    }
    a->busiest = busiest;
    a->starved = busiest_of_all(m) < STARVED;
    note_rest(m, first, now_ns);
    for (size_t i = 0; i < count; i++) {
        ret[i].starved = a->cold || !a->known;
    }
    a->window_ns = now_ns;
    a->counts_epoch = pl_epoch(m->pipe);
    a->fed = !first && fed(m) ? a->fed + 1 : 0;
    a->pace[a->pace_at].at_ns = now_ns;
    a->pace[a->pace_at].collected = m->stats.collected;
    a->pace_at = (a->pace_at + 1) % DMN_ADAPT_PACE;
    return count;
}

bool dmn_adapt_measured(const struct dmn_model *m, uint64_t frames)
{
    uint64_t count[PL_STAGE_MAX] = {0};
    struct pl_team_stats t;

    for (size_t i = 0; dmn_model_team(m, i, &t); i++) {
        count[t.stage] += t.service.count;
    }
    for (size_t s = 0; s < pl_current_plan(m->pipe)->stage_count; s++) {
        if (count[s] < frames) {
            return false;
        }
    }
    return true;
}

double dmn_adapt_pace_ns(const struct dmn_model *m)
{
    const struct dmn_adapt_model *a = m->adapt;
    double fps = a && a->fed > PACE_WINDOWS ? dmn_adapt_fps(a, PACE_WINDOWS) : 0;

    /* Teams that share frames by speed need a moment to adapt to a core that is slower now. */
    return fps > 0 ? 1e9 / base_max(fps, dmn_adapt_fps(a, PACE_NEWEST)) : 0;
}

double dmn_adapt_fps(const struct dmn_adapt_model *a, size_t windows)
{
    size_t newest = (a->pace_at + DMN_ADAPT_PACE - 1) % DMN_ADAPT_PACE;
    size_t oldest =
        (newest + DMN_ADAPT_PACE - base_min(windows, (size_t)DMN_ADAPT_PACE - 1)) % DMN_ADAPT_PACE;
    uint64_t from = a->pace[oldest].at_ns, to = a->pace[newest].at_ns;

    if (from == 0 || to <= from) {
        return -1;
    }
    return (double)(a->pace[newest].collected - a->pace[oldest].collected) * 1e9 /
           (double)(to - from);
}
