/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/frames/room.h - the state of this room; its interface is daemon/frames/frames.h
 *
 * This is a separate header because connections and streams read here what they share: the
 * configuration, and whether the daemon drains.
 *
 * Threads: the loop thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>
#include <uv.h>

#include "daemon/frames/admission.h"
#include "daemon/models/models.h"
#include "daemon/service/acceptor.h"
#include "daemon/service/loop_turns.h"
#include "daemon/service/users.h"
#include "daemon/service/work.h"
#include "ipc/server/connection.h"
#include "kernels/kernels.h"
#include "pipeline/trace_ring.h"

/* What the clients of a user hold, over all their connections; the limits per user use it. peer.c
 * writes connections, ipc/server/mapped_memory.c memory_bytes. Client memory and buffers may
 * outlive their connection, so an account lives until all are 0. */
struct dmn_account {
    LIST_ENTRY(dmn_account) linked; /* in the list, which owns it */
    uid_t uid;
    size_t connections;
    size_t memory_bytes; /* of mapped client memory */
    /* of buffers, over all its connections; only record.h's functions write it */
    size_t inline_bytes;
};
LIST_HEAD(dmn_accounts, dmn_account);

/* What clients were refused lately, and why. The log and the client are told, too; this is for
 * whoever asks the daemon why a client gets no answers. Equal refusals of a process share an entry,
 * which keeps the newest reason. The one that was quiet for longest gives way to a new one. */
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

/* Why a connection was refused. */
enum dmn_unplaced {
    DMN_UNPLACED_LIMIT,
    DMN_UNPLACED_USER, /* the limit of one user */
    DMN_UNPLACED_MEMORY,
    DMN_UNPLACED_COUNT
};

struct dmn_config;
struct dmn_record;

/* Images that become a model's input beside its pipeline; written by preparing.c. */
struct dmn_preparing {
    /* It is no team: it has no core of its own and a lower priority, so teams that want its core
     * get nine tenths of it. */
    struct dmn_work *thread;    /* owned */
    bool running;               /* there is a thread */
    struct dmn_admission turns; /* of records that wait for their next slice */
    struct dmn_record *record;  /* whose slice the thread has; NULL: none */
    uint64_t expected_ns;       /* of that slice, see dmn_admission_taken() */
    uint8_t *scratch;           /* owned; krn_preprocess_scratch_bytes(), 64-byte aligned */
    size_t scratch_bytes;
    struct dmn_slice { /* rows of an input; the thread reads clients' memory for them */
        struct dmn_job job;
        struct krn_image image;
        struct mdl_preproc preproc;
        struct mdl_tensor shape; /* of the input, dense; its name is not used */
        void *input, *scratch;   /* borrowed */
        size_t begin, end;       /* rows */
        uint64_t took_ns;        /* set by the thread */
    } slice;
};

struct dmn_frames {
    /* borrowed */
    uv_loop_t *loop;
    struct dmn_config *const *config; /* points to the one in force, which a reload replaces */
    const struct dmn_models *models;
    /* set by the owner before dmn_frames_start() */
    const struct dmn_users *users;
    struct dmn_loop_turns *turns;
    struct dmn_models_listener listener;
    /* written by frames.c; streams also by handlers.c */
    struct dmn_frames_trace {
        struct pl_trace_ring *ring; /* borrowed; NULL: no trace */
        uint32_t session, streams;  /* traces so far; streams in this one */
    } trace;
    /* written by frames.c */
    struct dmn_acceptor acceptor;
    bool draining;                              /* refuse every new frame and stream */
    uint64_t refused[DMN_UNPLACED_COUNT];       /* connections */
    uint64_t streams_refused[IPC_STATUS_COUNT]; /* written by handlers.c, as pools_refused */
    uint64_t pools_refused[IPC_STATUS_COUNT];
    struct dmn_refusals refusals; /* written through peer.h, too */
    struct ipc_server server;     /* owns the connections */
    size_t inline_bytes;          /* of buffers, over all users; written through record.h */
    struct dmn_accounts accounts; /* owned; only those in use */
    struct dmn_preparing preparing;
};
