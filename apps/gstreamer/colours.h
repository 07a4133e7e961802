/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/gstreamer/colours.h - what a picture's numbers mean, and what the daemon reads
 *
 * The daemon reads YUV as BT.601 of limited range, and the others as full range. Caps may say
 * otherwise: JPEG's YUV has the full range, video of high definition is BT.709. Then the numbers
 * are mapped to those of the same colours, in the slot that they were copied to.
 *
 * Pure functions; any thread.
 */
#pragma once

#include "apps/gstreamer/formats.h"

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
