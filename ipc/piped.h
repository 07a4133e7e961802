/* SPDX-License-Identifier: Apache-2.0 */
/**
 * piped.h - libpiped: sends frames to the piped daemon and returns the answers
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
 * piped_next() returns every frame that piped_submit() accepted, exactly once and in the order of
 * submission, even if the daemon is restarted in between. The library keeps the input until the
 * answer is there. After a restart it connects, opens its streams, and sends frames without an
 * answer again. If it finds no daemon for reconnect_ms, such frames return as PIPED_UNAVAILABLE.
 *
 * Threads: one thread at a time may use a connection and what belongs to it. Different connections
 * are independent; there is no global state.
 *
 * Blocking: only piped_connect(), piped_stream_open() and functions with a timeout wait. timeout_ms
 * -1 waits for ever.
 *
 * Errors: functions return a negative errno; piped_last_error() returns a sentence.
 *
 * Signals and fork: SIGPIPE is never raised. Every descriptor is close-on-exec. After fork, a child
 * that does not exec must not touch the connection.
 *
 * Versions: a struct that the caller fills begins with its size, so later versions can add fields.
 * NULL, or a struct of zeros but for its size, means all defaults.
 */
#ifndef PIPED_H
#define PIPED_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PIPED_API __attribute__((visibility("default")))

/* What became of a frame; piped-protocol(7) explains the numbers. */
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
    PIPED_NV12 = 4, /* as PIPED_YUYV, read as BT.601 of limited range: luma 16 to 235 */
    PIPED_YUYV = 5
};

enum piped_policy {
    PIPED_BLOCK = 0,  /* every frame is computed, unless the model's own policy is LATEST */
    PIPED_LATEST = 1, /* a new frame replaces the waiting one, which returns PIPED_DROPPED */
    PIPED_REJECT = 2  /* a frame that finds no room returns PIPED_RESOURCE_EXHAUSTED */
};

enum piped_dtype {
    PIPED_F32 = 1,
    PIPED_I32 = 2,
    PIPED_I64 = 3,
    PIPED_U8 = 4,
    PIPED_I8 = 5,
    PIPED_BOOL = 6,
    PIPED_F16 = 7 /* IEEE binary16; only where input_dtype or output_dtype ask for it */
};

struct piped;        /* a connection */
struct piped_stream; /* frames to one model, answered in order */

#define PIPED_RECONNECT_NEVER UINT32_MAX

struct piped_options {
    size_t size;           /* sizeof(struct piped_options) */
    const char *path;      /* the frames socket; NULL: piped_socket_path() */
    const char *client;    /* name for the daemon's logs; NULL: the program's */
    uint32_t reconnect_ms; /* how long to look for a daemon that went away; 0: 30000 */
    uint32_t answer_ms;    /* how long piped_stream_open() waits; 0: as long as it is connected */
    uint32_t fail_fast;    /* not 0: do not wait for a service that fails to start again */
};

struct piped_stream_options {
    size_t size;
    const char *model;      /* NULL or "": the default model */
    uint32_t pixfmt;        /* enum piped_pixfmt */
    uint32_t policy;        /* enum piped_policy */
    uint32_t credits;       /* frames the daemon may hold at once; 0: the daemon decides */
    uint32_t priority;      /* 0..3 */
    uint64_t deadline_ns;   /* of each frame, from its arrival at the daemon; 0: none */
    uint32_t slots;         /* frames that may be acquired at once; 0: as credits, to 256 MiB */
    uint32_t width, height; /* images: the largest size; 0: the model's */
    uint32_t stride;        /* images: of the largest size; 0: no gap between rows */
    uint32_t inline_frames; /* not 0: send bytes through the socket, not shared memory */
    uint32_t unused;        /* 0 */
    /* As what the model's f32 tensors are sent and returned; other tensors stay as they are. 0:
     * PIPED_F32. PIPED_F16: half the bytes; the daemon computes in f32 all the same, and rounds
     * results to nearest even, beyond f16 to infinity. Inputs need PIPED_TENSOR. */
    uint32_t input_dtype, output_dtype;
};

