/* SPDX-License-Identifier: Apache-2.0 */
/** tuner/adapt/correct.h - the present cost table: frequencies, factors and cores of a record */
#pragma once

#include "tuner/adapt/decision_record.h"

/** tun_beta_default() - before two frequencies were seen: with i = 2 nkm / 4 (nk + km + nm), flops
 * a byte of the unit's matrices, i / (i + TUN_BETA_HALF); TUN_BETA_UNKNOWN without matrices. */
#define TUN_BETA_HALF 4.0
#define TUN_BETA_UNKNOWN 0.7
double tun_beta_default(const struct tun_unit *u);

#define TUN_CLOCK_STEP 0.03 /* relative: a smaller change of a frequency does not count */

/** tun_clock_factor() - (khz_table / khz) ^ beta; 1 when either is unknown. */
double tun_clock_factor(const struct tun_ep_now *k, double beta);

/** tun_clock_moved() - Return: both frequencies are known and differ by more than counts. */
static inline bool tun_clock_moved(double khz, double before_khz)
{
    return khz > 0 && before_khz > 0 && fabs(log(khz / before_khz)) > TUN_CLOCK_STEP;
}

/** tun_width_of() - Return: cores of a team of @plan that computes @unit on @ep; without one, of
 * the widest there; 1 without any. */
size_t tun_width_of(const struct pl_plan *plan, size_t ep, size_t unit);

/** tun_share_factor() - what a team of @to_width cores takes more where other programs run on them,
 * from @slow, of one of @from_width
 *
 * With f times as long on one core, a core is there 1 / f of the time, and all w cores that a team
 * needs at once are there 1 / f^w of it: slow ^ (to / from). What makes faster stays as it is. */
double tun_share_factor(double slow, size_t from_width, size_t to_width);

/** tun_correct() - the problem with @slow and the present frequencies and core counts in it
 * EPs without cores are left out; widths that the table has not are predicted (tun_fill()).
 * @shared: [ep_count of @r]: other programs make the EP slow (tun_share_factor()); NULL: none.
 * @ret_eps: [PL_EP_MAX]: EP of @r for each of @ret's. Return: 0; -EINVAL: no core left;
 * -ENOMEM.
 */
int tun_correct(const struct tun_record *r, const double *slow, const bool *shared,
                struct tun_problem *ret, size_t *ret_eps);
