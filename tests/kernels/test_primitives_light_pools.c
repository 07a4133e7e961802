/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling, and means over height and width. */
#include "tests/kernels/light_case.h"
#include "tests/kernels/real_layers.h"

struct pool_case {
    bool max, include_pad;
    size_t n, c, h, w, kh, kw, sh, sw, dh, dw, top, left, bottom, right, ceil_h, ceil_w;
    size_t x_pixel, y_pixel;
    enum mdl_act act;
    enum mdl_residual residual;
};

static bool pool_run(const struct pool_case *k, const char *name, const char *expect)
{
    struct one_op *o = one_op_new(k->max ? MDL_OP_MAX_POOL : MDL_OP_AVG_POOL);
    size_t ho = (k->h + k->top + k->bottom + k->ceil_h - (k->kh - 1) * k->dh - 1) / k->sh + 1;
    size_t wo = (k->w + k->left + k->right + k->ceil_w - (k->kw - 1) * k->dw - 1) / k->sw + 1;
    struct check c = {.bound = CHECK_SUM,
                      .terms = (double)(k->kh * k->kw),
                      .ulps = 6,
                      .absolute = 2e-7,
                      .expect = expect};

    snprintf(o->name, sizeof(o->name),
             "%s: %zux%zux%zux%zu %zux%zu/%zux%zu dil %zux%zu pad %zu,%zu,%zu,%zu ceil %zu,%zu",
             name, k->n, k->c, k->h, k->w, k->kh, k->kw, k->sh, k->sw, k->dh, k->dw, k->top,
             k->left, k->bottom, k->right, k->ceil_h, k->ceil_w);
    o->op.in[0] = one_op_image(o, k->n, k->c, k->h, k->w, k->x_pixel);
    o->op.out[0] = one_op_image(o, k->n, k->c, ho, wo, k->y_pixel);
    o->op.attr.pool.window =
        (struct mdl_window){.rank = 2,
                            .kernel = {k->kh, k->kw},
                            .stride = {k->sh, k->sw},
                            .dilation = {k->dh, k->dw},
                            .pad_begin = {k->top, k->left},
                            .pad_end = {k->bottom + k->ceil_h, k->right + k->ceil_w}};
    o->op.attr.pool.pad_end_model[0] = k->bottom;
    o->op.attr.pool.pad_end_model[1] = k->right;
    o->op.attr.pool.count_include_pad = k->include_pad;
    check_fill(o, o->op.in[0], 1.0f);
    light_epilogue(o, k->act, k->residual);
    if (k->max && k->act == MDL_ACT_NONE && k->residual == MDL_RESIDUAL_NONE) {
        c.bound = CHECK_EXACT;
    }
    if (k->max) {
        c.terms = 1e4; /* the largest of |x| bounds less than the sum does */
        c.bound = c.bound == CHECK_EXACT ? CHECK_EXACT : CHECK_ULP;
        c.ulps = 64;
        c.absolute = 2e-6;
    }
    return light_finish(o, &c);
}

TEST(pools_of_real_networks)
{
    for (size_t i = 0; i < base_array_count(layer_pools); i++) {
        const struct layer_pool *l = &layer_pools[i];
        struct pool_case k = {.max = l->max,
                              .n = 1,
                              .c = l->c,
                              .h = base_min(l->h, (size_t)20),
                              .w = base_min(l->w, (size_t)20),
                              .kh = l->k,
                              .kw = l->k,
                              .sh = l->stride,
                              .sw = l->stride,
                              .dh = 1,
                              .dw = 1,
                              .top = l->pad,
                              .left = l->pad,
                              .bottom = l->pad,
                              .right = l->pad};

        T_TRUE(pool_run(&k, l->name, "nhwc"));
    }
}

TEST(pools_of_random_shapes)
{
    for (int i = 0; i < t_times(600); i++) {
        struct pool_case k = {.max = t_range(0, 1),
                              .include_pad = t_range(0, 1),
                              .n = (size_t)t_range(1, 2),
                              .c = (size_t)t_range(1, 90),
                              .h = (size_t)t_range(1, 9),
                              .w = (size_t)t_range(1, 9),
                              .sh = (size_t)t_range(1, 3),
                              .sw = (size_t)t_range(1, 3),
                              .dh = (size_t)(t_range(0, 3) ? 1 : 2),
                              .dw = (size_t)(t_range(0, 3) ? 1 : 2)};

        k.kh = (size_t)t_range(1, 4);
        k.kw = (size_t)t_range(1, 4);
        k.top = (size_t)t_range(0, (int64_t)k.kh - 1);
        k.left = (size_t)t_range(0, (int64_t)k.kw - 1);
        k.bottom = (size_t)t_range(0, (int64_t)k.kh - 1);
        k.right = (size_t)t_range(0, (int64_t)k.kw - 1);
        k.ceil_h = (size_t)t_range(0, (int64_t)k.sh - 1);
        k.ceil_w = (size_t)t_range(0, (int64_t)k.sw - 1);
        while (k.h + k.top + k.bottom < (k.kh - 1) * k.dh + 1) {
            k.h++;
        }
        while (k.w + k.left + k.right < (k.kw - 1) * k.dw + 1) {
            k.w++;
        }
        k.x_pixel = light_maybe_wider(k.c);
        k.y_pixel = light_maybe_wider(k.c);
        if (t_range(0, 3) == 0) {
            k.act = (enum mdl_act)t_range(0, MDL_ACT_SOFTPLUS);
            k.residual = (enum mdl_residual)t_range(0, 2);
        }
        T_TRUE(pool_run(&k, "random", "nhwc"));
    }
}

TEST(mean_over_height_and_width)
{
    for (int i = 0; i < t_times(60); i++) {
        struct one_op *o = one_op_new(MDL_OP_REDUCE);
        size_t n = (size_t)t_range(1, 2), c = (size_t)t_range(1, 300);
        size_t h = (size_t)t_range(1, 9), w = (size_t)t_range(1, 9);
        struct check k = {.bound = CHECK_SUM,
                          .terms = (double)(h * w),
                          .ulps = 2,
                          .absolute = 1e-9,
                          .expect = "mean"};

        snprintf(o->name, sizeof(o->name), "mean of %zux%zux%zux%zu", n, c, h, w);
        o->op.in[0] = one_op_image(o, n, c, h, w, light_maybe_wider(c));
        o->op.out[0] = one_op_image(o, n, c, 1, 1, light_maybe_wider(c));
        o->op.attr.reduce.which = MDL_RED_MEAN;
        o->op.attr.reduce.axes[2] = o->op.attr.reduce.axes[3] = true;
        check_fill(o, o->op.in[0], 1.0f);
        T_TRUE(light_finish(o, &k));
    }
}
