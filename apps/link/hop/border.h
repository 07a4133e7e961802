/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/link/hop/border.h - the border of a frame, out of a segment's answer onto the wire and off
 * the wire into the next segment's input
 *
 * Between two boards f32 tensors go in the encoding of the sending hop. What never does: the
 * model's input, the final answer, and what a board sends to itself. A tensor that a segment only
 * hands on goes as it came; so the model's input also passes later borders as it is.
 *
 * Threads: any, one at a time for each border.
 */
#pragma once

#include "apps/link/transport/transport.h"
#include "apps/link/wire/messages.h"
#include "ipc/boards/border_encoding.h"
#include "ipc/piped.h"

/* Of one frame in a segment; all zeros: of none. */
struct hop_border {
    uint8_t *bytes; /* owned: [output_bytes / 2]; kept for the next frame; NULL: not yet used */
    bool encoded;   /* bytes, scale and zero are of this frame */
    uint32_t came_as_is; /* bits of the segment's inputs */
    float scale[LNK_PARTS_MAX];
    int32_t zero[LNK_PARTS_MAX];
};

/** hop_border_next() - for another frame. */
void hop_border_next(struct hop_border *b);
void hop_border_deinit(struct hop_border *b);

/**
 * hop_border_take() - checks the tensors of a FRAME, which are not trusted, and writes them where
 * the daemon wants them
 * @may: the encoding of the hop that sends; BRD_AS_IS: tensors must come as they are
 * @f: a slot of the stream
 * Return: 0; PIPED_INVALID_ARGUMENT.
 */
int hop_border_take(struct hop_border *b, const struct piped_stream_info *info,
                    const struct lnk_message *m, enum brd_encoding may, struct piped_frame *f);

/** hop_border_picture() - the same of a FRAME that is a picture. */
int hop_border_picture(const struct lnk_message *m, struct piped_frame *f);

/**
 * hop_border_put() - the tensors of an answer as those of a message
 * @as: BRD_AS_IS: no tensor is encoded; so it is without memory
 * @m: its tensors are set. @ret: as many ranges: into the slot, or into @b until hop_border_next().
 * Return: how many tensors.
 */
size_t hop_border_put(struct hop_border *b, const struct piped_stream_info *info,
                      const struct piped_frame *f, enum brd_encoding as, struct lnk_message *m,
                      struct lnk_bytes *ret);
