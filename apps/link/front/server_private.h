/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/link/front/server_private.h - what the files of the front share: the models that clients may
 * open, connections, streams, and the record of each frame
 *
 * A frame has a record in its stream's ring until it is answered: READING while an inline frame's
 * bytes come, TAKEN while the listener has it, DONE when it waits for its turn. Only the ring's
 * head is answered.
 *
 * When a connection ends while the listener has frames of it, their streams become orphans, which
 * live until the last of these frames is answered; and so does the connection's struct, which
 * counts their memory.
 *
 * Threads: the front's.
 */
#pragma once

#include <sys/queue.h>
#include <sys/types.h>

#include "apps/link/front/server.h"
#include "ipc/server/connection.h"

#define FRONT_STREAMS_MAX 16u               /* of a connection */
#define FRONT_MEMORY_MAX IPC_POOL_BYTES_MAX /* the same */
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
    bool pictures;  /* it takes them, too */
    struct front_format format;
};
struct front_list {
    size_t count;
    struct front_model model[BRD_ROUTES_MAX];
};

/* What the connections share. Embedded in struct front. */
struct front_room {
    struct front_listener listener;
    int epoll_fd;
    struct ipc_server server;
    struct front_list models;
    bool held; /* a frame was left in its socket, since its user has its share */
    LIST_HEAD(, front_stream) orphans;
};

struct front_conn {
    struct front_room *room;
    uid_t uid;       /* of the client's process */
    uint32_t events; /* that epoll waits for */
    size_t orphans;
    size_t memory_bytes, inline_bytes; /* of its streams: client memory, buffers of records */
    bool broken;                       /* the client is gone */
    struct ipc_conn base;
};

static inline struct front_conn *front_conn_of(const struct ipc_conn *c)
{
    return base_container_of(c, struct front_conn, base);
}

enum front_state { FRONT_READING, FRONT_TAKEN, FRONT_DONE };

struct front_record {
    struct front_frame frame;
    struct front_stream *stream;
    struct front_record *next_free;
    enum front_state state;
    struct ipc_answer answer;  /* complete once DONE */
    struct ipc_memory *memory; /* a reference; NULL: the bytes are in the buffer, or none */
    uint8_t *buffer;           /* owned; kept for the next inline frame: input, then output */
    size_t buffer_bytes;
};

struct front_stream {
    struct ipc_stream base;
    struct front_conn *conn;
    LIST_ENTRY(front_stream) linked; /* in the list of orphans */
    char model[BRD_CONTENT_BYTES];
    uint32_t pixfmt; /* of its frames; 0: tensors */
    struct front_format format;
    bool there;     /* the model is, with this format */
    uint32_t taken; /* frames of the ring that the listener has */
    struct front_record *free, *ring[FRONT_RING];
    struct front_record *records; /* owned: an array */
};

static inline struct front_stream *front_stream_of(const struct ipc_stream *s)
{
    return base_container_of(s, struct front_stream, base);
}

/* models.c */
/** front_list_set() - the models of the routes that have hops, and tensors that make sense. */
void front_list_set(struct front_list *l, const struct brd_routes *r);
/** front_list_find() - @name "": the first. Return: NULL: no such model. */
const struct front_model *front_list_find(const struct front_list *l, const char *name);

/* stream.c */
/** front_stream_new() - Return: owned by the caller; NULL: out of memory. */
struct front_stream *front_stream_new(struct front_conn *c, uint32_t id,
                                      const struct front_model *m, const struct ipc_open *o);
/** front_stream_free() - with all its frames, also those that the listener has. */
void front_stream_free(struct front_stream *s);
/** front_stream_orphan() - its connection is closed. Return: the listener has frames of it: it is
 * an orphan; false: it was freed. */
bool front_stream_orphan(struct front_stream *s);
/** front_stream_room() - Return: front_stream_take() may be called. */
static inline bool front_stream_room(const struct front_stream *s)
{
    return s->free != NULL;
}
/** front_stream_deliver() - gives a READING frame to the listener. */
void front_stream_deliver(struct front_record *r);
/** front_stream_done() - the listener has answered a TAKEN frame: it is DONE. Without pages of its
 * pool it is refused. */
void front_stream_done(struct front_record *r, int status, const char *text, uint32_t epoch);
/** front_stream_serves() - the models have changed. @m: the one of its name, or NULL. When it is
 * gone, the client is told, unless it has too much to read. */
void front_stream_serves(struct front_stream *s, const struct front_model *m);

/* These are for struct ipc_server_ops; what they do, is told there. */
void *front_stream_take(struct ipc_stream *stream, const struct ipc_header *h,
                        const uint8_t *payload, uint8_t **ret_to);
void front_stream_cancel(struct ipc_stream *stream, uint64_t frame);
bool front_stream_answer(struct ipc_stream *stream);

/* connection.c */
/** front_conn_new() - @fd: its own, on success. @uid: of the client. Return: 0 or -errno. */
int front_conn_new(struct front_room *room, int fd, uid_t uid);
/** front_conns_of() - Return: how many connections the user has. */
size_t front_conns_of(const struct front_room *room, uid_t uid);
/** front_conns_let_go() - shares may have changed: what is held is looked at again. */
void front_conns_let_go(struct front_room *room);
/** front_conn_close() - now, even with unwritten answers. It lives on for its orphans. */
void front_conn_close(struct front_conn *c);
/** front_conn_end_orphan() - frees an orphan, and its connection with the last one. */
void front_conn_end_orphan(struct front_stream *s);
/** front_conn_read() - epoll's @events came; never closes. */
void front_conn_read(struct front_conn *c, uint32_t events);
/** front_conn_settle() - handles and sends what it can; closes a connection that has ended. */
void front_conn_settle(struct front_conn *c);
/** front_conn_answer() - sends what is due, but handles no messages and never closes. What is left
 * to do is for front_conn_settle(): the connection stays unsettled. */
void front_conn_answer(struct front_conn *c);
/* for the connections of struct front_conn */
extern const struct ipc_server_ops front_messages;
