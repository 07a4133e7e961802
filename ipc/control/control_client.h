/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/control/control_client.h - a connection to the daemon's control socket, for its clients
 *
 * ipc_control_call() writes a call as far as possible, ipc_control_go() the rest of it, and reads;
 * ipc_control_next() takes replies, in the order of the calls. None of them waits: a loop polls
 * what ipc_control_poll() names. A program without a loop calls ipc_control_wait().
 *
 * All replies that came are taken before the end of the connection shows. So what a daemon says
 * before it closes is not lost, even where the call could no longer be written. No call raises
 * SIGPIPE.
 *
 * Threads: one at a time for each connection.
 */
#pragma once

#include <jansson.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/varlink.h"

#define IPC_CONTROL_FDS_MAX 64u /* descriptors of a call, as many as the daemon takes */

struct ipc_control {
    int fd;    /* owned; -1: not connected */
    char *out; /* owned: calls that are not yet written */
    size_t out_bytes, out_sent;
    struct ipc_varlink_reader reader;
    int end; /* 0: replies may come; else what ipc_control_next() returns after the last one */
};
#define IPC_CONTROL_NULL ((struct ipc_control){.fd = -1})

struct ipc_control_reply {
    json_t *message;    /* owned: all of it; json_decref() it */
    const char *error;  /* borrowed from it: the name; "error" if it has none; NULL: an answer */
    json_t *parameters; /* borrowed from it; NULL: none */
    bool continues;     /* another reply to the same call follows */
};

enum {
    IPC_CONTROL_E_NONE = 1,
    IPC_CONTROL_E_CLOSED,
    IPC_CONTROL_E_TOO_BIG,
    IPC_CONTROL_E_BAD,
    IPC_CONTROL_E_LATE,
    IPC_CONTROL_E_OTHER
};

/**
 * ipc_control_connect() - connects to the socket at @path
 *
 * @c: IPC_CONTROL_NULL, or closed. @queue: waits, however long, while too many others wait to be
 * accepted; else that is -EAGAIN. A Unix socket connects at once otherwise.
 *
 * Return: 0; -ENAMETOOLONG; -errno. ipc_control_reason() has it in words.
 */
int ipc_control_connect(struct ipc_control *c, const char *path, bool queue);
/** ipc_control_close() - forgets calls and replies, too. A second call does nothing. */
void ipc_control_close(struct ipc_control *c);

/**
 * ipc_control_call() - calls a method; writes what the socket takes, ipc_control_go() the rest
 *
 * @method: with its interface: "io.piped.Status"     @parameters: borrowed; NULL: none
 * @more: for several replies     @fds: @count descriptors that go with the call, borrowed
 *
 * Return: 0: it is on its way, or the daemon closed, which ipc_control_next() shows; -ENOMEM: no
 * memory, or a text of @parameters is not UTF-8; -ENOTCONN; -EAGAIN: @fds, and the socket takes
 * nothing now; -EINVAL: more than IPC_CONTROL_FDS_MAX; another -errno: no reply comes any more.
 */
int ipc_control_call(struct ipc_control *c, const char *method, json_t *parameters, bool more,
                     const int *fds, size_t count);
/** ipc_control_poll() - Return: what to wait for before ipc_control_go(); its fd is -1 while not
 * connected. */
struct pollfd ipc_control_poll(const struct ipc_control *c);
/** ipc_control_go() - writes all that can be written, and reads once. ipc_control_next() says what
 * came of it. Take all replies before the next call of it. */
void ipc_control_go(struct ipc_control *c);
/** ipc_control_has_reply() - Return: a whole reply came and is not taken. */
bool ipc_control_has_reply(const struct ipc_control *c);
/**
 * ipc_control_next() - takes the next reply
 *
 * Return: 0; IPC_CONTROL_E_NONE: it has not come yet. No more replies come, and the caller closes:
 * IPC_CONTROL_E_CLOSED: by the daemon; IPC_CONTROL_E_TOO_BIG: the reply is longer than
 * IPC_VARLINK_MESSAGE_MAX; IPC_CONTROL_E_BAD: it is not a JSON object, or nested too deep; -errno.
 */
int ipc_control_next(struct ipc_control *c, struct ipc_control_reply *ret);

/**
 * ipc_control_wait() - writes calls, and blocks until the next reply is there
 *
 * @end_ns: until when (base_now_ns()), at most 24 days; 0: for ever. @other: a descriptor that ends
 * the wait when it is readable and no reply is; -1: none.
 *
 * Return: as ipc_control_next(), without IPC_CONTROL_E_NONE; IPC_CONTROL_E_LATE: there was no whole
 * reply in time; IPC_CONTROL_E_OTHER: @other is readable.
 */
int ipc_control_wait(struct ipc_control *c, uint64_t end_ns, int other,
                     struct ipc_control_reply *ret);

/** ipc_control_reason() - @rc: -errno, or an outcome after which no reply comes. Return: what the
 * daemon did, in words for "piped is not reachable at PATH: ..."; constant, or strerror()'s. */
const char *ipc_control_reason(int rc);
