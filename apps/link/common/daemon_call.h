/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/link/common/daemon_call.h - calls of the daemon's control socket, for a loop with poll()
 *
 * A connection connects by itself, again and again. Calls of one connection are answered in order,
 * so what takes long has a connection of its own. Nothing here waits. Threads: one.
 */
#pragma once

#include <jansson.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "ipc/control/control_client.h"

#define DAEMON_CALLS_MAX 16u /* unanswered, of one connection */
#define DAEMON_LOST ""       /* the error of a call whose connection was lost */

/* @error: NULL: answered; DAEMON_LOST; else its name. @parameters: of the reply, valid until it
 * returns; NULL if there are none. */
typedef void daemon_reply(void *arg, const char *error, const json_t *parameters);

struct daemon_conn {
    const char *path;
    struct ipc_control control;
    unsigned ups;
    uint64_t retry_ns;
    bool not_started;  /* said by this connection */
    uint64_t heard_ns; /* the last reply came then, or a call when none was out */
    struct daemon_pending {
        daemon_reply *reply;
        void *arg;
        bool answered; /* by a reply that continues */
    } pending[DAEMON_CALLS_MAX];
    size_t pending_count;
};

/** daemon_conn_init() - @path: of the socket, borrowed. */
void daemon_conn_init(struct daemon_conn *c, const char *path);
/** daemon_conn_deinit() - calls nothing back. */
void daemon_conn_deinit(struct daemon_conn *c);
/** daemon_conn_up() - Return: 0: not connected; else how often it was, another number for each
 * connection. */
unsigned daemon_conn_up(const struct daemon_conn *c);
/** daemon_conn_waits_ns() - Return: for how long the daemon has not answered, though it owes an
 * answer; 0: it does not. A call with @more owes only its first. */
uint64_t daemon_conn_waits_ns(const struct daemon_conn *c, uint64_t now_ns);
/**
 * daemon_conn_call() - calls a method
 * @parameters: reference taken; may be NULL
 * @more: @reply is called for each reply, until an error
 *
 * Return: 0; -ENOTCONN, -EBUSY, -ENOMEM, -errno: @reply is not called.
 */
int daemon_conn_call(struct daemon_conn *c, const char *method, json_t *parameters, bool more,
                     daemon_reply *reply, void *arg);
/** daemon_conn_poll() - what to wait for; fd -1: nothing. */
struct pollfd daemon_conn_poll(const struct daemon_conn *c);
/** daemon_conn_go() - connects, writes, reads, and calls replies. */
void daemon_conn_go(struct daemon_conn *c, uint64_t now_ns);
