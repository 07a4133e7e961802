/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/boards/route_window.h - how many frames of a route may be on their way, and how large
 * pictures among them may be
 *
 * Window = sum over hops of the frames that keep its boards busy, twice (one pipeline runs while
 * another is on its way) + sum over the borders between boards of the frames that the link holds.
 * So neither a long chain nor a slow link starves its boards. piped-link uses it (apps/link/), and
 * piped when it judges plans (daemon/boards/).
 *
 * So many may be on their way. Fewer keep a route full, and the daemon hands over no more: others
 * wait in its fair queue. By Little's law those are (rate x time of a frame alone): a hop has at
 * most those that it computes at once. Beside them as many wait as keep the bottleneck busy, and
 * only there, as in the pipeline of one board: so a frame waits for no larger part of its own time
 * over boards than without. The rate is that of the bottleneck, by what hops and links were
 * measured to take; or that of the answers, if they come more slowly while the route is full.
 *
 * A link of a + b x bytes holds the frame that is being sent, and those that were sent within a:
 * frames that take less than 1 ms to send count as that long, because boards compute no faster.
 *
 * Pure. Threads: any.
 */
#pragma once

#include "base/pixfmt.h"

#define BRD_WINDOW_BYTES (256ull << 20) /* of a route's frames at one border */
#define BRD_WINDOW_TIMES 2u             /* the frames that keep a pipeline full */
#define BRD_LINK_FRAMES_MAX 64.0
#define BRD_LINK_FRAME_NS 1e6

/** brd_link_frames() - Return: frames that a link holds, 1 to 1 + BRD_LINK_FRAMES_MAX. */
static inline double brd_link_frames(double ns, double ns_per_byte, double bytes)
{
    double busy_ns = ns_per_byte * bytes;
    double held = ns / (busy_ns > BRD_LINK_FRAME_NS ? busy_ns : BRD_LINK_FRAME_NS);

    return 1 + (held < BRD_LINK_FRAMES_MAX ? held : BRD_LINK_FRAMES_MAX);
}

/* A picture goes to other boards as it is if it has no more bytes than the tensor that it becomes:
 * so much have the slots of a stream between piped and piped-link. */
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
