/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/gstreamer/formats.h - GStreamer's formats of pictures as piped's
 *
 * A picture in a slot has GStreamer's own layout of its format: rows padded to four bytes, planes
 * without gaps. So a buffer whose memory is a slot needs no copy. Formats that piped does not have
 * become one that it has in the one copy that is made anyway.
 *
 * The daemon reads YUV as BT.601 of limited range, and the others as full range. Caps may say
 * otherwise: JPEG's YUV has the full range, video of high definition is BT.709. Then the numbers
 * are mapped to those of the same colours, in the slot that they were copied to.
 *
 * Pure functions; any thread.
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

/* A map of (Y, U, V), in 1/2^16; or of each byte, where pixels are not YUV. */
struct pgst_colours {
    gboolean as_read; /* nothing is to be done */
    gint32 from_luma, map[3][3];
    guint8 byte[256];
};

/** pgst_colours_of() - the map of pictures with these caps. What they leave open is as read. */
void pgst_colours_of(const GstVideoInfo *info, struct pgst_colours *ret);
/** pgst_colours_map() - maps the picture in a slot, which pgst_format_copy() made, in place.
 * @stride: of pgst_format_stride(). */
void pgst_colours_map(const struct pgst_colours *c, const GstVideoInfo *info,
                      enum piped_pixfmt pixfmt, guint8 *slot, guint stride);
