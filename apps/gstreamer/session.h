/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/gstreamer/session.h - a connection with one stream, shared by an element and by buffers
 *
 * A slot of the stream may be the memory of a buffer, which may live longer than what the element
 * does with it: the last of all users closes the connection.
 *
 * Threads: any; the lock gives libpiped one at a time. Nothing here waits for an answer; only
 * pgst_session_open() waits.
 */
#pragma once

#include "apps/gstreamer/formats.h"
#include "apps/gstreamer/piped_gst.h"
#include "ipc/decode/piped_decode.h"

/* Holds the lock of @what, a pointer, to the end of the block. */
#define PGST_LOCKED(what)                                                                          \
    g_autoptr(GMutexLocker) pgst_locked_ G_GNUC_UNUSED = g_mutex_locker_new(&(what)->lock)

struct pgst_settings {
    char *socket, *model; /* owned; NULL: the default */
    guint policy, deadline_ms, priority, in_flight, timeout_ms;
};

struct pgst_session {
    gint references;
    GMutex lock;
    struct piped *client;
    struct piped_stream *stream;
    struct piped_decoder *decoder; /* NULL: the model does not say how */
    char *undecoded;               /* owned: why there is none, or no result; until it is said */
    gboolean said_trouble;         /* since it lost its daemon */
    char *model;                   /* of the settings */
    guint pooled, pooled_most;     /* slots that are memory of buffers */
    /* constant */
    int fd;
    GstVideoInfo info;
    const struct pgst_format *format;
    guint stride;
    struct pgst_colours colours;
};

/* A slot that is the memory of a buffer. */
struct pgst_slot {
    struct pgst_session *session; /* a reference */
    struct piped_frame *frame;
    gboolean submitted; /* once only; by the element's streaming thread */
};

/** pgst_session_open() - connects and opens a stream for pictures of @info, which has one of our
 * formats. Return: 0, the caller has the reference; -ECONNREFUSED: nobody listens at the socket;
 * another -errno; piped_last_error() says why. */
int pgst_session_open(const struct pgst_settings *set, const GstVideoInfo *info,
                      struct pgst_session **ret);
void pgst_session_unref(struct pgst_session *s); /* @s may be NULL */

/** pgst_session_acquire() - Return: 0 with a free slot to copy to; -EAGAIN. */
int pgst_session_acquire(struct pgst_session *s, struct piped_frame **ret);
/** pgst_session_submit() - Return: 0; -errno, and piped_last_error() says why. */
int pgst_session_submit(struct pgst_session *s, struct piped_frame *f);
void pgst_session_cancel(struct pgst_session *s, struct piped_frame *f);
void pgst_session_release(struct pgst_session *s, struct piped_frame *f);
/** pgst_session_next() - the next answer, if it is there. @raw: as of pgst_result_new(). Return:
 * NULL: not yet. */
PipedResult *pgst_session_next(struct pgst_session *s, gboolean raw);
/** pgst_session_undecoded() - Return: why answers are not decoded, once; the caller's. NULL: they
 * are, or it was told. */
char *pgst_session_undecoded(struct pgst_session *s);
/** pgst_session_trouble() - Return: why the session has no daemon now, once until it has one again;
 * the caller's. NULL: it has one, or it was told. */
char *pgst_session_trouble(struct pgst_session *s);
guint64 pgst_session_reconnects(struct pgst_session *s);

/** pgst_session_slot_of() - Return: the slot that the buffer's memory is, if the daemon can read
 * it there; else NULL. */
struct pgst_slot *pgst_session_slot_of(struct pgst_session *s, GstBuffer *buffer);

/**
 * pgst_pool_new() - buffers whose memory is a slot: a source writes where the daemon reads
 *
 * It never waits: when all slots are in use it hands out usual memory, from which a picture is
 * copied. A slot is free again when nobody has the memory any more.
 *
 * Return: a pool on @s, of which it keeps a reference.
 */
GstBufferPool *pgst_pool_new(struct pgst_session *s);

/* result.c: answers, made once, shared by all buffers that have them; as JSON */
/** pgst_result_new() - copies an answer. @f: NULL: it was not sent, as @status says. @decoded: may
 * be NULL; @raw: with the outputs. Return: one reference, the caller's. */
PipedResult *pgst_result_new(const char *model, int status, const struct piped_stream *s,
                             const struct piped_frame *f, const struct piped_decoded *decoded,
                             gboolean raw);
void pgst_result_unref(PipedResult *r);
/** pgst_result_status() - Return: the name of its status. */
const char *pgst_result_status(const PipedResult *r);
/** pgst_result_json() - Return: one line, g_free() by the caller. @number: of the frame, from 0 */
char *pgst_result_json(const PipedResult *r, guint64 number, const GstBuffer *buffer);
/** pgst_result_put() - puts it on a writable buffer, in place of the one there. Takes the
 * reference. */
void pgst_result_put(GstBuffer *buffer, PipedResult *r);
