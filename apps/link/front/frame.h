/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/link/front/frame.h - a frame of the front's clients, and who gets it
 *
 * Threads: the front's.
 */
#pragma once

#include "base/base.h"
#include "ipc/boards/board_state.h"

/* A picture instead of tensors, without gaps between rows. */
struct front_picture {
    uint32_t pixfmt; /* enum pixfmt; 0: tensors */
    uint32_t width, height;
    uint64_t bytes;
};

/* A frame of a client: the front's memory, until front_answer(). */
struct front_frame {
    const char *model;    /* as in the routes */
    const uint8_t *input; /* input tensors back to back, see front_offset(), 64-byte aligned; or a
                             picture, anywhere */
    struct front_picture picture;
    uint8_t *output;      /* the same for outputs: write there before front_answer(..., 0, ...) */
    bool theirs;          /* both are client memory: this thread alone may touch it, and no system
                             call, because pages may vanish (ipc/server/mapped_memory.h) */
    uint64_t deadline_ns; /* CLOCK_MONOTONIC; 0: none */
    bool gone;            /* nobody wants the answer any more, but front_answer() is still due */
    void *user;           /* of the listener; NULL at first */
};

struct front_listener {
    void *user;
    /* A frame came; called by front_dispatch() only. It may call front_answer(), for any frame, and
     * front_models(). Return: 0: taken, front_answer() is due; else a status of the protocol (enum
     * ipc_status), which refuses it. */
    int (*frame)(void *user, struct front_frame *f);
    /* A frame that it has is gone: its client left, or cancelled it. May be NULL; calls nothing of
     * the front. */
    void (*gone)(void *user, struct front_frame *f);
    /* How many frames of a model one user may have with the listener; more wait in their sockets.
     * May be NULL: as many as they like. */
    uint32_t (*share)(void *user, const char *model);
    /* The socket's file had vanished; called by front_dispatch(). @why: NULL: it was made again;
     * else why not, said once. May be NULL. */
    void (*vanished)(void *user, const char *path, const char *why);
};

/** front_offset() - where tensor @i of @count begins in a frame's input or output: back to back,
 * each at a multiple of 64. Return: the offset; for @i == @count: all bytes. */
static inline size_t front_offset(const struct brd_tensor *t, size_t count, size_t i)
{
    size_t at = 0;

    for (size_t k = 0; k < count; k++) {
        at = base_align_up(at, 64);
        if (k == i) {
            break;
        }
        at += t[k].bytes;
    }
    return at;
}
