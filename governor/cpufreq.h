/* SPDX-License-Identifier: Apache-2.0 */
/** governor/cpufreq.h - a part of the sampler (governor/sampler.h): policies, their limits and
 * frequencies. Its scan needs the table of CPUs. */
#pragma once

#include "governor/sampler.h"

void gov_cpufreq_scan(struct gov_sensors *s);
void gov_cpufreq_sample(struct gov_sensors *s);
/** gov_cpufreq_heat() - tells which policies heat limits; needs zones and cooling devices. */
void gov_cpufreq_heat(struct gov_sensors *s);
void gov_cpufreq_close(struct gov_sensors *s);
