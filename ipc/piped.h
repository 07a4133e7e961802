/* SPDX-License-Identifier: Apache-2.0 */
/**
 * piped.h - libpiped: frames to the piped daemon and their answers back
 *
 *     struct piped *p;
 *     struct piped_stream *s;
 *     struct piped_frame *f;
 *     piped_connect(NULL, &p);
 *     piped_stream_open(p, NULL, &s);
 *     piped_acquire(s, &f);            fill f->input
 *     piped_infer(s, f, -1);           f->status, f->output
 *     piped_release(s, f);
 *     piped_close(p);
 *
 * Invariant: every frame that piped_submit() took is given back by piped_next() exactly once, in
 * the order of submission, also when the daemon is restarted in between: the library keeps the
 * input until the answer is there, connects again, opens its streams again and sends again what has
 * no answer yet. Only after reconnect_ms without a daemon such frames come back as
 * PIPED_UNAVAILABLE.
 *
 * Threads: one thread at a time may use a connection and what belongs to it; different connections
 * are independent; there is no global state. Signals: SIGPIPE is never raised. Fork: every
 * descriptor is close-on-exec; a child that goes on without exec must not touch the connection.
 * Blocking: only the functions with a timeout and piped_stream_open() wait; timeout_ms -1 waits for
 * ever. Errors: negative errno, and piped_last_error() has a sentence. Structs that the caller
 * fills start with their size, so that later versions can add fields; {sizeof(x)} or NULL is all
 * defaults.
 */
#ifndef PIPED_H
#define PIPED_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PIPED_API __attribute__((visibility("default")))

/* What became of a frame. The numbers are those of the protocol, see piped-protocol(7). */
enum piped_status {
    PIPED_OK = 0,
    PIPED_INVALID_ARGUMENT = 1,
    PIPED_NOT_FOUND = 2,
    PIPED_PERMISSION_DENIED = 3,
    PIPED_UNSUPPORTED = 4,
    PIPED_RESOURCE_EXHAUSTED = 5,
    PIPED_UNAVAILABLE = 6,
    PIPED_DEADLINE_EXCEEDED = 7,
    PIPED_CANCELLED = 8,
    PIPED_DROPPED = 9,
    PIPED_INTERNAL = 10,
    PIPED_PROTOCOL = 11
};

enum piped_pixfmt {
    PIPED_TENSOR = 0, /* the model's input tensors at the offsets of piped_stream_info */
    PIPED_RGB24 = 1,
    PIPED_BGR24 = 2,
    PIPED_GRAY8 = 3,
    PIPED_NV12 = 4,
    PIPED_YUYV = 5
};

enum piped_policy {
    PIPED_BLOCK = 0,  /* every frame is computed */
    PIPED_LATEST = 1, /* a new frame replaces the waiting one, which comes back PIPED_DROPPED */
    PIPED_REJECT = 2  /* a frame that finds no room comes back PIPED_RESOURCE_EXHAUSTED */
};

enum piped_dtype {
    PIPED_F32 = 1,
    PIPED_I32 = 2,
    PIPED_I64 = 3,
    PIPED_U8 = 4,
    PIPED_I8 = 5,
    PIPED_BOOL = 6
};

struct piped;        /* a connection */
struct piped_stream; /* frames to one model, answered in order */

#define PIPED_RECONNECT_NEVER UINT32_MAX

struct piped_options {
    size_t size;           /* sizeof(struct piped_options) */
    const char *path;      /* the frames socket; NULL: piped_socket_path() */
    const char *client;    /* name for the daemon's logs; NULL: the program's */
    uint32_t reconnect_ms; /* how long to look for a daemon that went away; 0: 30000 */
};

struct piped_stream_options {
    size_t size;
    const char *model;      /* NULL or "": the only or the first model */
    uint32_t pixfmt;        /* enum piped_pixfmt */
    uint32_t policy;        /* enum piped_policy */
    uint32_t credits;       /* frames the daemon holds at once; 0: as it sees fit */
    uint32_t priority;      /* 0..3 */
    uint64_t deadline_ns;   /* for each frame from its arrival at the daemon; 0: none */
    uint32_t slots;         /* frames that may be acquired at once; 0: as many as credits */
    uint32_t width, height; /* images: the largest; 0: the size the model needs */
    uint32_t stride;        /* images: of the largest; 0: without gap */
    uint32_t inline_frames; /* not 0: bytes through the socket instead of shared memory */
};

struct piped_tensor {
    const char *name;
    uint32_t dtype; /* enum piped_dtype */
    uint32_t rank;
    uint32_t dim[8];
    uint64_t offset, bytes; /* within input or output of a frame */
};

struct piped_stream_info {
    uint32_t credits, depth; /* frames the daemon takes; frames that keep its pipeline full */
    uint32_t slots;
    uint32_t input_count, output_count;
    const struct piped_tensor *inputs, *outputs;
    uint64_t input_bytes, output_bytes;
    uint32_t image_width, image_height; /* size that needs no resizing; 0: the input is no image */
};

struct piped_stream_stats {
    uint64_t submitted, answered; /* frames taken by piped_submit(); answers received */
    uint64_t resent;              /* frames sent again after a reconnect */
    uint64_t reordered;           /* answers that came before that of an earlier frame */
    uint64_t duplicated;          /* answers to frames that had none outstanding */
};

/* A frame in one of the stream's slots. The library owns it and its memory; the caller has it
 * between piped_acquire() and piped_submit(), and from piped_next() to piped_release(). */