struct piped_tensor {
    const char *name;
    uint32_t dtype; /* enum piped_dtype */
    uint32_t rank;
    uint32_t dim[8];
    uint64_t offset, bytes; /* within the input or output of a frame */
};

struct piped_stream_info {
    uint32_t credits; /* frames the daemon accepts at once */
    uint32_t depth;   /* frames that keep its pipeline full; each answer brings the present value */
    uint32_t slots;
    uint32_t input_count, output_count;
    const struct piped_tensor *inputs, *outputs;
    uint64_t input_bytes, output_bytes;
    uint32_t image_width, image_height; /* needs no resizing; 0: the input is not an image */
};

struct piped_stream_stats {
    uint64_t submitted, answered; /* frames accepted by piped_submit(); answers received */
    uint64_t resent;              /* frames sent again after a reconnect */
    uint64_t reordered;           /* answers that came before the answer of an earlier frame */
    uint64_t duplicated;          /* answers to frames that waited for none */
};

/* A frame in one of the stream's slots. The library owns it and its memory. The caller may use it
 * from piped_acquire() to piped_submit(), and from piped_next() to piped_release(). */
struct piped_frame {
    /* set by piped_acquire() */
    void *input;       /* 64-byte aligned */
    size_t input_size; /* bytes there */
    /* set by the caller before piped_submit(); piped_acquire() presets them to 0 */
    size_t input_bytes;             /* 0: all of it; images: as width, height and stride say */
    uint32_t width, height, stride; /* images; width and height 0: the stream's, stride too */
    uint64_t time_ns;               /* for the caller, returned with the answer */
    uint64_t deadline_ns;           /* CLOCK_MONOTONIC; 0: the stream's */
    void *user;                     /* for the caller, returned with the answer */
    /* set by piped_submit() */
    uint64_t number; /* 1, 2, ... */
    uint64_t submitted_ns;
    /* the answer */
    int status;       /* enum piped_status */
    const char *text; /* the reason if status is not PIPED_OK, else "" */
    const void *output;
    size_t output_bytes;
    uint64_t queue_ns, service_ns; /* time it waited in the daemon; time it was computed */
    uint64_t done_ns;              /* CLOCK_MONOTONIC when it was computed */
    uint64_t answered_ns;          /* CLOCK_MONOTONIC when the answer arrived */
    uint32_t epoch;                /* number of the plan */
};

/**
 * piped_socket_path() - the default path: $PIPED_RUNTIME_DIR/frames.sock, or /run/piped/frames.sock
 *
 * @ret: the caller's; the path is written with its NUL     @bytes: room there
 *
 * Threads: any. Return: 0; -ENAMETOOLONG.
 */
PIPED_API int piped_socket_path(char *ret, size_t bytes);

/**
 * piped_connect() - connects and waits at most reconnect_ms for the daemon's greeting
 *
 * @options: borrowed during the call; NULL: all defaults
 * @ret: the connection; the caller owns it until piped_close()
 *
 * A daemon that has no place for one more connection refuses at once; piped_last_error() names the
 * limit. So does a service that fails to start: it names file, line and key. Once connected, the
 * library waits for a place, or for the service, as for a daemon that went away; but it tries a
 * service that fails to start after pauses of 1 to 8 s, since each connection starts it. With
 * @options->fail_fast it gives up at once then: all frames return.
 *
 * Threads: any. Return: 0; -ENOENT, -ECONNREFUSED or -EACCES (cannot connect); -EHOSTDOWN (the
 * service failed to start); -EPROTO (refused, or no common version); -ETIMEDOUT; -ENOMEM, ...
 */
PIPED_API int piped_connect(const struct piped_options *options, struct piped **ret);

/**
 * piped_close() - closes all streams and the connection; drops unanswered frames
 *
 * @p: the connection, which is gone afterwards with its streams and frames; may be NULL
 *
 * Return: NULL.
 */
