/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/unit/tuner/boards_brute.h - every plan of a small problem over boards, one after the other
 *
 * It knows nothing of the planner's ideas: plans are written by plain recursion and judged by
 * tun_eval() and tun_fits(). What tuner/boards/solve_boards.h leaves out is left out here, too.
 */
#pragma once

#include "tuner/eval.h"
#include "tuner/eval_boards.h"
#include "tuner/search/random.h"

#define BRUTE_FRONT_MAX 20000u

struct brute {
    size_t plan_count;
    bool fits;              /* some plan fits in memory and energy */
    bool possible;          /* and keeps period and latency */
    double least_period_ns; /* of those that fit */
    double least_bound_ns;  /* of those that keep all bounds */
    double latency_ns;      /* least, within all bounds and, for THROUGHPUT, the slack */
    double energy_nj;       /* least, within all bounds */
    double full_ns;         /* least period of the space without what is left out */
    size_t front_count;     /* period, largest memory, largest energy */
    double front[BRUTE_FRONT_MAX][3];
};

/** boards_brute() - two runs over all plans: the second knows the least period. */
void boards_brute(const struct tun_problem *p, bool front, struct brute *ret);

/** boards_random() - a small problem; units and cores within a brute run of milliseconds. */
void boards_random(struct tun_random *random, struct tun_problem *ret);
