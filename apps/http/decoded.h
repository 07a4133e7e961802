/* SPDX-License-Identifier: Apache-2.0 */
/** apps/http/decoded.h - what a model's outputs mean, as its sidecar says. Threads: any; the
 * holder of the place. */
#pragma once

#include "apps/http/pool.h"
#include "apps/http/reply.h"
#include "ipc/decode/piped_decode.h"

/** web_decoded_ready() - finds out how to decode the answers of the place's open stream. Return:
 * true; false: @r is the error. */
bool web_decoded_ready(struct web_place *place, enum web_form form, struct web_reply *r);
/** web_decoded() - decodes a frame that was answered with PIPED_OK. @ret: the place's, until its
 * next frame. Return: as web_decoded_ready(). */
bool web_decoded(struct web_place *place, enum web_form form, const struct piped_stream *s,
                 const struct piped_frame *f, const struct piped_decoded **ret,
                 struct web_reply *r);
