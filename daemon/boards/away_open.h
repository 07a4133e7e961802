/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/boards/away_open.h - opens a stream to piped-link on a work thread, where libpiped waits
 *
 * Threads: the loop thread calls, and is called back.
 */
#pragma once

#include <stddef.h>

#define DMN_AWAY_WHY_MAX 256u

struct dmn_away_opening;
struct dmn_work;
struct piped;
struct piped_stream;

/* @p, @s: owned by the callee from now on; both NULL: it failed. @why: borrowed, a sentence. */
typedef void (*dmn_away_opened_fn)(void *ctx, struct piped *p, struct piped_stream *s,
                                   const char *why);

/* The stream that is wanted; texts are copied. */
struct dmn_away_stream {
    const char *path; /* of the socket */
    const char *model;
    unsigned pixfmt;                  /* of its frames; 0: tensors */
    size_t input_bytes, output_bytes; /* of a frame; a picture has no more than its tensor */
};

/** dmn_away_open() - opens a stream. @opened: called once, later. Return: borrowed until @opened;
 * NULL: no memory. */
struct dmn_away_opening *dmn_away_open(struct dmn_work *w, const struct dmn_away_stream *of,
                                       dmn_away_opened_fn opened, void *ctx);
/** dmn_away_open_leave() - @opened is not called any more. Takes NULL. Return: NULL. */
struct dmn_away_opening *dmn_away_open_leave(struct dmn_away_opening *o);
