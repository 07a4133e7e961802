/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/common/arena.h - places values in a frame's arena
 *
 * Two values share bytes only if their lifetimes, in ops, do not overlap. Largest first, each into
 * the tightest gap between those that live at the same time.
 */
#pragma once

#include <stddef.h>

#define MDL_ARENA_ALIGN 64u

/* A value that wants room. */
struct mdl_room {
    size_t bytes;
    size_t first_op, last_op; /* it lives from the one to the other, both included */
    size_t offset;            /* set by mdl_arena_place(): a multiple of MDL_ARENA_ALIGN */
};

/**
 * mdl_arena_place() - sets the offset of each of @rooms
 * @bytes_max: limit of the arena. @ret_bytes: its size
 *
 * The result depends on the order of @rooms only where sizes are equal. Return: 0, -E2BIG past the
 * limit, -ENOMEM.
 */
int mdl_arena_place(struct mdl_room *rooms, size_t count, size_t bytes_max, size_t *ret_bytes);
