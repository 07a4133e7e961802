/* SPDX-License-Identifier: Apache-2.0 */
/* krn_preprocess() of images of other sizes: by hand, by the definition, and properties. */
#include <math.h>

#include "tests/unit/kernels/image_target.h"

/* 2 to 4: centres at -0.25, 0.25, 0.75, 1.25 of the source */
TEST(bilinear_by_hand)
{
    const uint8_t gray[] = {0, 100, 200, 40};
    struct krn_image img = {KRN_PIX_GRAY8, 2, 2, 2, gray};
    TARGET(o, MDL_F32, false, 1, 4, 4, 1);
    static const float e[16] = {0,   25,      75,     100, /* row 0 */
                                50,  58.75f,  76.25f, 85,  /* 0.75 and 0.25 of the rows */
                                150, 126.25f, 78.75f, 55,  200, 160, 80, 40};

    target_go(&o, &img);
    T_TRUE(target_intact(&o));
    for (size_t i = 0; i < 16; i++) {
        T_NEAR((double)target_f32(&o, i), (double)e[i], 1e-4);
    }
}

/* 5 to 2: each output is 2.5 pixels wide */
TEST(area_by_hand)
{
    const uint8_t gray[] = {10, 20, 30, 40, 50};
    struct krn_image img = {KRN_PIX_GRAY8, 5, 1, 5, gray};
    TARGET(o, MDL_F32, false, 1, 1, 2, 1);

    target_go(&o, &img);
    T_NEAR((double)target_f32(&o, 0), (10 + 20 + 15) / 2.5, 1e-4);
    T_NEAR((double)target_f32(&o, 1), (15 + 40 + 50) / 2.5, 1e-4);
    {
        /* along y the same, and both ways at once the mean */
        struct krn_image tall = {KRN_PIX_GRAY8, 1, 5, 1, gray};
        TARGET(two, MDL_F32, false, 1, 2, 1, 1);
        TARGET(one, MDL_F32, false, 1, 1, 1, 1);

        target_go(&two, &tall);
        T_NEAR((double)target_f32(&two, 0), 18, 1e-4);
        T_NEAR((double)target_f32(&two, 1), 42, 1e-4);
        target_go(&one, &tall);
        T_NEAR((double)target_f32(&one, 0), 30, 1e-4);
    }
}

/* Channel c (R, G, B) of a pixel, by the formulas of the formats. */
static int channel_at(const struct krn_image *img, size_t x, size_t y, size_t c)
{
    const uint8_t *row = img->data + y * img->stride;
    const uint8_t *uv = row + x / 2 * 4 + 1; /* of YUYV: V lies two behind U */
    static const int by_u[3] = {0, -100, 516}, by_v[3] = {409, -208, 0};
    bool nv12 = img->format == KRN_PIX_NV12;
    int v;

    if (img->format < KRN_PIX_GRAY8) {
        return row[3 * x + (img->format == KRN_PIX_RGB24 ? c : 2 - c)];
    }
    if (img->format == KRN_PIX_GRAY8) {
        return row[x];
    }
    if (nv12) {
        uv = img->data + (img->height + y / 2) * img->stride + x / 2 * 2;
    }
    v = 298 * (row[nv12 ? x : 2 * x] - 16) + 128;
    v = (v + by_u[c] * (uv[0] - 128) + by_v[c] * (uv[nv12 ? 1 : 2] - 128)) >> 8;
    return v < 0 ? 0 : v > 255 ? 255 : v;
}

/* How much source pixel @s counts for output @i along an axis. */
static double weight(size_t src, size_t dst, size_t i, size_t s)
{
    double ratio = (double)src / (double)dst, at = ((double)i + 0.5) * ratio - 0.5;

    if (src > 2 * dst) {
        double from = base_max((double)i * ratio, (double)s);
        double to = base_min((double)(i + 1) * ratio, (double)s + 1);

        return to > from ? (to - from) / ratio : 0;
    }
    at = base_min(base_max(at, 0.0), (double)src - 1);
    return base_max(0.0, 1 - fabs(at - (double)s));
}

