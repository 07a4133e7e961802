/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/daemon.h - the daemon: one loop thread, every libuv handle embedded in one struct
 *
 * dmn_daemon_init() builds everything in order and dmn_daemon_deinit() takes it down in reverse;
 * readiness is announced between the two by dmn_daemon_run(). A stop drains first: no new
 * connections, what is in flight is answered, then connections close, pipelines end and
 * uv_loop_close() must return 0. Threads: the loop thread, except dmn_daemon_wake().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "daemon/adapt.h"
#include "daemon/args.h"
#include "daemon/calibrate.h"
#include "daemon/config/config.h"
#include "daemon/control.h"
#include "daemon/frames.h"
#include "daemon/gpio.h"
#include "daemon/history.h"
#include "daemon/hotplug.h"
#include "daemon/models.h"
#include "daemon/service/notify.h"
#include "daemon/sensors.h"
#include "governor/topology.h"
#include "kernels/blas_check.h"
#include "pipeline/plan.h"

enum dmn_exit { DMN_EXIT_OK = 0, DMN_EXIT_FAILED = 1, DMN_EXIT_USAGE = 2, DMN_EXIT_CONFIG = 78 };

struct dmn_daemon {
    uv_loop_t loop;
    bool has_loop;
    uv_async_t wake; /* teams: something can be collected */
    uv_timer_t tick; /* once a second: rates, status line, slow clients */
    uv_timer_t watchdog, drain;
    struct dmn_notify notify;
    uv_timer_t retune; /* runs while a measurement is under way */
    uv_signal_t sighup, sigterm, sigint;
    const struct dmn_args *args;   /* borrowed from main */
    struct dmn_config *config;     /* owned */
    char *runtime_dir, *state_dir; /* owned; state_dir NULL: nothing is kept */
    int lock_fd;                   /* keeps a second daemon off the runtime folder */
    const char *sysfs_root;
    struct krn_blas_status blas;
    struct gov_topology *topology; /* owned */
    struct pl_ep_set eps;
    struct dmn_model *models;  /* serving, in order of loading */
    struct dmn_model *leaving; /* unloaded, still answering */
    struct dmn_frames frames;
    struct dmn_control control;
    struct dmn_history history;
    struct dmn_reload *reload;           /* under way, or NULL */
    struct dmn_sensors *sensors;         /* owned; NULL: not started */
    struct dmn_gpio *gpio;               /* owned; NULL: not configured */
    struct dmn_hotplug *hotplug;         /* owned */
    struct dmn_adapt *adapt;             /* owned; NULL: not started */
    struct dmn_calibration *calibration; /* owned */
    struct dmn_load_call *loads;         /* Load calls under way */
    struct dmn_remake *optimises;        /* models that are being made anew */
    size_t failed_models;                /* asked for by the configuration and not serving */
    uint64_t started_ns, watchdog_us;
    uint64_t reloads, reload_failures;
    bool ready, draining, drained;
    char status_text[256]; /* last STATUS= */
};

/**
 * dmn_daemon_init() - topology, models, sockets; the loop is not running yet
 * Logs what went wrong. Return: 0, or the exit code of main().
 */
int dmn_daemon_init(struct dmn_daemon *d, const struct dmn_args *args, struct dmn_config *config);
/** dmn_daemon_run() - announces readiness and serves until stopped. */
void dmn_daemon_run(struct dmn_daemon *d);
/** dmn_daemon_deinit() - Return: 0, or -EBUSY if a handle was left open (a bug of ours, logged). */
int dmn_daemon_deinit(struct dmn_daemon *d);

/** dmn_daemon_wake() - for pl_options.notify: wakes the loop. Threads: any. */
void dmn_daemon_wake(void *daemon);
/** dmn_daemon_settle() - after whatever happened: frames, models, sockets, and the drain if one
 * runs. */
void dmn_daemon_settle(struct dmn_daemon *d);
/** dmn_daemon_status() - sends STATUS= when it says something new. */
void dmn_daemon_status(struct dmn_daemon *d);
/** dmn_daemon_state() - "serving", "tuning", "degraded" or "draining". */
const char *dmn_daemon_state(const struct dmn_daemon *d);

/* drain.c */
void dmn_drain_begin(struct dmn_daemon *d);
void dmn_drain_check(struct dmn_daemon *d);

