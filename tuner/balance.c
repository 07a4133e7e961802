/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base.h"
#include "tuner/balance.h"

#define UNITS_MAX 65535u

/* Costs are kept as running sums, one row an EP: cost of units [a, b) is sum[b] - sum[a]. Rounding
 * is monotonic, so that a wider interval never costs less, which is all that the search needs. */
struct problem {
    size_t unit_count, core_count, stages_max;
    double *sums;      /* owned; [ep][unit_count + 1] */
    uint16_t *cores;   /* owned; [core_count]: EP of each core, in the order they are considered */
    uint32_t *covered; /* owned; [core_count + 1][stages_max + 1]: see cover() */
};

static void problem_deinit(struct problem *p)
{
    free(p->sums);
    free(p->cores);
    free(p->covered);
}

static const double *sums_of(const struct problem *p, size_t ep)
{
    return p->sums + ep * (p->unit_count + 1);
}

static int sum_costs(struct problem *p, const double *cost, const double *cost_on,
                     const struct pl_ep_set *eps)
{
    for (size_t e = 0; e < eps->count; e++) {
        double *sums = p->sums + e * (p->unit_count + 1);
        double speed = eps->eps[e].speed;

        if (!(speed > 0) || !isfinite(speed)) {
            return -EINVAL;
        }
        sums[0] = 0;
        for (size_t u = 0; u < p->unit_count; u++) {
            double c = cost_on ? cost_on[e * p->unit_count + u] : -1;

            if (c < 0) {
                c = cost[u] / speed;
            }
            sums[u + 1] = sums[u] + c;
            if (!(c >= 0) || !isfinite(sums[u + 1])) {
                return -EINVAL;
            }
        }
    }
    return 0;
}

/* First unit behind the longest run from @first on that costs @ep at most @bound. */
static size_t reach(const struct problem *p, size_t ep, size_t first, double bound)
{
    const double *sums = sums_of(p, ep);
    size_t low = first, high = p->unit_count;

    while (low < high) {
        size_t middle = low + (high - low + 1) / 2;

        if (sums[middle] - sums[first] <= bound) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

/*
 * covered[c][s]: the most units that the first c cores can take in s stages, each within @bound.
 *     covered[c][s] = max(covered[c-1][s], reach(core c, covered[c-1][s-1]))
 * A core is either left out or runs the next stage; since reach() only grows with its start, taking
 * the most units at each step is exact. Return: the fewest stages that cover all units, 0 if none.
 */
static size_t cover(struct problem *p, double bound)
{
    size_t width = p->stages_max + 1;

    memset(p->covered, 0, width * sizeof(*p->covered));
    for (size_t c = 1; c <= p->core_count; c++) {
        uint32_t *row = p->covered + c * width, *above = row - width;

        row[0] = 0;
        for (size_t s = 1; s <= p->stages_max; s++) {
            size_t with = reach(p, p->cores[c - 1], above[s - 1], bound);

            row[s] = base_max(above[s], (uint32_t)with);
        }
    }
    for (size_t s = 1; s <= p->stages_max; s++) {
        if (p->covered[p->core_count * width + s] == p->unit_count) {
            return s;
        }
    }
    return 0;
}

/* Bit patterns of non-negative doubles are ordered as their values are: bisecting the patterns ends
 * at the very smallest bound that works, in at most 64 steps. */
static double smallest_bound(struct problem *p, double enough)
{
    uint64_t low = 0, high;
    double bound;

    memcpy(&high, &enough, sizeof(high));
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;

        memcpy(&bound, &middle, sizeof(bound));
        if (cover(p, bound)) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    memcpy(&bound, &high, sizeof(bound));
    return bound;
}

/* Walks covered[][] back from the last unit. */
static void trace_back(const struct problem *p, size_t stages, struct pl_plan *ret)
{
    size_t width = p->stages_max + 1, end = p->unit_count, c = p->core_count;

    memset(ret, 0, sizeof(*ret));
    ret->stage_count = stages;
    for (size_t s = stages; s > 0; s--) {
        while (p->covered[(c - 1) * width + s] >= end) {
            c--;
        }
        /* Core c runs the stage: it starts where those before it leave off. */
        size_t first = p->covered[(c - 1) * width + s - 1];

        ret->stages[s - 1] =
            (struct pl_stage_plan){.first_unit = (uint16_t)first,
                                   .last_unit = (uint16_t)(end - 1),
                                   .group_count = 1,
                                   .groups = {{.ep = p->cores[c - 1], .width = 1, .count = 1}}};
        end = first;
        c--;
    }
}

static void order_cores(struct problem *p, const struct pl_ep_set *eps, bool reversed)
{
    uint16_t order[PL_EP_MAX];
    size_t count = 0;

    for (size_t e = 0; e < eps->count; e++) {
        size_t at = e;

        while (at > 0 && eps->eps[order[at - 1]].speed < eps->eps[e].speed) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = (uint16_t)e;
    }
    for (size_t i = 0; i < eps->count; i++) {
        uint16_t e = order[reversed ? eps->count - 1 - i : i];

        for (size_t k = 0; k < eps->eps[e].cpu_count; k++) {
            p->cores[count++] = e;
        }
    }
}

static int problem_init(struct problem *p, const double *cost, const double *cost_on,
                        size_t unit_count, const struct pl_ep_set *eps, size_t stages_max)
{
    size_t cells;

    if (unit_count == 0 || unit_count > UNITS_MAX || eps->count > PL_EP_MAX) {
        return -EINVAL;
    }
    p->unit_count = unit_count;
    for (size_t e = 0; e < eps->count; e++) {
        if (eps->eps[e].cpu_count > PL_CPU_MAX) {
            return -EINVAL;
        }
        p->core_count += eps->eps[e].cpu_count;
    }
    if (p->core_count == 0) {
        return -EINVAL;
    }
    p->stages_max = base_min(p->core_count, unit_count);
    p->stages_max = base_min(p->stages_max, (size_t)PL_STAGE_MAX);
    if (stages_max > 0) {
        p->stages_max = base_min(p->stages_max, stages_max);
    }
    cells = (p->core_count + 1) * (p->stages_max + 1);
    p->sums = calloc(eps->count * (unit_count + 1), sizeof(*p->sums));
    p->cores = calloc(p->core_count, sizeof(*p->cores));
    p->covered = calloc(cells, sizeof(*p->covered));
    if (!p->sums || !p->cores || !p->covered) {
        return -ENOMEM;
    }
    return sum_costs(p, cost, cost_on, eps);
}

int tun_balance(const double *cost, const double *cost_on, size_t unit_count,
                const struct pl_ep_set *eps, size_t stages_max, struct pl_plan *ret,
                double *ret_bottleneck)
{
    base_cleanup(problem_deinit) struct problem p = {0};
    double best = INFINITY;
    size_t best_stages = 0;
    int r = problem_init(&p, cost, cost_on, unit_count, eps, stages_max);

    if (r < 0) {
        return r;
    }
    for (int reversed = 0; reversed < 2; reversed++) {
        order_cores(&p, eps, reversed);
        double bound = smallest_bound(&p, sums_of(&p, p.cores[0])[unit_count]);
        size_t stages = cover(&p, bound);

        /* Equal bottlenecks: fewer stages, then the fastest cores first. */
        if (bound < best || (bound == best && stages < best_stages)) {
            best = bound;
            best_stages = stages;
            trace_back(&p, stages, ret);
        }
    }
    *ret_bottleneck = best;
    return 0;
}
