/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/boards/picture_room.h - the largest picture for which a stream between piped and piped-link
 * has slots
 *
 * A picture goes to other boards as it is if it has no more bytes than the tensor that it becomes.
 *
 * Pure. Threads: any.
 */
#pragma once

#include "base/pixfmt.h"

#define BRD_PICTURE_WIDTH 1024u

/** brd_picture_room() - Return: the height of a picture of BRD_PICTURE_WIDTH that has @bytes or a
 * little more. */
static inline uint32_t brd_picture_room(enum pixfmt f, uint64_t bytes)
{
    uint64_t row = (uint64_t)pixfmt_row_bytes(f, BRD_PICTURE_WIDTH);
    uint64_t rows = (bytes + row - 1) / row;

    return (uint32_t)(rows + rows % 2);
}

/** brd_picture_bytes() - Return: of a picture without gaps between rows; 0: impossible. */
static inline uint64_t brd_picture_bytes(uint32_t f, uint32_t width, uint32_t height)
{
    return f == 0 || f >= PIXFMT_COUNT || width > UINT16_MAX || height > UINT16_MAX
               ? 0
               : pixfmt_image_bytes((enum pixfmt)f, width, height,
                                    pixfmt_row_bytes((enum pixfmt)f, width));
}
