/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/gstreamer/formats.h"

#include <math.h>

#include "base/pixfmt.h"

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
    guint row = pixfmt_row_bytes((enum pixfmt)f->pixfmt, (guint)GST_VIDEO_INFO_WIDTH(info));

    return GST_ROUND_UP_4(row);
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

/* ---- colours ---- */

#define ONE 65536.0
#define LUMA_ZERO 16 /* of limited range */
#define LUMA_SCALE 219.0
#define CHROMA_ZERO 128
#define CHROMA_SCALE 224.0
#define KR 0.299 /* BT.601: shares of red and blue in luma */
#define KB 0.114

static guint8 byte_of(double x)
{
    return (guint8)base_max(0.0, base_min(255.0, floor(x + 0.5)));
}

/* Numbers of one colour, all scaled to 1, from one matrix to BT.601. */
static void to_bt601(double kr, double kb, const double yuv[3], double ret[3])
{
    double r = yuv[0] + 2 * (1 - kr) * yuv[2], b = yuv[0] + 2 * (1 - kb) * yuv[1];
    double g = (yuv[0] - kr * r - kb * b) / (1 - kr - kb);

    ret[0] = KR * r + (1 - KR - KB) * g + KB * b;
    ret[1] = (b - ret[0]) / (2 * (1 - KB));
    ret[2] = (r - ret[0]) / (2 * (1 - KR));
}

static void map_of_yuv(gboolean full, double kr, double kb, struct pgst_colours *ret)
{
    const double to[3] = {LUMA_SCALE, CHROMA_SCALE, CHROMA_SCALE};

    ret->from_luma = full ? 0 : LUMA_ZERO;
    for (int column = 0; column < 3; column++) {
        double one[3] = {0}, is[3];

        one[column] = 1 / (full ? 255.0 : to[column]);
        to_bt601(kr, kb, one, is);
        for (int row = 0; row < 3; row++) {
            ret->map[row][column] = (gint32)lround(ONE * to[row] * is[row]);
        }
    }
}

void pgst_colours_of(const GstVideoInfo *info, struct pgst_colours *ret)
{
    const GstVideoColorimetry *c = &GST_VIDEO_INFO_COLORIMETRY(info);
    gboolean yuv = GST_VIDEO_INFO_IS_YUV(info), full = c->range == GST_VIDEO_COLOR_RANGE_0_255;
    gboolean limited = c->range == GST_VIDEO_COLOR_RANGE_16_235;
    double kr = KR, kb = KB;

    *ret = (struct pgst_colours){.as_read = !(yuv ? full : limited)};
    if (yuv && c->matrix != GST_VIDEO_COLOR_MATRIX_BT601 &&
        gst_video_color_matrix_get_Kr_Kb(c->matrix, &kr, &kb)) {
        ret->as_read = FALSE;
    }
    map_of_yuv(full, kr, kb, ret);
    for (int i = 0; i < 256; i++) {
        ret->byte[i] = byte_of((i - LUMA_ZERO) * 255 / LUMA_SCALE);
    }
}

/* @sum: in 1/2^16, from @zero on */
static guint8 mapped(gint32 sum, int zero)
{
    return (guint8)base_max(0, base_min(255, ((sum + (gint32)ONE / 2) >> 16) + zero));
}

/* Maps U and V; luma adds nothing to them, since greys are greys by every matrix. Return: what they
 * add to luma. */
static gint32 map_chroma(const struct pgst_colours *c, guint8 *u, guint8 *v)
{
    int a = *u - CHROMA_ZERO, b = *v - CHROMA_ZERO;

    *u = mapped(c->map[1][1] * a + c->map[1][2] * b, CHROMA_ZERO);
    *v = mapped(c->map[2][1] * a + c->map[2][2] * b, CHROMA_ZERO);
    return c->map[0][1] * a + c->map[0][2] * b;
}

static void map_luma(const struct pgst_colours *c, guint8 *y, gint32 more)
{
    *y = mapped(c->map[0][0] * (*y - c->from_luma) + more, LUMA_ZERO);
}

static void map_nv12(const struct pgst_colours *c, const GstVideoInfo *info, guint8 *slot,
                     size_t stride)
{
    int width = GST_VIDEO_INFO_WIDTH(info), height = GST_VIDEO_INFO_HEIGHT(info);

    for (int row = 0; row < height / 2; row++) {
        guint8 *y = slot + 2 * (size_t)row * stride, *uv = slot + (size_t)(height + row) * stride;

        for (int x = 0; x < width; x += 2) {
            gint32 more = map_chroma(c, &uv[x], &uv[x + 1]);

            map_luma(c, &y[x], more);
            map_luma(c, &y[x + 1], more);
            map_luma(c, &y[stride + (size_t)x], more);
            map_luma(c, &y[stride + (size_t)x + 1], more);
        }
    }
}

static void map_yuyv(const struct pgst_colours *c, const GstVideoInfo *info, guint8 *slot,
                     size_t stride)
{
    for (int row = 0; row < GST_VIDEO_INFO_HEIGHT(info); row++) {
        guint8 *p = slot + (size_t)row * stride;

        for (int x = 0; x < GST_VIDEO_INFO_WIDTH(info); x += 2, p += 4) {
            gint32 more = map_chroma(c, &p[1], &p[3]);

            map_luma(c, &p[0], more);
            map_luma(c, &p[2], more);
        }
    }
}

void pgst_colours_map(const struct pgst_colours *c, const GstVideoInfo *info,
                      enum piped_pixfmt pixfmt, guint8 *slot, guint stride)
{
    if (c->as_read) {
        return;
    }
    if (pixfmt == PIPED_NV12) {
        map_nv12(c, info, slot, stride);
    } else if (pixfmt == PIPED_YUYV) {
        map_yuyv(c, info, slot, stride);
    } else {
        for (size_t i = 0; i < (size_t)stride * (size_t)GST_VIDEO_INFO_HEIGHT(info); i++) {
            slot[i] = c->byte[slot[i]];
        }
    }
}
