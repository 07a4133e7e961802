/* SPDX-License-Identifier: Apache-2.0 */
/** governor/cpus.h - a part of the sampler (governor/sampler.h): which CPUs there are and are
 * online, and their throttle counters */
#pragma once

#include "governor/sampler.h"

void gov_cpus_scan(struct gov_sensors *s);
void gov_cpus_sample(struct gov_sensors *s);
void gov_cpus_close(struct gov_sensors *s);
