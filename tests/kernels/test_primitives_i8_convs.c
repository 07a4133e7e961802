/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions on quantised values: real layers, tile edges, sums at the ends of their types. */
#include "tests/harness.h"
#include "tests/kernels/against_ref.h"
#include "tests/kernels/conv_shape.h"
#include "tests/kernels/i8_case.h"
#include "tests/kernels/real_layers.h"

struct conv_case {
    struct conv_shape s;
    struct i8_case q;
};

static bool conv_run(const struct conv_case *k, const char *name, const char *expect)
{
    struct mdl_quant *q;
    struct one_op *o = i8_conv(&k->s, &k->q, name, &q);

    return i8_finish(o, &k->q, q, expect);
}

TEST(convs_of_real_networks)
{
    for (size_t i = 0; i < base_array_count(layer_convs); i++) {
        const struct layer_conv *l = &layer_convs[i];
        struct conv_case k = {.s = conv_of_layer(l), .q = i8_random_case()};

        if (!conv_too_large(&k.s)) {
            T_TRUE(conv_run(&k, l->name, l->groups == l->c ? "i8_nhwc_dw" : "i8_nhwc_igemm"));
        }
    }
}

TEST(convs_of_random_shapes)
{
    for (int i = 0; i < t_times(400); i++) {
        struct conv_case k = {.q = i8_random_case()};

        k.s = conv_random();
        T_TRUE(conv_run(&k, "random", "i8_nhwc_igemm"));
    }
}

static struct conv_case conv_3x3(size_t c, size_t o, size_t h, size_t w)
{
    return (struct conv_case){.s = conv_square(c, h, w, o, 3, 0), .q = i8_random_case()};
}

/* one channel a group: windows up to 9 rows and 6 columns, rests of vectors, images narrower than a
 * strip of outputs and wider */
TEST(convs_of_depth_1)
{
    for (int i = 0; i < t_times(120); i++) {
        struct conv_case k = {.q = i8_random_case()};
        size_t c = (size_t)t_range(1, 150);

        k.s = conv_square(c, (size_t)t_range(9, 14), (size_t)t_range(6, 60), c,
                          t_range(0, 1) ? 3 : 5, 0);
        if (t_range(0, 1)) {
            k.s.kh = (size_t)t_range(1, 9);
            k.s.kw = (size_t)t_range(1, 6);
        }
        k.s.groups = c;
        k.s.sh = (size_t)t_range(1, 2);
        k.s.sw = (size_t)t_range(1, 2);
        conv_random_pads(&k.s, 2);
        conv_random_pixels(&k.s);
        T_TRUE(conv_run(&k, "depth 1", "i8_nhwc_dw"));
    }
}

/* F(4x4): every rest of a tile, channels about its blocks, images that share tiles' blocks */
TEST(convs_of_3x3)
{
    for (int i = 0; i < t_times(60); i++) {
        struct conv_case k =
            conv_3x3((size_t)(t_range(0, 3) ? t_range(24, 100) : t_range(120, 270)),
                     (size_t)t_range(24, 70), (size_t)t_range(8, 15), (size_t)t_range(8, 15));

        k.s.n = (size_t)t_range(1, 3);
        conv_random_pads(&k.s, 2);
        conv_random_pixels(&k.s);
        T_TRUE(conv_run(&k, "3x3", "i8_nhwc"));
    }
}

/* 9 c 128 255 is just below 2^26 for 228 channels, and F(4x4) has to know */
TEST(sums_at_the_ends_of_f4x4)
{
    for (int fill = 1; fill <= 3; fill++) {
        for (size_t c = 228; c <= 229; c++) {
            struct conv_case k = conv_3x3(c, 24, 8, 8);

            k.q = (struct i8_case){.x = fill == 2 ? MDL_U8 : MDL_I8,
                                   .w = MDL_I8,
                                   .y = MDL_F32,
                                   .fill = fill,
                                   .zero_is_0 = true};
            T_TRUE(conv_run(&k, "range", c == 228 || fill == 2 ? "i8_nhwc_f4x4" : "i8_nhwc_igemm"));
        }
    }
}

