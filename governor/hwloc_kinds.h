/* SPDX-License-Identifier: Apache-2.0 */
/**
 * governor/hwloc_kinds.h - the core types that hwloc knows of the machine it runs on
 *
 * Only the core type is taken from hwloc, which has it from CPUID or the operating system. hwloc
 * also tells kinds apart by frequency, which alone does not make a kind, and by capacity, which we
 * read from sysfs ourselves.
 */
#pragma once

#include <stdint.h>

#include "governor/sysfs.h"

enum gov_core_type {
    GOV_CORE_TYPE_UNKNOWN = 0,
    GOV_CORE_TYPE_PERFORMANCE = 1,
    GOV_CORE_TYPE_EFFICIENT = 2,
};

/**
 * gov_hwloc_core_types() - sets of performance and efficient cores of this machine
 * @online: the CPUs that are online. hwloc reads the machine again only if they have changed, so a
 * reload of the configuration does not stand or fall with what hwloc does when memory is short.
 * Blocks on files; any thread. Return: 0 (both sets are empty where hwloc knows no types),
 * -ENOTSUP (built without hwloc, or hwloc failed).
 */
int gov_hwloc_core_types(const struct gov_cpuset *online, struct gov_cpuset *ret_performance,
                         struct gov_cpuset *ret_efficient);
