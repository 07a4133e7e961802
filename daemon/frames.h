/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/frames.h - the frames socket: connections, streams, pools, and each frame's record
 *
 * A stream keeps its frames in a ring of records in the order of arrival; a record is answered only
 * from the ring's head, so answers are in frame order whatever happened to each frame (computed,
 * late, dropped, refused). Every FRAME and INLINE gets a record or, when there is no such stream,
 * an answer at once. Records come from the stream's free list: the frame path allocates nothing.
 *
 * What a client can grow is capped: streams and credits (records), pools, inline buffers, unread
 * answers. While a ring is full or too many answers are unread, nothing is read from that
 * connection. Threads: the loop thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "daemon/admission.h"
#include "ipc/wire.h"
#include "pipeline/pipeline.h"

struct dmn_daemon;
struct dmn_model;

#define DMN_RING_SIZE 512u /* power of two, above IPC_CREDITS_MAX + DMN_SPARE_RECORDS */
#define DMN_SPARE_RECORDS                                                                          \
    16u /* for frames sent without credit, which are answered in their turn                        \
         */
#define DMN_READ_BYTES 16384u

/* What one user's clients hold, over all their connections. */
struct dmn_account {
    struct dmn_account *next;
    uid_t uid;
    size_t connections;
    size_t pool_bytes;
};

/* A client's memory, mapped once; lives until its stream let go and no frame uses it. */
struct dmn_pool {
    unsigned refs;
    uint8_t *map;
    size_t bytes;
    struct dmn_account *account; /* counted there */
};

enum dmn_record_state {
    DMN_RECORD_READING, /* the rest of an inline frame is still to come */
    DMN_RECORD_QUEUED,
    DMN_RECORD_RUNNING,
    DMN_RECORD_DONE
};

struct dmn_record {
    struct dmn_record *next_free;
    struct dmn_stream *stream;
    enum dmn_record_state state;
    enum ipc_status status;
    bool is_inline, has_credit;
    uint64_t frame, time_ns, arrival_ns, deadline_ns;
    struct dmn_pool *pool; /* a reference, or NULL */
    const uint8_t *input;  /* in the pool or in buffer */
    uint8_t *output;
    uint8_t *buffer; /* owned; inline frames: input, then output at buffer_output */
    size_t buffer_bytes, buffer_output;
    struct krn_image image;
    struct pl_frame *running; /* while RUNNING */
    uint64_t queue_ns, service_ns, done_ns;
    uint32_t epoch;
    char text[160]; /* why, if status is not OK */
};

struct dmn_stream {
    struct dmn_conn *conn;   /* NULL once the connection is gone */
    struct dmn_model *model; /* NULL once unloaded */
    struct dmn_stream *model_next, *model_prev;
    struct dmn_queue queue;
    uint32_t id;
    enum ipc_pixfmt pixfmt;
    enum ipc_policy policy;
    uint32_t credits; /* granted */
    bool auto_credits;
    bool closing;  /* CLOSE came */
    bool numbered; /* last_frame counts */
    uint64_t deadline_ns, last_frame;
    size_t input_bytes, output_bytes;
    size_t in_offset[PL_FRAME_IO_MAX], out_offset[PL_FRAME_IO_MAX];
    size_t input_count, output_count;
    struct dmn_record *ring[DMN_RING_SIZE];
    uint32_t head, next, tail; /* free-running: answered, next to look at for admission, end */
    uint32_t unanswered;       /* records with credit in the ring */
    size_t running;            /* records inside the pipeline, also after the connection is gone */
    struct dmn_record *free;
    struct dmn_pool *pools[IPC_POOLS_MAX];
};

struct dmn_conn {
    struct dmn_daemon *daemon;
    struct dmn_conn *next, *prev; /* of the server */
    struct dmn_conn *next_dirty;
    bool dirty;
    uv_poll_t poll;
    int fd;
    int events; /* of poll, now */
    struct dmn_account *account;
    pid_t pid;
    char client[IPC_NAME_BYTES];
    bool greeted, closed;
    bool ending; /* an ERROR was sent: flush, then close */
    struct dmn_stream *streams[IPC_STREAMS_MAX];
    size_t stream_count;
    size_t inline_bytes; /* of all its records' buffers */
    uint8_t in[DMN_READ_BYTES];
    size_t in_pos, in_used;
    int fds[2 * IPC_FDS_MAX]; /* received, not yet claimed by a header */
    size_t fd_count;
    struct dmn_record *reading; /* inline payload on its way in, or NULL */
    size_t reading_done, reading_bytes;
    size_t skip_bytes; /* payload that nobody wants */
    uint8_t *out;      /* owned */
    size_t out_pos, out_used, out_size;
    uint64_t stuck_ns; /* since when nothing could be written, 0: not stuck */
    uint64_t answered, bytes_in;
};

struct dmn_frames {
    struct dmn_daemon *daemon;
    int fd; /* listening, or -1 */
    uv_poll_t poll;
    uv_timer_t retry; /* out of descriptors: accept again later */
    bool polling, timing;
    char *path; /* owned; NULL when the socket was passed in */
    struct dmn_conn *conns, *dirty;
    struct dmn_account *accounts;
    size_t conn_count;
    uint64_t instance;
    uint64_t refused;
};

