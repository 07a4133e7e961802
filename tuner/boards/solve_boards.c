/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/boards/solve_boards.h"

#include "base/base.h"
#include "tuner/boards/pass.h"
#include "tuner/oneboard/solution.h"

#define NEAR 1e-12

struct solver {
    struct tun_map *m;
    const struct tun_problem *p;
    double period_ns, latency_ns; /* the bounds */
    bool cut;
};

/* Runs a program and takes the best plan. Return: 0, TUN_E_IMPOSSIBLE, TUN_E_GROUPS, TUN_E_TEAMS
 * or -ENOMEM. */
static int best_of(struct solver *s, enum tun_pass_figure figure, double period_ns,
                   struct tun_solution *ret)
{
    struct tun_pass_options o = {
        .figure = figure, .period_ns = period_ns, .latency_max_ns = s->latency_ns};
    struct tun_pass pass = TUN_PASS_NULL;
    int r = tun_pass_run(s->m, &o, &pass);

    if (r == 0) {
        const struct tun_label *best = pass.end.list;

        for (size_t i = 1; i < pass.end.count; i++) {
            best = pass.end.list[i].a < best->a ? &pass.end.list[i] : best;
        }
        if (figure == TUN_PASS_LATENCY && best->a > s->latency_ns) {
            r = TUN_E_IMPOSSIBLE;
        } else {
            r = tun_pass_plan(&pass, best, &ret->plan);
        }
        s->cut |= pass.cut;
    }
    if (r == 0 && tun_eval(s->p, &ret->plan, &ret->outcome) != 0) {
        r = -EINVAL;
    }
    tun_pass_deinit(&pass);
    return r;
}

/* No stage is faster than any one unit shared by all boards. */
static double lowest_ns(struct solver *s)
{
    double low = 1e-300;

    for (size_t u = 0; u < s->m->n; u++) {
        double sum = 0, most = 0;

        for (size_t b = 0; b < s->p->boards.count; b++) {
            if (!s->m->absent[b]) {
                double rate = tun_space_atom_rate(&tun_map_kind(s->m, b)->space, u);

                sum += rate;
                most = base_max(most, rate);
            }
        }
        low = base_max(low, (1 - 1e-9) / (s->p->bounds.one_ep_stages ? most : sum));
    }
    return low;
}

/* The least bottleneck of all plans within the bounds. */
static int least_period(struct solver *s, struct tun_solution *ret)
{
    base_autofree struct tun_solution *other = calloc(1, sizeof(*other));
    enum tun_pass_figure figure = isfinite(s->latency_ns) ? TUN_PASS_LATENCY : TUN_PASS_ANY;
    double low = lowest_ns(s);
    bool quick = false;
    int r = other ? best_of(s, figure, s->period_ns, ret) : -ENOMEM;

    while (r == 0 && low < ret->outcome.bottleneck_ns * (1 - 1e-11)) {
        double high = ret->outcome.bottleneck_ns, bound;
        int found;

        quick = !quick && low > high * 0.9995;
        bound = quick ? high * (1 - 1e-11) : sqrt(low * high);
        found = best_of(s, figure, bound, other);
        if (found < 0 || found > TUN_E_IMPOSSIBLE) {
            return found;
        }
        if (found == 0 && other->outcome.bottleneck_ns < high) {
            *ret = *other;
        } else {
            low = bound;
        }
    }
    return r;
}

/* Which bounds are too tight: without them there is a plan. */
static int find_missing(struct solver *s, struct tun_solution *ret)
{
    static const struct tun_pass_options tries[] = {
        {.period_ns = INFINITY, .latency_max_ns = INFINITY},
        {.period_ns = INFINITY, .latency_max_ns = INFINITY, .no_energy = true},
    };
    static const enum tun_short short_of[] = {TUN_SHORT_TIME, TUN_SHORT_ENERGY, TUN_SHORT_MEMORY};
    size_t i;

    for (i = 0; i < base_array_count(tries); i++) {
        struct tun_pass pass = TUN_PASS_NULL;
        int r = tun_pass_run(s->m, &tries[i], &pass);

        tun_pass_deinit(&pass);
        if (r < 0) {
            return r;
        }
        if (r == 0) {
            break;
        }
    }
    memset(ret, 0, sizeof(*ret));
    if (short_of[i] == TUN_SHORT_TIME) {
        int r;

        s->period_ns = s->latency_ns = INFINITY;
        r = least_period(s, ret);
        if (r != 0) {
            return r;
        }
    }
    ret->missing = short_of[i];
    return TUN_E_IMPOSSIBLE;
}

