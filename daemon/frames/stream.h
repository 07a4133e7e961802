/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/frames/stream.h - a stream: its frames in the order of arrival, and its life
 *
 * The ring holds the records from `head` to `tail`, and only its head is answered. A stream has two
 * ends, and either may go first:
 *
 * - Its connection (peer). Waiting frames are given up, running ones are cancelled, none is
 *   answered. The stream is freed when the pipeline has returned its last frame
 *   (dmn_stream_orphan()).
 * - Its model (clients). All frames, even later ones, are answered "unavailable"
 *   (dmn_stream_detach()). A model is freed only when no pipeline has frames of its streams
 *   any more: neither its own, nor that of a model that it replaced in a hot swap. When the daemon
 *   ends, those pipelines are freed first.
 *
 * Otherwise CLOSE ends it, once everything is answered. Owned by the connection while there is one.
 * About 5.5 KiB, mostly the ring, and 380 bytes per record (credits plus DMN_SPARE_RECORDS of
 * them).
 *
 * Threads: the loop thread.
 */
#pragma once

#include <linux/sockios.h>
#include <sys/ioctl.h>

#include "daemon/frames/record.h"
#include "ipc/server/frame_rules.h"

#define DMN_SPARE_RECORDS 16u /* for frames sent without credit, which are answered in turn */
#define DMN_RING_SIZE 512u
#define DMN_RING_MASK (DMN_RING_SIZE - 1)
_Static_assert((DMN_RING_SIZE & DMN_RING_MASK) == 0 &&
                   DMN_RING_SIZE > IPC_CREDITS_MAX + DMN_SPARE_RECORDS,
               "a ring has room for every record of its stream");

/* For how long a stream had how many unanswered frames. It tells a client that waits for its
 * answers from one that has nothing to send, and from one that keeps its slots: which sends three
 * quarters of the frames that its credits allow, or more, without ever having read all answers
 * meanwhile. (Not all of them: the Python client keeps two slots back, for the answer at hand and
 * the frame that is filled.) */
struct dmn_stream_use {
    uint64_t at_ns;      /* of the last change of the number of unanswered frames; 0: none yet */
    uint64_t some_ns;    /* time with an unanswered frame */
    uint64_t more_ns;    /* with at least two */
    uint64_t full_ns;    /* with as many as the credits allow */
    uint64_t fills;      /* how often it sent ipc_flow_burst() without having read all answers */
    uint32_t unfinished; /* frames since the last of these, or since it had read all answers */
};

/** dmn_stream_use_until() - counts the time up to @now_ns. Call before @flow changes. */
static inline void dmn_stream_use_until(struct dmn_stream_use *u, const struct ipc_flow *flow,
                                        uint64_t now_ns)
{
    uint64_t passed = u->at_ns ? now_ns - base_min(u->at_ns, now_ns) : 0;

    u->at_ns = now_ns;
    u->some_ns += flow->unanswered > 0 ? passed : 0;
    u->more_ns += flow->unanswered > 1 ? passed : 0;
    u->full_ns += flow->unanswered >= flow->credits ? passed : 0;
}

/** dmn_stream_use_frame() - counts a frame that @flow has just taken. @fd: the client's socket; it
 * is asked only where all earlier frames are answered. */
static inline void dmn_stream_use_frame(struct dmn_stream_use *u, const struct ipc_flow *flow,
                                        int fd)
{
    int bytes = 0;
    bool finished = flow->unanswered == 1 && ioctl(fd, SIOCOUTQ, &bytes) == 0 && bytes == 0;

    u->unfinished = finished ? 1 : u->unfinished + 1;
    if (u->unfinished >= ipc_flow_burst(flow->credits)) {
        u->fills++;
        u->unfinished = 0;
    }
}

