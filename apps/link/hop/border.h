/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/link/hop/border.h - the border of a frame, out of a segment's answer onto the wire and off
 * the wire into the next segment's input
 *
 * Threads: any.
 */
#pragma once

#include "apps/link/transport/transport.h"
#include "apps/link/wire/messages.h"
#include "ipc/piped.h"

/**
 * hop_border_take() - checks the tensors of a FRAME, which are not trusted, and writes them where
 * the daemon wants them
 * @f: a slot of the stream
 * Return: 0; PIPED_INVALID_ARGUMENT.
 */
int hop_border_take(const struct piped_stream_info *info, const struct lnk_message *m,
                    struct piped_frame *f);

/** hop_border_picture() - the same of a FRAME that is a picture. */
int hop_border_picture(const struct lnk_message *m, struct piped_frame *f);

/**
 * hop_border_put() - the tensors of an answer as those of a message
 * @m: its tensors are set. @ret: as many ranges, into the slot. Return: how many tensors.
 */
size_t hop_border_put(const struct piped_stream_info *info, const struct piped_frame *f,
                      struct lnk_message *m, struct lnk_bytes *ret);
