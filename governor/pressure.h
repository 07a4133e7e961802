/* SPDX-License-Identifier: Apache-2.0 */
/** governor/pressure.h - a part of the sampler (governor/sampler.h): pressure stall information */
#pragma once

#include "governor/sampler.h"

void gov_pressure_scan(struct gov_sensors *s);
void gov_pressure_sample(struct gov_sensors *s);
void gov_pressure_close(struct gov_sensors *s);
