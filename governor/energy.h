/* SPDX-License-Identifier: Apache-2.0 */
/** governor/energy.h - a part of the sampler (governor/sampler.h): joules. They survive a scan by
 * the name of their source. */
#pragma once

#include "governor/sampler.h"

void gov_energy_scan(struct gov_sensors *s);
void gov_energy_sample(struct gov_sensors *s, uint64_t now_ns);
void gov_energy_close(struct gov_sensors *s);
