/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/unit/tuner/noisy_machine.h - simulated machines that differ from their cost table
 *
 * The truth differs from the table per (unit, EP), one EP is slowed by contention that the table
 * does not know of, and every measurement is noisy.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tuner/search/random.h"
#include "tuner/search/search.h"

#define NOISY_TABLE_SIGMA 0.1   /* of the table's error, per (unit, EP) */
#define NOISY_TRIAL_SIGMA 0.005 /* of one measurement */
#define NOISY_UNITS_MAX 40
#define NOISY_ROWS_MAX 12

struct noisy_machine {
    struct tun_problem truth; /* owned; contention included */
    struct tun_random random;
    double noise; /* NOISY_TRIAL_SIGMA, until the test sets another */
    struct tun_sample samples[NOISY_UNITS_MAX * NOISY_ROWS_MAX];
};

/** noisy_make() - a network and its table: sizes over two orders of magnitude, EPs up to four times
 * slower for some units than for others, unequal gain from width. @ep_count: 1 to 3. @p: for
 * tun_problem_deinit(). */
void noisy_make(struct tun_problem *p, struct tun_random *r, size_t ep_count, size_t units);

/** noisy_spoil() - the machine of a table: every (unit, EP) off by
 * NOISY_TABLE_SIGMA, one EP slowed. */
void noisy_spoil(const struct tun_problem *p, struct noisy_machine *m, uint64_t seed);

/** noisy_make_one(), noisy_unmake() - both of these at once, and their end. */
void noisy_make_one(struct tun_problem *p, struct noisy_machine *m, uint64_t seed, size_t eps,
                    size_t units);
void noisy_unmake(struct tun_problem *p, struct noisy_machine *m);

/** noisy_run() - measures a plan. @ret: its samples are borrowed from @m until the next run. */
void noisy_run(struct noisy_machine *m, const struct pl_plan *plan, struct tun_trial *ret);

/** noisy_search() - a whole search by "exact". @ret: the outcome of its result by the truth.
 * Return: how many trials it took; 99 if it failed. */
size_t noisy_search(const struct tun_problem *p, struct noisy_machine *m, struct tun_outcome *ret);
