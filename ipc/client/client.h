/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/client/client.h - the inside of libpiped
 *
 * A connection is DOWN (the timer will retry), GREETING (HELLO is sent), UP, or GONE (given up).
 * Each time it comes up, its streams are opened: NEW -> OPENING -> POOLING -> READY.
 *
 * A stream keeps its submitted frames in a list, in order of submission. A frame is queued, then
 * sent, then answered. Losing the connection turns sent frames into queued ones; nothing else must
 * be undone, so a restart loses nothing. Frames leave the list only at its head and answered, which
 * keeps the order.
 */
#pragma once

#include <stdbool.h>
#include <sys/queue.h>
#include <sys/uio.h>

#include "ipc/description.h"
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

/* A message to send: its own head, then borrowed bytes; a descriptor goes with the first byte. */
struct ipc_tx {
    uint8_t head[IPC_HEADER_BYTES + IPC_OPEN_BYTES];
    size_t head_bytes;
    const void *body; /* borrowed from a slot until it is answered */
    size_t body_bytes;
    int fd; /* borrowed; -1: none */
};

struct ipc_slot {
    struct piped_frame frame;            /* first: a pointer to it is one to the slot */
    struct ipc_description *description; /* ANSWERED with an output: of it; a reference, or NULL */
    enum ipc_slot_state state;
    bool cancelled, was_sent;
    uint64_t in_offset, out_offset; /* within the stream's memory */
    STAILQ_ENTRY(ipc_slot) linked;  /* in submitted */
    char text[IPC_TEXT_MAX + 1];
};

struct piped_stream {
    struct piped *client; /* borrowed */
    LIST_ENTRY(piped_stream) linked;
    uint32_t id;
    enum ipc_stream_state state;
    struct ipc_open open;
    bool inline_frames;
    uint32_t width, height, stride, slots_wanted; /* of the options */
    int error;                                    /* FAILED: negative errno */
    struct piped_stream_info info;
    struct piped_tensor tensors[2 * IPC_TENSORS_MAX];
    struct ipc_tensor told_tensors[2 * IPC_TENSORS_MAX]; /* the same as OPENED had them */
    /* references, or NULL: none came. Of the outputs that come next; of the frame that was given
     * last, before that of the open stream */
    struct ipc_description *told, *description;
    struct ipc_description *coming; /* owned: the parts that came; NULL: the next is a first one */
    struct piped_stream_stats stats;
    uint32_t credits; /* left */
    uint64_t last_number;
    int memfd; /* -1: inline */
    uint8_t *memory;
    size_t memory_bytes, input_size, output_size;
    struct ipc_slot *slots;
    size_t slot_count;
    STAILQ_HEAD(, ipc_slot) submitted;
};

struct piped {
    enum ipc_client_state state;
    int epoll_fd, timer_fd, sock;
    bool wants_out; /* EPOLLOUT is set */
    bool draining;  /* the daemon drains: frames answered UNAVAILABLE are sent again later */
    char path[108];
    char client[IPC_NAME_BYTES], server[IPC_NAME_BYTES];
    uint64_t reconnect_ns, down_ns; /* how long to retry; since when it is down, 0: it is not */
    bool fail_fast;                 /* of the options */
    uint32_t backoff_ms;
    int answer_ms; /* how long piped_stream_open() waits; -1: for ever */
    bool ever_up;
    int cause;     /* GONE: negative errno, why it was given up */
    char why[512]; /* the daemon's, from its last ERROR; "" since it is up; GONE: why it ended */
    uint64_t reconnects;
    uint32_t features; /* of WELCOME */
    uint32_t last_stream;
    LIST_HEAD(, piped_stream) streams;
    struct ipc_tx *tx; /* owned: messages, tx_count from tx_first on */
    size_t tx_size, tx_first, tx_count, tx_sent /* bytes of the first one */;
    uint8_t *rx;
    size_t rx_size, rx_used, rx_taken; /* taken by ipc_client_next() */
};

/* error.c */
/** ipc_client_error() - sets the text of piped_last_error(). Return: @rc. */
int ipc_client_error(int rc, const char *format, ...) __attribute__((format(printf, 2, 3)));
/** ipc_client_options() - copies the caller's options of @type, which an older one has shorter:
 * what it does not know stays as it is. @from: NULL: none. @ret: @bytes. Return: 0; -EINVAL. */
int ipc_client_options(const void *from, void *ret, size_t bytes, const char *type);

/* io.c: the socket. Functions return 0, or -errno: the connection is unusable. */
/** ipc_client_queue() - adds a message. @payload is copied, @body is borrowed until it is sent. */
int ipc_client_queue(struct piped *p, const struct ipc_header *h, const void *payload, size_t bytes,
                     const void *body, size_t body_bytes, int fd);
int ipc_client_flush(struct piped *p);
/** ipc_client_receive() - reads once; then take the messages by ipc_client_next(). */
int ipc_client_receive(struct piped *p);
/** ipc_client_next() - Return: IPC_CLIENT_MESSAGE: a whole message, its payload is valid until the
 * next call; 0: no whole message; or as above. */
enum { IPC_CLIENT_MESSAGE = 1 };
int ipc_client_next(struct piped *p, struct ipc_header *ret, const uint8_t **ret_payload);

/* memory.c: the slots of a stream. Return: 0 or -errno, with a text. */
int ipc_stream_allocate(struct piped_stream *s);
void ipc_stream_deallocate(struct piped_stream *s);
/** ipc_picture_bytes() - bytes of a picture, not of a tensor. @stride: 0: no gap between rows.
 * Return: 0; -EINVAL, with a text: a stream cannot have such a picture. */
int ipc_picture_bytes(uint32_t pixfmt, uint32_t width, uint32_t height, uint32_t stride,
                      size_t *ret);

/* stream.c: a stream's state and what it sends */
int ipc_stream_start(struct piped_stream *s); /* queues OPEN; or the stream FAILED: 0 */
int ipc_stream_pump(struct piped_stream *s);  /* queues frames while there is credit */
void ipc_stream_fail(struct piped_stream *s, int status, int error, const char *text);
void ipc_stream_disconnected(struct piped_stream *s);
void ipc_stream_free(struct piped_stream *s); /* sends nothing */
void ipc_slot_answer(struct piped_stream *s, struct ipc_slot *slot, int status, const char *text,
                     size_t text_bytes);
void ipc_slot_cancelled(struct piped_stream *s, struct ipc_slot *slot); /* before it was sent */

/* message.c: what a message of the daemon does. Return: as in io.c. */
int ipc_client_message(struct piped *p, const struct ipc_header *h, const uint8_t *b);

/* client.c: the connection */
/** ipc_client_lost() - ends the connection because of @rc, and retries later if that may help. */
void ipc_client_lost(struct piped *p, int rc);
/** ipc_client_wait() - dispatches once, at most until @end_ns. Return: 0; -ETIMEDOUT; -EINTR. */
int ipc_client_wait(struct piped *p, uint64_t end_ns);
/** ipc_client_end_ns() - Return: the time that ends a wait of @timeout_ms; -1: UINT64_MAX. */
uint64_t ipc_client_end_ns(int timeout_ms);