/* First without the bound on latency, which the program pays dearly for. */
static int least_energy(struct solver *s, struct tun_solution *ret)
{
    struct solver any = *s;
    int r;

    any.latency_ns = INFINITY;
    r = best_of(&any, TUN_PASS_ENERGY, s->period_ns, ret);
    if (r != 0 || ret->outcome.latency_ns <= s->latency_ns) {
        s->cut |= any.cut;
        return r;
    }
    return best_of(s, TUN_PASS_ENERGY, s->period_ns, ret);
}

static int solve_in(struct solver *s, struct tun_solution *ret)
{
    int r;

    if (s->p->objective == TUN_LATENCY) {
        r = best_of(s, TUN_PASS_LATENCY, s->period_ns, ret);
    } else if (s->p->objective == TUN_POWER) {
        r = least_energy(s, ret);
    } else {
        r = least_period(s, ret);
        if (r == 0) {
            double slack = base_max(s->p->bounds.slack, 0.0);
            double bound = ret->outcome.bottleneck_ns * (1 + slack);

            r = best_of(s, TUN_PASS_LATENCY, base_min(bound, s->period_ns), ret);
        }
    }
    return r == TUN_E_IMPOSSIBLE ? find_missing(s, ret) : r;
}

static double bound_or_any(double bound, double part)
{
    return bound > 0 ? bound * part : INFINITY;
}

/* A plan may exceed a bound by the tolerance of a sum: then solve again with a tighter bound. */
static int solve_strictly(const struct tun_problem *p, struct tun_map *m, struct tun_solution *ret)
{
    int r = 0;

    for (int i = 0; i < 2; i++) {
        double part = i == 0 ? 1 + NEAR : 1 - 4 * NEAR;
        struct solver s = {.m = m,
                           .p = m->p,
                           .period_ns = bound_or_any(p->bounds.period_max_ns, part),
                           .latency_ns = bound_or_any(p->bounds.latency_max_ns, part)};

        r = solve_in(&s, ret);
        ret->blocks = m->coarse || s.cut;
        if (r != 0 || tun_keeps(p, &ret->outcome)) {
            return r;
        }
    }
    return TUN_E_IMPOSSIBLE;
}

int tun_boards_solve(const struct tun_problem *p, const struct tun_space_options *o,
                     struct tun_solution *ret)
{
    base_autofree struct tun_solution *found = calloc(1, sizeof(*found));
    struct tun_space_options options = *o;
    bool link_energy = p->objective == TUN_POWER;
    int r;

    options.forbid = false;
    if (p->bounds.stages_max > 0) {
        return -EINVAL;
    }
    if (!found) {
        return -ENOMEM;
    }
    for (size_t b = 0; b < p->boards.count; b++) {
        link_energy |= p->boards.boards[b].energy_max_nj > 0;
    }
    do {
        struct tun_map m;
        struct tun_joined joined;

        r = tun_joined_init(p, &options, link_energy, &joined, &m);
        if (r < 0) {
            return r;
        }
        r = solve_strictly(m.p, &m, found);
        if (r == 0 || r == TUN_E_IMPOSSIBLE) {
            tun_joined_back(&joined, &found->plan);
            found->blocks |= joined.coarse;
        }
        tun_joined_deinit(&joined, &m);
    } while (tun_space_relax(&options, r));
    if (r == 0 || r == TUN_E_IMPOSSIBLE) {
        if (found->plan.stage_count > 0 && tun_eval(p, &found->plan, &found->outcome) != 0) {
            return -EINVAL;
        }
        *ret = *found;
    }
    return r == TUN_E_GROUPS || r == TUN_E_TEAMS ? -ENOTRECOVERABLE : r;
}

const char *const tun_short_texts[] = {
    [TUN_SHORT_NONE] = "",
    [TUN_SHORT_MEMORY] = "no plan fits in the memory of the boards",
    [TUN_SHORT_ENERGY] = "every plan takes more energy of a board than it may",
    [TUN_SHORT_TIME] = "no plan keeps the bounds on period and latency",
};
