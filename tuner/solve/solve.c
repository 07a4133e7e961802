/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/solve/solve.h"

#include "base/base.h"
#include "tuner/boards/solve_boards.h"
#include "tuner/oneboard/space.h"

static double figure(const struct tun_problem *p, bool possible, const struct tun_outcome *o)
{
    return possible ? tun_figure(p, o) : o->bottleneck_ns;
}

/* Does @a, of outcome @r, gain enough over @b, of outcome @outcome? Where no plan keeps a bound on
 * latency, batches would only miss it by more. */
static bool gains(const struct tun_problem *p, int r, const struct tun_outcome *a, int outcome,
                  const struct tun_outcome *b)
{
    if (r != outcome) {
        return r == 0;
    }
    if (r != 0 && p->bounds.latency_max_ns > 0) {
        return false;
    }
    return figure(p, r == 0, a) * (1 + TUN_BATCH_GAIN) < figure(p, r == 0, b);
}

/* Takes larger batches into @ret where they gain enough. @outcome: of tun_oneboard_solve() so far.
 * Return: as tun_solve(). */
static int try_batches(const struct tun_problem *p, const struct tun_space_options *o, int outcome,
                       struct tun_solution *ret)
{
    base_autofree struct tun_solution *other = malloc(sizeof(*other));
    struct tun_space_options with = *o;
    size_t most = tun_problem_batch_max(p);

    if (!other) {
        return -ENOMEM;
    }
    for (with.batch_max = 2; with.batch_max <= most; with.batch_max *= 2) {
        int r = tun_oneboard_solve(p, &with, other);

        if (r < 0) {
            return r;
        }
        if (gains(p, r, &other->outcome, outcome, &ret->outcome)) {
            *ret = *other;
            outcome = r;
        }
    }
    return outcome;
}

int tun_solve_with(const struct tun_problem *p, const struct tun_space_options *o,
                   struct tun_solution *ret)
{
    int r;

    if (p->boards.count > 1) {
        return tun_boards_solve(p, o, ret);
    }
    r = tun_oneboard_solve(p, o, ret);
    if (r < 0 || p->bounds.one_ep_stages) {
        return r;
    }
    return try_batches(p, o, r, ret);
}

int tun_solve(const struct tun_problem *p, struct tun_solution *ret)
{
    struct tun_space_options o = {0};
    char error[TUN_ERROR_MAX];

    return tun_problem_check(p, error) < 0 ? -EINVAL : tun_solve_with(p, &o, ret);
}
