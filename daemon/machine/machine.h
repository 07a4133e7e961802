/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/machine/machine.h - what the machine is and does: the state of this room
 *
 * It holds EPs (eps.h), snapshots of the sensors (sampling.h), cores that come and go (hotplug.h)
 * and GPIO lines (gpio_lines.h). Each part is started and stopped separately and may be absent.
 * Each part declares listeners, through which other rooms learn of changes. Threads: the loop
 * thread.
 */
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <uv.h>

#include "daemon/config/config.h"
#include "governor/topology.h"
#include "pipeline/plan.h"

struct dmn_gpio;
struct dmn_gpio_listener;
struct dmn_hotplug;
struct dmn_sensors;
struct dmn_work;

struct dmn_machine {
    /* set by the owner before any part starts; all borrowed */
    uv_loop_t *loop;
    struct dmn_work *awaited; /* jobs that a client, a load or a connection waits for */
    struct dmn_work *beside;  /* those that compute for long beside frames, at low priority */
    struct dmn_config *const *config; /* the one in force; a reload replaces it */
    const char *sysfs_root;           /* "/", except in tests */
    /* Called at each sample: frames answered since the start, for joules per frame. NULL: not
     * counted. */
    uint64_t (*answered)(void *ctx);
    void *answered_ctx;
    /* set by this room */
    struct gov_topology *topology; /* owned; NULL before dmn_machine_read() */
    struct pl_ep_set eps;          /* EPs; changed by dmn_eps_replace() */
    /* The EPs before some were split, as users and saved plans name them; count 0: none is split.
     * Changed with eps. */
    struct pl_ep_set whole;
    uint64_t whole_wanted_ns;    /* when an EP that is split was last needed whole; 0: never */
    struct dmn_sensors *sensors; /* owned; NULL: not started */
    struct dmn_hotplug *hotplug; /* owned; NULL: not started */
    struct dmn_gpio *gpio;       /* owned; NULL: not configured */
    struct dmn_gpio_listener *gpio_listeners; /* borrowed */
};

/** dmn_machine_whole() - Return: the EPs as they are while none is split; borrowed. */
static inline const struct pl_ep_set *dmn_machine_whole(const struct dmn_machine *m)
{
    return m->whole.count > 0 ? &m->whole : &m->eps;
}

/* Frees handle->data, as what uv_close() calls. */
static inline void dmn_handle_free(uv_handle_t *handle)
{
    free(handle->data);
}

/* eps.c */
/** dmn_machine_read() - finds the EPs. @ret_error: DMN_CONFIG_ERROR_MAX bytes. Return: 0 or
 * -errno. */
int dmn_machine_read(struct dmn_machine *m, char *ret_error);
/** dmn_machine_deinit() - call after its parts have been stopped. */
void dmn_machine_deinit(struct dmn_machine *m);

/** dmn_machine_config() - Return: the configuration in force, borrowed until the loop's next
 * turn. */
static inline const struct dmn_config *dmn_machine_config(const struct dmn_machine *m)
{
    return *m->config;
}