static double resized_at(const struct krn_image *img, size_t w, size_t h, size_t x, size_t y,
                         size_t c)
{
    double sum = 0;

    for (size_t sy = 0; sy < img->height; sy++) {
        double wy = weight(img->height, h, y, sy);

        for (size_t sx = 0; wy > 0 && sx < img->width; sx++) {
            double wx = weight(img->width, w, x, sx);

            sum += wx > 0 ? wx * wy * channel_at(img, sx, sy, c) : 0;
        }
    }
    return sum;
}

/* Every format, smaller and larger, pixels that one output takes hundreds of, too. */
TEST(resized_by_the_definition)
{
    for (int i = 0; i < t_times(60); i++) {
        enum krn_pixfmt format = (enum krn_pixfmt)(i % KRN_PIX_COUNT);
        uint32_t w = (uint32_t)t_range(1, i % 3 ? 60 : 700), h = (uint32_t)t_range(1, 12);
        size_t tw = (size_t)t_range(1, i % 4 ? 40 : 2), th = (size_t)t_range(1, 8);
        bool nhwc = t_range(0, 1);

        w += format >= KRN_PIX_NV12 ? w % 2 : 0;
        h += format >= KRN_PIX_NV12 ? h % 2 : 0;
        TARGET(o, MDL_F32, nhwc, 3, th, tw, 1);
        SOURCE(s, format, w, h, (uint32_t)t_range(0, 3));

        o.pre.bgr = t_range(0, 1);
        target_go(&o, &s.img);
        T_TRUE(target_intact(&o));
        for (size_t e = 0; e < 3 * th * tw; e++) {
            size_t c = nhwc ? e % 3 : e / (th * tw), at = nhwc ? e / 3 : e % (th * tw);
            double want = resized_at(&s.img, tw, th, at % tw, at / tw, o.pre.bgr ? 2 - c : c);

            T_NEAR((double)target_f32(&o, e), want, 1e-3);
        }
    }
}

/* A constant image stays that constant at any size, format and fit, and nothing beside the tensor
 * is written; odd sizes included. */
TEST(constant_stays_constant)
{
    for (int i = 0; i < 300; i++) {
        enum krn_pixfmt format = (enum krn_pixfmt)t_range(0, 2);
        uint32_t w = (uint32_t)t_range(1, 90), h = (uint32_t)t_range(1, 90);
        size_t c = t_range(0, 1) ? 3 : 1;
        uint8_t value = (uint8_t)t_random();
        TARGET(o, MDL_F32, t_range(0, 1), c, (size_t)t_range(1, 40), (size_t)t_range(1, 40),
               (size_t)t_range(1, 3));
        SOURCE(s, format, w, h, (uint32_t)t_range(0, 3));

        memset(s.data, value, krn_image_bytes(&s.img));
        o.pre.fit = t_range(0, 1) ? MDL_FIT_STRETCH : MDL_FIT_CROP;
        target_go(&o, &s.img);
        T_TRUE(target_intact(&o));
        for (size_t k = 0; k < o.bytes / sizeof(float); k++) {
            T_TRUE(target_f32(&o, k) == value);
        }
    }
}

/* Any image gives values between its extremes, whatever its format; a team writes the same bytes.
 */
TEST(bounds_and_teams)
{
    for (int i = 0; i < 200; i++) {
        enum krn_pixfmt format = (enum krn_pixfmt)t_range(0, KRN_PIX_COUNT - 1);
        uint32_t w = 2 * (uint32_t)t_range(1, 50), h = 2 * (uint32_t)t_range(1, 50);
        size_t th = (size_t)t_range(1, 60), tw = (size_t)t_range(1, 60);
        bool nhwc = t_range(0, 1);
        int fit = (int)t_range(0, 2);
        TARGET(a, MDL_F32, nhwc, 3, th, tw, 1);
        TARGET(b, MDL_F32, nhwc, 3, th, tw, 3);
        SOURCE(s, format, w, h, (uint32_t)t_range(0, 5));

        a.pre.fit = b.pre.fit = fit;
        target_go(&a, &s.img);
        target_go(&b, &s.img);
        T_TRUE(target_intact(&a) && target_intact(&b) && memcmp(a.data, b.data, a.bytes) == 0);
        for (size_t k = 0; k < a.bytes / sizeof(float); k++) {
            T_TRUE(target_f32(&a, k) >= -0.01f && target_f32(&a, k) <= 255.01f);
        }
    }
}

