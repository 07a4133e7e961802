/* SPDX-License-Identifier: Apache-2.0 */
/* krn_image_bytes(), and krn_preprocess() of images of the tensor's size: formats, layouts. */
#include "tests/unit/kernels/image_target.h"

TEST(image_bytes)
{
    struct krn_image i = {.format = KRN_PIX_RGB24, .width = 5, .height = 4, .stride = 16};

    T_EQ(krn_image_bytes(&i), 64);
    i.stride = 14;
    T_EQ(krn_image_bytes(&i), 0); /* less than a row */
    i = (struct krn_image){.format = KRN_PIX_NV12, .width = 4, .height = 4, .stride = 4};
    T_EQ(krn_image_bytes(&i), 24);
    i.height = 3;
    T_EQ(krn_image_bytes(&i), 0); /* odd */
    i = (struct krn_image){.format = KRN_PIX_YUYV, .width = 4, .height = 2, .stride = 8};
    T_EQ(krn_image_bytes(&i), 16);
    i.width = 0;
    T_EQ(krn_image_bytes(&i), 0);
    i = (struct krn_image){.format = KRN_PIX_COUNT, .width = 1, .height = 1, .stride = 9};
    T_EQ(krn_image_bytes(&i), 0);
    i = (struct krn_image){
        .format = KRN_PIX_RGB24, .width = UINT32_MAX, .height = 1, .stride = UINT32_MAX};
    T_EQ(krn_image_bytes(&i), 0); /* three times the width is more than any stride */
    i = (struct krn_image){
        .format = KRN_PIX_GRAY8, .width = 1, .height = UINT32_MAX, .stride = UINT32_MAX};
    T_TRUE(krn_image_bytes(&i) == (size_t)UINT32_MAX * UINT32_MAX);
}

/* Without a resize every element is (p - mean) / std, rounded as f32 does, in every layout, for
 * every order of channels, team width and row padding. */
TEST(same_size_is_exact)
{
    const float mean[4] = {123.675f, 116.28f, 103.53f, 0}, std[4] = {58.395f, 57.12f, 57.375f, 1};

    for (unsigned mode = 0; mode < 16; mode++) {
        bool nhwc = mode & 1, bgr_model = mode & 2, bgr_image = mode & 4;
        uint32_t w = 301, h = 7; /* longer than a chunk, not a multiple of a vector */
        TARGET(o, MDL_F32, nhwc, 3, h, w, mode & 8 ? 3 : 1);
        SOURCE(s, bgr_image ? KRN_PIX_BGR24 : KRN_PIX_RGB24, w, h, 5);

        memcpy(o.pre.mean, mean, sizeof(mean));
        memcpy(o.pre.std, std, sizeof(std));
        o.pre.bgr = bgr_model;
        target_go(&o, &s.img);
        T_TRUE(target_intact(&o));
        for (size_t y = 0; y < h; y++) {
            for (size_t x = 0; x < w; x++) {
                for (size_t c = 0; c < 3; c++) {
                    size_t from = bgr_image == bgr_model ? c : 2 - c;
                    float p = s.data[y * s.img.stride + x * 3 + from];
                    float e = p - mean[c];
                    size_t i = nhwc ? (y * w + x) * 3 + c : (c * h + y) * w + x;

                    e = e / std[c];
                    T_TRUE(target_f32(&o, i) == e);
                }
            }
        }
    }
}

/* Whatever stands for the division: every byte, ordinary scales and absurd ones. */
TEST(quotients_are_exact)
{
    static const float absurd[] = {1e-38f, 3e38f, 1e-45f, 0.1f, 1.0f / 255, 255, 16777215};
    uint8_t bytes[256];
    struct krn_image img = {KRN_PIX_GRAY8, 256, 1, 256, bytes};
    TARGET(o, MDL_F32, false, 1, 1, 256, 1);

    for (size_t i = 0; i < 256; i++) {
        bytes[i] = (uint8_t)i;
    }
    for (size_t r = 0; r < 2000; r++) {
        o.pre.mean[0] = (float)t_range(-30000, 30000) / (float)t_range(1, 1000);
        o.pre.std[0] = r < base_array_count(absurd)
                           ? absurd[r]
                           : (float)t_range(1, 1 << 24) / (float)(1 << t_range(0, 30));
        target_go(&o, &img);
        for (size_t i = 0; i < 256; i++) {
            volatile float away = (float)i - o.pre.mean[0];

            T_TRUE(target_f32(&o, i) == away / o.pre.std[0]);
        }
    }
}

TEST(strides_of_the_tensor_are_kept)
{
    TARGET(o, MDL_F32, false, 3, 2, 2, 1);
    SOURCE(s, KRN_PIX_RGB24, 2, 2, 0);

    /* [N][C][H][W] that lies as NHWC, as the arena has it */
    memcpy(o.t.stride, ((ptrdiff_t[]){12, 1, 6, 3}), 4 * sizeof(ptrdiff_t));
    target_go(&o, &s.img);
    T_TRUE(target_intact(&o));
    for (size_t i = 0; i < 12; i++) {
        T_TRUE(target_f32(&o, i) == s.data[i]);
    }
}

TEST(bytes_in_bytes_out)
{
    TARGET(o, MDL_U8, true, 3, 3, 5, 1);
    SOURCE(s, KRN_PIX_RGB24, 5, 3, 0);

    target_go(&o, &s.img);
    T_TRUE(target_intact(&o) && memcmp(o.data, s.data, o.bytes) == 0);
    o.pre.mean[0] = 300; /* below zero is 0 */
    o.pre.std[1] = 0.5f; /* past 255 is 255 */
    target_go(&o, &s.img);
    T_EQ(o.data[0], 0);
    T_EQ(o.data[1], base_min(255, s.data[1] * 2));
}

