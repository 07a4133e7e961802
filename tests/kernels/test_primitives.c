/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every primitive against its reference: layers of real networks (made smaller in height and width,
 * where channels and windows are what matters) and random shapes around every edge. Convolutions
 * and products are here; the other operators are in test_primitives_light.c. Both fail for a
 * primitive of their kinds that no case reached.
 */
#include <math.h>

#include "tests/harness.h"
#include "tests/kernels/against_ref.h"
#include "tests/kernels/check_values.h"
#include "tests/kernels/conv_shape.h"
#include "tests/kernels/real_layers.h"

struct conv_case {
    struct conv_shape s;
    enum mdl_act act;
    enum mdl_residual residual;
    float odd; /* plant() */
};

/* our own primitives: wino2, wino4, wino6, wino2_5x5, wino4_1x3 ... */
static bool of_winograd(const struct krn_primitive *v)
{
    const char *at = strstr(v->name, "_wino");

    return at && at[5] != '_';
}

static bool of_strassen(const struct krn_primitive *v)
{
    return strstr(v->name, "_strassen__");
}

/* @odd: 0, or what one element of the input is in place of its value */
static void plant(struct one_op *o, float odd)
{
    if (odd != 0.0f) {
        memcpy(o->buffers[o->op.in[0]].data + 5 * sizeof(odd), &odd, sizeof(odd));
    }
}

/* oneDNN's limits make 0, or the lower one, of a NaN. */
static const char *not_for(enum mdl_act act, float odd)
{
    return isnan(odd) && (act == MDL_ACT_RELU || act == MDL_ACT_CLIP) ? "__dnnl" : NULL;
}

static bool conv_run(const struct conv_case *k, const char *name, const char *expect)
{
    struct one_op *o = one_op_new(MDL_OP_CONV);
    const struct conv_shape *s = &k->s;
    size_t cg = s->c / s->groups;
    int length = conv_tell(s, name, o->name, sizeof(o->name));
    struct check c = {.bound = CHECK_SUM,
                      .terms = (double)(cg * s->kh * s->kw),
                      .ulps = 6,
                      .absolute = 2e-7,
                      .expect = expect,
                      .without = not_for(k->act, k->odd),
                      .force = strcmp(name, "winograd") == 0   ? of_winograd
                               : strcmp(name, "strassen") == 0 ? of_strassen
                                                               : NULL};
    bool ok;

    snprintf(o->name + length, sizeof(o->name) - (size_t)length, " act %d res %d", (int)k->act,
             (int)k->residual);
    o->op.in[0] = one_op_image_apart(o, s->n, s->c, s->h, s->w, s->x_pixel, s->x_gap);
    o->op.in[1] =
        one_op_tensor(o, MDL_F32, MDL_HOME_CONST, 4, (size_t[]){s->o, cg, s->kh, s->kw}, NULL);
    o->op.out[0] = one_op_image(o, s->n, s->o, conv_out_height(s), conv_out_width(s), s->y_pixel);
    o->op.attr.conv.groups = s->groups;
    o->op.attr.conv.window = conv_window(s);
    check_fill(o, o->op.in[0], 1.0f);
    plant(o, k->odd);
    check_fill(o, o->op.in[1], 0.5f);
    check_epilogue(o, s->o, k->act, k->residual);
    ok = check_run(o, &c);
    one_op_free(o);
    return ok;
}

TEST(convs_of_real_networks)
{
    for (size_t i = 0; i < base_array_count(layer_convs); i++) {
        const struct layer_conv *l = &layer_convs[i];
        struct conv_case k = {.s = conv_of_layer(l), .act = MDL_ACT_RELU};

        if (!conv_too_large(&k.s)) {
            T_TRUE(conv_run(&k, l->name, l->groups == 1 ? "igemm" : "__"));
        }
    }
}

static struct conv_case with_epilogue(struct conv_shape s)
{
    struct conv_case k = {.s = s};

    k.act = (enum mdl_act)t_range(0, MDL_ACT_SOFTPLUS);
    k.residual = (enum mdl_residual)t_range(0, 2);
    return k;
}

TEST(convs_of_random_shapes)
{
    for (int i = 0; i < t_times(350); i++) {
        struct conv_case k = with_epilogue(conv_random());

        T_TRUE(conv_run(&k, "random", "igemm"));
    }
}

