/* SPDX-License-Identifier: Apache-2.0 */
/* The front: plans of which none is better than another in every objective. */
#include "base/base.h"
#include "tuner/memory.h"
#include "tuner/oneboard/solution.h"
#include "tuner/solve/solve.h"

#define BELOW (1 - 1e-9) /* the next bound on the period, as a part of the last plan's */

struct front {
    const struct tun_problem *p; /* by which plans are judged */
    const struct tun_space *s;
    struct tun_solution *points; /* [max], owned by the caller; by falling bottleneck */
    size_t count, steps_max;
};

/* A plan with the least latency for its bound. An earlier one that is no better in latency has a
 * higher bottleneck and goes. Return: 0, TUN_E_GROUPS, TUN_E_TEAMS. */
static int add_point(struct front *f, const struct tun_path *path)
{
    struct tun_solution *to = &f->points[f->count];
    int r = tun_path_plan(f->s, path, &to->plan);

    if (r != 0) {
        return r;
    }
    if (tun_eval(f->p, &to->plan, &to->outcome) != 0) {
        return -EINVAL;
    }
    to->blocks = f->s->coarse;
    while (f->count > 0 &&
           f->points[f->count - 1].outcome.latency_ns >= to->outcome.latency_ns * BELOW) {
        f->points[f->count - 1] = f->points[f->count];
        f->count--;
    }
    f->count++;
    return 0;
}

/* From the least latency down to the least bottleneck. Each step asks for anything below the last
 * bottleneck; when half of the steps are spent they grow, so that the others reach the end. */
static int descend(struct front *f, struct tun_path *path)
{
    double least, bound = INFINITY;
    int r = tun_least_period(f->s, path);

    if (r != 0) {
        return r;
    }
    least = path->bottleneck_ns;
    for (size_t step = 0; step < f->steps_max; step++) {
        size_t left = f->steps_max - 1 - step;

        r = tun_second(f->s, base_max(bound, least), TUN_FIGURE_LATENCY, path);
        if (r == 0) {
            r = add_point(f, path);
        }
        if (r != 0) {
            return r;
        }
        if (path->bottleneck_ns <= least * (1 + 1e-9)) {
            return 0;
        }
        bound = path->bottleneck_ns * BELOW;
        if (step >= f->steps_max / 2) {
            double part = left > 1 ? 1 - 1.0 / (double)left : 0;

            bound = base_min(bound, least * pow(path->bottleneck_ns / least, part));
        }
    }
    return 0;
}

/* Keeps @max points and both ends: drops the point whose neighbours are nearest, one by one. */
static void thin(struct front *f, size_t max)
{
    while (f->count > max) {
        size_t goes = max > 1 ? 1 : 0;
        double nearest = INFINITY;

        for (size_t i = 1; i + 1 < f->count && max > 1; i++) {
            double ratio =
                f->points[i - 1].outcome.bottleneck_ns / f->points[i + 1].outcome.bottleneck_ns;

            if (ratio < nearest) {
                nearest = ratio;
                goes = i;
            }
        }
        f->count--;
        memmove(&f->points[goes], &f->points[goes + 1], (f->count - goes) * sizeof(*f->points));
    }
}

static int front_with(const struct tun_problem *p, const struct tun_space_options *o,
                      struct front *f)
{
    base_autofree struct tun_path *path = malloc(sizeof(*path));
    struct tun_space s;
    int r = path ? tun_space_init(p, o, &s) : -ENOMEM;

    if (r < 0) {
        return r;
    }
    f->s = &s;
    f->count = 0;
    r = descend(f, path);
    tun_space_deinit(&s);
    return r;
}

int tun_front(const struct tun_problem *p, size_t max, struct tun_solution *ret, size_t *ret_count)
{
    struct tun_space_options o = {.batch_max = tun_problem_batch_max(p)};
    struct front f = {.steps_max = 4 * base_min(max, (size_t)256) + 16};
    base_cleanup(tun_problem_deinit) struct tun_problem any = TUN_PROBLEM_NULL;
    struct tun_problem throughput = *p; /* whatever its objective */
    char error[TUN_ERROR_MAX];
    int r;

    throughput.objective = TUN_THROUGHPUT;
    if (max == 0 || p->boards.count > 1 || tun_problem_check(&throughput, error) < 0) {
        return -EINVAL;
    }
    f.p = p;
    f.points = calloc(f.steps_max + 1, sizeof(*f.points));
    if (!f.points || tun_memory_under(&throughput, NULL, &any) != 0) {
        free(f.points);
        return -ENOMEM;
    }
    do {
        r = front_with(&any, &o, &f);
    } while (tun_space_relax(&o, r));
    if (r == 0) {
        thin(&f, max);
        *ret_count = f.count;
        for (size_t i = 0; i < f.count; i++) {
            ret[i] = f.points[f.count - 1 - i];
        }
    }
    free(f.points);
    return r > 0 ? -ENOTRECOVERABLE : r;
}
