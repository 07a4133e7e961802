/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/control.h - the control socket: Varlink calls in, replies out, in the order of the calls
 *
 * A call is answered at once or keeps its struct dmn_call until something has happened (a plan ran
 * dry, a model was loaded); the connection's next call waits meanwhile. A call outlives its
 * connection: answers to nobody are dropped. Threads: the loop thread.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "ipc/varlink.h"

struct dmn_daemon;
struct dmn_control_conn;

struct dmn_call {
    struct dmn_control_conn *conn; /* NULL once the connection is gone */
    struct dmn_daemon *daemon;
    struct dmn_call *next_subscriber;
    char *method;       /* owned */
    json_t *message;    /* owned; parameters live in it */
    json_t *parameters; /* borrowed from message */
    bool more, oneway, subscribed;
};

struct dmn_control_conn {
    uv_pipe_t pipe;
    struct dmn_daemon *daemon;
    struct dmn_control_conn *next, *prev;
    struct ipc_varlink_reader reader;
    struct dmn_call *call; /* being answered */
    uid_t uid;
    gid_t gid;
    pid_t pid;
    int fd; /* the newest that came and no call has taken, or -1 */
    bool may_change, eof, closing, working;
    bool ready; /* its call was answered: dmn_control_settle() takes the next */
};

struct dmn_control {
    uv_pipe_t pipe;
    bool listening;
    char *path; /* owned; NULL when the socket was passed in */
    struct dmn_control_conn *conns;
    size_t count;
    struct dmn_call *subscribers;
    bool ready; /* at least one connection is */
    char read_buffer[65536];
};

/** dmn_control_start() - serve on listening socket @fd (owned from now on). */
int dmn_control_start(struct dmn_daemon *d, int fd, const char *path);
void dmn_control_stop_accepting(struct dmn_daemon *d);
void dmn_control_close_all(struct dmn_daemon *d);
/** dmn_control_settle() - takes the next call of connections whose call was answered meanwhile; an
 * answer alone never runs a method, so whoever walks the models may answer. Return: was there one.
 */
bool dmn_control_settle(struct dmn_daemon *d);

/** dmn_call_reply() - @parameters: stolen, may be NULL. Ends the call unless @continues. */
void dmn_call_reply(struct dmn_call *c, json_t *parameters, bool continues);
/** dmn_call_error() - @error: without "io.piped." for ours; one string parameter. Ends the call. */
void dmn_call_error(struct dmn_call *c, const char *error, const char *parameter, const char *text);
/** dmn_call_take_fd() - the file descriptor that came with the call, the caller's; -1: none did. */
int dmn_call_take_fd(struct dmn_call *c);
/** dmn_control_event() - to every subscriber. @event: stolen. */
void dmn_control_event(struct dmn_daemon *d, json_t *event);

/* control_methods.c: finds the method and runs it, or answers why not */
void dmn_control_dispatch(struct dmn_call *c);

/* control_auth.c */
/** dmn_control_may_change() - root, the daemon's own user, or a member of @admin_group ("": nobody
 * else). */
bool dmn_control_may_change(uid_t uid, gid_t gid, const char *admin_group);

/* Methods: each answers its call, now or later. */
typedef void (*dmn_method_fn)(struct dmn_call *c);
void dmn_method_status(struct dmn_call *c);
void dmn_method_models(struct dmn_call *c);
void dmn_method_load(struct dmn_call *c);
void dmn_method_unload(struct dmn_call *c);
void dmn_method_get_plan(struct dmn_call *c);
void dmn_method_set_plan(struct dmn_call *c);
void dmn_method_auto_plan(struct dmn_call *c);
void dmn_method_retune(struct dmn_call *c);
void dmn_method_cancel_retune(struct dmn_call *c);
void dmn_method_costs(struct dmn_call *c);
void dmn_method_plan_front(struct dmn_call *c);
void dmn_method_plan_explain(struct dmn_call *c);
void dmn_method_calibrate(struct dmn_call *c);
void dmn_method_optimise(struct dmn_call *c);
void dmn_method_quantise(struct dmn_call *c);
void dmn_method_history(struct dmn_call *c);
void dmn_method_units(struct dmn_call *c);
void dmn_method_metrics(struct dmn_call *c);
void dmn_method_config(struct dmn_call *c);
void dmn_method_reload(struct dmn_call *c);
void dmn_method_subscribe(struct dmn_call *c);
/* What methods share; each may answer the call. */
struct dmn_model;
struct pl_plan;
/** dmn_call_model() - the model that parameter @key names, or the default one; answers and returns
 * NULL when there is none. */
struct dmn_model *dmn_call_model(struct dmn_call *c, const char *key);
/** dmn_method_may_switch() - false, and the call answered by Busy, while a search or another change
 * of plan is under way. */
bool dmn_method_may_switch(const struct dmn_model *m, struct dmn_call *c);
/** dmn_method_switch() - serves by @plan; the call is answered when the old plan has run dry. */
void dmn_method_switch(struct dmn_model *m, struct dmn_call *c, const struct pl_plan *plan,
                       const char *algorithm);
/** dmn_load_cancel_all() - at the end: answers Load calls that are still loading. */
void dmn_loads_detach(struct dmn_daemon *d);