/* sizes around the register tiles: every count of pixels and channels once */
TEST(convs_around_tile_edges)
{
    for (size_t i = 1; i <= 70; i++) {
        struct conv_case k = {.s = conv_square(1 + i % 9, 1, i, 71 - i, 1, 0),
                              .q = i8_random_case()};

        T_TRUE(conv_run(&k, "tile edge", "i8_nhwc_igemm"));
        k.s.o = i;
        T_TRUE(conv_run(&k, "tile edge", "i8_nhwc_igemm"));
    }
}

TEST(narrow_convs)
{
    for (int i = 0; i < t_times(70); i++) {
        struct conv_case k = {.s = conv_random(), .q = i8_random_case()};

        k.q.narrow = true;
        T_TRUE(conv_run(&k, "narrow", k.s.groups == 1 && k.s.c > 1 ? "i8_nhwc__dnnl" : "i8_nhwc"));
    }
    for (size_t i = 0; i < base_array_count(layer_convs); i += 4) {
        const struct layer_conv *l = &layer_convs[i];
        struct conv_case k = {.s = conv_of_layer(l), .q = i8_random_case()};

        k.q.narrow = true;
        if (!conv_too_large(&k.s) && l->groups != l->c) {
            T_TRUE(conv_run(&k, l->name, "i8_nhwc"));
        }
    }
}

/* Bands, and more of them than members: large planes of few channels. */
TEST(narrow_convs_of_many_bands)
{
    for (int i = 0; i < t_times(6); i++) {
        size_t k = i % 2 ? 1 : 3;
        struct conv_case c = {.s = conv_square(4, (size_t)t_range(40, 70), (size_t)t_range(40, 70),
                                               (size_t)t_range(30, 60), k, k / 2),
                              .q = i8_random_case()};

        c.s.n = (size_t)t_range(1, 2);
        c.q.narrow = true;
        T_TRUE(conv_run(&c, "bands", "i8_nhwc__dnnl"));
    }
}

/* 255 times 1044 weights of 63 is just below 2^24, to which f32 has every integer; with 1045 the
 * primitive has to leave it, or the sum is off by one, which a zero point of 255 shows. */
TEST(sums_at_the_ends_of_f32)
{
    for (int i = 0; i < 24; i++) {
        struct conv_case k = {.s = conv_square(1044 + (size_t)i % 2, 1, 3, 20, 1, 0)};

        k.q = (struct i8_case){.x = MDL_U8, .w = MDL_I8, .y = MDL_F32, .fill = 2, .narrow = true};
        T_TRUE(conv_run(&k, "range", i % 2 ? "i8_nhwc_igemm" : "i8_nhwc__dnnl"));
    }
}

/* Without dot products oneDNN adds pairs in 16 bits, and then it takes no weight beyond 64. What
 * oneDNN finds of the CPU has to be what krn_cpu_features() says, also under PIPED_CPU. */
TEST(onednn_has_the_dot_products_that_the_cpu_has)
{
    uint32_t have = krn_cpu_features();
    bool dot =
        have & KRN_CPU_AVX512 ? have & (KRN_CPU_AVX512VNNI | KRN_CPU_AMX) : have & KRN_CPU_AVXVNNI;
    struct conv_case k = {
        .s = conv_square(64, 8, 8, 64, 1, 0),
        .q = {.x = MDL_U8, .w = MDL_I8, .y = MDL_U8, .zero_is_0 = true},
    };
    size_t count;
    const struct krn_primitive *v = krn_primitives(&count), *row = NULL;

    for (size_t i = 0; i < count; i++) {
        row = strcmp(v[i].name, "conv_i8_nhwc__dnnl") == 0 ? &v[i] : row;
    }
    if (!row || (row->needs & ~have)) {
        T_SKIP("this build or this CPU has no oneDNN on bytes");
    }
    for (int weight = 64; weight <= 65; weight++) {
        struct mdl_quant *q;
        struct one_op *o = i8_conv(&k.s, &k.q, "oneDNN", &q);
        bool takes;

        memset(o->buffers[o->op.in[1]].data, weight, o->buffers[o->op.in[1]].bytes);
        takes = row->supports(&o->m, &o->op);
        free(q);
        one_op_free(o);
        T_EQ(takes, dot || weight == 64);
    }
}