TEST(gray_and_luma)
{
    {
        TARGET(o, MDL_F32, false, 3, 1, 2, 1);
        const uint8_t gray[] = {7, 200};
        struct krn_image img = {KRN_PIX_GRAY8, 2, 1, 2, gray};

        target_go(&o, &img);
        for (size_t c = 0; c < 3; c++) {
            T_TRUE(target_f32(&o, c * 2) == 7 && target_f32(&o, c * 2 + 1) == 200);
        }
    }
    {
        /* 0.299, 0.587 and 0.114 of 255; white and black stay */
        TARGET(o, MDL_F32, false, 1, 1, 5, 1);
        const uint8_t rgb[] = {255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0};
        struct krn_image img = {KRN_PIX_RGB24, 5, 1, 15, rgb};

        target_go(&o, &img);
        T_TRUE(target_f32(&o, 0) == 76 && target_f32(&o, 1) == 150 && target_f32(&o, 2) == 29 &&
               target_f32(&o, 3) == 255 && target_f32(&o, 4) == 0);
        img.format = KRN_PIX_BGR24;
        target_go(&o, &img);
        T_TRUE(target_f32(&o, 0) == 29 && target_f32(&o, 2) == 76);
    }
}

/* BT.601, limited range: black, white, and the primaries as every table has them */
TEST(yuv_primaries)
{
    static const struct {
        uint8_t y, u, v;
        int r, g, b;
    } cases[] = {{16, 128, 128, 0, 0, 0},   {235, 128, 128, 255, 255, 255},
                 {81, 90, 240, 255, 0, 0},  {145, 54, 34, 0, 255, 0},
                 {41, 240, 110, 0, 0, 255}, {126, 128, 128, 128, 128, 128},
                 {0, 128, 128, 0, 0, 0},    {255, 128, 128, 255, 255, 255}};

    for (size_t i = 0; i < base_array_count(cases); i++) {
        const uint8_t y = cases[i].y, u = cases[i].u, v = cases[i].v;
        const uint8_t yuyv[] = {y, u, y, v, y, u, y, v}, nv12[] = {y, y, y, y, u, v};
        const struct krn_image images[] = {{KRN_PIX_YUYV, 2, 2, 4, yuyv},
                                           {KRN_PIX_NV12, 2, 2, 2, nv12}};

        for (size_t k = 0; k < 2; k++) {
            TARGET(o, MDL_F32, true, 3, 2, 2, 1);

            target_go(&o, &images[k]);
            for (size_t p = 0; p < 4; p++) {
                T_NEAR((double)target_f32(&o, p * 3), cases[i].r, 1);
                T_NEAR((double)target_f32(&o, p * 3 + 1), cases[i].g, 1);
                T_NEAR((double)target_f32(&o, p * 3 + 2), cases[i].b, 1);
            }
        }
    }
}

TEST(chroma_belongs_to_its_block)
{
    /* 4x2: left block neutral, right block red; luma counts up */
    const uint8_t nv12[] = {16, 17, 18, 19, 20, 21, 22, 23, 128, 128, 90, 240};
    struct krn_image img = {KRN_PIX_NV12, 4, 2, 4, nv12};
    TARGET(o, MDL_F32, true, 3, 2, 4, 1);

    target_go(&o, &img);
    T_TRUE(target_f32(&o, 0) == 0 && target_f32(&o, 2) == 0);              /* (0,0) grey */
    T_TRUE(target_f32(&o, 2 * 3) > 150 && target_f32(&o, 2 * 3 + 1) == 0); /* (2,0) red */
    T_TRUE(target_f32(&o, 4 * 3) == target_f32(&o, 4 * 3 + 1));            /* (0,1) grey */
}

TEST(unknown_preprocessing_is_plain_rgb)
{
    TARGET(o, MDL_F32, true, 3, 1, 1, 1);
    const uint8_t rgb[] = {1, 2, 3};
    struct krn_image img = {KRN_PIX_RGB24, 1, 1, 3, rgb};

    o.pre = (struct mdl_preproc){.nhwc = true};
    target_go(&o, &img);
    T_TRUE(target_f32(&o, 0) == 1 && target_f32(&o, 1) == 2 && target_f32(&o, 2) == 3);
}

TEST(what_is_no_image_is_not_written)
{
    struct mdl_preproc pre = {0};
    struct mdl_tensor t = {.dtype = MDL_F32, .rank = 2, .dim = {4, 4}};

    T_TRUE(!krn_preprocess_ok(&pre, &t));
    t = (struct mdl_tensor){.dtype = MDL_I64, .rank = 4, .dim = {1, 3, 4, 4}};
    T_TRUE(!krn_preprocess_ok(&pre, &t));
    t = (struct mdl_tensor){.dtype = MDL_F32, .rank = 4, .dim = {1, 3, 0, 4}};
    T_TRUE(!krn_preprocess_ok(&pre, &t));
    t.dim[2] = 4;
    T_TRUE(krn_preprocess_ok(&pre, &t));
}

TEST(every_image_of_a_batch_and_channels_without_a_pixel)
{
    const uint8_t rgb[] = {1, 2, 3};
    struct krn_image img = {KRN_PIX_RGB24, 1, 1, 3, rgb};
    TARGET(o, MDL_F32, false, 8, 1, 1, 2);

    o.t.dim[0] = 2;
    o.t.dim[1] = 4;
    o.t.stride[0] = 4;
    target_go(&o, &img);
    T_TRUE(target_intact(&o));
    for (size_t n = 0; n < 2; n++) {
        T_TRUE(target_f32(&o, n * 4) == 1 && target_f32(&o, n * 4 + 2) == 3 &&
               target_f32(&o, n * 4 + 3) == 0);
    }
}

TEST_MAIN()
