/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From any period down: each program finds the plans of which none is better in both memory and
 * energy within a bound on the period, and the next bound is just below the longest period among
 * them. A point of the front that the next bound would skip is no worse in memory and energy than
 * one that was found, so nothing is missed.
 */
#include "tuner/boards/solve_boards.h"

#include "base/base.h"
#include "tuner/boards/pass.h"
#include "tuner/oneboard/solution.h"

#define BELOW (1 - 1e-9) /* the next bound, as a part of the longest period */

struct point {
    double period_ns, bytes, nj;
    double bound_ns; /* of the program that found it */
};
struct front {
    struct tun_map *m;
    struct point *points; /* owned; none is better than another */
    size_t count, room, steps_max;
    double bound_ns; /* of the program that points are written from */
    bool exact;
};

static bool no_worse(const struct point *a, const struct point *b)
{
    return a->period_ns * BELOW <= b->period_ns && a->bytes <= b->bytes * (1 + 1e-12) &&
           a->nj <= b->nj * (1 + 1e-12);
}

static int add_point(struct front *f, const struct point *p)
{
    size_t kept = 0;

    for (size_t i = 0; i < f->count; i++) {
        if (no_worse(&f->points[i], p)) {
            return 0;
        }
    }
    for (size_t i = 0; i < f->count; i++) {
        if (!no_worse(p, &f->points[i])) {
            f->points[kept++] = f->points[i];
        }
    }
    f->count = kept;
    if (!base_room(&f->points, sizeof(*f->points), kept, &f->room)) {
        return -ENOMEM;
    }
    f->points[f->count++] = *p;
    return 0;
}

/* One program. @ret_longest: period among its points. Return: 0, TUN_E_IMPOSSIBLE or -ENOMEM. */
static int add_points(struct front *f, double bound_ns, double *ret_longest)
{
    struct tun_pass_options o = {
        .figure = TUN_PASS_FRONT, .period_ns = bound_ns, .latency_max_ns = INFINITY};
    struct tun_pass pass = TUN_PASS_NULL;
    int r = tun_pass_run(f->m, &o, &pass);

    *ret_longest = 0;
    for (size_t i = 0; r == 0 && i < pass.end.count; i++) {
        const struct tun_label *l = &pass.end.list[i];

        *ret_longest = base_max(*ret_longest, l->period_ns);
        r = add_point(f, &(struct point){l->period_ns, l->a, l->b, bound_ns});
    }
    f->exact &= !pass.cut;
    tun_pass_deinit(&pass);
    return r;
}

/* When half of the programs are spent, bounds go down in equal ratios to what the first half would
 * have come to at its pace, so that short periods are not left out. */
static int descend(struct front *f, double bound_ns)
{
    double first = 0, ratio = BELOW;
    int r = 0;

    for (size_t step = 0; r == 0; step++) {
        double longest;

        r = add_points(f, bound_ns, &longest);
        if (r != 0) {
            return r == TUN_E_IMPOSSIBLE && step > 0 ? 0 : r;
        }
        first = step == 0 ? longest : first;
        if (step == f->steps_max / 2) {
            f->exact = false;
            ratio = pow(1.0 / 64, 2.0 / (double)f->steps_max);
        }
        bound_ns = longest * ratio;
    }
    return r;
}

static int by_period(const void *a, const void *b)
{
    const struct point *x = a, *y = b;

    return (x->period_ns > y->period_ns) - (x->period_ns < y->period_ns);
}

/* Keeps @max points: every so many by rising period, both ends among them. */
static void thin(struct front *f, size_t max)
{
    if (f->count <= max) {
        return;
    }
    for (size_t i = 0; i < max; i++) {
        f->points[i] = f->points[max > 1 ? i * (f->count - 1) / (max - 1) : 0];
    }
    f->count = max;
    f->exact = false;
}

/* @pass: what served for the previous point; it is run again if the bound differs. Return: 0,
 * TUN_E_GROUPS, TUN_E_TEAMS, -ENOMEM. */
static int write_point(struct front *f, const struct point *p, struct tun_pass *pass,
                       struct tun_solution *ret)
{
    struct tun_pass_options o = {
        .figure = TUN_PASS_FRONT, .period_ns = p->bound_ns, .latency_max_ns = INFINITY};

    if (!pass->m || f->bound_ns != p->bound_ns) {
        int r;

        tun_pass_deinit(pass);
        f->bound_ns = p->bound_ns;
        r = tun_pass_run(f->m, &o, pass);
        if (r != 0) {
            return r < 0 ? r : -ENOTRECOVERABLE;
        }
    }
    for (size_t i = 0; i < pass->end.count; i++) {
        const struct tun_label *l = &pass->end.list[i];

        if (l->period_ns == p->period_ns && l->a == p->bytes && l->b == p->nj) {
            return tun_pass_plan(pass, l, &ret->plan);
        }
    }
    return -ENOTRECOVERABLE;
}

static int front_with(const struct tun_problem *p, const struct tun_space_options *options,
                      size_t max, struct front *f, struct tun_solution *ret)
{
    struct tun_joined joined;
    struct tun_pass pass = TUN_PASS_NULL;
    struct tun_map m;
    double bound = p->bounds.period_max_ns > 0 ? p->bounds.period_max_ns : INFINITY;
    int r = tun_joined_init(p, options, true, &joined, &m);

    if (r < 0) {
        return r;
    }
    f->m = &m;
    f->count = 0;
    f->exact = !m.coarse && !joined.coarse;
    r = descend(f, bound);
    if (r == 0) {
        qsort(f->points, f->count, sizeof(*f->points), by_period);
        thin(f, max);
    }
    for (size_t i = 0; r == 0 && i < f->count; i++) {
        r = write_point(f, &f->points[i], &pass, &ret[i]);
        if (r == 0) {
            tun_joined_back(&joined, &ret[i].plan);
            ret[i].blocks = !f->exact;
            ret[i].missing = TUN_SHORT_NONE;
            r = tun_eval(p, &ret[i].plan, &ret[i].outcome) == 0 ? 0 : -EINVAL;
        }
    }
    tun_pass_deinit(&pass);
    tun_joined_deinit(&joined, &m);
    return r;
}

int tun_boards_front(const struct tun_problem *p, size_t max, struct tun_solution *ret,
                     size_t *ret_count, bool *ret_exact)
{
    struct tun_space_options o = {0};
    struct front f = {.steps_max = 4 * base_min(max, (size_t)1024) + 16};
    struct tun_problem any = *p; /* whatever its objective */
    char error[TUN_ERROR_MAX];
    int r;

    any.objective = TUN_THROUGHPUT;
    any.bounds.latency_max_ns = 0;
    if (max == 0 || p->boards.count < 2 || p->bounds.stages_max > 0 ||
        tun_problem_check(&any, error) < 0) {
        return -EINVAL;
    }
    do {
        r = front_with(&any, &o, max, &f, ret);
    } while (tun_space_relax(&o, r));
    if (r == 0) {
        *ret_count = f.count;
        *ret_exact = f.exact;
    }
    free(f.points);
    return r == TUN_E_GROUPS || r == TUN_E_TEAMS ? -ENOTRECOVERABLE : r;
}
