/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/models/core_time.h - what cores did, as the kernel counts it: /proc/stat
 *
 * Counted in ticks of 10 ms, and so only good for telling that something happened.
 */
#pragma once

#include <stdint.h>

struct dmn_core_time {
    uint64_t busy_ns;   /* somebody ran, or the hypervisor ran somebody else */
    uint64_t stolen_ns; /* the hypervisor did */
};

/** dmn_core_time_read() - @cpu: < 0: the sum of all. Threads: any; reads a file. Return: 0;
 * -ENOENT: the kernel does not say. */
int dmn_core_time_read(int cpu, struct dmn_core_time *ret);
