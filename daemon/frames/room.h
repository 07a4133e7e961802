/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/frames/room.h - clients' frames: the frames socket, its connections, and the frames that
 * wait for each model
 *
 * Owns connections, streams, client memory and the record of each frame, and for each model its
 * waiting frames and the counts of answers (dmn_model.clients). Uses models/: it listens for models
 * that come, go or have room, and puts frames into their pipelines. It reports no events; others
 * read it.
 *
 * The way of a frame: peer.c says when to read, ipc/server/connection.c cuts out its message and
 * finds the stream, handlers.c puts a record into its ring, preparing.c shrinks a huge image,
 * submit.c decides whether it waits, puts it into the pipeline and gets it back when it was
 * collected. handlers.c answers, ipc/server/connection.c writes.
 *
 * Each file uses only files later in this list: frames; handlers; preparing; submit; stream;
 * record, clients; peer; admission. All read here what they share: the configuration, and whether
 * the daemon drains.
 *
 * A record is answered only at its ring's head, so answers are in frame order whatever happened to
 * each frame (computed, late, dropped, refused). Every FRAME and INLINE gets a record or, if its
 * stream does not exist, an answer at once. Records come from the stream's free list: the frame
 * path allocates nothing.
 *
 * Everything that a client can grow is capped: streams and credits (records), client memory, inline
 * buffers, unread answers. While a ring is full or too many answers are unread, nothing is read
 * from that connection.
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
#include "pipeline/trace.h"

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
    struct dmn_refused_client refusals[DMN_REFUSALS]; /* written through peer.h, too */
    struct ipc_server server;                         /* owns the connections */
    size_t inline_bytes;          /* of buffers, over all users; written through record.h */
    struct dmn_accounts accounts; /* owned; only those in use */
    struct dmn_preparing preparing;
};

/** dmn_frames_init() - starts to listen to @models; opens no socket yet. All pointers are
 * borrowed. */
void dmn_frames_init(struct dmn_frames *f, uv_loop_t *loop, struct dmn_config *const *config,
                     struct dmn_models *models);
/** dmn_frames_deinit() - call after dmn_frames_close_all() and the loop's last turn. */
void dmn_frames_deinit(struct dmn_frames *f);
/** dmn_frames_start() - serves on listening socket @fd, which it owns from now on, until
 * dmn_acceptor_stop(). @file: of the socket, taken; removed at the end. Return: 0 or -errno. */
int dmn_frames_start(struct dmn_frames *f, int fd, struct ipc_socket_file *file);
/** dmn_frames_settle() - does what has become possible: answers, reads, writes. Called before the
 * loop waits. */
void dmn_frames_settle(struct dmn_frames *f);
/** dmn_frames_take_in() - reads what clients have sent so far, and settles. */
void dmn_frames_take_in(struct dmn_frames *f);
/** dmn_frames_drain_begin() - reads what was already sent, then refuses frames and tells every
 * client. */
void dmn_frames_drain_begin(struct dmn_frames *f);
/** dmn_frames_drained() - Return: every frame is answered and every answer written. */
bool dmn_frames_drained(const struct dmn_frames *f);
/** dmn_preparing_stop() - ends the thread that prepares images; the frames that it has are answered
 * "unavailable". Call before models are destroyed. Waits for one slice. A second call does
 * nothing. */
void dmn_preparing_stop(struct dmn_frames *f);
/** dmn_frames_close_all() - closes every connection, even with unwritten answers; the memory is
 * freed in the loop's next turn. */
void dmn_frames_close_all(struct dmn_frames *f);
/** dmn_frames_tick() - once a second: closes clients that do not read, by DMN_KEY_LIMIT_SLOW_S, and
 * those that do not greet, by DMN_KEY_LIMIT_HANDSHAKE_S. @held_ns: for how long the process did not
 * run since the last call, which does not count. */
void dmn_frames_tick(struct dmn_frames *f, uint64_t now_ns, uint64_t held_ns);

/** dmn_frames_trace() - records every answer to @ring from now on; NULL: no more. @ring: borrowed
 * until then; the loop thread reads it. */
void dmn_frames_trace(struct dmn_frames *f, struct pl_trace_ring *ring);

/** dmn_frames_plan_changed() - tells @m's clients of the new plan, and grants more credits if it is
 * deeper. */
void dmn_frames_plan_changed(struct dmn_model *m);
/** dmn_frames_in_flight() - Return: frames of @m's clients in a pipeline, elsewhere or being
 * prepared, also those that a model has whose place @m took. */
size_t dmn_frames_in_flight(const struct dmn_model *m);
