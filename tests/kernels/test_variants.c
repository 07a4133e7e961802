/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every variant against its reference: layers of real networks (made smaller in height and width,
 * where channels and windows are what matters) and random shapes around every edge. Convolutions
 * and products are here; the other operators are in test_variants_light.c. Both fail for a variant
 * of their kinds that no case reached.
 */
#include "tests/harness.h"
#include "tests/kernels/check.h"
#include "tests/kernels/layers.h"

static bool t_cases_filtered; /* only some cases run */

/* multiply-accumulates of a case at most: the reference is slow */
#define MACS_MAX (1.5e6 / t_share())

struct conv_case {
    size_t n, c, h, w, o, kh, kw, sh, sw, dh, dw, top, left, bottom, right, groups;
    size_t x_pixel, y_pixel; /* 0: dense */
    enum mdl_act act;
    enum mdl_residual residual;
};

/* our own rows: wino2, wino4, wino6 */
static bool of_winograd(const struct krn_variant *v)
{
    const char *at = strstr(v->name, "_wino");

    return at && at[5] != '_';
}

static bool of_strassen(const struct krn_variant *v)
{
    return strstr(v->name, "_strassen__");
}

static bool conv_run(const struct conv_case *k, const char *name, const char *expect)
{
    struct one_op *o = one_op_new(MDL_OP_CONV);
    size_t cg = k->c / k->groups;
    size_t span_h = (k->kh - 1) * k->dh + 1, span_w = (k->kw - 1) * k->dw + 1;
    size_t ho = (k->h + k->top + k->bottom - span_h) / k->sh + 1;
    size_t wo = (k->w + k->left + k->right - span_w) / k->sw + 1;
    struct check c = {.bound = CHECK_SUM,
                      .terms = (double)(cg * k->kh * k->kw),
                      .ulps = 6,
                      .absolute = 2e-7,
                      .expect = expect,
                      .force = strcmp(name, "winograd") == 0   ? of_winograd
                               : strcmp(name, "strassen") == 0 ? of_strassen
                                                               : NULL};
    bool ok;

    snprintf(o->name, sizeof(o->name),
             "%s: %zux%zux%zux%zu -> %zu, %zux%zu/%zux%zu dil %zux%zu pad %zu,%zu,%zu,%zu groups "
             "%zu pixels %zu,%zu act %d res %d",
             name, k->n, k->c, k->h, k->w, k->o, k->kh, k->kw, k->sh, k->sw, k->dh, k->dw, k->top,
             k->left, k->bottom, k->right, k->groups, k->x_pixel, k->y_pixel, (int)k->act,
             (int)k->residual);
    o->op.in[0] = one_op_image(o, k->n, k->c, k->h, k->w, k->x_pixel);
    o->op.in[1] =
        one_op_tensor(o, MDL_F32, MDL_HOME_CONST, 4, (size_t[]){k->o, cg, k->kh, k->kw}, NULL);
    o->op.out[0] = one_op_image(o, k->n, k->o, ho, wo, k->y_pixel);
    o->op.attr.conv.groups = k->groups;
    o->op.attr.conv.window = (struct mdl_window){.rank = 2,
                                                 .kernel = {k->kh, k->kw},
                                                 .stride = {k->sh, k->sw},
                                                 .dilation = {k->dh, k->dw},
                                                 .pad_begin = {k->top, k->left},
                                                 .pad_end = {k->bottom, k->right}};
    check_fill(o, o->op.in[0], 1.0f);
    check_fill(o, o->op.in[1], 0.5f);
    check_epilogue(o, k->o, k->act, k->residual);
    ok = check_run(o, &c);
    one_op_free(o);
    return ok;
}

