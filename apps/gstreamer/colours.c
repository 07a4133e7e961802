/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/gstreamer/colours.h"

#include <math.h>

#include "base/base.h"

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
