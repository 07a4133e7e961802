/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/models/choosing_again.h - measures an outdated choice of primitives again while it serves
 *
 * After an upgrade a model serves at once with the primitives that were chosen before
 * (dmn_kept_choice.outdated). A work thread then measures on a second load of the model. If other
 * primitives are best now, that load takes the model's place by a hot swap; otherwise nothing
 * changes. Either way the new choice is kept, and the next start is an ordinary one.
 *
 * Measuring takes a core away from frames, and frames distort it. So it waits for a second without
 * frames, but not for ever.
 */
#pragma once

#include <stdint.h>

struct dmn_models;

/** dmn_choose_again_tick() - once a second while the daemon serves: begins if it is time. Threads:
 * the loop thread. */
void dmn_choose_again_tick(struct dmn_models *models, uint64_t now_ns);
