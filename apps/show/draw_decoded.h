/* SPDX-License-Identifier: Apache-2.0 */
/** apps/show/draw_decoded.h - draws what a decoder found: boxes, labels, points, masks, texts */
#pragma once

#include "ipc/decode/piped_decode.h"

struct canvas;

/** shw_draw() - draws on the picture that the result is of, which may have been scaled since.
 * Threads: any. */
void shw_draw(struct canvas *c, const struct piped_decoded *r);
