/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/oneboard/oneboard.h"

#include "base/base.h"
#include "tuner/memory.h"
#include "tuner/oneboard/solution.h"

#define EQUAL 1e-12     /* figures closer than this are ties: sums in another order */
#define ROUNDS 5        /* of tables with other loads on memory */
#define TIE_STEPS_MAX 6 /* programs spent on lowering the bottleneck of a tie */

static double period_bound(const struct tun_space *s)
{
    return s->p->bounds.period_max_ns > 0 ? s->p->bounds.period_max_ns * (1 + EQUAL) : INFINITY;
}

static double latency_bound(const struct tun_space *s)
{
    return s->p->bounds.latency_max_ns > 0 ? s->p->bounds.latency_max_ns * (1 + EQUAL) : INFINITY;
}

/* Among plans with the path's figure the lowest bottleneck, which is not below @low_ns. */
static int settle_tie(const struct tun_space *s, enum tun_figure figure, double low_ns,
                      struct tun_path *path)
{
    base_autofree struct tun_path *other = malloc(sizeof(*other));
    double low = low_ns * (1 - EQUAL), bound = low_ns;

    if (!other) {
        return -ENOMEM;
    }
    for (int i = 0; i < TIE_STEPS_MAX && low < path->bottleneck_ns * (1 - 1e-9); i++) {
        int r = tun_second(s, bound, figure, other);

        if (r < 0) {
            return r;
        }
        if (r == 0 && other->figure <= path->figure * (1 + EQUAL)) {
            *path = *other;
        } else {
            low = bound;
        }
        /* First whether anything is better, then by halves. */
        bound = i == 0 ? path->bottleneck_ns * (1 - 1e-9) : sqrt(low * path->bottleneck_ns);
    }
    return 0;
}

/* The least bottleneck of a plan within the bound on latency. @path: the least bottleneck of all.
 */
static int period_within_latency(const struct tun_space *s, double latency_ns,
                                 struct tun_path *path)
{
    base_autofree struct tun_path *other = malloc(sizeof(*other));
    double low = path->bottleneck_ns, bound = low;
    bool quick = false;
    int r;

    if (!other) {
        return -ENOMEM;
    }
    r = tun_second(s, bound, TUN_FIGURE_LATENCY, other);
    if (r == 0 && other->figure <= latency_ns) {
        *path = *other;
        return 0;
    }
    r = r < 0 ? r : tun_second(s, INFINITY, TUN_FIGURE_LATENCY, other);
    if (r != 0 || other->figure > latency_ns) {
        return r < 0 ? r : TUN_E_IMPOSSIBLE;
    }
    *path = *other;
    while (low < path->bottleneck_ns * (1 - 1e-11)) {
        quick = !quick && low > path->bottleneck_ns * 0.9995;
        bound = quick ? path->bottleneck_ns * (1 - 1e-11) : sqrt(low * path->bottleneck_ns);
        r = tun_second(s, bound, TUN_FIGURE_LATENCY, other);
        if (r < 0) {
            return r;
        }
        if (r == 0 && other->figure <= latency_ns) {
            *path = *other;
        } else {
            low = bound;
        }
    }
    return 0;
}

/* @path: the least bottleneck of all. */
static int find_throughput(const struct tun_space *s, struct tun_path *path)
{
    double latency_ns = latency_bound(s), least, slack = base_max(s->p->bounds.slack, 0.0);
    int r = isfinite(latency_ns) ? period_within_latency(s, latency_ns, path) : 0;

    least = path->bottleneck_ns;
    if (r == 0 && least > period_bound(s)) {
        r = TUN_E_IMPOSSIBLE;
    }
    if (r == 0) {
        r = tun_second(s, base_min(least * (1 + slack), period_bound(s)), TUN_FIGURE_LATENCY, path);
    }
    return r == 0 ? settle_tie(s, TUN_FIGURE_LATENCY, least, path) : r;
}

static int find_power(const struct tun_space *s, struct tun_path *path, bool *ret_cut)
{
    double least = path->bottleneck_ns, latency_ns = latency_bound(s);
    int r;

    if (isfinite(latency_ns)) {
        return tun_thrifty(s, period_bound(s), latency_ns, path, ret_cut);
    }
    r = tun_second(s, period_bound(s), TUN_FIGURE_ENERGY, path);
    return r == 0 ? settle_tie(s, TUN_FIGURE_ENERGY, least, path) : r;
}

static int find_latency(const struct tun_space *s, struct tun_path *path)
{
    double least = path->bottleneck_ns;
    int r = tun_second(s, period_bound(s), TUN_FIGURE_LATENCY, path);

    if (r == 0 && path->figure > latency_bound(s)) {
        r = TUN_E_IMPOSSIBLE;
    }
    return r == 0 ? settle_tie(s, TUN_FIGURE_LATENCY, least, path) : r;
}

/* Return: 0, TUN_E_GROUPS, TUN_E_TEAMS. */
static int finish(const struct tun_space *s, const struct tun_path *path, bool cut,
                  struct tun_solution *ret)
{
    int r = tun_path_plan(s, path, &ret->plan);

    ret->blocks = s->coarse || cut;
    if (r == 0 && tun_eval(s->p, &ret->plan, &ret->outcome) != 0) {
        r = -EINVAL;
    }
    return r;
}

