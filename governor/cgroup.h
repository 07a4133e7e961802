/* SPDX-License-Identifier: Apache-2.0 */
/** governor/cgroup.h - a part of the sampler (governor/sampler.h): the quota and cpuset of the
 * control groups above the process */
#pragma once

#include "governor/sampler.h"

void gov_cgroup_scan(struct gov_sensors *s);
void gov_cgroup_sample(struct gov_sensors *s);
void gov_cgroup_close(struct gov_sensors *s);
