/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/link/hop/segment_open.h - a stream of the daemon here, opened on a thread of its own
 *
 * libpiped waits when it connects and opens, for as long as the daemon does not answer. The loop
 * polls a descriptor instead; what it no longer waits for ends by itself when the daemon answers or
 * ends. Threads: the loop, but for what is in here.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ipc/piped.h"

#define SEGMENT_SLOTS_MAX 32u
#define SEGMENT_OPEN_WHY_BYTES 256u

struct segment_opening;

struct segment_opened {
    int rc;                      /* 0 or -errno */
    bool reached;                /* the daemon */
    struct piped *piped;         /* the taker's, as the stream; rc 0 */
    struct piped_stream *stream; /* with as many slots as fit */
    char why[SEGMENT_OPEN_WHY_BYTES];
};

/** segment_open() - begins. @path: of the frames socket. @pixfmt: of its frames, 0: tensors.
 * Return: 0, -errno. */
int segment_open(const char *path, const char *model, uint32_t pixfmt,
                 struct segment_opening **ret);
/** segment_open_fd() - readable when it is over. */
int segment_open_fd(const struct segment_opening *o);
/** segment_open_take() - Return: false: not yet; true: it is over, and @o is freed. */
bool segment_open_take(struct segment_opening *o, struct segment_opened *ret);
/** segment_open_leave() - nobody waits any more. @o may be NULL. Return: NULL. */
struct segment_opening *segment_open_leave(struct segment_opening *o);
