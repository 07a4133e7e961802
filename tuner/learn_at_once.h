/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/learn_at_once.h - what samples of several frames at once teach; for tuner/learn.c
 *
 * A sample of n frames at once is a frame's part, x, on an EP whose table has c for one frame and
 * gain f for n. Teams of the same shape also ran units that gain nothing: how much slower they are
 * than the table, r, is not the gain's (interference, a lower clock), and is taken out of x first.
 * - c is only predicted: then the prediction is wrong, and becomes x / f(n). It stays one.
 * - c is saved or measured: then the gain is wrong. With g = (1 - x / (r c)) / (1 - f(n)), what 2,
 *   4 and 8 frames save is multiplied by 1 + (g - 1) / 4, at least by half and at most by two:
 *   windows overlap, and each has its noise.
 */
#pragma once

#include "tuner/trial_result.h"

/** tun_sample_shared() - Return: the team took several frames at once, so that the sample is not
 * the time of one frame. */
static inline bool tun_sample_shared(const struct tun_sample *s)
{
    return s->frames > 1.05;
}

/** tun_learn_at_once() - learns from the trial's shared samples. */
void tun_learn_at_once(struct tun_problem *p, const struct tun_trial *t);