/* sizes around the register tiles: every count of pixels and channels once */
TEST(convs_around_tile_edges)
{
    for (size_t i = 1; i <= 70; i++) {
        struct conv_case k = {.s = conv_square(5, 1, i, 71 - i, 1, 0),
                              .act = MDL_ACT_RELU,
                              .residual = i % 2 ? MDL_RESIDUAL_BEFORE_ACT : MDL_RESIDUAL_NONE};

        T_TRUE(conv_run(&k, "tile edge", "igemm"));
        k.s.o = i;
        T_TRUE(conv_run(&k, "tile edge", "blas"));
    }
}

/* 1x1 of stride 1: tiles of every height, parts of panels, channels around the pieces between two
 * prefetches, pixels that share a set of the first-level cache, groups, every epilogue */
TEST(convs_of_one_tap)
{
    for (size_t i = 0; i < (size_t)t_times(180); i++) {
        struct conv_case k = {.s = conv_square((size_t)t_range(1, 50), (size_t)t_range(1, 4),
                                               1 + i % 45, (size_t)t_range(1, 100), 1, 0)};

        k.s.n = (size_t)t_range(1, 2);
        if (t_range(0, 3) == 0) {
            k.s.groups = (size_t)t_range(2, 3);
            k.s.c *= k.s.groups;
            k.s.o *= k.s.groups;
        }
        conv_random_pixels(&k.s);
        k.s.x_pixel = t_range(0, 5) == 0 ? 1024 : k.s.x_pixel;
        k.s.x_gap = t_range(0, 3) == 0 ? (size_t)t_range(1, 40) : 0;
        k.act = (enum mdl_act)t_range(0, MDL_ACT_SOFTPLUS);
        k.residual = (enum mdl_residual)t_range(0, 2);
        T_TRUE(conv_run(&k, "one tap", "igemm"));
    }
}

/* every element function with every residual, on one shape, more values */
TEST(convs_with_every_epilogue)
{
    size_t h = t_share() > 8 ? 3 : 9;

    for (int act = MDL_ACT_NONE; act <= MDL_ACT_SOFTPLUS; act++) {
        for (int res = MDL_RESIDUAL_NONE; res <= MDL_RESIDUAL_AFTER_ACT; res++) {
            struct conv_case k = {.s = conv_square(48, h, h + 2, 53, 3, 1),
                                  .act = (enum mdl_act)act,
                                  .residual = (enum mdl_residual)res};

            k.s.y_pixel = 64;
            T_TRUE(conv_run(&k, "epilogue", "igemm"));
            k.s.groups = k.s.c = k.s.o = 53;
            T_TRUE(conv_run(&k, "depthwise epilogue", "__"));
        }
    }
}

/* on every Winograd primitive that can run it, be it slower there */
TEST(winograd_of_random_shapes)
{
    for (int i = 0; i < t_times(90); i++) {
        struct conv_case k = with_epilogue(conv_random_winograd());

        T_TRUE(conv_run(&k, "winograd", "igemm"));
    }
}

/* more tiles than one block has, and weights too large to be transformed beforehand */
TEST(winograd_of_many_tiles_and_large_weights)
{
    static const size_t shapes[][6] = {
        {16, 37, 41, 24, 3, 3}, {9, 50, 62, 8, 3, 3},   {176, 7, 7, 160, 3, 3},
        {16, 27, 29, 24, 5, 5}, {96, 9, 9, 96, 5, 5},   {16, 37, 41, 24, 1, 3},
        {16, 37, 41, 24, 3, 1}, {264, 3, 4, 176, 1, 3}, {9, 50, 37, 8, 5, 1},
        {9, 26, 31, 24, 1, 7},  {208, 3, 5, 128, 1, 7}, {208, 3, 5, 128, 7, 1}};

    for (size_t i = 0; i < base_array_count(shapes); i++) {
        const size_t *s = shapes[i];
        struct conv_case k = {.s = conv_same(s[0], s[1], s[2], s[3], s[4], s[5]),
                              .act = MDL_ACT_LEAKY_RELU,
                              .residual = MDL_RESIDUAL_BEFORE_ACT};

        T_TRUE(conv_run(&k, "winograd", "igemm"));
    }
}

/* several blocks of pixels, and of primitives under one window, in primitives that work on planes;
 * with many channels and few pixels a team shares the channels */