/* frames_server.c */
/** dmn_frames_start() - serve on listening socket @fd (owned from now on); @path: removed at the
 * end, or NULL. */
int dmn_frames_start(struct dmn_daemon *d, int fd, const char *path);
/** dmn_frames_stop_accepting() - closes the listening socket and removes its file. */
void dmn_frames_stop_accepting(struct dmn_daemon *d);
/** dmn_frames_settle() - does what became possible: answers, reads on, writes. At the end of every
 * callback. */
void dmn_frames_settle(struct dmn_daemon *d);
/** dmn_frames_drain_begin() - takes in what was already sent, then tells every client. */
void dmn_frames_drain_begin(struct dmn_daemon *d);
/** dmn_frames_drained() - every frame is answered and every answer written. */
bool dmn_frames_drained(const struct dmn_daemon *d);
void dmn_frames_close_all(struct dmn_daemon *d);
/** dmn_frames_tick() - once a second: clients that do not read. */
void dmn_frames_tick(struct dmn_daemon *d, uint64_t now_ns);
struct dmn_account *dmn_account_get(struct dmn_frames *f, uid_t uid);
void dmn_account_trim(struct dmn_frames *f);

/* frames_conn.c */
int dmn_conn_new(struct dmn_daemon *d, int fd, struct dmn_account *account, pid_t pid);
void dmn_conn_close(struct dmn_conn *c);
void dmn_conn_mark(struct dmn_conn *c); /* settle it */
/** dmn_conn_work() - one round of settling. Return: true if another round may get further. */
bool dmn_conn_work(struct dmn_conn *c);
void dmn_conn_read(struct dmn_conn *c);
/** dmn_conn_send() - appends a message to what is to be written. @tail may be NULL. Out of memory
 * closes. */
void dmn_conn_send(struct dmn_conn *c, struct ipc_header h, const void *payload, size_t bytes,
                   const void *tail, size_t tail_bytes);
/** dmn_conn_fail() - ERROR with a text, then the end of this connection. */
__attribute__((format(printf, 3, 4))) void dmn_conn_fail(struct dmn_conn *c, enum ipc_status status,
                                                         const char *format, ...);
bool dmn_conn_backlogged(const struct dmn_conn *c);
struct dmn_stream *dmn_conn_stream(const struct dmn_conn *c, uint32_t id);

/* frames_stream.c: handlers of messages; payload has at least the struct's bytes. */
void dmn_stream_open(struct dmn_conn *c, const struct ipc_header *h, const uint8_t *payload);
void dmn_stream_pool(struct dmn_conn *c, const struct ipc_header *h, const uint8_t *payload,
                     int fd);
void dmn_stream_close(struct dmn_conn *c, const struct ipc_header *h);
/** dmn_stream_pump() - answers what is done, in order. Return: true if something was answered. */
bool dmn_stream_pump(struct dmn_stream *s);
/** dmn_stream_orphan() - the connection is gone: nothing is answered any more, freed when nothing
 * runs. */
void dmn_stream_orphan(struct dmn_stream *s);
/** dmn_stream_more_credits() - the plan became deeper. */
void dmn_stream_more_credits(struct dmn_stream *s, size_t depth);
void dmn_stream_event(struct dmn_stream *s, enum ipc_event event, uint32_t epoch);
/** dmn_stream_detach() - its model goes away: what waits is answered "unavailable". Nothing may be
 * running. */
void dmn_stream_detach(struct dmn_stream *s);
void dmn_stream_free(struct dmn_stream *s);

/* frames_record.c: a frame's life. */
/** dmn_record_room() - can the stream take one more frame, with or without credit. */
bool dmn_record_room(const struct dmn_stream *s);
/** dmn_record_new() - for a FRAME or INLINE whose header and struct are there; answers bad ones in
 * their turn. *ret_inline: bytes of input that are to be read into the record's buffer, 0: none or
 * not wanted. */
struct dmn_record *dmn_record_new(struct dmn_stream *s, const struct ipc_header *h,
                                  const uint8_t *payload, size_t *ret_inline);
/** dmn_record_ready() - its bytes are all there: policy, deadline, then the queue. */
void dmn_record_ready(struct dmn_record *r);
/** dmn_record_submit() - puts the stream's oldest waiting frame into the pipeline, or answers it.
 * Return: false when the pipeline has no room. */
bool dmn_record_submit(struct dmn_stream *s);
/** dmn_record_collected() - it came out of the pipeline; the frame is given back by the caller. */
void dmn_record_collected(struct dmn_record *r, const struct pl_frame *f);
void dmn_record_cancel(struct dmn_stream *s, uint64_t frame);
__attribute__((format(printf, 3, 4))) void
dmn_record_fail(struct dmn_record *r, enum ipc_status status, const char *format, ...);
/** dmn_record_release() - its pool reference and big buffer. */
void dmn_record_release(struct dmn_record *r);

/* pool.c */
/** dmn_pool_new() - checks and maps a client's memfd; @fd stays the caller's. @ret_text: why not.
 */
enum ipc_status dmn_pool_new(int fd, uint64_t bytes, struct dmn_account *account,
                             size_t account_max, const char **ret_text, struct dmn_pool **ret);
struct dmn_pool *dmn_pool_unref(struct dmn_pool *p);