TEST(convs_of_real_networks)
{
    for (size_t i = 0; i < base_array_count(layer_convs); i++) {
        const struct layer_conv *l = &layer_convs[i];
        struct conv_case k = {.n = 1,
                              .c = l->c,
                              .h = l->h,
                              .w = l->w,
                              .o = l->o,
                              .kh = l->k,
                              .kw = l->k,
                              .sh = l->stride,
                              .sw = l->stride,
                              .dh = 1,
                              .dw = 1,
                              .top = l->pad,
                              .left = l->pad,
                              .bottom = l->pad,
                              .right = l->pad,
                              .groups = l->groups,
                              .act = MDL_ACT_RELU};
        double per_pixel = (double)(l->c / l->groups * l->k * l->k * l->o);

        while (k.h > l->k + l->stride &&
               per_pixel * (double)(k.h / l->stride * k.w / l->stride) > MACS_MAX) {
            k.h = k.h * 3 / 4;
            k.w = k.w * 3 / 4 + 1;
        }
        T_TRUE(conv_run(&k, l->name, l->groups == 1 ? "igemm" : "__"));
    }
}

static struct conv_case random_conv(void)
{
    struct conv_case k = {.n = (size_t)t_range(1, 2), .groups = 1};
    size_t og;

    k.kh = (size_t)t_range(1, 5);
    k.kw = (size_t)t_range(1, 5);
    k.sh = (size_t)t_range(1, 3);
    k.sw = (size_t)t_range(1, 3);
    k.dh = (size_t)(t_range(0, 3) == 0 ? t_range(2, 3) : 1);
    k.dw = (size_t)(t_range(0, 3) == 0 ? t_range(2, 3) : 1);
    k.top = (size_t)t_range(0, 3);
    k.left = (size_t)t_range(0, 3);
    k.bottom = (size_t)t_range(0, 3);
    k.right = (size_t)t_range(0, 3);
    k.h = (size_t)t_range(1, 9);
    k.w = (size_t)t_range(1, 14);
    while (k.h + k.top + k.bottom < (k.kh - 1) * k.dh + 1) {
        k.h++;
    }
    while (k.w + k.left + k.right < (k.kw - 1) * k.dw + 1) {
        k.w++;
    }
    k.c = (size_t)t_range(1, 40);
    k.o = (size_t)t_range(1, 70);
    switch (t_range(0, 3)) {
    case 0: /* depthwise, sometimes with several outputs a channel */
        k.groups = k.c;
        k.o = k.c * (size_t)(t_range(0, 3) == 0 ? 2 : 1);
        break;
    case 1: /* grouped */
        k.groups = (size_t)t_range(2, 4);
        og = (size_t)t_range(1, 20);
        k.c = k.groups * (size_t)t_range(1, 12);
        k.o = k.groups * og;
        break;
    default:
        break;
    }
    k.x_pixel = t_range(0, 2) == 0 ? k.c + (size_t)t_range(1, 9) : 0;
    k.y_pixel = t_range(0, 2) == 0 ? k.o + (size_t)t_range(1, 9) : 0;
    k.act = (enum mdl_act)t_range(0, MDL_ACT_SOFTPLUS);
    k.residual = (enum mdl_residual)t_range(0, 2);
    return k;
}

TEST(convs_of_random_shapes)
{
    for (int i = 0; i < t_times(350); i++) {
        struct conv_case k = random_conv();

        T_TRUE(conv_run(&k, "random", "igemm"));
    }
}

/* sizes around the register tiles: every count of pixels and channels once */
TEST(convs_around_tile_edges)
{
    for (size_t i = 1; i <= 70; i++) {
        struct conv_case k = {.n = 1,
                              .c = 5,
                              .h = 1,
                              .w = i,
                              .o = 71 - i,
                              .kh = 1,
                              .kw = 1,
                              .sh = 1,
                              .sw = 1,
                              .dh = 1,
                              .dw = 1,
                              .groups = 1,
                              .act = MDL_ACT_RELU,
                              .residual = i % 2 ? MDL_RESIDUAL_BEFORE_ACT : MDL_RESIDUAL_NONE};

        T_TRUE(conv_run(&k, "tile edge", "igemm"));
        k.o = i;
        T_TRUE(conv_run(&k, "tile edge", "blas"));
    }
}