PIPED_API struct piped *piped_close(struct piped *p);

/**
 * piped_fd() - a descriptor for poll() or epoll, for reading only
 *
 * When it is readable, call piped_dispatch(). It stays the same over reconnects.
 *
 * @p: the connection, which owns the descriptor: do not close it
 *
 * Return: the descriptor.
 */
PIPED_API int piped_fd(const struct piped *p);

/**
 * piped_dispatch() - sends and receives; waits at most timeout_ms until there is something to do
 *
 * Then collect answers with piped_next().
 *
 * @p: the connection     @timeout_ms: 0: does not wait; -1: for ever
 *
 * Return: 1: something was done; 0: nothing; -ENOTCONN: the daemon did not come back within
 * reconnect_ms (all frames have returned).
 */
PIPED_API int piped_dispatch(struct piped *p, int timeout_ms);

/**
 * piped_reconnects() - how often the library has reconnected
 *
 * @p: the connection
 *
 * Return: their number.
 */
PIPED_API uint64_t piped_reconnects(const struct piped *p);

/**
 * piped_server() - the daemon's name and version
 *
 * @p: the connection
 *
 * Return: a text that the connection owns, valid until it reconnects; "" before the greeting.
 */
PIPED_API const char *piped_server(const struct piped *p);

/**
 * piped_trouble() - why the library has no daemon now and looks for one, to tell people who wait
 *
 * @p: the connection
 *
 * Return: what the daemon said when it last closed a connection, such as that the service fails to
 * start; "" while it is connected, or if the daemon gave no reason. The connection owns the text,
 * which is valid until the next call of a function that sends, receives or waits.
 */
PIPED_API const char *piped_trouble(const struct piped *p);

/**
 * piped_stream_open() - opens a stream, allocates its slots (shared memory, pre-faulted), and waits
 * for the daemon's answer
 *
 * @p: the connection     @options: borrowed during the call; NULL: all defaults
 * @ret: the stream; the caller owns it until piped_stream_close() or piped_close()
 *
 * A daemon that is stopping counts as one that went away: the stream is opened at the next.
 *
 * Return: 0; -ENOENT (no such model), -EOPNOTSUPP (pixel format; f16 with a model without f32
 * tensors, or with a daemon that is too old), -EBUSY (a limit), -EINVAL, -EPERM, -EAGAIN
 * (unavailable for another reason), -ENOTCONN, -ETIMEDOUT (answer_ms), -ENOMEM.
 */
PIPED_API int piped_stream_open(struct piped *p, const struct piped_stream_options *options,
                                struct piped_stream **ret);

/**
 * piped_stream_close() - closes a stream; drops frames that were not collected
 *
 * @s: the stream, which is gone afterwards with its frames and their memory; may be NULL
 *
 * Return: NULL.
 */
PIPED_API struct piped_stream *piped_stream_close(struct piped_stream *s);

/**
 * piped_stream_info() - what the daemon and the model said: sizes, tensors, credits
 *
 * @s: the stream
 *
 * Return: a struct that the stream owns, valid until it is closed.
 */
PIPED_API const struct piped_stream_info *piped_stream_info(const struct piped_stream *s);

/**
 * piped_stream_description() - how to decode outputs, for piped_decoder_new()
 *
 * JSON: the key `output` of the model's sidecar (of classifiers without one, how to decode
 * classes), the size of its input, how pictures are fitted to it, and its labels.
 *
 * It is that of the frame with PIPED_OK that piped_next(), piped_wait() or piped_infer() gave last,
 * before the first one that of the model when the stream was opened. A model may be replaced while
 * its clients go on, with another sidecar: piped_decoder_follow() notices that.
 *
 * @s: the stream
 *
 * Return: a text that the stream owns, valid until it gives the next frame or is closed; "": the
 * sidecar does not say, or the daemon is older than this.
 */
PIPED_API const char *piped_stream_description(const struct piped_stream *s);

