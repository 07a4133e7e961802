/* SPDX-License-Identifier: Apache-2.0 */
/** tuner/pipesim/simulated_machine.h - a simulated machine */
#pragma once

#include "tuner/search/random.h"
#include "tuner/search/search.h"

/* The truth, which a search does not see. */
struct psim_machine {
    const struct tun_problem *truth; /* borrowed */
    double slow[PL_EP_MAX];          /* contention: factor on every cost of the EP, 1: none */
    double noise;                    /* relative sigma of a mean measured in a trial */
    unsigned frames;                 /* per trial; 0: 10 */
    struct tun_random random;
};
/** psim_machine() - Return: one without noise or contention, with the usual frames. */
struct psim_machine psim_machine(const struct tun_problem *truth, uint64_t seed);

/**
 * psim_trial() - runs a plan on the machine: fills measured figures, samples and the time it took
 *     spent = latency (fill) + frames * bottleneck
 * @samples: room for tun_core_count * unit_count samples, borrowed by the trial.
 */
void psim_trial(struct psim_machine *m, const struct pl_plan *plan, struct tun_sample *samples,
                struct tun_trial *ret);
