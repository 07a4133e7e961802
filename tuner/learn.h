/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/learn.h - what trials teach a cost table
 *
 * A sample replaces what the table had for its (EP, width, unit). An EP whose samples are all
 * slower or faster than the table by a common factor (contention, frequency) has its unmeasured
 * cells scaled by that factor. Unknown cells stay unknown: tuner/fill.h predicts them.
 *
 * Samples of several frames at once replace no measured time of one frame. They correct what
 * several frames gain (tuner/at_once.h), or a time that is only predicted.
 */
#pragma once

#include "tuner/fill.h"
#include "tuner/trial_result.h"

/** tun_learn() - takes a trial's samples and stage times into the problem's table and hand-off
 * cost. Stopped trials count too, failed ones do not. */
void tun_learn(struct tun_problem *p, const struct tun_trial *t);
