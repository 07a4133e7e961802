/* SPDX-License-Identifier: Apache-2.0 */
/* krn_image_bytes() and krn_preprocess(): values worked out by hand, and properties. */
#include <math.h>

#include "base.h"
#include "kernels/kernels.h"
#include "kernels/image/preprocess.h"
#include "tests/harness.h"

#define GUARD 0xcb
#define GUARD_BYTES ((size_t)128)

/* A destination with guards around it, and exactly the scratch that is asked for. */
struct target {
    struct mdl_tensor t;
    struct mdl_preproc pre;
    uint8_t *raw, *data, *scratch;
    size_t bytes, scratch_bytes, width;
};

static struct target target_new(enum mdl_dtype dtype, bool nhwc, size_t c, size_t h, size_t w,
                                size_t width)
{
    struct target o = {.t = {.dtype = dtype, .rank = 4}, .width = width};
    struct mdl_model m = {.input_count = 1};
    struct mdl_io io = {0};

    memcpy(o.t.dim, nhwc ? (size_t[]){1, h, w, c} : (size_t[]){1, c, h, w}, 4 * sizeof(size_t));
    for (size_t d = 4, stride = 1; d-- > 0;) {
        o.t.stride[d] = (ptrdiff_t)stride;
        stride *= o.t.dim[d];
    }
    o.pre = (struct mdl_preproc){.known = true, .nhwc = nhwc};
    for (size_t i = 0; i < 4; i++) {
        o.pre.std[i] = 1;
    }
    o.bytes = c * h * w * mdl_dtype_bytes(dtype);
    o.raw = malloc(o.bytes + 2 * GUARD_BYTES);
    memset(o.raw, GUARD, o.bytes + 2 * GUARD_BYTES);
    o.data = o.raw + GUARD_BYTES;
    m.preproc = o.pre;
    m.inputs = &io;
    m.tensors = &o.t;
    o.scratch_bytes = krn_preprocess_scratch_bytes(&m, width);
    o.scratch = aligned_alloc(64, base_align_up(o.scratch_bytes + GUARD_BYTES, 64));
    memset(o.scratch, GUARD, o.scratch_bytes + GUARD_BYTES);
    return o;
}

static void target_free(struct target *o)
{
    free(o->raw);
    free(o->scratch);
}
#define TARGET(name, ...) base_cleanup(target_free) struct target name = target_new(__VA_ARGS__)

static void go(struct target *o, const struct krn_image *img)
{
    pthreadpool_t pool = o->width > 1 ? pthreadpool_create(o->width) : NULL;
    struct krn_exec exec = {.pool = pool, .width = o->width, .scratch = o->scratch};

    krn_preprocess(img, &o->pre, &o->t, o->data, &exec);
    pthreadpool_destroy(pool);
}

static bool intact(const struct target *o)
{
    for (size_t i = 0; i < GUARD_BYTES; i++) {
        if (o->raw[i] != GUARD || o->data[o->bytes + i] != GUARD ||
            o->scratch[o->scratch_bytes + i] != GUARD) {
            return false;
        }
    }
    return true;
}

static float f32_at(const struct target *o, size_t i)
{
    float v;

    memcpy(&v, o->data + i * sizeof(v), sizeof(v));
    return v;
}

/* An image whose memory ends exactly where it says, so that the sanitizers see a byte too many. */
struct source {
    struct krn_image img;
    uint8_t *data;
};

static struct source source_new(enum krn_pixfmt format, uint32_t w, uint32_t h, uint32_t pad)
{
    static const uint8_t row[] = {3, 3, 1, 1, 2};
    struct source s = {.img = {.format = format, .width = w, .height = h}};

    s.img.stride = w * row[format] + pad;
    s.data = malloc(krn_image_bytes(&s.img) + 1);
    for (size_t i = 0; i < krn_image_bytes(&s.img); i++) {
        s.data[i] = (uint8_t)t_random();
    }
    s.img.data = s.data;
    return s;
}

