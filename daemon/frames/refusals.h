/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/frames/refusals.h - what clients were refused lately, and why
 *
 * The log and the client are told, too; this is for whoever asks the daemon why a client gets no
 * answers. Equal refusals of a process share an entry, which keeps the newest reason. The one that
 * was quiet for longest gives way to a new one.
 *
 * Threads: the loop thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "ipc/protocol.h"

#define DMN_REFUSALS 16u
#define DMN_REFUSAL_TEXT 160u

enum dmn_refused {
    DMN_REFUSED_CONNECTION,
    DMN_REFUSED_STREAM,
    DMN_REFUSED_POOL,
    DMN_REFUSED_FRAME
};

struct dmn_refused_client {
    char client[IPC_NAME_BYTES]; /* its name, or "?" */
    pid_t pid;
    uid_t uid;
    enum dmn_refused what;
    enum ipc_status status;
    char why[DMN_REFUSAL_TEXT];
    uint64_t count, last_ns; /* count 0: the entry is free */
};

struct dmn_refusals {
    struct dmn_refused_client list[DMN_REFUSALS];
};

/** dmn_refusals_add() - a client was refused something. @r: as it shall be shown; its count is
 * ignored. */
void dmn_refusals_add(struct dmn_refusals *all, const struct dmn_refused_client *r);
/** dmn_refused_name() - "connection", "stream", "pool" or "frame". */
const char *dmn_refused_name(enum dmn_refused what);
