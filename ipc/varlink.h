/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/varlink.h - messages of the control socket: Varlink's framing and envelope, without I/O
 *
 * A message is a JSON object followed by a NUL byte. The daemon reads calls and writes replies;
 * pipectl does the reverse. The interface is ipc/io.piped.varlink.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define IPC_VARLINK_MESSAGE_MAX (1u << 20) /* bytes of one message; more closes the connection */
#define IPC_VARLINK_DEPTH_MAX 32u          /* nesting of a JSON value */

/* The error of a service that fails to start; it comes to whoever connects, whatever is called. */
#define IPC_VARLINK_NOT_STARTED "io.piped.NotStarted"

/* Text of ipc/io.piped.varlink, as GetInterfaceDescription returns it. */
extern const char ipc_varlink_interface[];

/* Collects bytes, returns whole messages. */
struct ipc_varlink_reader {
    char *data;               /* owned */
    size_t start, used, size; /* messages are taken up to start; bytes end at used */
    size_t scanned, tail;     /* no NUL before scanned; bytes after the last NUL */
};
#define IPC_VARLINK_READER_NULL ((struct ipc_varlink_reader){0})
void ipc_varlink_reader_deinit(struct ipc_varlink_reader *r);
/** ipc_varlink_feed() - appends bytes. Return: 0; IPC_VARLINK_E_TOO_BIG; -ENOMEM. */
enum { IPC_VARLINK_E_TOO_BIG = 1, IPC_VARLINK_E_BAD_JSON = 2, IPC_VARLINK_E_NONE = 3 };
int ipc_varlink_feed(struct ipc_varlink_reader *r, const void *bytes, size_t count);
/** ipc_varlink_next() - takes the next whole message. @ret: the caller's reference. Return: 0;
 * IPC_VARLINK_E_NONE: incomplete; IPC_VARLINK_E_BAD_JSON: not an object, or nested too deep;
 * -ENOMEM. */
int ipc_varlink_next(struct ipc_varlink_reader *r, json_t **ret);

struct ipc_varlink_call {
    const char *method; /* borrowed from the message: "io.piped.Status" */
    json_t *parameters; /* borrowed from the message: an object, empty if there were none */
    bool more, oneway;
};
/** ipc_varlink_parse_call() - Return: 0; IPC_VARLINK_E_BAD_JSON: not a call. */
int ipc_varlink_parse_call(json_t *message, struct ipc_varlink_call *ret);

/**
 * ipc_varlink_error_text() - an error reply in words: "NotFound: no model zzz"
 *
 * @error: its name; NULL: it had none     @parameters: may be NULL     @ret: what is longer is cut.
 * NotStarted reads as libpiped says it (IPC_NOT_STARTED).
 */
void ipc_varlink_error_text(const char *error, const json_t *parameters, char *ret, size_t bytes);

/* Encoders. @ret: the message with its NUL, malloc'ed, the caller frees. @parameters: borrowed, may
 * be NULL. Return: 0; -ENOMEM. */
int ipc_varlink_call(const char *method, json_t *parameters, bool more, char **ret,
                     size_t *ret_bytes);
int ipc_varlink_reply(json_t *parameters, bool continues, char **ret, size_t *ret_bytes);
int ipc_varlink_error(const char *error, json_t *parameters, char **ret, size_t *ret_bytes);