/**
 * piped_rows() - how many rows of an output are valid in an answered frame with PIPED_OK
 *
 * The length of some outputs (boxes that were found) depends on the picture: dim[*ret_dim] of its
 * struct piped_tensor is the largest, and zeros follow the valid rows.
 *
 * @s: the stream     @f: one of its frames, from piped_next() on     @output: its number, from 0
 * @ret_dim: which dimension varies; UINT32_MAX: none; may be NULL
 *
 * Return: their number; where the length is fixed, dim[0] (1 for a scalar).
 */
PIPED_API uint64_t piped_rows(const struct piped_stream *s, const struct piped_frame *f,
                              uint32_t output, uint32_t *ret_dim);

/**
 * piped_stream_stats() - counters of a stream since it was opened
 *
 * @s: the stream     @ret: the caller's; filled
 */
PIPED_API void piped_stream_stats(const struct piped_stream *s, struct piped_stream_stats *ret);

/**
 * piped_acquire() - takes a free slot
 *
 * @s: the stream     @ret: the frame, which the library owns; the caller may use it until
 * piped_submit() or piped_release()
 *
 * Never blocks. Return: 0; -EAGAIN: all are in use (collect and release first).
 */
PIPED_API int piped_acquire(struct piped_stream *s, struct piped_frame **ret);

/**
 * piped_submit() - hands a frame over
 *
 * @s: the stream     @f: of piped_acquire(); the caller must not touch it until piped_next()
 *
 * Never blocks. Return: 0; -EINVAL (wrong sizes) or -ENOTCONN: the caller still has the frame.
 */
PIPED_API int piped_submit(struct piped_stream *s, struct piped_frame *f);

/**
 * piped_next() - returns the next frame, in order of submission, if it is answered
 *
 * @s: the stream     @ret: the frame, which the caller may use until piped_release()
 *
 * Never blocks. Return: 0; -EAGAIN: it is not.
 */
PIPED_API int piped_next(struct piped_stream *s, struct piped_frame **ret);

/**
 * piped_wait() - as piped_next(), but dispatches until the frame is answered
 *
 * @s: the stream     @timeout_ms: -1: for ever     @ret: as of piped_next()
 *
 * Return: 0; -EAGAIN: no frame is outstanding; -ETIMEDOUT; -EINTR.
 */
PIPED_API int piped_wait(struct piped_stream *s, int timeout_ms, struct piped_frame **ret);

/**
 * piped_release() - frees the slot, after piped_next() or instead of piped_submit()
 *
 * @s: the stream     @f: the frame, which the caller must not use any more
 */
PIPED_API void piped_release(struct piped_stream *s, struct piped_frame *f);

/**
 * piped_cancel() - cancels a frame. It still returns, usually as PIPED_CANCELLED
 *
 * @s: the stream     @f: a frame that was submitted
 */
PIPED_API void piped_cancel(struct piped_stream *s, struct piped_frame *f);

/**
 * piped_infer() - submits a frame and waits for its answer
 *
 * @s: the stream     @f: of piped_acquire(); afterwards as of piped_next()
 * @timeout_ms: -1: for ever
 *
 * Return: 0: see f->status; -EBUSY: other frames of the stream are outstanding; else as
 * piped_submit() and piped_wait(). After -ETIMEDOUT or -EINTR the frame is still outstanding.
 */
PIPED_API int piped_infer(struct piped_stream *s, struct piped_frame *f, int timeout_ms);

/**
 * piped_status_name() - the name of a status, as in messages
 *
 * @status: enum piped_status
 *
 * Threads: any. Return: a constant: "ok", "invalid_argument", ...
 */
PIPED_API const char *piped_status_name(int status);

/**
 * piped_last_error() - why this thread's last failed call failed
 *
 * Threads: any. Return: a sentence, valid until this thread's next call.
 */
PIPED_API const char *piped_last_error(void);

#ifdef __cplusplus
}
#endif
#endif