/* every element function with every residual, on one shape, more values */
TEST(convs_with_every_epilogue)
{
    for (int act = MDL_ACT_NONE; act <= MDL_ACT_SOFTPLUS; act++) {
        for (int res = MDL_RESIDUAL_NONE; res <= MDL_RESIDUAL_AFTER_ACT; res++) {
            struct conv_case k = {.n = 1,
                                  .c = 48,
                                  .h = 9,
                                  .w = 11,
                                  .o = 53,
                                  .kh = 3,
                                  .kw = 3,
                                  .sh = 1,
                                  .sw = 1,
                                  .dh = 1,
                                  .dw = 1,
                                  .top = 1,
                                  .left = 1,
                                  .bottom = 1,
                                  .right = 1,
                                  .groups = 1,
                                  .y_pixel = 64,
                                  .act = (enum mdl_act)act,
                                  .residual = (enum mdl_residual)res};

            T_TRUE(conv_run(&k, "epilogue", "igemm"));
            k.groups = k.c = k.o = 53;
            T_TRUE(conv_run(&k, "depthwise epilogue", "__"));
        }
    }
}

/* 3x3 of stride 1 on every Winograd row that can run it, be it slower there: tiles cut by the
 * borders, channels around a cache line and around the block, panels around the register tile */
static struct conv_case random_winograd(void)
{
    struct conv_case k = {
        .n = (size_t)t_range(1, 2),
        .c = (size_t)(t_range(0, 3) ? t_range(8, 40) : t_range(60, 140)),
        .h = (size_t)t_range(1, 13),
        .w = (size_t)t_range(1, 13),
        .o = (size_t)(t_range(0, 3) ? t_range(8, 40) : t_range(60, 80)),
        .kh = 3,
        .kw = 3,
        .sh = 1,
        .sw = 1,
        .dh = 1,
        .dw = 1,
        .top = (size_t)t_range(0, 3),
        .left = (size_t)t_range(0, 3),
        .bottom = (size_t)t_range(0, 3),
        .right = (size_t)t_range(0, 3),
        .groups = 1,
        .act = (enum mdl_act)t_range(0, MDL_ACT_SOFTPLUS),
        .residual = (enum mdl_residual)t_range(0, 2),
    };

    if (k.h + k.top + k.bottom < 3) {
        k.h = 3;
    }
    if (k.w + k.left + k.right < 3) {
        k.w = 3;
    }
    k.x_pixel = t_range(0, 2) == 0 ? k.c + (size_t)t_range(1, 9) : 0;
    k.y_pixel = t_range(0, 2) == 0 ? k.o + (size_t)t_range(1, 9) : 0;
    return k;
}

TEST(winograd_of_random_shapes)
{
    for (int i = 0; i < t_times(50); i++) {
        struct conv_case k = random_winograd();

        T_TRUE(conv_run(&k, "winograd", "igemm"));
    }
}

/* more tiles than one block has, and weights too large to be transformed beforehand */
TEST(winograd_of_many_tiles_and_large_weights)
{
    static const size_t shapes[][4] = {{16, 37, 41, 24}, {9, 50, 62, 8}, {176, 7, 7, 160}};

    for (size_t i = 0; i < base_array_count(shapes); i++) {
        struct conv_case k = {.n = 1,
                              .c = shapes[i][0],
                              .h = shapes[i][1],
                              .w = shapes[i][2],
                              .o = shapes[i][3],
                              .kh = 3,
                              .kw = 3,
                              .sh = 1,
                              .sw = 1,
                              .dh = 1,
                              .dw = 1,
                              .top = 1,
                              .left = 1,
                              .bottom = 1,
                              .right = 1,
                              .groups = 1,
                              .act = MDL_ACT_LEAKY_RELU,
                              .residual = MDL_RESIDUAL_BEFORE_ACT};

        T_TRUE(conv_run(&k, "winograd", "igemm"));
    }
}

