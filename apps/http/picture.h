/* SPDX-License-Identifier: Apache-2.0 */
/** apps/http/picture.h - infer requests whose body is a JPEG or PNG file. Threads: any. */
#pragma once

#include "apps/http/pool.h"
#include "apps/http/tensors.h"
#include "apps/picture/picture.h"

/** web_picture_settle() - decides by its first bytes what a body is that may be a picture.
 * Return: false: @r is the error. */
bool web_picture_settle(struct web_request *q, struct web_reply *r);
/** web_picture_read() - reads the picture's size, and what it takes. @ret: borrows the body.
 * Return: false: @r is the error. */
bool web_picture_read(const struct web_request *q, struct picture *ret, struct web_need *ret_need,
                      struct web_reply *r);
/** web_picture_decode() - into the frame. Return: as web_picture_read(). */
bool web_picture_decode(const struct picture *img, struct piped_frame *f, struct web_reply *r);