TEST(convs_in_blocks)
{
    static const size_t shapes[][5] = {
        {40, 23, 90, 40, 3}, {8, 37, 41, 8, 5}, {90, 31, 37, 60, 1}, {300, 3, 5, 200, 3}};

    for (size_t i = 0; i < base_array_count(shapes); i++) {
        struct conv_case k = {.s = conv_square(shapes[i][0], shapes[i][1], shapes[i][2],
                                               shapes[i][3], shapes[i][4], shapes[i][4] / 2),
                              .act = MDL_ACT_RELU,
                              .residual = i % 2 ? MDL_RESIDUAL_NONE : MDL_RESIDUAL_BEFORE_ACT};

        T_TRUE(conv_run(&k, "blocks", "conv_f32_nchw"));
    }
}

/* 1x1 on every Strassen primitive that can run it, be it slower there: odd numbers of pixels,
 * halves of channels around a vector and a piece of a packed row, panels that are no pair */
static struct conv_case random_strassen(void)
{
    struct conv_shape s = conv_square(0, 0, 0, 0, 1, 0);

    s.n = (size_t)t_range(1, 2);
    s.c = 2 * (size_t)(t_range(0, 3) ? t_range(1, 40) : t_range(60, 90));
    s.h = (size_t)t_range(1, 9);
    s.w = (size_t)t_range(1, 13);
    s.o = (size_t)(t_range(0, 2) ? t_range(16, 80) : t_range(64, 150));
    s.sh = (size_t)t_range(1, 2);
    s.sw = (size_t)t_range(1, 2);
    conv_random_pixels(&s);
    return with_epilogue(s);
}

TEST(strassen_of_random_shapes)
{
    for (int i = 0; i < t_times(80); i++) {
        struct conv_case k = random_strassen();

        T_TRUE(conv_run(&k, "strassen", "igemm"));
    }
}

/* every number of pixels around the register tile, and several blocks of pixels */
TEST(strassen_of_few_and_many_pixels)
{
    struct conv_case k = {.s = conv_square(36, 1, 0, 64, 1, 0),
                          .act = MDL_ACT_CLIP,
                          .residual = MDL_RESIDUAL_BEFORE_ACT};

    for (k.s.w = 1; k.s.w <= 50; k.s.w += k.s.w < 27 ? 1 : 7) {
        T_TRUE(conv_run(&k, "strassen", "igemm"));
    }
    k.s.c = 2400;
    k.s.w = t_share() > 1 ? 27 : 151;
    T_TRUE(conv_run(&k, "strassen", "igemm"));
}

/* groups of every size around a vector, output rows of every length around the strip in registers,
 * windows that reach out on all sides */
static struct conv_case random_groups(size_t width)
{
    static const size_t sizes[] = {2, 4, 8, 16, 2, 4, 8, 3, 5, 7, 12, 15, 17, 24, 32};
    struct conv_shape s = conv_random();
    size_t og = sizes[t_range(0, base_array_count(sizes) - 1)];
    bool even = t_range(0, 3) != 0;

    s.w = width;
    s.groups = (size_t)t_range(2, og < 8 ? 24 : 5);
    s.o = s.groups * og;
    s.c = s.groups * (even && og <= 16 ? og : (size_t)t_range(2, 9));
    if (t_range(0, 2)) {
        s.kh = s.kw = 3;
        s.dh = s.dw = 1;
        s.sh = s.sw = (size_t)t_range(1, 2);
    }
    s.h = base_max(s.h, (s.kh - 1) * s.dh + 1);
    s.w = base_max(s.w, (s.kw - 1) * s.dw + 1);
    conv_random_pixels(&s);
    return with_epilogue(s);
}

TEST(convs_of_small_groups)
{
    for (size_t i = 0; i < (size_t)t_times(160); i++) {
        struct conv_case k = random_groups(1 + i % 32);

        T_TRUE(conv_run(&k, "groups", "grouped"));
    }
}

