/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/client.h - the inside of libpiped
 *
 * A connection is DOWN (waiting for the timer), GREETING (HELLO sent) or UP. A stream asks to be
 * opened whenever its connection comes up: NEW -> OPENING -> POOLING -> READY. Its submitted frames
 * are a list in order of submission: answered ones, then sent ones, then queued ones (an answer
 * that comes too early stays in its place). Losing the connection turns sent into queued; nothing
 * else has to be undone, and that is why a restart loses nothing. Frames leave the list at its head
 * only, answered: that is the order.
 */
#pragma once

#include <stdbool.h>
#include <sys/uio.h>

#include "ipc/piped.h"
#include "ipc/wire.h"

enum ipc_client_state { IPC_CLIENT_DOWN, IPC_CLIENT_GREETING, IPC_CLIENT_UP, IPC_CLIENT_GONE };
enum ipc_stream_state {
    IPC_STREAM_NEW,
    IPC_STREAM_OPENING,
    IPC_STREAM_POOLING,
    IPC_STREAM_READY,
    IPC_STREAM_FAILED
};
enum ipc_slot_state {
    IPC_SLOT_FREE,
    IPC_SLOT_ACQUIRED, /* the caller fills it */
    IPC_SLOT_QUEUED,
    IPC_SLOT_SENT,
    IPC_SLOT_ANSWERED,
    IPC_SLOT_GIVEN /* the caller reads the answer */
};

/* A message to be sent: a head of our own, then borrowed bytes, one descriptor with the first byte.
 */
struct ipc_tx {
    uint8_t head[IPC_HEADER_BYTES + IPC_OPEN_BYTES];
    size_t head_bytes;
    const void *body; /* borrowed from a slot until it is answered */
    size_t body_bytes;
    int fd; /* borrowed; -1: none */
};

struct ipc_slot {
    struct piped_frame frame; /* first: the caller's pointer is the slot's */
    enum ipc_slot_state state;
    bool cancelled, was_sent;
    uint64_t in_offset, out_offset; /* within the stream's memory */
    struct ipc_slot *next;          /* in the list of submitted frames */
    char text[IPC_TEXT_MAX + 1];
};

struct piped_stream {
    struct piped *client; /* borrowed */
    struct piped_stream *next;
    uint32_t id;
    enum ipc_stream_state state;
    struct ipc_open open;
    bool inline_frames;
    uint32_t width, height, stride, slots_wanted; /* as asked for */
    int error;                                    /* why it is FAILED */
    struct piped_stream_info info;
    struct piped_tensor tensors[2 * IPC_TENSORS_MAX];
    char names[2 * IPC_TENSORS_MAX][IPC_NAME_BYTES];
    struct piped_stream_stats stats;
    uint32_t credits; /* left */
    uint64_t last_number;
    int memfd; /* -1: inline */
    uint8_t *memory;
    size_t memory_bytes, input_size, output_size;
    struct ipc_slot *slots;
    size_t slot_count;
    struct ipc_slot *head, *tail; /* submitted frames */
};

struct piped {
    enum ipc_client_state state;
    int epoll_fd, timer_fd, sock;
    bool wants_out; /* EPOLLOUT is set */
    bool draining;  /* the daemon said so: UNAVAILABLE answers are sent again later */
    char path[108];
    char client[IPC_NAME_BYTES], server[IPC_NAME_BYTES];
    uint64_t reconnect_ns, down_ns; /* how long to try; since when it is down */
    uint32_t backoff_ms;
    bool ever_up;
    int error; /* why it is GONE, negative errno */
    uint64_t instance, reconnects;
    uint32_t last_stream;
    struct piped_stream *streams;
    struct ipc_tx *tx; /* ring */
    size_t tx_size, tx_first, tx_count, tx_sent /* bytes of the first one */;
    uint8_t *rx;
    size_t rx_size, rx_used;
};

/* client_error.c */
int ipc_client_error(int rc, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* client_io.c: the socket. Return 0, -ENOMEM, or another error: the connection is broken. */
int ipc_client_queue(struct piped *p, const struct ipc_header *h, const void *payload, size_t bytes,
                     const void *body, size_t body_bytes, int fd);
int ipc_client_flush(struct piped *p);
int ipc_client_receive(struct piped *p);
void ipc_client_reset_io(struct piped *p);

/* client_message.c: one whole message of the daemon. Return as above. */
int ipc_client_message(struct piped *p, const struct ipc_header *h, const uint8_t *b);

/* client.c */
void ipc_client_lost(struct piped *p, int rc);
int ipc_client_wait(struct piped *p, uint64_t end_ns); /* dispatch until then */
uint64_t ipc_client_end_ns(int timeout_ms);

/* client_stream.c */
int ipc_stream_start(struct piped_stream *s); /* queue OPEN */
int ipc_stream_pump(struct piped_stream *s);  /* queue frames while there is credit */
void ipc_stream_fail(struct piped_stream *s, int status, int error, const char *text);
void ipc_stream_disconnected(struct piped_stream *s);
void ipc_slot_answer(struct piped_stream *s, struct ipc_slot *slot, int status, const char *text,
                     size_t text_bytes);

/* client_memory.c */
int ipc_stream_allocate(struct piped_stream *s);
void ipc_stream_deallocate(struct piped_stream *s);
/* Bytes of an image, or 0 for an impossible one. */
size_t ipc_image_bytes(uint32_t pixfmt, uint32_t width, uint32_t height, uint32_t stride);