/* watchdog.c */
void dmn_watchdog_start(struct dmn_daemon *d);
/** dmn_watchdog_healthy() - every pipeline progresses or is idle; says so once when one does not.
 */
bool dmn_watchdog_healthy(struct dmn_daemon *d);

/* check.c */
/** dmn_check_config() - `piped --check-config`: loads everything, prints what is wrong. Return:
 * exit code. */
int dmn_check_config(const struct dmn_args *args);
/** dmn_config_from_args() - the configuration that @args asks for; prints why not to @ret_error.
 * Return: 0 or -errno. */
int dmn_config_from_args(const struct dmn_args *args, char *ret_error, struct dmn_config **ret);

/* eps.c */
/** dmn_eps_read() - execution places from the machine or the configuration. @ret_error:
 * DMN_CONFIG_ERROR_MAX. Return: 0 or -errno. */
int dmn_eps_read(const struct dmn_config *config, const char *sysfs_root,
                 struct gov_topology *topology, char *ret_error, struct pl_ep_set *ret);
/** dmn_cpu_list_parse() - "0-3,6" to kernel numbers. Return: count, or -EINVAL. */
int dmn_cpu_list_parse(const char *text, uint16_t *ret_cpus, size_t max);
/** dmn_cpu_list_format() - the reverse. */
void dmn_cpu_list_format(const uint16_t *cpus, size_t count, char *ret, size_t bytes);
/** dmn_ep_found() - what the topology says of the place that has the first core of EP @ep, which
 * need not be the same place; NULL: nothing. */
const struct gov_ep *dmn_ep_found(const struct dmn_daemon *d, size_t ep);

/* blas.c */
/** dmn_blas_setup() - checks OpenBLAS; starts this program again once with the right core. Return:
 * 0 or an exit code. */
int dmn_blas_setup(char **argv, struct krn_blas_status *ret);

/* sockets.c */
/** dmn_sockets_lock() - takes the runtime folder. Return: 0; -EADDRINUSE when another daemon serves
 * there; -errno. */
int dmn_sockets_lock(const char *dir, int *ret_fd);
/** dmn_socket_listen() - a listening Unix socket; a stale file is replaced. Return: fd or -errno.
 */
int dmn_socket_listen(const char *path, unsigned mode, const char *group);
/** dmn_runtime_dir() - where the sockets go: @given, /run/piped if writable, else
 * $XDG_RUNTIME_DIR/piped. Made if missing. Return: owned, or NULL with errno. */
char *dmn_runtime_dir(const char *given);
/** dmn_state_dir() - @given, $STATE_DIRECTORY, /var/lib/piped if writable, else $XDG_STATE_HOME or
 * ~/.local/state. Return: owned, NULL: none. */
char *dmn_state_dir(const char *given);

/* state.c: what was learned of each model, by execution places, governors, limits of frequency and
 * quota */
/** dmn_state_save() - costs, hand-off, the plan that serves and its algorithm, in place of what was
 * kept for the same state of the machine; nothing while dmn_adapt_keeps() is false. Blocks on the
 * file. */
void dmn_state_save(struct dmn_model *m);
/**
 * dmn_state_load() - what was kept for this state of the machine, else for one that differs in
 * limits and quota only, into l->problem (TUN_SAVED)
 * @ret: the plan; l->algorithm is then "manual" if a user set it, else "saved". Blocks on the file.
 * Return: 0; DMN_E_NO_PLAN: costs, but no plan that fits; -ENOENT: nothing.
 */
enum { DMN_E_NO_PLAN = 1 };
int dmn_state_load(const struct dmn_daemon *d, struct dmn_load *l, struct pl_plan *ret);
/** dmn_state_plan() - the plan that was kept for this state of the machine and no other, unless a
 * user set it. Blocks on the file. Return: is there one. */
bool dmn_state_plan(const struct dmn_model *m, struct pl_plan *ret);

/* status.c, metrics.c */
json_t *dmn_status_json(struct dmn_daemon *d, const char *model);
char *dmn_metrics_text(struct dmn_daemon *d);

/* reload.c */
/** dmn_reload_begin() - @call may be NULL (SIGHUP). */
void dmn_reload_begin(struct dmn_daemon *d, struct dmn_call *call);
void dmn_reload_cancel(struct dmn_daemon *d);
