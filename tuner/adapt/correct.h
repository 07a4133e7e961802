/* SPDX-License-Identifier: Apache-2.0 */
/** tuner/adapt/correct.h - the present cost table: frequencies, factors and cores of a record */
#pragma once

#include "tuner/adapt/decision_record.h"

/** tun_beta_default() - before two frequencies were seen: with i = 2 nkm / 4 (nk + km + nm), flops
 * a byte of the unit's matrices, i / (i + TUN_BETA_HALF); TUN_BETA_UNKNOWN without matrices. */
#define TUN_BETA_HALF 4.0
#define TUN_BETA_UNKNOWN 0.7
double tun_beta_default(const struct tun_unit *u);

/** tun_clock_factor() - (khz_table / khz) ^ beta; 1 when either is unknown. */
double tun_clock_factor(const struct tun_ep_now *k, double beta);

/** tun_correct() - the problem with @slow and the present frequencies and core counts in it
 * EPs without cores are left out; widths that the table has not are predicted (tun_fill()).
 * @ret_eps: [PL_EP_MAX]: EP of @r for each of @ret's. Return: 0; -EINVAL: no core left;
 * -ENOMEM.
 */
int tun_correct(const struct tun_record *r, const double *slow, struct tun_problem *ret,
                size_t *ret_eps);
