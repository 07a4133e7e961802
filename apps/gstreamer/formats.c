/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/gstreamer/formats.h"

#include "base/base.h"

static const struct pgst_format formats[] = {
    {GST_VIDEO_FORMAT_RGB, PIPED_RGB24, TRUE},   {GST_VIDEO_FORMAT_BGR, PIPED_BGR24, TRUE},
    {GST_VIDEO_FORMAT_GRAY8, PIPED_GRAY8, TRUE}, {GST_VIDEO_FORMAT_NV12, PIPED_NV12, TRUE},
    {GST_VIDEO_FORMAT_YUY2, PIPED_YUYV, TRUE},   {GST_VIDEO_FORMAT_I420, PIPED_NV12, FALSE},
    {GST_VIDEO_FORMAT_YV12, PIPED_NV12, FALSE},  {GST_VIDEO_FORMAT_RGBx, PIPED_RGB24, FALSE},
    {GST_VIDEO_FORMAT_RGBA, PIPED_RGB24, FALSE}, {GST_VIDEO_FORMAT_BGRx, PIPED_BGR24, FALSE},
    {GST_VIDEO_FORMAT_BGRA, PIPED_BGR24, FALSE},
};

const struct pgst_format *pgst_format_find(GstVideoFormat video)
{
    for (size_t i = 0; i < base_array_count(formats); i++) {
        if (formats[i].video == video) {
            return &formats[i];
        }
    }
    return NULL;
}

guint pgst_format_stride(const struct pgst_format *f, const GstVideoInfo *info)
{
    guint width = (guint)GST_VIDEO_INFO_WIDTH(info);

    switch (f->pixfmt) {
    case PIPED_RGB24:
    case PIPED_BGR24:
        return GST_ROUND_UP_4(3 * width);
    case PIPED_YUYV:
        return GST_ROUND_UP_4(2 * width);
    default:
        return GST_ROUND_UP_4(width);
    }
}

static void copy_rows(const guint8 *from, gint from_stride, guint8 *to, guint stride, size_t bytes,
                      gint rows)
{
    for (gint y = 0; y < rows; y++) {
        memcpy(to + (size_t)y * stride, from + (ptrdiff_t)y * from_stride, bytes);
    }
}

/* The fourth byte of each pixel is left out. */
static void copy_three_of_four(const GstVideoFrame *from, guint8 *to, guint stride)
{
    for (gint y = 0; y < GST_VIDEO_FRAME_HEIGHT(from); y++) {
        const guint8 *p = (const guint8 *)GST_VIDEO_FRAME_PLANE_DATA(from, 0) +
                          (ptrdiff_t)y * GST_VIDEO_FRAME_PLANE_STRIDE(from, 0);
        guint8 *q = to + (size_t)y * stride;

        for (gint x = 0; x < GST_VIDEO_FRAME_WIDTH(from); x++, p += 4, q += 3) {
            q[0] = p[0];
            q[1] = p[1];
            q[2] = p[2];
        }
    }
}

/* Two planes of colours become one. */
static void interleave(const GstVideoFrame *from, guint8 *to, guint stride)
{
    for (gint y = 0; y < GST_VIDEO_FRAME_COMP_HEIGHT(from, 1); y++) {
        const guint8 *u = (const guint8 *)GST_VIDEO_FRAME_COMP_DATA(from, 1) +
                          (ptrdiff_t)y * GST_VIDEO_FRAME_COMP_STRIDE(from, 1);
        const guint8 *v = (const guint8 *)GST_VIDEO_FRAME_COMP_DATA(from, 2) +
                          (ptrdiff_t)y * GST_VIDEO_FRAME_COMP_STRIDE(from, 2);
        guint8 *q = to + (size_t)y * stride;

        for (gint x = 0; x < GST_VIDEO_FRAME_COMP_WIDTH(from, 1); x++) {
            q[2 * x] = u[x];
            q[2 * x + 1] = v[x];
        }
    }
}

void pgst_format_copy(const struct pgst_format *f, const GstVideoFrame *from, guint8 *to,
                      guint stride)
{
    const guint8 *first = GST_VIDEO_FRAME_PLANE_DATA(from, 0);
    gint from_stride = GST_VIDEO_FRAME_PLANE_STRIDE(from, 0);
    gint width = GST_VIDEO_FRAME_WIDTH(from), height = GST_VIDEO_FRAME_HEIGHT(from);
    size_t pixel = (size_t)GST_VIDEO_FRAME_COMP_PSTRIDE(from, 0);

    if (pixel == 4) {
        copy_three_of_four(from, to, stride);
        return;
    }
    copy_rows(first, from_stride, to, stride, (size_t)width * pixel, height);
    if (f->pixfmt != PIPED_NV12) {
        return;
    }
    to += (size_t)stride * (size_t)height;
    if (f->same) {
        copy_rows(GST_VIDEO_FRAME_PLANE_DATA(from, 1), GST_VIDEO_FRAME_PLANE_STRIDE(from, 1), to,
                  stride, (size_t)width, height / 2);
    } else {
        interleave(from, to, stride);
    }
}
