/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/machine/hotplug.h - which cores this process may use, and when that changes
 *
 * Two things are watched: the online cores, and the daemon's affinity, which a cpuset
 * (AllowedCPUs=, a container's limit) shrinks and widens. Both are polled in every adaptation
 * window (100 ms), else once a second by the daemon's tick. The kernel's uevents would report the
 * first at once, but they need netlink sockets, which the service's sandbox forbids.
 *
 * A change of both is hotplug; a change of the affinity alone is the cpuset's. Threads: the loop
 * thread.
 */
#pragma once

#include <stdbool.h>

#include "governor/sysfs.h"

struct dmn_hotplug;
struct dmn_machine;

struct dmn_hotplug_change {
    const char *cause;        /* "hotplug" or "cpuset"; static */
    struct gov_cpuset usable; /* online and allowed now */
    struct gov_cpuset gone, back;
    char text[192]; /* "cores 2-3 went", "core 3 came back" */
};

/* Called once for each change, after the state has been updated. */
typedef void (*dmn_hotplug_fn)(void *ctx, const struct dmn_hotplug_change *change);

/** dmn_hotplug_start() - sets m->hotplug. Return: 0 or -ENOMEM. */
int dmn_hotplug_start(struct dmn_machine *m);
void dmn_hotplug_stop(struct dmn_machine *m);
/** dmn_hotplug_listen() - sets the only listener; @fn NULL: none, changes are only logged. */
void dmn_hotplug_listen(struct dmn_machine *m, dmn_hotplug_fn fn, void *ctx);
/** dmn_hotplug_check() - looks now, @now_ns of the monotonic clock; two small reads. A change of
 * the affinity alone is reported only if it lasts for a quarter of a second. Return: a change was
 * reported. */
bool dmn_hotplug_check(struct dmn_machine *m, uint64_t now_ns);