struct dmn_stream {
    struct ipc_stream base;        /* its flow is counted by handlers.c */
    struct dmn_peer *peer;         /* borrowed; NULL once the connection is gone */
    struct dmn_clients *clients;   /* borrowed; NULL once the model is gone */
    LIST_ENTRY(dmn_stream) linked; /* in clients->streams */
    /* as opened */
    enum ipc_policy policy;
    bool auto_credits; /* grant more credits for a deeper plan */
    struct dmn_frame_format format;
    struct dmn_stream_use use;           /* written by handlers.c, stream.c */
    struct ipc_description *described;   /* that its client knows; a reference, or NULL */
    uint32_t width, height;              /* of the newest image; written by handlers.c */
    uint32_t trace_session, trace_track; /* the trace that knows it; written by handlers.c */
    uint32_t next;           /* no frame waits before it; written by handlers.c, submit.c */
    size_t running;          /* records RUNNING or PREPARING; written by submit.c and
                                             * preparing.c */
    struct dmn_queue queue;  /* counts the QUEUED records of the ring */
    struct dmn_queue slices; /* of preparing.c: its PREPARING records but one */
    struct dmn_record *free; /* owned */
    struct dmn_record *ring[DMN_RING_SIZE]; /* owned */
};

static inline struct dmn_stream *dmn_stream_of(const struct ipc_stream *s)
{
    return base_container_of(s, struct dmn_stream, base);
}

/** dmn_stream_new() - opens a stream of client @p on the model of @w, as @o asks. Return: owned by
 * the caller; NULL: out of memory. */
struct dmn_stream *dmn_stream_new(struct dmn_peer *p, struct dmn_clients *w, uint32_t id,
                                  const struct ipc_open *o);
/** dmn_stream_free() - frees it with its records and references; none may be running. Return:
 * NULL. */
struct dmn_stream *dmn_stream_free(struct dmn_stream *s);

/** dmn_stream_unqueue() - makes a QUEUED record DONE without running it. */
void dmn_stream_unqueue(struct dmn_record *r, enum dmn_no_result why);
/** dmn_stream_wait() - a record becomes QUEUED, maybe one before others that were QUEUED already.
 * The stream has a model. */
void dmn_stream_wait(struct dmn_record *r);
/** dmn_stream_returned() - a RUNNING or PREPARING record is DONE: has it answered, or, if the
 * connection is gone and this was the last one, frees @s. */
void dmn_stream_returned(struct dmn_stream *s);
/** dmn_stream_orphan() - the connection is gone: frees @s, now or with its last running frame. */
void dmn_stream_orphan(struct ipc_stream *s);
/** dmn_stream_detach() - the model's pipeline is gone: frees @s if its connection is gone too. */
void dmn_stream_detach(struct dmn_stream *s);
/** dmn_stream_move() - moves @s with its waiting frames to the clients of another model. Running
 * frames stay in the previous pipeline. */
void dmn_stream_move(struct dmn_stream *s, struct dmn_clients *to);
/** dmn_stream_more_credits() - grants credits for a deeper plan; none when out of memory. */
void dmn_stream_more_credits(struct dmn_stream *s, size_t depth);
/** dmn_stream_describe() - tells a client that knows the message how outputs from here on are
 * decoded, unless it was told so before. @s has a connection. */
void dmn_stream_describe(struct dmn_stream *s, struct ipc_description *d);
/** dmn_stream_event() - sends an event; a client with too much to read misses it. */
void dmn_stream_event(struct dmn_stream *s, enum ipc_event event, uint32_t epoch);

/* ---- a frame's way from its message to the pipeline and back; only for daemon/frames ---- */

/* handlers.c: for the connections of struct dmn_peer */
extern const struct ipc_server_ops dmn_handlers;

/* preparing.c */
/** dmn_preparing_deinit() - call after dmn_preparing_stop() and the end of every stream. */
void dmn_preparing_deinit(struct dmn_frames *f);
/** dmn_preparing_start() - starts the thread. Without one, huge images are refused. */
void dmn_preparing_start(struct dmn_frames *f);
/** dmn_prepare_frame() - all bytes of @r, READING, have arrived: prepares it if it needs that, else
 * does dmn_submit_frame(). */
void dmn_prepare_frame(struct dmn_record *r);

/* submit.c */
/** dmn_submit_frame() - all bytes of @r, READING, have arrived: deadline and policy decide whether
 * it waits; then the pipeline is filled. */
void dmn_submit_frame(struct dmn_record *r);
/** dmn_submit_waiting() - puts waiting frames into the pipeline while it has room. */
void dmn_submit_waiting(struct dmn_clients *w);
