/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/hotplug.h - which cores there are for this process, and when that changes
 *
 * Two facts are watched: the cores that are online, and the daemon's affinity, which a cpuset
 * (AllowedCPUs=, a container's limit) shrinks and widens. The kernel's uevents say the first at
 * once where netlink is allowed; dmn_hotplug_check(), called by the sampler, finds both without it.
 * A change that both show is hotplug, one that only the affinity shows is the cpuset's.
 * Threads: the loop thread.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "governor/sysfs.h"

struct dmn_daemon;
struct dmn_hotplug;

struct dmn_hotplug_change {
    const char *cause;        /* "hotplug" or "cpuset"; static */
    struct gov_cpuset usable; /* online and allowed now */
    struct gov_cpuset gone, back;
    char text[192]; /* "cores 2-3 went", "core 3 came back" */
};

/* Called once for each change, after the state here is the new one. */
typedef void (*dmn_hotplug_fn)(struct dmn_daemon *d, const struct dmn_hotplug_change *change);

/** dmn_hotplug_start() - into d->hotplug; says in the log when there are no uevents. Return: 0 or
 * -ENOMEM. */
int dmn_hotplug_start(struct dmn_daemon *d);
/** dmn_hotplug_stop() - the loop has to run once more. */
void dmn_hotplug_stop(struct dmn_daemon *d);
/** dmn_hotplug_listen() - one listener; without one a change is only logged. */
void dmn_hotplug_listen(struct dmn_daemon *d, dmn_hotplug_fn fn);
/** dmn_hotplug_check() - looks now; two small reads. What only the affinity shows is told when it
 * still holds a quarter of a second later. Return: did anything change. */
bool dmn_hotplug_check(struct dmn_daemon *d);
/** dmn_hotplug_check_at() - the same by another clock, in monotonic nanoseconds. */
bool dmn_hotplug_check_at(struct dmn_daemon *d, uint64_t now_ns);
/** dmn_hotplug_json() - {uevents, online, allowed, changes}; null where unknown. New reference. */
json_t *dmn_hotplug_json(const struct dmn_daemon *d);
