/* SPDX-License-Identifier: Apache-2.0 */
/** governor/thermal.h - a part of the sampler (governor/sampler.h): zones, their trip points, and
 * cooling devices */
#pragma once

#include "governor/sampler.h"

void gov_thermal_scan(struct gov_sensors *s);
void gov_thermal_sample(struct gov_sensors *s);
void gov_thermal_close(struct gov_sensors *s);
