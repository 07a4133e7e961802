/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/learn.h - what trials teach a cost table, and predictions for its unknown cells
 *
 * A sample replaces what the table had for its (EP, width, unit). An EP whose samples are all
 * slower or faster than the table by a common factor (contention, frequency) has its unmeasured
 * cells scaled by that factor. Unknown cells stay unknown.
 *
 * Samples and stage times of a plan whose teams share memory are first freed of what that adds
 * (tuner/memory.h), so that the table has the times alone.
 *
 * Samples of several frames at once replace no measured time of one frame. They correct what
 * several frames gain (tuner/problem.h), or a time that is only predicted.
 *
 * An unknown cost is the unit's cost in another row times the learned ratio of the two rows. That
 * ratio is the weighted mean of log ratios over units measured on both: units of similar size
 * first, else all. Without any measurement it is weight / speed, spread over the width by Amdahl's
 * law.
 */
#pragma once

#include "tuner/eval.h"

/** tun_learn() - takes a trial's samples and stage times into the problem's table and hand-off
 * cost. Stopped trials count too, failed ones do not. */
void tun_learn(struct tun_problem *p, const struct tun_trial *t);

/** tun_fill() - a prediction for every unknown cell, with its sigma. Return: cells it filled. */
size_t tun_fill(struct tun_problem *p);
