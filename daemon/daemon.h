/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/daemon.h - the daemon: one loop thread, with every libuv handle embedded in one struct
 *
 * dmn_daemon_init() builds everything in order, dmn_daemon_run() announces readiness and serves,
 * and dmn_daemon_deinit() takes everything down in reverse.
 *
 * A stop drains first: no new connections, and frames in flight are answered. Then connections
 * close, pipelines end, and uv_loop_close() must return 0. Threads: the loop thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "base/cli/cli.h"
#include "daemon/adapt/adapter.h"
#include "daemon/boards/over_boards.h"
#include "daemon/config/config.h"
#include "daemon/control/control.h"
#include "daemon/frames/room.h"
#include "daemon/loop.h"
#include "daemon/machine/machine.h"
#include "daemon/models/models.h"
#include "daemon/plans/plans.h"
#include "daemon/plans/switch.h"
#include "daemon/service/service.h"
#include "daemon/service/users.h"

enum dmn_exit { DMN_EXIT_OK = 0, DMN_EXIT_FAILED = 1, DMN_EXIT_USAGE = 2, DMN_EXIT_CONFIG = 78 };

/* args.c: the command line, as plain data, and the configuration that it asks for. Strings are
 * borrowed from argv. */
struct dmn_args {
    const char *config;      /* --config; NULL: the installed one, if it exists */
    struct cli_texts models; /* [NAME=]FILE[:SHAPES] */
    const char *runtime_dir, *state_dir, *sysfs_root; /* NULL: not given */
    const char *inspect;                              /* --inspect; NULL: not given */
    bool json, write_sidecar, force;                  /* of --inspect */
    bool check_config, verbose, help;
};

/** dmn_args_parse() - reads the command line. Return: 0; DMN_ARGS_E_DONE: --help or --version was
 * printed to stdout; DMN_ARGS_E_USAGE: the mistake was printed to stderr. */
enum { DMN_ARGS_E_DONE = 1, DMN_ARGS_E_USAGE = 2 };
int dmn_args_parse(int argc, char **argv, struct dmn_args *ret);

/** dmn_args_model_name() - the name of a model given as [NAME=]FILE: NAME, or the file's name up to
 * its last dot. @ret_name: @bytes long. Return: where FILE starts, inside @text. */
const char *dmn_args_model_name(const char *text, char *ret_name, size_t bytes);

/** dmn_config_from_args() - loads the configuration that @args ask for, with the models saved in
 * @state_dir (NULL: none). The caller looks at its saved_error. @ret_error: DMN_CONFIG_ERROR_MAX
 * bytes. Return: 0, or -errno with @ret_error set. */
int dmn_config_from_args(const struct dmn_args *args, const char *state_dir, char *ret_error,
                         struct dmn_config **ret);

/* All rooms and the handles that connect them. wiring.c gives each room pointers to the rooms below
 * it; no room knows this struct. */
struct dmn_daemon {
    uv_loop_t loop;
    bool has_loop;
    struct dmn_wake wake; /* from teams: finished frames wait to be collected */
    struct dmn_loop_turns turns;
    uv_prepare_t settle; /* runs before the loop waits again */
    uv_timer_t tick;     /* once a second: rates, status line, slow clients */
    uv_timer_t watchdog, drain;
    uv_timer_t more; /* active while some of what clients sent is left */
    uv_signal_t sighup, sigterm, sigint;
    uv_poll_t first_watch; /* makes room for descriptors */
    struct dmn_notify notify;
    const struct dmn_args *args;   /* borrowed from main */
    struct dmn_config *config;     /* owned */
    char *runtime_dir, *state_dir; /* owned; state_dir NULL: nothing is saved */
    int state_lock_error;          /* of dmn_state_lock(); tried again each second */
    int lock_fd;                   /* locks the runtime folder against a second daemon */
    struct dmn_users users;        /* by the names of `config` */
    gid_t socket_group;            /* of the sockets that the daemon makes */
    char unreachable[512];         /* why new clients cannot connect, or "" */
    struct dmn_machine machine;    /* its queues of work, and that of models, end with the daemon */
    struct dmn_models models;
    struct dmn_frames frames;
    struct dmn_plans plans;
    struct dmn_adapt *adapt; /* owned; NULL: not started */
    struct dmn_boards boards;
    struct dmn_control control;
    struct dmn_host host;
    struct dmn_plans_listener frames_listener; /* tells streams that the plan changed */
    struct dmn_boards_listener route_listener; /* the same of routes */
    struct dmn_reload *reload;                 /* owned; the reload in progress, or NULL */
    bool reload_next;                          /* another one follows it, for ... */
    struct dmn_done reload_next_done;          /* ... who waits for that */
    uint64_t ticked_ns;                        /* the last tick, or the start */
    uint64_t looked_ns, runs_since_ns; /* health.c: its last look; the end of the last gap */
    bool ready, draining, drained;
    bool asked_to_stop;    /* before it was ready: not an error */
    char status_text[256]; /* the last STATUS= sent */
};

/**
 * dmn_daemon_init() - topology, models, sockets; the loop does not run yet
 *
 * @args: borrowed. @config, @sockets: owned by the daemon from now on. Logs what went wrong.
 * Return: 0, or the exit code of main().
 */
int dmn_daemon_init(struct dmn_daemon *d, const struct dmn_args *args, struct dmn_config *config,
                    struct dmn_inherited sockets);
