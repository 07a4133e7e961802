/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/solve/solve.h"

#include <errno.h>

#include "tuner/boards/solve_boards.h"
#include "tuner/oneboard/space.h"

int tun_solve_with(const struct tun_problem *p, const struct tun_space_options *o,
                   struct tun_solution *ret)
{
    return p->boards.count > 1 ? tun_boards_solve(p, o, ret) : tun_oneboard_solve(p, o, ret);
}

int tun_solve(const struct tun_problem *p, struct tun_solution *ret)
{
    struct tun_space_options o = {0};
    char error[TUN_ERROR_MAX];

    return tun_problem_check(p, error) < 0 ? -EINVAL : tun_solve_with(p, &o, ret);
}
