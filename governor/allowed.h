/* SPDX-License-Identifier: Apache-2.0 */
/**
 * governor/allowed.h - the CPUs that this process may use
 */
#pragma once

#include <stdbool.h>

#include "governor/sysfs.h"

/** gov_root_is_live() - Return: @root is the running system's, not a test's tree. */
bool gov_root_is_live(const char *root);

/**
 * gov_allowed_cpus() - the affinity of the main thread, whichever thread calls
 * The kernel keeps it inside the cpuset of the control group. For another root than "/":
 * Cpus_allowed_list of proc/self/status below it. Return: 0 or GOV_SYSFS_E_UNKNOWN (*ret then
 * untouched; also for an empty set).
 */
int gov_allowed_cpus(const char *root, struct gov_cpuset *ret);
