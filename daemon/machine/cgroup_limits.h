/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/machine/cgroup_limits.h - the limits that control groups set for this process
 *
 * The least one of its group and all groups above it, of both versions. Reads a few small files.
 * Threads: any.
 */
#pragma once

#include <stdint.h>

/** dmn_cgroup_memory_limit() - Return: bytes; UINT64_MAX: none, or unknown. @root: in front of
 * /proc and /sys; "": this machine. */
uint64_t dmn_cgroup_memory_limit(const char *root);
/** dmn_cgroup_task_limit() - as dmn_cgroup_memory_limit(), of processes and threads. */
uint64_t dmn_cgroup_task_limit(const char *root);
