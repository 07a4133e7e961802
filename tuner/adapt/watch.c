/* SPDX-License-Identifier: Apache-2.0 */
/* One watch for each group of teams: what is expected of it and what it shows. */

#include "base/base.h"
#include "tuner/adapt/adapt_state.h"
#include "tuner/adapt/decide.h"
#include "tuner/eval.h"

#define REFINE 16u               /* times as many windows as settle a plan make its level exact */
#define SIDE_WINDOWS ((size_t)5) /* whose median says on which side of a level a team is */
#define SIDE_SPREADS 2.0

void tun_watch_expect(const struct tun_adapt *a, struct tun_watch *w)
{
    const struct pl_stage_plan *stage = &a->plan.stages[w->stage];
    const struct tun_problem *p = &a->problem;
    struct tun_ep_now now = {.khz = a->eps[w->ep].khz, .khz_table = a->eps[w->ep].khz_table};

    if (pl_group_spans(&stage->groups[w->group])) {
        w->expected_ns =
            tun_group_ns(p, stage->first_unit, stage->last_unit, &stage->groups[w->group]);
        return;
    }
    w->expected_ns = tun_handoff_ns(p, stage->first_unit);
    for (size_t u = stage->first_unit; u <= stage->last_unit; u++) {
        w->expected_ns += tun_cell_at(&p->costs, w->ep, w->width, u)->ns *
                          a->slow[w->ep * p->unit_count + u] * tun_clock_factor(&now, a->beta[u]);
    }
}

void tun_watch_renew(const struct tun_adapt *a, struct tun_watch *w)
{
    double before = w->expected_ns;

    tun_watch_expect(a, w);
    w->detect.base += log(before / w->expected_ns);
}

static void watch_settle(const struct tun_adapt *a, struct tun_watch *w)
{
    w->skip_left = 1;
    w->settle_left = a->options.settle;
    w->waiting_sum = w->waiting_base = 0;
    w->waiting_count = 0;
    w->waits[0] = w->waits[1] = w->waits[2] = NAN;
}

int tun_watch_plan(struct tun_adapt *a)
{
    struct tun_detect_options o = a->options.detect;
    struct tun_watch *watches;
    size_t count = 0;

    for (size_t i = 0; i < a->watch_count; i++) {
        o.sigma_start = base_max(o.sigma_start, a->watches[i].detect.sigma);
    }
    for (size_t s = 0; s < a->plan.stage_count; s++) {
        count += a->plan.stages[s].group_count;
    }
    watches = calloc(count, sizeof(*watches));
    if (!watches) {
        return -ENOMEM;
    }
    free(a->watches);
    a->watches = watches;
    a->watch_count = 0;
    for (size_t s = 0; s < a->plan.stage_count; s++) {
        for (size_t g = 0; g < a->plan.stages[s].group_count; g++) {
            const struct pl_group *group = &a->plan.stages[s].groups[g];
            struct tun_watch *w = &watches[a->watch_count++];

            *w = (struct tun_watch){.stage = (uint16_t)s,
                                    .group = (uint16_t)g,
                                    .ep = group->ep,
                                    .width = group->width,
                                    .count = group->count};
            tun_detect_init(&w->detect, &o);
            watch_settle(a, w);
            tun_watch_expect(a, w);
        }
    }
    for (size_t k = 0; k < a->problem.ep_count; k++) {
        a->eps[k].used = pl_plan_cores(&a->plan, k) > 0;
        a->eps[k].learn_left += a->eps[k].learn_left > 0 ? a->options.settle + 1 : 0;
    }
    a->disagrees = a->returned = false;
    a->probe_at_ns = a->guard.clock_ns + (a->options.probe_ns << base_min(a->probes, 10u));
    return 0;
}

void tun_watch_void(struct tun_adapt *a)
{
    for (size_t i = 0; i < a->watch_count; i++) {
        tun_detect_rebase(&a->watches[i].detect, a->watches[i].detect.base);
        watch_settle(a, &a->watches[i]);
        a->watches[i].voided = true;
    }
}

static struct tun_watch *watch_of(struct tun_adapt *a, const struct tun_team_seen *t)
{
    for (size_t i = 0; i < a->watch_count; i++) {
        if (a->watches[i].stage == t->stage && a->watches[i].group == t->group) {
            return &a->watches[i];
        }
    }
    return NULL;
}