struct piped_frame {
    /* set by piped_acquire() */
    void *input;       /* 64-byte aligned */
    size_t input_size; /* bytes there */
    /* set by the caller before piped_submit(); preset to 0 by piped_acquire() */
    size_t input_bytes;             /* 0: the whole input, or what width, height, stride say */
    uint32_t width, height, stride; /* images; 0: the stream's */
    uint64_t time_ns;               /* the caller's own, comes back */
    uint64_t deadline_ns;           /* CLOCK_MONOTONIC; 0: as the stream */
    void *user;                     /* the caller's own, comes back */
    /* set by piped_submit() */
    uint64_t number; /* 1, 2, ... */
    uint64_t submitted_ns;
    /* the answer */
    int status;       /* enum piped_status */
    const char *text; /* why, when status is not PIPED_OK; "" otherwise */
    const void *output;
    size_t output_bytes;
    uint64_t queue_ns, service_ns; /* waited in the daemon; computed */
    uint64_t done_ns;              /* CLOCK_MONOTONIC at the end of computing */
    uint64_t answered_ns;          /* CLOCK_MONOTONIC at the arrival of the answer */
    uint32_t epoch;                /* number of the plan */
};

/** piped_socket_path() - where the frames socket is looked for: $PIPED_RUNTIME_DIR/frames.sock, or
 * /run/piped/frames.sock. Return: 0, or -ENAMETOOLONG. */
PIPED_API int piped_socket_path(char *ret, size_t bytes);

/** piped_connect() - connects and shakes hands; waits for the daemon's WELCOME, at most
 * reconnect_ms. Return: 0; -ENOENT, -ECONNREFUSED, -EACCES (no daemon there); -EPROTO (no common
 * version); -ETIMEDOUT; -ENOMEM, -EMFILE ... */
PIPED_API int piped_connect(const struct piped_options *options, struct piped **ret);

/** piped_close() - closes all streams and the connection; unanswered frames are dropped. NULL is
 * allowed. Return: NULL. */
PIPED_API struct piped *piped_close(struct piped *p);

/** piped_fd() - a descriptor that stays the same over reconnects; readable: call piped_dispatch().
 * Use poll() or epoll for reading only. */
PIPED_API int piped_fd(const struct piped *p);

/** piped_dispatch() - sends and receives what can be; waits at most timeout_ms for anything to
 * happen. Collect results with piped_next() after it. Return: 1 something happened, 0 nothing,
 * -ENOTCONN: the daemon did not come back within reconnect_ms (all frames are answered). */
PIPED_API int piped_dispatch(struct piped *p, int timeout_ms);

/** piped_reconnects() - how often the connection was made anew. */
PIPED_API uint64_t piped_reconnects(const struct piped *p);
/** piped_server() - the daemon's name and version, "" before the first answer. */
PIPED_API const char *piped_server(const struct piped *p);

/** piped_stream_open() - opens a stream and its slots (shared memory, pre-faulted); waits for the
 * daemon's answer. Return: 0; -ENOENT (no such model), -EOPNOTSUPP (pixel format), -EBUSY,
 * -EINVAL, -EPERM, -EAGAIN (draining), -ENOTCONN, -ENOMEM. */
PIPED_API int piped_stream_open(struct piped *p, const struct piped_stream_options *options,
                                struct piped_stream **ret);
/** piped_stream_close() - frames that were not collected are dropped. Return: NULL. */
PIPED_API struct piped_stream *piped_stream_close(struct piped_stream *s);
/** piped_stream_info() - valid until the stream is closed. */
PIPED_API const struct piped_stream_info *piped_stream_info(const struct piped_stream *s);
PIPED_API void piped_stream_stats(const struct piped_stream *s, struct piped_stream_stats *ret);

/** piped_acquire() - a free slot. Never blocks. Return: 0, or -EAGAIN: all are in use (collect and
 * release first). */
PIPED_API int piped_acquire(struct piped_stream *s, struct piped_frame **ret);
/** piped_submit() - hands the frame over; the caller leaves its memory alone until piped_next().
 * Never blocks. Return: 0; -EINVAL (sizes; the caller still has the frame), -ENOTCONN. */
PIPED_API int piped_submit(struct piped_stream *s, struct piped_frame *f);
/** piped_next() - the next answered frame in order of submission. Never blocks. Return: 0, or
 * -EAGAIN: none is ready. */
PIPED_API int piped_next(struct piped_stream *s, struct piped_frame **ret);
/** piped_wait() - like piped_next(), but dispatches until there is one. Return: 0; -EAGAIN: nothing
 * is outstanding; -ETIMEDOUT; -EINTR. */
PIPED_API int piped_wait(struct piped_stream *s, int timeout_ms, struct piped_frame **ret);
/** piped_release() - gives the slot back (after piped_next(), or instead of piped_submit()). */
PIPED_API void piped_release(struct piped_stream *s, struct piped_frame *f);
/** piped_cancel() - the frame is no longer wanted; it still comes back, usually PIPED_CANCELLED. */
PIPED_API void piped_cancel(struct piped_stream *s, struct piped_frame *f);

/** piped_infer() - submits and waits for this frame's answer. Return: 0 (see f->status; the caller
 * has the frame); -EBUSY: other frames of the stream are outstanding; what piped_submit() and
 * piped_wait() return (after -ETIMEDOUT or -EINTR the frame is still outstanding). */
PIPED_API int piped_infer(struct piped_stream *s, struct piped_frame *f, int timeout_ms);

/** piped_status_name() - "ok", "invalid_argument", ... */
PIPED_API const char *piped_status_name(int status);
/** piped_last_error() - what this thread's last failed call says; valid until its next call. */
PIPED_API const char *piped_last_error(void);

#ifdef __cplusplus
}
#endif
#endif
