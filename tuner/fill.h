/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/fill.h - predictions for the unknown cells of a cost table
 *
 * An unknown cost is the unit's cost in another row times the learned ratio of the two rows. That
 * ratio is the weighted mean of log ratios over units measured on both: units of similar size
 * first, else all. Without any measurement it is weight / speed, spread over the width by Amdahl's
 * law.
 */
#pragma once

#include "tuner/problem.h"

/** tun_fill() - a prediction for every unknown cell, with its sigma. Return: cells it filled. */
size_t tun_fill(struct tun_problem *p);
