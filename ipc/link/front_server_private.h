/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/link/front_server_private.h - what the files of the front share
 *
 * A frame has a record in its stream's ring until it is answered: READING while an inline frame's
 * bytes come, TAKEN while the listener has it, DONE when it waits for its turn. Only the ring's
 * head is answered.
 *
 * When a connection ends while the listener has frames of it, their streams become orphans: they
 * and the connection's struct, which counts their memory, live until the last of them is answered.
 */
#pragma once

#include <sys/queue.h>

#include "ipc/intake.h"
#include "ipc/link/front_server.h"
#include "ipc/mapped_memory.h"
#include "ipc/outgoing.h"

#define FRONT_CONNS_MAX 16u
#define FRONT_STREAMS_MAX 16u /* of a connection, as the next four */
#define FRONT_MEMORY_MAX IPC_POOL_BYTES_MAX
#define FRONT_INLINE_MAX ((size_t)256 << 20) /* bytes of buffers for inline frames */
#define FRONT_BACKLOG_MAX ((size_t)1 << 20)  /* unread bytes: then nothing is read or answered */
#define FRONT_SLOW_NS (30 * BASE_NS_PER_S)   /* so long may a client read nothing */
#define FRONT_CREDITS 32u                    /* of a stream, if the client does not say */
#define FRONT_CREDITS_MAX 256u
#define FRONT_SPARE 16u /* records for frames sent without credit, which are answered in turn */
#define FRONT_RING 512u
_Static_assert(FRONT_RING >= FRONT_CREDITS_MAX + FRONT_SPARE &&
                   (FRONT_RING & (FRONT_RING - 1)) == 0,
               "a ring has room for every record of its stream");

/* The tensors of a model's frames. Comparable by memcmp(). */
struct front_format {
    size_t input_count, output_count, input_bytes, output_bytes;
    struct brd_tensor input[BRD_TENSORS_MAX], output[BRD_TENSORS_MAX];
};
struct front_model {
    char name[BRD_CONTENT_BYTES];
    uint32_t depth; /* frames that keep its boards busy */
    struct front_format format;
};

enum front_state { FRONT_READING, FRONT_TAKEN, FRONT_DONE };

struct front_record {
    struct front_frame frame;
    struct front_stream *stream;
    struct front_record *next_free;
    enum front_state state;
    enum ipc_status status;
    bool is_inline, has_credit;
    uint64_t number, time_ns; /* the client's */
    uint64_t queue_ns, service_ns, done_ns;
    uint32_t epoch;
    struct ipc_memory *memory; /* a reference; NULL: the bytes are in the buffer, or none */
    uint8_t *buffer;           /* owned; kept for the next inline frame: input, then output */
    size_t buffer_bytes;
    char text[160];
};

struct front_stream {
    struct front_conn *conn;
    LIST_ENTRY(front_stream) linked; /* in front.orphans, once the connection is closed */
    uint32_t id, credits;
    uint64_t deadline_ns; /* for frames without one, after arrival; 0: none */
    char model[BRD_CONTENT_BYTES];
    struct front_format format;
    bool there; /* the model is, with this format */
    bool closing;
    bool numbered; /* last_number is valid */
    uint64_t last_number;
    struct ipc_memory *memory[IPC_POOLS_MAX]; /* a reference each */
    uint32_t head, tail;                      /* free-running; the ring's frames */
    uint32_t unanswered;                      /* of them, with credit */
    uint32_t taken;                           /* of them, the listener's */
    struct front_record *free, *ring[FRONT_RING];
    struct front_record *records; /* owned: an array */
};

struct front_conn {
    struct front *front;
    LIST_ENTRY(front_conn) linked; /* in front.conns, until closed */
    int fd;
    uint32_t events; /* that epoll waits for */
    bool greeted;
    bool broken; /* the client is gone: close at the next chance */
    bool ending; /* ERROR is sent: nothing more, and close when it is written */
    bool closed; /* it lives on for its orphans */
    size_t orphans, stream_count;
    struct front_stream *streams[FRONT_STREAMS_MAX]; /* owned */
    struct front_record *reading;                    /* whose inline input is being read */
    size_t memory_bytes, inline_bytes;               /* also of its orphans */
    struct ipc_outgoing out;
    struct ipc_intake intake;
};

