/* SPDX-License-Identifier: Apache-2.0 */
/* Without hwloc: nobody tells kinds of cores. */
#include <errno.h>

#include "governor/cpu_facts.h"

/* Built without hwloc: sysfs alone tells the kinds. */
int gov_hwloc_core_types(const struct gov_cpuset *online, struct gov_cpuset *ret_performance,
                         struct gov_cpuset *ret_efficient)
{
    return -ENOTSUP;
}