static bool transpose_run(const struct conv_shape *s, size_t h, size_t w)
{
    struct one_op *o = one_op_new(MDL_OP_CONV_TRANSPOSE);
    int length = conv_tell(s, "transposed", o->name, sizeof(o->name));
    struct check c = {.bound = CHECK_SUM,
                      .terms = (double)(s->c / s->groups * s->kh * s->kw),
                      .ulps = 6,
                      .absolute = 2e-7,
                      .expect = "conv_transpose"};
    bool ok;

    snprintf(o->name + length, sizeof(o->name) - (size_t)length, " to %zux%zu", h, w);
    o->op.in[0] = one_op_image(o, s->n, s->c, s->h, s->w, s->x_pixel);
    o->op.in[1] = one_op_tensor(o, MDL_F32, MDL_HOME_CONST, 4,
                                (size_t[]){s->c, s->o / s->groups, s->kh, s->kw}, NULL);
    o->op.out[0] = one_op_image(o, s->n, s->o, h, w, s->y_pixel);
    o->op.attr.conv.groups = s->groups;
    o->op.attr.conv.window = conv_window(s);
    check_fill(o, o->op.in[0], 1.0f);
    check_fill(o, o->op.in[1], 0.5f);
    check_epilogue(o, s->o, (enum mdl_act)t_range(0, MDL_ACT_SOFTPLUS),
                   (enum mdl_residual)t_range(0, 2));
    ok = check_run(o, &c);
    one_op_free(o);
    return ok;
}

/* (in - 1) stride + kernel's extent - pads, and more */
static size_t transposed_size(size_t in, size_t stride, size_t kernel, size_t dilation, size_t pads)
{
    size_t size = (in - 1) * stride + (kernel - 1) * dilation + 1;

    return (size > pads ? size - pads : 1) + (size_t)t_range(0, (int64_t)stride - 1);
}

TEST(transposed_convs)
{
    for (size_t i = 0; i < base_array_count(layer_transposes); i++) {
        const struct layer_conv *l = &layer_transposes[i];
        struct conv_shape s = conv_square(l->c, 3, 7, l->o, l->k, l->pad);

        s.sh = s.sw = l->stride;
        s.groups = l->groups;
        T_TRUE(transpose_run(&s, 3 * l->stride, 7 * l->stride));
    }
    for (int i = 0; i < t_times(120); i++) {
        struct conv_shape s = conv_random();

        s.kh = (size_t)t_range(1, 6);
        s.sh = (size_t)t_range(1, 4);
        T_TRUE(transpose_run(&s, transposed_size(s.h, s.sh, s.kh, s.dh, s.top + s.bottom),
                             transposed_size(s.w, s.sw, s.kw, s.dw, s.left + s.right)));
    }
}

struct product_case {
    size_t m, n, k, extra_a, extra_y;
    bool gemm, trans_b, const_b;
    enum mdl_act act;
    enum mdl_residual residual;
    float odd; /* plant() */
};

static bool product_run(const struct product_case *p, const char *name, const char *expect)
{
    struct one_op *o = one_op_new(p->gemm ? MDL_OP_GEMM : MDL_OP_MATMUL);
    bool trans = p->gemm && p->trans_b;
    ptrdiff_t a_stride[] = {(ptrdiff_t)(p->k + p->extra_a), 1};
    ptrdiff_t y_stride[] = {(ptrdiff_t)(p->n + p->extra_y), 1};
    struct check c = {.bound = CHECK_SUM,
                      .terms = (double)p->k,
                      .ulps = 6,
                      .absolute = 2e-7,
                      .expect = expect,
                      .without = not_for(p->act, p->odd)};
    bool ok;

    snprintf(o->name, sizeof(o->name),
             "%s: %zux%zux%zu lda +%zu ldy +%zu gemm %d trans %d const %d", name, p->m, p->k, p->n,
             p->extra_a, p->extra_y, p->gemm, trans, p->const_b);
    o->op.in[0] = one_op_tensor(o, MDL_F32, MDL_HOME_ARENA, 2, (size_t[]){p->m, p->k}, a_stride);
    o->op.in[1] = one_op_tensor(o, MDL_F32, p->const_b ? MDL_HOME_CONST : MDL_HOME_ARENA, 2,
                                trans ? (size_t[]){p->n, p->k} : (size_t[]){p->k, p->n}, NULL);
    o->op.out[0] = one_op_tensor(o, MDL_F32, MDL_HOME_ARENA, 2, (size_t[]){p->m, p->n}, y_stride);
    if (p->gemm) {
        o->op.attr.gemm.trans_b = trans;
        o->op.attr.gemm.alpha = p->m % 2 ? 1.0f : 0.75f;
        o->op.attr.gemm.beta = 1.0f;
    }
    check_fill(o, o->op.in[0], 1.0f);
    plant(o, p->odd);
    check_fill(o, o->op.in[1], 0.5f);
    if (p->const_b) {
        check_epilogue(o, p->n, p->act, p->residual);
    }
    ok = check_run(o, &c);
    one_op_free(o);
    return ok;
}