struct front {
    struct front_listener listener;
    char *path; /* owned */
    int epoll_fd, listen_fd, wake_fd;
    uint64_t instance;
    uint64_t paused_ns; /* since when it accepts nobody, for lack of descriptors; 0: it accepts */
    bool woken;         /* wake_fd is readable */
    bool dispatching, again; /* again: front_answer() was called meanwhile */
    size_t conn_count, model_count;
    struct front_model model[BRD_ROUTES_MAX];
    LIST_HEAD(, front_conn) conns;
    LIST_HEAD(, front_stream) orphans;
};

/** front_send() - appends a message, as ipc_outgoing_add(). Nothing after an ERROR. */
static inline void front_send(struct front_conn *c, struct ipc_header h, const void *payload,
                              size_t bytes, const void *tail, size_t tail_bytes)
{
    if (!c->ending && !ipc_outgoing_add(&c->out, h, payload, bytes, tail, tail_bytes)) {
        c->ending = true;
    }
}
static inline bool front_backlogged(const struct front_conn *c)
{
    return ipc_outgoing_waiting(&c->out) > FRONT_BACKLOG_MAX;
}

/* front_stream.c */
/** front_stream_new() - Return: owned by the caller; NULL: out of memory. */
struct front_stream *front_stream_new(struct front_conn *c, uint32_t id,
                                      const struct front_model *m, const struct ipc_open *o);
/** front_stream_free() - with all its frames, also those that the listener has. */
void front_stream_free(struct front_stream *s);
/** front_stream_orphan() - its connection is closed: frees it, or makes it an orphan. */
void front_stream_orphan(struct front_stream *s);
/** front_stream_room() - Return: front_stream_take() may be called. */
static inline bool front_stream_room(const struct front_stream *s)
{
    return s->free != NULL;
}
static inline bool front_stream_finished(const struct front_stream *s)
{
    return s->closing && s->head == s->tail;
}
/** front_stream_take() - takes a FRAME or INLINE whose fixed part is at @payload. @ret_inline:
 * bytes of input to read to record->buffer; 0: none. Return: READING, for front_stream_deliver();
 * or DONE, if it is refused. */
struct front_record *front_stream_take(struct front_stream *s, const struct ipc_header *h,
                                       const uint8_t *payload, size_t *ret_inline);
/** front_stream_deliver() - gives a READING frame to the listener. */
void front_stream_deliver(struct front_record *r);
/** front_stream_answer() - sends what is DONE at the ring's head, while the client reads. Return:
 * something was sent. */
bool front_stream_answer(struct front_stream *s);
/** front_stream_event() - a client with too much to read misses it. */
void front_stream_event(struct front_stream *s, enum ipc_event event);

/* front_models.c */
/** front_model_set() - Return: false: the route has no hops, or tensors that make no sense. */
bool front_model_set(const struct brd_route *r, struct front_model *ret);
/** front_model_find() - @name "": the first. Return: NULL: no such model. */
const struct front_model *front_model_find(const struct front *f, const char *name);

/* front_open.c */
void front_open_stream(struct front_conn *c, const struct ipc_header *h, const uint8_t *payload);
/** front_open_memory() - @fd: stays the caller's; -1: none came. */
void front_open_memory(struct front_conn *c, const struct ipc_header *h, const uint8_t *payload,
                       int fd);
static inline struct front_stream *front_conn_stream(const struct front_conn *c, uint32_t id)
{
    for (size_t i = 0; i < c->stream_count; i++) {
        if (c->streams[i]->id == id) {
            return c->streams[i];
        }
    }
    return NULL;
}

/* front_conn.c */
/** front_conn_new() - @fd: its own, on success. Return: 0 or -errno. */
int front_conn_new(struct front *f, int fd);
/** front_conn_close() - now, even with unwritten answers. */
void front_conn_close(struct front_conn *c);
/** front_conn_release() - frees the struct, if it is closed and has no orphans. */
void front_conn_release(struct front_conn *c);
/** front_conn_read() - epoll's @events came; never closes. */
void front_conn_read(struct front_conn *c, uint32_t events);
/** front_conn_settle() - does what has become possible; closes a connection that has ended. Return:
 * another round may get further. */
bool front_conn_settle(struct front_conn *c);
/** front_conn_flush() - writes, and waits for what is left; never closes. */
void front_conn_flush(struct front_conn *c);
