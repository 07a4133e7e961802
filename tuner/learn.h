/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/learn.h - what trials teach a cost table
 *
 * A sample replaces what the table had for its (kind, width, unit). What was not run is predicted
 * from what was: a unit's cost elsewhere times the learned ratio between the two rows (the weighted
 * mean of log ratios over units measured on both; over units of like size first, all units else).
 * With no measurement at all: weight / speed, spread over the width by Amdahl's law. A kind whose
 * samples are all slower or faster than the table by a common factor (contention, frequency) has
 * its unmeasured cells scaled by that factor.
 */
#pragma once

#include "tuner/search/search.h"

/** tun_learn() - takes a trial's samples and stage times into the problem's table and hand-off
 * cost. Stopped trials teach too; failed ones nothing. */
void tun_learn(struct tun_problem *p, const struct tun_trial *t);

/** tun_fill() - a prediction for every unknown cell, with its sigma. Return: cells it filled. */
size_t tun_fill(struct tun_problem *p);
