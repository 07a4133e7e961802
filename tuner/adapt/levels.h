/* SPDX-License-Identifier: Apache-2.0 */
/** tuner/adapt/levels.h - what the teams' levels say of an EP, and which factors follow */
#pragma once

#include <math.h>

#include "tuner/adapt/decision_record.h"

#define TUN_FREE 0.15   /* log of a factor that is as good as 1 once interference has ended */
#define TUN_CERTAIN 3.0 /* standard errors from 0 that make a level one to correct by */

static inline const struct pl_group *tun_group_of(const struct tun_record *r,
                                                  const struct tun_team_now *t)
{
    return &r->plan.stages[t->stage].groups[t->group];
}

static inline bool tun_team_moved(const struct tun_team_now *t)
{
    return t->firm || fabs(t->level) > TUN_CERTAIN * t->sigma;
}

static inline bool tun_says_nothing(const struct tun_team_now *t)
{
    return t->light && t->level < 0;
}

/** tun_levels_correct() - multiplies factors by what the levels say
 * @errors: standard errors by which every level is taken nearer to 0.
 * @slow: [ep_count][unit_count]. @ret_levels: [PL_EP_MAX]: the EPs' mean levels, 0 where
 * nothing moved. */
void tun_levels_correct(const struct tun_record *r, double errors, double *slow,
                        double *ret_levels);
/** tun_levels_release() - sets EPs free on which interference has ended, see tuner/adapt/decide.h.
 * @ret_tentative: only light teams show it. Return: there was one. */
bool tun_levels_release(const struct tun_record *r, double *slow, bool *ret_tentative);
/** tun_most_slowed() - |log| of the EP's factor that is farthest from 1. */
double tun_most_slowed(const struct tun_record *r, const double *slow, size_t ep);
