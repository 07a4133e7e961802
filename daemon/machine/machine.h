/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/machine/machine.h - what the machine is and does: the state of this room
 *
 * It holds EPs, snapshots of the sensors, cores that come and go and GPIO lines. Each part is
 * started and stopped separately and may be absent. Each part declares listeners, through which
 * other rooms learn of changes. Threads: the loop thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <uv.h>

#include "daemon/config/config.h"
#include "governor/gpio.h"
#include "governor/machine_state.h"
#include "governor/sysfs.h"
#include "governor/topology.h"
#include "pipeline/plan.h"

struct dmn_gpio;
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

/** dmn_machine_config() - Return: the configuration in force, borrowed until the loop's next
 * turn. */
static inline const struct dmn_config *dmn_machine_config(const struct dmn_machine *m)
{
    return *m->config;
}

/* ---- eps.c: EPs, execution places, from the configuration or the machine ---- */

/** dmn_machine_read() - finds the EPs. @ret_error: DMN_CONFIG_ERROR_MAX bytes. Return: 0 or
 * -errno. */
int dmn_machine_read(struct dmn_machine *m, char *ret_error);
/** dmn_machine_deinit() - call after its parts have been stopped. */
void dmn_machine_deinit(struct dmn_machine *m);
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

/* ---- sampling.c: the newest snapshot of the sensors ---- */

/** dmn_sensors_start() - takes the first sample and starts the timer. m->sensors stays NULL if out
 * of memory (logged). */
void dmn_sensors_start(struct dmn_machine *m);
/** dmn_sensors_stop() - closes files and timer; the loop must run once more. */
void dmn_sensors_stop(struct dmn_machine *m);
/** dmn_sensors_configure() - applies sensors.interval_ms of the configuration in force. */
void dmn_sensors_configure(struct dmn_machine *m);
/** dmn_sensors_now() - Return: the newest snapshot, borrowed until the loop's next turn; NULL: none
 * yet, or sampling is off. */
const struct gov_snapshot *dmn_sensors_now(const struct dmn_machine *m);
/** dmn_sensors_joules_per_frame() - Return: energy of the whole machine per answered frame, over
 * the last ten seconds; NAN: unknown, or no frame was answered. */
double dmn_sensors_joules_per_frame(const struct dmn_machine *m);

/** dmn_sensors_watts() - Return: of a busy core of EP @ep of m->eps above idle, as measured in the
 * present state of the machine (governor/watts.h); 0: not known. */
double dmn_sensors_watts(const struct dmn_machine *m, size_t ep);

/* ---- hotplug.c: which cores this process may use, and when that changes ---- */

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

/* ---- gpio_lines.c: the button, the power line and the LED ---- */

/* Each function may be NULL. */
struct dmn_gpio_listener {
    void *ctx;
    void (*pressed)(void *ctx);
    /* The line changed or was read for the first time. @active: power is limited. */
    void (*power)(void *ctx, bool active);
    struct dmn_gpio_listener *next; /* in the list */
};

/** dmn_gpio_start() - sets m->gpio, or leaves it NULL if the configuration names no line. @led: its
 * first state. */
void dmn_gpio_start(struct dmn_machine *m, enum gov_led led);
/** dmn_gpio_stop() - turns the LED off and releases the lines; the loop must run once more. */
void dmn_gpio_stop(struct dmn_machine *m);
/** dmn_gpio_listen() - adds @l behind earlier listeners; it must live until the end. A listener
 * that is added before dmn_gpio_start() is also told of a line that is already active. */
void dmn_gpio_listen(struct dmn_machine *m, struct dmn_gpio_listener *l);
/** dmn_gpio_show() - sets what the LED shows. Cheap. */
void dmn_gpio_show(struct dmn_machine *m, enum gov_led led);

/* What is known of the lines. Texts are borrowed until the loop's next turn. */
struct dmn_gpio_state {
    bool open;           /* the chip is open */
    const char *chip;    /* its name, or the configured name */
    const char *problem; /* the latest problem; "": none */
    uint64_t opened;     /* how often the chip was opened */
    bool has_button, pressed;
    uint64_t presses;
    bool power_known, power; /* power: limited */
    bool has_led;            /* the chip is open and has an LED */
    enum gov_led led;
};
/** dmn_gpio_state() - Return: true with @ret set; false: no line is configured. */
bool dmn_gpio_state(const struct dmn_machine *m, struct dmn_gpio_state *ret);