static void see_waiting(struct tun_watch *w, const struct tun_team_seen *t)
{
    double share = 1 - t->cpu_ns / t->service_ns;

    if (!(t->cpu_ns >= 0) || !isfinite(share)) {
        return;
    }
    share = base_max(0.0, base_min(1.0, share));
    if (w->settle_left > 0) {
        w->waiting_sum += share;
        w->waiting_base = w->waiting_sum / ++w->waiting_count;
    } else if (w->waiting_count > 0) {
        memmove(w->waits, w->waits + 1, (WAITS - 1) * sizeof(*w->waits));
        w->waits[WAITS - 1] = share - w->waiting_base;
    }
}

double tun_waiting(const struct tun_watch *w)
{
    double low = base_min(w->waits[0], w->waits[1]), high = base_max(w->waits[0], w->waits[1]);

    if (isnan(w->waits[0]) || isnan(w->waits[1]) || isnan(w->waits[2])) {
        return NAN;
    }
    return base_max(low, base_min(high, w->waits[2]));
}

/* Quiet windows that follow refine the level that a few windows gave. */
static void refine(const struct tun_adapt *a, struct tun_watch *w)
{
    if (w->quiet >= REFINE * a->options.settle || tun_detect_state(&w->detect) != TUN_SAME) {
        return;
    }
    w->quiet++;
    if (w->quiet == w->refine_at) {
        tun_detect_rebase(&w->detect, tun_detect_level(&w->detect, w->quiet));
        w->refine_at *= 2;
    }
}

/* On which side of its level a team is, and since when; single spikes do not count. */
static void see_side(struct tun_watch *w, uint64_t start_ns)
{
    double off = tun_detect_level(&w->detect, SIDE_WINDOWS) - w->detect.base;
    enum tun_change side = off > SIDE_SPREADS * w->detect.sigma    ? TUN_SLOWER
                           : off < -SIDE_SPREADS * w->detect.sigma ? TUN_FASTER
                                                                   : TUN_SAME;

    if (side != w->side || w->settle_left > 0 || start_ns < w->side_ns) {
        w->side = side;
        w->side_ns = start_ns;
    }
}

double tun_watch_surprise(const struct tun_adapt *a)
{
    return base_max(log1p(a->options.verify_margin), a->returned ? TUN_FREE : 0.0);
}

/* A search has measured the plan, so where it differs from the table, the table is wrong: that is
 * no change of the machine. But an EP that looks free again is. Return: it was the table. */
static bool blame_table(struct tun_adapt *a, struct tun_watch *w)
{
    const struct pl_stage_plan *stage = &a->plan.stages[w->stage];

    if (!a->options.search || (a->eps[w->ep].slowed && w->detect.base < 0)) {
        return false;
    }
    for (size_t u = stage->first_unit; u <= stage->last_unit; u++) {
        tun_cell_at(&a->problem.costs, w->ep, w->width, u)->ns *= exp(w->detect.base);
    }
    tun_watch_renew(a, w);
    return true;
}

static bool see_team(struct tun_adapt *a, struct tun_watch *w, const struct tun_team_seen *t,
                     uint64_t start_ns)
{
    double x = log(t->service_ns / w->expected_ns);

    if (t->starved || t->frames == 0 || !isfinite(x)) {
        return false;
    }
    if (w->skip_left > 0) {
        w->skip_left--;
        return false;
    }
    see_waiting(w, t);
    w->busy += (w->busy > 0 ? LATE : 1) * (t->busy - w->busy);
    tun_detect_add(&w->detect, x, start_ns);
    see_side(w, start_ns);
    if (w->settle_left == 0) {
        refine(a, w);
        return false;
    }
    if (--w->settle_left == 0) {
        double level = tun_detect_level(&w->detect, a->options.settle);

        tun_detect_rebase(&w->detect, level);
        w->quiet = a->options.settle;
        w->refine_at = 2 * w->quiet;
        return !w->voided && fabs(level) > tun_watch_surprise(a) && !blame_table(a, w);
    }
    return false;
}

void tun_watch_see(struct tun_adapt *a, const struct tun_seen_window *seen)
{
    for (size_t i = 0; i < a->watch_count; i++) {
        tun_watch_expect(a, &a->watches[i]);
    }
    for (size_t i = 0; i < seen->team_count; i++) {
        struct tun_watch *w = watch_of(a, &seen->teams[i]);

        if (w) {
            a->disagrees |= see_team(a, w, &seen->teams[i], seen->start_ns);
        }
    }
}
