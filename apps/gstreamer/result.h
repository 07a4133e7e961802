/* SPDX-License-Identifier: Apache-2.0 */
/** apps/gstreamer/result.h - answers: made once, shared by all buffers that have them, as JSON */
#pragma once

#include "apps/gstreamer/piped_gst.h"
#include "ipc/decode/piped_decode.h"
#include "ipc/piped.h"

/** pgst_result_new() - copies an answer. @f: NULL: it was not sent, as @status says. @decoded: may
 * be NULL; @raw: with the outputs. Return: one reference, the caller's. */
PipedResult *pgst_result_new(const char *model, int status, const struct piped_stream *s,
                             const struct piped_frame *f, const struct piped_decoded *decoded,
                             gboolean raw);
void pgst_result_unref(PipedResult *r);
/** pgst_result_status() - Return: the name of its status. */
const char *pgst_result_status(const PipedResult *r);
/** pgst_result_json() - Return: one line, g_free() by the caller. @number: of the frame, from 0 */
char *pgst_result_json(const PipedResult *r, guint64 number, const GstBuffer *buffer);
/** pgst_result_put() - puts it on a writable buffer, in place of the one there. Takes the
 * reference. */
void pgst_result_put(GstBuffer *buffer, PipedResult *r);
