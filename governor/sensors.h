/* SPDX-License-Identifier: Apache-2.0 */
/**
 * governor/sensors.h - the sampler: reads what the machine is doing into a snapshot
 *
 * Files stay open and are read again from their start. A file that fails is reopened, at once the
 * first time and then every fifth sample.
 *
 * A scan looks for policies, zones and rails that came or went: when a file vanished, when the set
 * of online CPUs changed, and every tenth sample.
 *
 * On big machines a sample reads only part of each table, in turns: 24 policies, 8 zones, 16
 * cooling devices, the throttle counters of 16 CPUs. The rest keeps its last figures.
 *
 * Every path is below one root with sys/ and proc/ in it (cgroups below sys/fs/cgroup). No content
 * of a file can make a sample fail.
 */
#pragma once

#include <stdint.h>

#include "governor/snapshot.h"

struct gov_sensors;

/**
 * gov_sensors_new() - a sampler for the tree below @root ("/" or a test's tree), copied
 * Nothing is read yet. Return: 0; -ENOMEM. *ret: owned, gov_sensors_free().
 */
int gov_sensors_new(const char *root, struct gov_sensors **ret);
/** gov_sensors_free() - closes its files; takes and returns NULL. */
struct gov_sensors *gov_sensors_free(struct gov_sensors *s);

/**
 * gov_sensors_sample() - reads the machine's state at @now_ns
 * @now_ns: any clock that counts nanoseconds; no energy is integrated over a step in which it
 * stands still or goes back
 *
 * Rails that only give power are integrated by the trapezoid of two samples, over gaps of at most
 * 60 s. Threads: one at a time, any. Blocks as long as the kernel takes for its files (sensors
 * behind a slow bus: milliseconds). After the first sample only directory listings allocate.
 */
void gov_sensors_sample(struct gov_sensors *s, uint64_t now_ns, struct gov_snapshot *ret);
