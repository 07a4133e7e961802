/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/machine/eps.h - EPs: execution places, from the machine or the configuration
 *
 * Threads: the loop thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "governor/machine_state.h"
#include "governor/topology.h"
#include "pipeline/plan.h"

struct dmn_config;
struct dmn_machine;

/** dmn_eps_read() - reads the EPs from the configuration, else from the machine. @topology:
 * borrowed. @ret_error: DMN_CONFIG_ERROR_MAX bytes. Return: 0 or -errno. */
int dmn_eps_read(const struct dmn_config *config, const char *sysfs_root,
                 struct gov_topology *topology, char *ret_error, struct pl_ep_set *ret);
/** dmn_eps_find() - finds topology and EPs anew: those that have a core in @usable, with these
 * cores alone. @topology, @ret_error: as above. Return: 0; -ENODEV: there is none; -errno. */
int dmn_eps_find(const struct dmn_machine *m, const struct gov_cpuset *usable,
                 struct gov_topology *topology, char *ret_error, struct pl_ep_set *ret);
/** dmn_eps_replace() - from now on these are the machine's EPs; every model's plan follows at once.
 * @whole: the EPs before some were split; count 0: none is. @topology: where they were found.
 * All are copied. */
void dmn_eps_replace(struct dmn_machine *m, const struct pl_ep_set *eps,
                     const struct pl_ep_set *whole, const struct gov_topology *topology);
/**
 * dmn_eps_plan() - reads a plan's text
 *
 * The text may name the EPs as they are while none is split (it is then moved to the present ones),
 * or the present ones. @ret_error: a sentence of at most @error_bytes. Return: 0; -EINVAL; -EAGAIN:
 * it has to wait until an EP that is split is whole again.
 */
int dmn_eps_plan(const struct dmn_machine *m, const char *text, size_t unit_count, char *ret_error,
                 size_t error_bytes, struct pl_plan *ret);
/** dmn_cpu_list_parse() - turns "0-3,6" into the kernel's CPU numbers. Return: count, or
 * -EINVAL. */
int dmn_cpu_list_parse(const char *text, uint16_t *ret_cpus, size_t max);
/** dmn_cpuset_text() - the cores as the kernel lists them, "0-3,6". */
void dmn_cpuset_text(const struct gov_cpuset *set, char *ret, size_t bytes);
/** dmn_eps_state() - the state of @eps in snapshot @s. Without one (NULL) the clocks of @topology
 * are read from @sysfs_root, which blocks on files; @sysfs_root NULL: the values last read. */
void dmn_eps_state(const struct pl_ep_set *eps, const struct gov_snapshot *s,
                   struct gov_topology *topology, const char *sysfs_root,
                   struct gov_machine_state *ret);