/* 1x1 on every Strassen row that can run it, be it slower there: odd numbers of pixels, halves of
 * channels around a vector and a piece of a packed row, panels that are no pair */
static struct conv_case random_strassen(void)
{
    struct conv_case k = {
        .n = (size_t)t_range(1, 2),
        .c = 2 * (size_t)(t_range(0, 3) ? t_range(1, 40) : t_range(60, 90)),
        .h = (size_t)t_range(1, 9),
        .w = (size_t)t_range(1, 13),
        .o = (size_t)(t_range(0, 2) ? t_range(16, 80) : t_range(64, 150)),
        .kh = 1,
        .kw = 1,
        .sh = (size_t)t_range(1, 2),
        .sw = (size_t)t_range(1, 2),
        .dh = 1,
        .dw = 1,
        .groups = 1,
        .act = (enum mdl_act)t_range(0, MDL_ACT_SOFTPLUS),
        .residual = (enum mdl_residual)t_range(0, 2),
    };

    k.x_pixel = t_range(0, 2) == 0 ? k.c + (size_t)t_range(1, 9) : 0;
    k.y_pixel = t_range(0, 2) == 0 ? k.o + (size_t)t_range(1, 9) : 0;
    return k;
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
    struct conv_case k = {.n = 1,
                          .c = 36,
                          .h = 1,
                          .o = 64,
                          .kh = 1,
                          .kw = 1,
                          .sh = 1,
                          .sw = 1,
                          .dh = 1,
                          .dw = 1,
                          .groups = 1,
                          .act = MDL_ACT_CLIP,
                          .residual = MDL_RESIDUAL_BEFORE_ACT};

    for (k.w = 1; k.w <= 50; k.w += k.w < 27 ? 1 : 7) {
        T_TRUE(conv_run(&k, "strassen", "igemm"));
    }
    k.c = 2400;
    k.w = 151;
    k.o = 64;
    T_TRUE(conv_run(&k, "strassen", "igemm"));
}

struct product_case {
    size_t m, n, k, extra_a, extra_y;
    bool gemm, trans_b, const_b;
    enum mdl_act act;
    enum mdl_residual residual;
};

static bool product_run(const struct product_case *p, const char *name, const char *expect)
{
    struct one_op *o = one_op_new(p->gemm ? MDL_OP_GEMM : MDL_OP_MATMUL);
    bool trans = p->gemm && p->trans_b;
    ptrdiff_t a_stride[] = {(ptrdiff_t)(p->k + p->extra_a), 1};
    ptrdiff_t y_stride[] = {(ptrdiff_t)(p->n + p->extra_y), 1};
    struct check c = {
        .bound = CHECK_SUM, .terms = (double)p->k, .ulps = 6, .absolute = 2e-7, .expect = expect};
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

        while ((double)p.m * (double)p.k * (double)p.n > MACS_MAX) {
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
                                 .gemm = t_range(0, 1),
                                 .trans_b = t_range(0, 1),
                                 .const_b = t_range(0, 3) != 0,
                                 .act = (enum mdl_act)t_range(0, MDL_ACT_SOFTPLUS),
                                 .residual = (enum mdl_residual)t_range(0, 2)};

        T_TRUE(product_run(&p, "random", p.const_b ? "igemm" : "blas"));
    }
}

/* those on quantised values: test_variants_i8.c */
static bool ours(const struct krn_variant *v)
{
    return (v->kind == MDL_OP_CONV || v->kind == MDL_OP_GEMM || v->kind == MDL_OP_MATMUL) &&
           !strstr(v->name, "_i8_");
}

TEST(no_variant_is_untested)
{
    if (t_cases_filtered) {
        T_SKIP("only some cases were asked for");
    }
    T_EQ(check_unexercised(ours), 0);
}

int main(int argc, char **argv)
{
    t_cases_filtered = argc > 1;
    return t_main(argc, argv);
}