TEST(one_pixel)
{
    const uint8_t rgb[] = {1, 2, 3};
    struct krn_image img = {KRN_PIX_RGB24, 1, 1, 3, rgb};
    TARGET(o, MDL_F32, true, 3, 1, 1, 1);
    TARGET(big, MDL_F32, true, 3, 3, 3, 2);

    target_go(&o, &img);
    T_TRUE(target_f32(&o, 0) == 1 && target_f32(&o, 1) == 2 && target_f32(&o, 2) == 3);
    target_go(&big, &img);
    T_TRUE(target_f32(&big, 8 * 3 + 2) == 3 && target_intact(&big));
}

TEST(crop_takes_the_middle)
{
    const uint8_t gray[] = {1, 2, 3, 4, 5, 6};
    struct krn_image img = {KRN_PIX_GRAY8, 6, 1, 6, gray};
    TARGET(o, MDL_F32, false, 1, 1, 2, 1);

    o.pre.fit = MDL_FIT_CROP;
    target_go(&o, &img);
    T_TRUE(target_f32(&o, 0) == 3 && target_f32(&o, 1) == 4);
}

TEST(letterbox_bars_have_the_colour_given)
{
    const uint8_t gray[] = {1, 2, 3, 4};
    struct krn_image img = {KRN_PIX_GRAY8, 4, 1, 4, gray};
    TARGET(o, MDL_F32, false, 1, 4, 4, 1);

    o.pre.fit = MDL_FIT_LETTERBOX;
    o.pre.pad[0] = 114;
    o.pre.mean[0] = 28;
    o.pre.std[0] = 2;
    target_go(&o, &img);
    for (size_t x = 0; x < 4; x++) {
        T_TRUE(target_f32(&o, x) == 43);
        T_TRUE(target_f32(&o, 4 + x) == ((float)x + 1 - 28) / 2);
        T_TRUE(target_f32(&o, 8 + x) == 43 && target_f32(&o, 12 + x) == 43);
    }
    {
        const uint8_t tall[] = {1, 2, 3, 4};
        struct krn_image narrow = {KRN_PIX_GRAY8, 1, 4, 1, tall};
        target_go(&o, &narrow);
        T_TRUE(target_f32(&o, 0) == 43 && target_f32(&o, 1) == -13.5f && target_f32(&o, 2) == 43);
    }
}

/* Each channel has its own: of the tensor, not of the picture. */
TEST(letterbox_bars_have_a_colour_a_channel)
{
    const uint8_t grey[] = {1, 2, 3, 4};
    struct krn_image img = {KRN_PIX_GRAY8, 4, 1, 4, grey};
    TARGET(planes, MDL_F32, false, 3, 4, 4, 1);
    TARGET(bytes, MDL_U8, true, 3, 4, 4, 1);
    const float pad[4] = {10, 20, 30};

    planes.pre.fit = bytes.pre.fit = MDL_FIT_LETTERBOX;
    planes.pre.bgr = true;
    memcpy(planes.pre.pad, pad, sizeof(pad));
    memcpy(bytes.pre.pad, pad, sizeof(pad));
    target_go(&planes, &img);
    target_go(&bytes, &img);
    for (size_t c = 0; c < 3; c++) {
        T_EQ(target_f32(&planes, c * 16), 10 * (c + 1));
        T_EQ(target_f32(&planes, c * 16 + 15), 10 * (c + 1));
        T_EQ(target_f32(&planes, c * 16 + 4), 1);
        T_EQ(((const uint8_t *)bytes.data)[c], 10 * (c + 1));
    }
}

TEST_MAIN()