TEST(products_of_real_networks)
{
    for (size_t i = 0; i < base_array_count(layer_products); i++) {
        const struct layer_product *l = &layer_products[i];
        struct product_case p = {.m = l->m,
                                 .k = l->k,
                                 .n = l->n,
                                 .gemm = true,
                                 .trans_b = true,
                                 .const_b = true,
                                 .act = MDL_ACT_RELU};

        while ((double)p.m * (double)p.k * (double)p.n > MACS_MAX && p.n > 2) {
            p.n = p.n / 2 + 1;
        }
        T_TRUE(product_run(&p, l->name, "igemm"));
    }
}

TEST(products_of_random_shapes)
{
    for (int i = 0; i < t_times(200); i++) {
        struct product_case p = {.m = (size_t)(t_range(0, 2) ? t_range(1, 80) : 1),
                                 .n = (size_t)t_range(1, 150),
                                 .k = (size_t)t_range(1, 130),
                                 .extra_a = (size_t)(t_range(0, 2) ? 0 : t_range(1, 5)),
                                 .extra_y = (size_t)(t_range(0, 2) ? 0 : t_range(1, 5)),
                                 .gemm = t_range(0, 1) && i % 8 != 1, /* also of a 64th */
                                 .trans_b = t_range(0, 1),
                                 .const_b = t_range(0, 3) != 0 && i % 8 != 1,
                                 .act = (enum mdl_act)t_range(0, MDL_ACT_SOFTPLUS),
                                 .residual = (enum mdl_residual)t_range(0, 2)};

        T_TRUE(product_run(&p, "random", p.const_b ? "igemm" : "blas"));
    }
}

/* Shapes for which no primitive spreads one wrong input, as Winograd's and Strassen's do. */
TEST(what_is_no_number_stays_none)
{
    static const float odds[] = {NAN, INFINITY, -INFINITY};
    static const enum mdl_act acts[] = {MDL_ACT_NONE, MDL_ACT_RELU, MDL_ACT_CLIP, MDL_ACT_SIGMOID};
    struct conv_shape shapes[] = {conv_square(16, 5, 6, 24, 1, 0), conv_square(16, 6, 7, 16, 3, 1),
                                  conv_square(16, 6, 7, 24, 3, 1), conv_square(3, 9, 8, 16, 3, 1)};

    shapes[1].groups = 16;
    shapes[2].sh = shapes[2].sw = shapes[3].sh = shapes[3].sw = 2;
    for (size_t i = 0; i < base_array_count(odds) * base_array_count(acts); i++) {
        float odd = odds[i % base_array_count(odds)];
        enum mdl_act act = acts[i / base_array_count(odds)];

        for (size_t k = 0; k < base_array_count(shapes); k++) {
            struct conv_case c = {.s = shapes[k], .act = act, .odd = odd};

            T_TRUE(conv_run(&c, isnan(odd) ? "NaN" : "infinity", "blas"));
        }
        for (size_t k = 0; k < 4; k++) {
            struct product_case p = {.m = k / 2 ? 5 : 1,
                                     .n = 24,
                                     .k = 32,
                                     .gemm = k % 2,
                                     .trans_b = true,
                                     .const_b = true,
                                     .act = act,
                                     .odd = odd};

            T_TRUE(product_run(&p, isnan(odd) ? "NaN" : "infinity", "igemm"));
        }
    }
}

/* those on quantised values: test_primitives_i8.c */
static bool ours(const struct krn_primitive *v)
{
    return (v->kind == MDL_OP_CONV || v->kind == MDL_OP_CONV_TRANSPOSE || v->kind == MDL_OP_GEMM ||
            v->kind == MDL_OP_MATMUL) &&
           !strstr(v->name, "_i8_");
}

TEST(no_primitive_is_untested)
{
    if (check_partial) {
        T_SKIP("only some cases were asked for");
    }
    T_EQ(check_unexercised(ours), 0);
}

CHECK_MAIN()
