/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/models/choosing_again.h - measures an outdated or unsure choice of primitives again while
 * the model serves
 *
 * After an upgrade a model serves at once with the primitives that were chosen before
 * (dmn_kept_choice.outdated). A work thread then measures on a second load of the model. If other
 * primitives are best now, that load takes the model's place by a hot swap; otherwise nothing
 * changes. Either way the new choice is kept, and the next start is an ordinary one.
 *
 * A choice that its times leave in doubt (dmn_kept_choice.doubt) is measured again, too, but only
 * the operators in doubt; new times are joined with those from before. Other primitives take over
 * if they are faster by more than the uncertainty. It is tried until nothing is in doubt, but at
 * most three times on a calm machine and ten times in all, and only if adapt.enabled.
 *
 * Measuring takes a core away from frames, and frames distort it. So it waits for a second without
 * frames, but not for ever. A request to optimise or quantise a model calls it off; it is tried
 * again later.
 */
#pragma once

#include <stdint.h>

struct dmn_models;

/** dmn_choose_again_tick() - once a second while the daemon serves: begins if it is time. Threads:
 * the loop thread. */
void dmn_choose_again_tick(struct dmn_models *models, uint64_t now_ns);
/** dmn_choose_patience_ns() - Return: for how long an unsure choice that was measured again @tries
 * times waits for a quiet machine before it is measured on a busy one: twice as long each time, and
 * twice within the first minute. Pure. */
uint64_t dmn_choose_patience_ns(unsigned tries);