static int solve_in(const struct tun_space *s, struct tun_solution *ret)
{
    base_autofree struct tun_path *path = malloc(2 * sizeof(*path));
    struct tun_path *least = path ? path + 1 : NULL;
    bool cut = false;
    int r, end;

    if (!path) {
        return -ENOMEM;
    }
    r = tun_least_period(s, least);
    if (r != 0) {
        return r;
    }
    *path = *least;
    r = least->bottleneck_ns > period_bound(s) ? TUN_E_IMPOSSIBLE
        : s->p->objective == TUN_THROUGHPUT    ? find_throughput(s, path)
        : s->p->objective == TUN_LATENCY       ? find_latency(s, path)
                                               : find_power(s, path, &cut);
    if (r < 0) {
        return r;
    }
    end = finish(s, r == 0 ? path : least, cut, ret);
    return end != 0 ? end : r;
}

/* A plan may exceed a bound by the tolerance of a sum: then solve again with a tighter bound. */
static int solve_strictly(const struct tun_space *s, struct tun_solution *ret)
{
    int r = solve_in(s, ret);
    struct tun_problem tight;
    struct tun_space same = *s;

    if (r != 0 || tun_keeps(s->p, &ret->outcome)) {
        return r;
    }
    tight = *s->p;
    tight.bounds.period_max_ns *= 1 - 4 * EQUAL;
    tight.bounds.latency_max_ns *= 1 - 4 * EQUAL;
    same.p = &tight;
    r = solve_in(&same, ret);
    return r == 0 && !tun_keeps(s->p, &ret->outcome) ? TUN_E_IMPOSSIBLE : r;
}

static int solve_alone(const struct tun_problem *p, const struct tun_space_options *o,
                       struct tun_solution *ret)
{
    base_autofree struct tun_solution *found = calloc(1, sizeof(*found));
    struct tun_space_options options = *o;
    int r;

    if (!found) {
        return -ENOMEM;
    }
    do {
        struct tun_space s;

        r = tun_space_init(p, &options, &s);
        if (r < 0) {
            return r;
        }
        r = solve_strictly(&s, found);
        tun_space_deinit(&s);
    } while (tun_space_relax(&options, r));
    if (r == 0 || r == TUN_E_IMPOSSIBLE) {
        *ret = *found;
    }
    return r == TUN_E_GROUPS || r == TUN_E_TEAMS ? -ENOTRECOVERABLE : r;
}

/* Bounds by which a plan of the table @under keeps those of @p, as far as @o, its outcome by @p,
 * tells. */
static void tighten(const struct tun_problem *p, const struct tun_outcome *o,
                    struct tun_bounds *bounds)
{
    if (p->bounds.period_max_ns > 0 && o->bottleneck_ns > p->bounds.period_max_ns) {
        bounds->period_max_ns *= p->bounds.period_max_ns / o->bottleneck_ns * (1 - 4 * EQUAL);
    }
    if (p->bounds.latency_max_ns > 0 && o->latency_ns > p->bounds.latency_max_ns) {
        bounds->latency_max_ns *= p->bounds.latency_max_ns / o->latency_ns * (1 - 4 * EQUAL);
    }
}

/* Return: @a, of outcome @r, is to be preferred to @b, of @result (-1: there is none). */
static bool preferred(const struct tun_problem *p, int r, const struct tun_solution *a, int result,
                      const struct tun_solution *b)
{
    if (result < 0 || r != result) {
        return result < 0 || r == 0;
    }
    return r == 0 ? tun_better(p, &a->outcome, &b->outcome)
                  : a->outcome.bottleneck_ns < b->outcome.bottleneck_ns;
}

/* One round: the best plan of the table in which the others stream as in @like. Return: as
 * tun_solve(). */
static int solve_under(const struct tun_problem *p, const struct tun_space_options *o,
                       const struct pl_plan *like, struct tun_bounds *bounds,
                       struct tun_solution *ret)
{
    base_cleanup(tun_problem_deinit) struct tun_problem under = TUN_PROBLEM_NULL;
    int r = tun_memory_under(p, like, &under);

    if (r == 0) {
        under.bounds = *bounds;
        r = solve_alone(&under, o, ret);
    }
    if (r >= 0 && ret->plan.stage_count > 0) {
        tun_eval(p, &ret->plan, &ret->outcome);
        if (r == 0 && !tun_keeps(p, &ret->outcome)) {
            tighten(p, &ret->outcome, bounds);
            r = TUN_E_IMPOSSIBLE;
        }
    }
    return r;
}

int tun_oneboard_solve(const struct tun_problem *p, const struct tun_space_options *o,
                       struct tun_solution *ret)
{
    base_autofree struct tun_solution *found = NULL;
    struct tun_bounds bounds = p->bounds;
    static const struct pl_plan idle; /* a plan of no stage: nobody else streams */
    struct pl_plan last = {0};
    int result = -1;

    if (!tun_memory_competes(p)) {
        return solve_alone(p, o, ret);
    }
    found = calloc(1, sizeof(*found));
    for (int i = 0; found && i < ROUNDS; i++) {
        int r = solve_under(p, o, i == 0 ? NULL : i == 1 ? &idle : &last, &bounds, found);

        if (r < 0) {
            return r;
        }
        if (preferred(p, r, found, result, ret)) {
            *ret = *found;
            result = r;
        }
        if (found->plan.stage_count == 0 ||
            (i > 1 && r == 0 && pl_plan_equal(&last, &found->plan))) {
            break;
        }
        last = i == 0 ? found->plan : ret->plan;
    }
    return found ? result : -ENOMEM;
}