/** dmn_daemon_run() - announces readiness and serves until stopped. Blocks. */
void dmn_daemon_run(struct dmn_daemon *d);
/** dmn_daemon_deinit() - Return: 0; -EBUSY: a handle was left open (our bug, logged). */
int dmn_daemon_deinit(struct dmn_daemon *d);

/* first_models.c */
/** dmn_first_signals() - from now on SIGTERM and SIGINT call off the first loads, and end the
 * process where that takes longer than a second. */
void dmn_first_signals(void);
/** dmn_first_models() - loads the configured models, before the sockets are made. Those that cannot
 * be loaded are logged. Then the loop takes these signals, by @on_signal. Return: 0, or the exit
 * code. */
int dmn_first_models(struct dmn_daemon *d, uv_signal_cb on_signal);

/** dmn_daemon_loop() - makes the loop and its handles; dmn_daemon_init() does, too. Return: 0 or
 * -errno. */
int dmn_daemon_loop(struct dmn_daemon *d);

/* state_folder.c */
/** dmn_state_folder_fault() - says why there is no state directory, and what is missing for it.
 * @given: by the command line, or NULL. @error: errno. */
void dmn_state_folder_fault(const char *given, int error, char ret_text[DMN_CONFIG_ERROR_MAX]);
/** dmn_state_folder_take() - finds the state directory and locks it. A list of saved models that
 * cannot be used counts as a model that failed. Logs. */
void dmn_state_folder_take(struct dmn_daemon *d);
/** dmn_state_folder_tick() - once a second: takes the lock when another daemon has left it. */
void dmn_state_folder_tick(struct dmn_daemon *d);

/* listening.c */
/** dmn_runtime_dir_take() - finds the folder of the sockets and locks it. Logs. Return: 0, or the
 * exit code. */
int dmn_runtime_dir_take(struct dmn_daemon *d);
/** dmn_listening_start() - serves on the sockets, and makes those that are -1. Takes both. Logs.
 * Return: 0 or -errno. */
int dmn_listening_start(struct dmn_daemon *d, int frames_fd, int control_fd);
/** dmn_listening_tick() - once a second: makes the files of sockets again that vanished. */
void dmn_listening_tick(struct dmn_daemon *d);

/* wiring.c */
/** dmn_wire() - gives each room pointers to the rooms below it and registers its listeners. Starts
 * nothing. */
void dmn_wire(struct dmn_daemon *d);

/* health.c */
/** dmn_daemon_status() - sends STATUS= if its text changed. */
void dmn_daemon_status(struct dmn_daemon *d);
enum dmn_state dmn_daemon_state(const struct dmn_daemon *d);
void dmn_watchdog_start(struct dmn_daemon *d);
/** dmn_watchdog_healthy() - Return: every pipeline progresses or is idle. Logs once when one stalls
 * and when it recovers. */
bool dmn_watchdog_healthy(struct dmn_daemon *d);

/* check.c */
/** dmn_check_config() - `piped --check-config`: loads everything and prints what is wrong. Return:
 * the exit code. */
int dmn_check_config(const struct dmn_args *args);

/* inspect.c */
/** dmn_inspect() - `piped --inspect`: prints what a model's file is. Return: the exit code. */
int dmn_inspect(const struct dmn_args *args);

/* validate.c: every text is "FILE:LINE: KEY: VALUE: reason", DMN_CONFIG_ERROR_MAX bytes. */

/**
 * dmn_validate() - judges the cores and the group of the sockets
 *
 * @on: its configuration is judged, and its EPs are read. @binds: the daemon makes a socket itself.
 * @ret_group: of the sockets.
 *
 * Threads: any that owns @on; blocks on sysfs and the user database. Return: 0; -errno, with
 * @ret_error.
 */
int dmn_validate(struct dmn_machine *on, bool binds, char *ret_error, gid_t *ret_group);
/** dmn_validate_load() - loads a configured model, and judges its plan. @ret_key: on failure, as
 * for dmn_validate_fault(). Threads: any that owns @l; blocks. Return: 0; -errno, with l->error. */
int dmn_validate_load(const struct dmn_config_model *m, const struct pl_ep_set *eps,
                      struct dmn_load *l, const char **ret_key);
/** dmn_validate_plan() - judges a configured plan for a model of @units units. Threads: any.
 * Return: 0; -EINVAL, with @ret_error. */
int dmn_validate_plan(const struct dmn_config *c, const struct dmn_config_model *m,
                      const struct pl_ep_set *eps, size_t units, char *ret_error,
                      struct pl_plan *ret);
/** dmn_validate_fault() - writes why a model cannot be served. @key: "path", "plan" or
 * "calibration". @why: the reason; it may name the value itself. */
void dmn_validate_fault(const struct dmn_config *c, const struct dmn_config_model *m,
                        const char *key, const char *why, char *ret_error);
/** dmn_validate_doubt() - writes what is allowed but hardly meant; "" if there is nothing. */
void dmn_validate_doubt(const struct dmn_config *c, char *ret_text);
/** dmn_promises_check() - logs a warning, with keys and values, for each limit of the control group
 * or the process (memory, tasks, descriptors) that clients within limits.* could exceed. @cores: of
 * all EPs. */
void dmn_promises_check(const struct dmn_config *c, size_t cores);

/* reload.c */
/** dmn_reload_begin() - starts a reload. @done: called at its end. Return: false, and @done is not
 * called, if a reload is in progress or the daemon is stopping. */
bool dmn_reload_begin(struct dmn_daemon *d, struct dmn_done done);
