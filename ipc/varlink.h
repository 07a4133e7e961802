/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/varlink.h - the Varlink framing and envelope of the control socket, without I/O
 *
 * A message is a JSON object followed by one NUL byte. Used by the daemon (calls in, replies out)
 * and pipectl (the reverse). The interface itself is ipc/io.piped.varlink, compiled in as
 * ipc_varlink_interface.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define IPC_VARLINK_MESSAGE_MAX (1u << 20) /* bytes of one message; more closes the connection */
#define IPC_VARLINK_DEPTH_MAX 32u          /* nesting of a JSON value */

/* Text of ipc/io.piped.varlink, as GetInterfaceDescription returns it. */
extern const char ipc_varlink_interface[];

/* Collects bytes and gives out whole messages. */
struct ipc_varlink_reader {
    char *data;               /* owned */
    size_t start, used, size; /* taken up to start, filled up to used */
    size_t scanned, tail;     /* no NUL before scanned; bytes behind the last NUL */
};
#define IPC_VARLINK_READER_NULL ((struct ipc_varlink_reader){0})
void ipc_varlink_reader_deinit(struct ipc_varlink_reader *r);
/** ipc_varlink_feed() - append bytes. Return: 0, IPC_VARLINK_E_TOO_BIG, -ENOMEM. */
enum { IPC_VARLINK_E_TOO_BIG = 1, IPC_VARLINK_E_BAD_JSON = 2, IPC_VARLINK_E_NONE = 3 };
int ipc_varlink_feed(struct ipc_varlink_reader *r, const void *bytes, size_t count);
/** ipc_varlink_next() - take the next whole message. Return: 0 (*ret: caller's reference),
 * IPC_VARLINK_E_NONE (incomplete), IPC_VARLINK_E_BAD_JSON (not an object, too deep), -ENOMEM. */
int ipc_varlink_next(struct ipc_varlink_reader *r, json_t **ret);

struct ipc_varlink_call {
    const char *method; /* borrowed from the message: "io.piped.Status" */
    json_t *parameters; /* borrowed; an object (a shared empty one where absent) */
    bool more, oneway;
};
/** ipc_varlink_parse_call() - Return: 0, or IPC_VARLINK_E_BAD_JSON when it is no call. */
int ipc_varlink_parse_call(json_t *message, struct ipc_varlink_call *ret);

/* Encoded messages, NUL included in *ret_bytes; malloc'ed, the caller frees. @parameters: borrowed,
 * may be NULL. Return 0 or -ENOMEM. */
int ipc_varlink_call(const char *method, json_t *parameters, bool more, char **ret,
                     size_t *ret_bytes);
int ipc_varlink_reply(json_t *parameters, bool continues, char **ret, size_t *ret_bytes);
int ipc_varlink_error(const char *error, json_t *parameters, char **ret, size_t *ret_bytes);
