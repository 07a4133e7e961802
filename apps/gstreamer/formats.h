/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/gstreamer/formats.h - GStreamer's formats of pictures as piped's
 *
 * A picture in a slot has GStreamer's own layout of its format: rows padded to four bytes, planes
 * without gaps. So a buffer whose memory is a slot needs no copy. Formats that piped does not have
 * become one that it has in the one copy that is made anyway.
 */
#pragma once

#include <gst/video/video.h>

#include "ipc/piped.h"

/* For caps: first those without a copy. Formats with shared colours need even sizes. */
#define PGST_SAME_ANY "RGB, BGR, GRAY8"
#define PGST_SAME_EVEN "NV12, YUY2"
#define PGST_COPIED_ANY "RGBx, BGRx, RGBA, BGRA"
#define PGST_COPIED_EVEN "I420, YV12"

struct pgst_format {
    GstVideoFormat video;
    enum piped_pixfmt pixfmt;
    gboolean same; /* the layouts are the same */
};

/** pgst_format_find() - Return: the row of a format; NULL: it is not in the caps. */
const struct pgst_format *pgst_format_find(GstVideoFormat video);
/** pgst_format_stride() - Return: bytes from row to row in a slot. */
guint pgst_format_stride(const struct pgst_format *f, const GstVideoInfo *info);
/** pgst_format_copy() - copies a mapped picture into a slot of @stride. */
void pgst_format_copy(const struct pgst_format *f, const GstVideoFrame *from, guint8 *to,
                      guint stride);