static void source_free(struct source *s)
{
    free(s->data);
}
#define SOURCE(name, ...) base_cleanup(source_free) struct source name = source_new(__VA_ARGS__)

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
        go(&o, &s.img);
        T_TRUE(intact(&o));
        for (size_t y = 0; y < h; y++) {
            for (size_t x = 0; x < w; x++) {
                for (size_t c = 0; c < 3; c++) {
                    size_t from = bgr_image == bgr_model ? c : 2 - c;
                    float p = s.data[y * s.img.stride + x * 3 + from];
                    float e = p - mean[c];
                    size_t i = nhwc ? (y * w + x) * 3 + c : (c * h + y) * w + x;

                    e = e / std[c];
                    T_TRUE(f32_at(&o, i) == e);
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
        go(&o, &img);
        for (size_t i = 0; i < 256; i++) {
            volatile float away = (float)i - o.pre.mean[0];

            T_TRUE(f32_at(&o, i) == away / o.pre.std[0]);
        }
    }
}

TEST(strides_of_the_tensor_are_kept)
{
    TARGET(o, MDL_F32, false, 3, 2, 2, 1);
    SOURCE(s, KRN_PIX_RGB24, 2, 2, 0);

    /* [N][C][H][W] that lies as NHWC, as the arena has it */
    memcpy(o.t.stride, ((ptrdiff_t[]){12, 1, 6, 3}), 4 * sizeof(ptrdiff_t));
    go(&o, &s.img);
    T_TRUE(intact(&o));
    for (size_t i = 0; i < 12; i++) {
        T_TRUE(f32_at(&o, i) == s.data[i]);
    }
}

TEST(bytes_in_bytes_out)
{
    TARGET(o, MDL_U8, true, 3, 3, 5, 1);
    SOURCE(s, KRN_PIX_RGB24, 5, 3, 0);

    go(&o, &s.img);
    T_TRUE(intact(&o) && memcmp(o.data, s.data, o.bytes) == 0);
    o.pre.mean[0] = 300; /* below zero is 0 */
    o.pre.std[1] = 0.5f; /* past 255 is 255 */
    go(&o, &s.img);
    T_EQ(o.data[0], 0);
    T_EQ(o.data[1], base_min(255, s.data[1] * 2));
}

TEST(gray_and_luma)
{
    {
        TARGET(o, MDL_F32, false, 3, 1, 2, 1);
        const uint8_t gray[] = {7, 200};
        struct krn_image img = {KRN_PIX_GRAY8, 2, 1, 2, gray};

        go(&o, &img);
        for (size_t c = 0; c < 3; c++) {
            T_TRUE(f32_at(&o, c * 2) == 7 && f32_at(&o, c * 2 + 1) == 200);
        }
    }
    {
        /* 0.299, 0.587 and 0.114 of 255; white and black stay */
        TARGET(o, MDL_F32, false, 1, 1, 5, 1);
        const uint8_t rgb[] = {255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0};
        struct krn_image img = {KRN_PIX_RGB24, 5, 1, 15, rgb};

        go(&o, &img);
        T_TRUE(f32_at(&o, 0) == 76 && f32_at(&o, 1) == 150 && f32_at(&o, 2) == 29 &&
               f32_at(&o, 3) == 255 && f32_at(&o, 4) == 0);
        img.format = KRN_PIX_BGR24;
        go(&o, &img);
        T_TRUE(f32_at(&o, 0) == 29 && f32_at(&o, 2) == 76);
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

            go(&o, &images[k]);
            for (size_t p = 0; p < 4; p++) {
                T_NEAR((double)f32_at(&o, p * 3), cases[i].r, 1);
                T_NEAR((double)f32_at(&o, p * 3 + 1), cases[i].g, 1);
                T_NEAR((double)f32_at(&o, p * 3 + 2), cases[i].b, 1);
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

    go(&o, &img);
    T_TRUE(f32_at(&o, 0) == 0 && f32_at(&o, 2) == 0);              /* (0,0) grey */
    T_TRUE(f32_at(&o, 2 * 3) > 150 && f32_at(&o, 2 * 3 + 1) == 0); /* (2,0) red */
    T_TRUE(f32_at(&o, 4 * 3) == f32_at(&o, 4 * 3 + 1));            /* (0,1) grey */
}

/* 2 to 4: centres at -0.25, 0.25, 0.75, 1.25 of the source */
TEST(bilinear_by_hand)
{
    const uint8_t gray[] = {0, 100, 200, 40};
    struct krn_image img = {KRN_PIX_GRAY8, 2, 2, 2, gray};
    TARGET(o, MDL_F32, false, 1, 4, 4, 1);
    static const float e[16] = {0,   25,      75,     100, /* row 0 */
                                50,  58.75f,  76.25f, 85,  /* 0.75 and 0.25 of the rows */
                                150, 126.25f, 78.75f, 55,  200, 160, 80, 40};

    go(&o, &img);
    T_TRUE(intact(&o));
    for (size_t i = 0; i < 16; i++) {
        T_NEAR((double)f32_at(&o, i), (double)e[i], 1e-4);
    }
}

/* 5 to 2: each output is 2.5 pixels wide */
TEST(area_by_hand)
{
    const uint8_t gray[] = {10, 20, 30, 40, 50};
    struct krn_image img = {KRN_PIX_GRAY8, 5, 1, 5, gray};
    TARGET(o, MDL_F32, false, 1, 1, 2, 1);

    go(&o, &img);
    T_NEAR((double)f32_at(&o, 0), (10 + 20 + 15) / 2.5, 1e-4);
    T_NEAR((double)f32_at(&o, 1), (15 + 40 + 50) / 2.5, 1e-4);
    {
        /* along y the same, and both ways at once the mean */
        struct krn_image tall = {KRN_PIX_GRAY8, 1, 5, 1, gray};
        TARGET(two, MDL_F32, false, 1, 2, 1, 1);
        TARGET(one, MDL_F32, false, 1, 1, 1, 1);

        go(&two, &tall);
        T_NEAR((double)f32_at(&two, 0), 18, 1e-4);
        T_NEAR((double)f32_at(&two, 1), 42, 1e-4);
        go(&one, &tall);
        T_NEAR((double)f32_at(&one, 0), 30, 1e-4);
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
        go(&o, &s.img);
        T_TRUE(intact(&o));
        for (size_t e = 0; e < 3 * th * tw; e++) {
            size_t c = nhwc ? e % 3 : e / (th * tw), at = nhwc ? e / 3 : e % (th * tw);
            double want = resized_at(&s.img, tw, th, at % tw, at / tw, o.pre.bgr ? 2 - c : c);

            T_NEAR((double)f32_at(&o, e), want, 1e-3);
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
        go(&o, &s.img);
        T_TRUE(intact(&o));
        for (size_t k = 0; k < o.bytes / sizeof(float); k++) {
            T_TRUE(f32_at(&o, k) == value);
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
        go(&a, &s.img);
        go(&b, &s.img);
        T_TRUE(intact(&a) && intact(&b) && memcmp(a.data, b.data, a.bytes) == 0);
        for (size_t k = 0; k < a.bytes / sizeof(float); k++) {
            T_TRUE(f32_at(&a, k) >= -0.01f && f32_at(&a, k) <= 255.01f);
        }
    }
}

TEST(one_pixel)
{
    const uint8_t rgb[] = {1, 2, 3};
    struct krn_image img = {KRN_PIX_RGB24, 1, 1, 3, rgb};
    TARGET(o, MDL_F32, true, 3, 1, 1, 1);
    TARGET(big, MDL_F32, true, 3, 3, 3, 2);

    go(&o, &img);
    T_TRUE(f32_at(&o, 0) == 1 && f32_at(&o, 1) == 2 && f32_at(&o, 2) == 3);
    go(&big, &img);
    T_TRUE(f32_at(&big, 8 * 3 + 2) == 3 && intact(&big));
}

TEST(crop_takes_the_middle)
{
    const uint8_t gray[] = {1, 2, 3, 4, 5, 6};
    struct krn_image img = {KRN_PIX_GRAY8, 6, 1, 6, gray};
    TARGET(o, MDL_F32, false, 1, 1, 2, 1);

    o.pre.fit = MDL_FIT_CROP;
    go(&o, &img);
    T_TRUE(f32_at(&o, 0) == 3 && f32_at(&o, 1) == 4);
}

TEST(letterbox_bars_are_grey)
{
    const uint8_t gray[] = {1, 2, 3, 4};
    struct krn_image img = {KRN_PIX_GRAY8, 4, 1, 4, gray};
    TARGET(o, MDL_F32, false, 1, 4, 4, 1);

    o.pre.fit = MDL_FIT_LETTERBOX;
    o.pre.mean[0] = 28;
    o.pre.std[0] = 2;
    go(&o, &img);
    for (size_t x = 0; x < 4; x++) {
        T_TRUE(f32_at(&o, x) == 50);
        T_TRUE(f32_at(&o, 4 + x) == ((float)x + 1 - 28) / 2);
        T_TRUE(f32_at(&o, 8 + x) == 50 && f32_at(&o, 12 + x) == 50);
    }
    {
        const uint8_t tall[] = {1, 2, 3, 4};
        struct krn_image narrow = {KRN_PIX_GRAY8, 1, 4, 1, tall};
        go(&o, &narrow);
        T_TRUE(f32_at(&o, 0) == 50 && f32_at(&o, 1) == -13.5f && f32_at(&o, 2) == 50);
    }
}

TEST(unknown_preprocessing_is_plain_rgb)
{
    TARGET(o, MDL_F32, true, 3, 1, 1, 1);
    const uint8_t rgb[] = {1, 2, 3};
    struct krn_image img = {KRN_PIX_RGB24, 1, 1, 3, rgb};

    o.pre = (struct mdl_preproc){.nhwc = true};
    go(&o, &img);
    T_TRUE(f32_at(&o, 0) == 1 && f32_at(&o, 1) == 2 && f32_at(&o, 2) == 3);
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
    go(&o, &img);
    T_TRUE(intact(&o));
    for (size_t n = 0; n < 2; n++) {
        T_TRUE(f32_at(&o, n * 4) == 1 && f32_at(&o, n * 4 + 2) == 3 && f32_at(&o, n * 4 + 3) == 0);
    }
}

TEST_MAIN()
