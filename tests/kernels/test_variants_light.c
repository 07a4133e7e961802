/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every variant of the memory-bound operators against its reference, on layers of real networks
 * made smaller and on random shapes, strides and epilogues. Fails for a variant that no case
 * reached.
 */
#include "tests/harness.h"
#include "tests/kernels/check.h"
#include "tests/kernels/layers.h"

static bool finish(struct one_op *o, const struct check *c)
{
    bool ok = check_run(o, c);

    one_op_free(o);
    return ok;
}

static size_t maybe_wider(size_t c)
{
    return t_range(0, 2) == 0 ? c + (size_t)t_range(1, 9) : 0;
}

/* the epilogues that fusion may give an operator without weights */
static void plain_epilogue(struct one_op *o, enum mdl_act act, enum mdl_residual residual)
{
    check_epilogue(o, 1, act, residual);
    o->op.scale = o->op.shift = NULL;
    o->op.channels = 0;
}

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
    plain_epilogue(o, k->act, k->residual);
    if (k->max && k->act == MDL_ACT_NONE && k->residual == MDL_RESIDUAL_NONE) {
        c.bound = CHECK_EXACT;
    }
    if (k->max) {
        c.terms = 1e4; /* the largest of |x| bounds less than the sum does */
        c.bound = c.bound == CHECK_EXACT ? CHECK_EXACT : CHECK_ULP;
        c.ulps = 64;
        c.absolute = 2e-6;
    }
    return finish(o, &c);
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
        k.x_pixel = maybe_wider(k.c);
        k.y_pixel = maybe_wider(k.c);
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
        o->op.in[0] = one_op_image(o, n, c, h, w, maybe_wider(c));
        o->op.out[0] = one_op_image(o, n, c, 1, 1, maybe_wider(c));
        o->op.attr.reduce.which = MDL_RED_MEAN;
        o->op.attr.reduce.axes[2] = o->op.attr.reduce.axes[3] = true;
        check_fill(o, o->op.in[0], 1.0f);
        T_TRUE(finish(o, &k));
    }
}

/* Dims of a random tensor, with strides in the order of @nhwc, gaps, and broadcast where asked. */
static size_t random_tensor(struct one_op *o, const size_t *dim, bool nhwc, size_t gap,
                            unsigned broadcast)
{
    static const size_t inner_first[2][4] = {{3, 2, 1, 0}, {1, 3, 2, 0}};
    ptrdiff_t stride[4], next = 1;

    for (size_t i = 0; i < 4; i++) {
        size_t d = inner_first[nhwc][i];

        stride[d] = broadcast >> d & 1 ? 0 : next;
        if (!(broadcast >> d & 1)) {
            next = next * (ptrdiff_t)dim[d] + (i == 0 ? (ptrdiff_t)gap : 0);
        }
    }
    return one_op_tensor(o, MDL_F32, MDL_HOME_ARENA, 4, dim, stride);
}

static void random_dims(size_t *dim)
{
    dim[0] = (size_t)t_range(1, 2);
    dim[1] = (size_t)t_range(1, 40);
    dim[2] = (size_t)t_range(1, 7);
    dim[3] = (size_t)t_range(1, 40);
}

TEST(binary_of_random_shapes)
{
    static const unsigned broadcasts[] = {0, 0, 0, 0xf, 0xd, 0x3, 0xc, 0x2};

    for (int i = 0; i < t_times(500); i++) {
        struct one_op *o = one_op_new(t_range(0, 4) ? MDL_OP_BINARY : MDL_OP_PRELU);
        bool nhwc = t_range(0, 1);
        unsigned b = broadcasts[t_range(0, base_array_count(broadcasts) - 1)];
        struct check k = {.bound = CHECK_ULP, .ulps = 64, .absolute = 2e-6};
        size_t dim[4];

        random_dims(dim);
        k.in_place = t_range(0, 3) == 0;
        o->op.out[0] = random_tensor(o, dim, nhwc, 0, 0);
        o->op.in[0] = random_tensor(o, dim, nhwc, k.in_place || t_range(0, 2) ? 0 : 3, 0);
        o->op.in[1] = random_tensor(o, dim, nhwc, t_range(0, 2) ? 0 : 3, b);
        check_fill(o, o->op.in[0], 2.0f);
        check_fill(o, o->op.in[1], 2.0f);
        if (o->op.kind == MDL_OP_BINARY) {
            o->op.attr.binary = (enum mdl_binary)t_range(MDL_BIN_ADD, MDL_BIN_MIN);
        }
        if (t_range(0, 2) == 0) {
            plain_epilogue(o, (enum mdl_act)t_range(0, MDL_ACT_SOFTPLUS),
                           (enum mdl_residual)t_range(0, 2));
        }
        snprintf(o->name, sizeof(o->name), "%s %d of %zux%zux%zux%zu nhwc %d broadcast %x act %d",
                 o->op.kind == MDL_OP_BINARY ? "binary" : "prelu", (int)o->op.attr.binary, dim[0],
                 dim[1], dim[2], dim[3], nhwc, b, (int)o->op.act);
        T_TRUE(finish(o, &k));
    }
}

TEST(binary_of_the_common_broadcasts_is_fast)
{
    for (unsigned b = 0; b < 16; b++) {
        struct one_op *o = one_op_new(MDL_OP_BINARY);
        struct check k = {.bound = CHECK_ULP, .ulps = 1, .expect = "binary_f32"};
        size_t dim[4] = {1, 37, 6, 5};

        o->op.out[0] = random_tensor(o, dim, true, 0, 0);
        o->op.in[0] = random_tensor(o, dim, true, 0, 0);
        o->op.in[1] = random_tensor(o, dim, true, 0, b);
        check_fill(o, o->op.in[0], 2.0f);
        check_fill(o, o->op.in[1], 2.0f);
        snprintf(o->name, sizeof(o->name), "add with broadcast %x", b);
        T_TRUE(finish(o, &k));
    }
}

TEST(sums_of_real_networks)
{
    for (size_t i = 0; i < base_array_count(layer_sums); i++) {
        const struct layer_sum *l = &layer_sums[i];
        struct one_op *o = one_op_new(MDL_OP_BINARY);
        struct check k = {.bound = CHECK_ULP, .ulps = 1, .expect = "binary_f32"};
        size_t dim[4] = {1, l->c, base_min(l->h, (size_t)28), base_min(l->w, (size_t)28)};

        o->op.out[0] = random_tensor(o, dim, true, 0, 0);
        o->op.in[0] = random_tensor(o, dim, true, 0, 0);
        o->op.in[1] = random_tensor(o, dim, true, 0, l->channels ? 0xd : 0);
        o->op.attr.binary = l->product ? MDL_BIN_MUL : MDL_BIN_ADD;
        check_fill(o, o->op.in[0], 2.0f);
        check_fill(o, o->op.in[1], 2.0f);
        snprintf(o->name, sizeof(o->name), "%s", l->name);
        T_TRUE(finish(o, &k));
    }
}

TEST(prelu_of_constant_slopes)
{
    for (int i = 0; i < t_times(80); i++) {
        struct one_op *o = one_op_new(MDL_OP_PRELU);
        struct check k = {.bound = CHECK_ULP, .ulps = 64, .absolute = 2e-6};
        size_t c = (size_t)t_range(1, 12) * (t_range(0, 2) ? 4 : 1);
        size_t h = (size_t)t_range(1, 6), w = (size_t)t_range(1, 6);

        o->op.in[0] = one_op_image(o, 2, c, h, w, maybe_wider(c));
        o->op.out[0] = one_op_image(o, 2, c, h, w, maybe_wider(c));
        o->op.in[1] = one_op_tensor(o, MDL_F32, MDL_HOME_CONST, 4, (size_t[]){2, c, h, w},
                                    (ptrdiff_t[]){0, i % 3 != 0, 0, 0});
        check_fill(o, o->op.in[0], 2.0f);
        check_fill(o, o->op.in[1], 1.0f);
        if (t_range(0, 2) == 0) {
            plain_epilogue(o, (enum mdl_act)t_range(0, MDL_ACT_SOFTPLUS),
                           (enum mdl_residual)t_range(0, 2));
        }
        snprintf(o->name, sizeof(o->name), "prelu of %zux%zux%zu, slopes %d, act %d", c, h, w,
                 i % 3 != 0, (int)o->op.act);
        T_TRUE(finish(o, &k));
    }
}

/* plants NaN and both infinities at every seventh element */
static void plant(struct one_op *o, size_t tensor)
{
    static const float values[] = {NAN, INFINITY, -INFINITY};

    for (size_t e = 0; (e + 1) * sizeof(float) <= o->buffers[tensor].bytes; e += 7) {
        memcpy(o->buffers[tensor].data + e * sizeof(float), &values[e / 7 % 3], sizeof(float));
    }
}

TEST(what_is_no_number_stays_none)
{
    static const enum mdl_act acts[] = {
        MDL_ACT_RELU,     MDL_ACT_CLIP, MDL_ACT_LEAKY_RELU,   MDL_ACT_SIGMOID,  MDL_ACT_ELU,
        MDL_ACT_SOFTPLUS, MDL_ACT_TANH, MDL_ACT_HARD_SIGMOID, MDL_ACT_SOFTSIGN, MDL_ACT_SQRT,
        MDL_ACT_NEG,      MDL_ACT_ABS,  MDL_ACT_FLOOR,        MDL_ACT_CEIL,     MDL_ACT_ROUND};
    size_t dim[4] = {1, 36, 5, 7};

    for (size_t i = 0; i < base_array_count(acts) + MDL_BIN_MIN + 1; i++) {
        bool unary = i < base_array_count(acts);
        struct one_op *o = one_op_new(unary ? MDL_OP_UNARY : MDL_OP_BINARY);
        struct check k = {.bound = CHECK_ULP, .ulps = 8, .absolute = 1e-6};

        o->op.in[0] = random_tensor(o, dim, true, 0, 0);
        o->op.out[0] = random_tensor(o, dim, true, 0, 0);
        o->op.act = unary ? acts[i] : MDL_ACT_NONE;
        o->op.act_a = o->op.act == MDL_ACT_CLIP ? -0.5f : 0.2f;
        o->op.act_b = 0.5f;
        check_fill(o, o->op.in[0], 4.0f);
        if (!unary) {
            o->op.in[1] = random_tensor(o, dim, true, 0, 0);
            o->op.attr.binary = (enum mdl_binary)(i - base_array_count(acts));
            check_fill(o, o->op.in[1], 4.0f);
            memset(o->buffers[o->op.in[1]].data + 28, 0, 2 * sizeof(float));
        }
        plant(o, o->op.in[0]);
        snprintf(o->name, sizeof(o->name), "%s %zu of NaN and infinity",
                 unary ? "function" : "binary",
                 unary ? (size_t)o->op.act : (size_t)o->op.attr.binary);
        T_TRUE(finish(o, &k));
    }
}

TEST(affine_of_random_shapes)
{
    for (int i = 0; i < t_times(100); i++) {
        struct one_op *o = one_op_new(MDL_OP_AFFINE);
        size_t c = (size_t)t_range(1, 50), h = (size_t)t_range(1, 6), w = (size_t)t_range(1, 6);
        struct check k = {
            .bound = CHECK_SUM, .terms = 2, .ulps = 8, .absolute = 2e-7, .expect = "affine_f32"};

        o->op.in[0] = one_op_image(o, 2, c, h, w, maybe_wider(c));
        o->op.out[0] = one_op_image(o, 2, c, h, w, maybe_wider(c));
        check_fill(o, o->op.in[0], 2.0f);
        check_epilogue(o, c, (enum mdl_act)t_range(0, MDL_ACT_SOFTPLUS),
                       (enum mdl_residual)t_range(0, 2));
        snprintf(o->name, sizeof(o->name), "affine of %zux%zux%zu act %d", c, h, w, (int)o->op.act);
        T_TRUE(finish(o, &k));
    }
}

/*
 * Element functions over their whole range against libm in double: the error that kernels/vec.h
 * states, in units of 2^-24 of the result, with an absolute term where the result goes to 0.
 */
TEST(element_functions_keep_their_stated_error)
{
    static const struct {
        enum mdl_act act;
        double ulps, absolute;
        float range;
        bool positive;
    } functions[] = {
        {MDL_ACT_RELU, 0, 0, 10, false},         {MDL_ACT_CLIP, 0, 0, 2, false},
        {MDL_ACT_LEAKY_RELU, 1, 0, 10, false},   {MDL_ACT_SIGMOID, 4, 1e-37, 30, false},
        {MDL_ACT_SIGMOID, 4, 1e-37, 120, false}, {MDL_ACT_HARD_SIGMOID, 2, 1e-7, 10, false},
        {MDL_ACT_HARD_SWISH, 2, 2e-7, 6, false}, {MDL_ACT_SILU, 5, 1e-35, 30, false},
        {MDL_ACT_SILU, 5, 1e-35, 3e38f, false},  {MDL_ACT_SILU, 5, 1e-35, 120, false},
        {MDL_ACT_TANH, 4, 0, 1, false},          {MDL_ACT_TANH, 4, 0, 20, false},
        {MDL_ACT_ELU, 4, 0, 0.01f, false},       {MDL_ACT_ELU, 4, 0, 20, false},
        {MDL_ACT_SELU, 5, 0, 20, false},         {MDL_ACT_SOFTPLUS, 5, 1e-37, 40, false},
        {MDL_ACT_SOFTPLUS, 5, 1e-37, 1, false},  {MDL_ACT_SOFTSIGN, 2, 0, 10, false},
        {MDL_ACT_EXP, 2, 3e-45, 87, false},      {MDL_ACT_EXP, 2, 3e-45, 110, false},
        {MDL_ACT_EXP, 2, 0, 0.5f, false},        {MDL_ACT_SQRT, 1, 0, 1000, true},
        {MDL_ACT_RECIPROCAL, 1, 0, 10, false},   {MDL_ACT_NEG, 0, 0, 10, false},
        {MDL_ACT_ABS, 0, 0, 10, false},
    };

    for (size_t i = 0; i < base_array_count(functions); i++) {
        struct one_op *o = one_op_new(MDL_OP_UNARY);
        struct check k = {.bound = CHECK_ULP,
                          .ulps = functions[i].ulps,
                          .absolute = functions[i].absolute,
                          .expect = "unary_f32"};
        size_t dim[4] = {1, 1, 1, (size_t)t_times(40000) + 1};

        snprintf(o->name, sizeof(o->name), "function %d up to %g", (int)functions[i].act,
                 (double)functions[i].range);
        o->op.in[0] = random_tensor(o, dim, true, 0, 0);
        o->op.out[0] = random_tensor(o, dim, true, 0, 0);
        o->op.act = functions[i].act;
        o->op.act_a = functions[i].act == MDL_ACT_SELU   ? 1.6732632f
                      : functions[i].act == MDL_ACT_CLIP ? -0.5f
                                                         : 0.3f;
        o->op.act_b = functions[i].act == MDL_ACT_SELU ? 1.050701f : 0.75f;
        check_fill(o, o->op.in[0], functions[i].range);
        for (size_t e = 0; functions[i].positive && e < dim[3]; e++) {
            float v;

            memcpy(&v, o->buffers[o->op.in[0]].data + e * 4, 4);
            v = fabsf(v);
            memcpy(o->buffers[o->op.in[0]].data + e * 4, &v, 4);
        }
        T_TRUE(finish(o, &k));
    }
}

TEST(unary_in_place_and_strided)
{
    for (int i = 0; i < t_times(100); i++) {
        struct one_op *o = one_op_new(MDL_OP_UNARY);
        bool nhwc = t_range(0, 1);
        struct check k = {.bound = CHECK_ULP,
                          .ulps = 6,
                          .absolute = 2e-7,
                          .expect = "unary_f32",
                          .in_place = t_range(0, 1)};
        size_t dim[4];

        random_dims(dim);
        dim[1]++; /* rows of one element with gaps are for the reference */
        dim[3]++;
        o->op.out[0] = random_tensor(o, dim, nhwc, 0, 0);
        o->op.in[0] = random_tensor(o, dim, nhwc, k.in_place || t_range(0, 1) ? 0 : 3, 0);
        o->op.act = (enum mdl_act)t_range(MDL_ACT_NONE, MDL_ACT_SOFTPLUS);
        o->op.act_a = 0.2f;
        o->op.act_b = 0.5f;
        check_fill(o, o->op.in[0], 4.0f);
        snprintf(o->name, sizeof(o->name), "unary %d of %zux%zux%zux%zu", (int)o->op.act, dim[0],
                 dim[1], dim[2], dim[3]);
        T_TRUE(finish(o, &k));
    }
}

TEST(softmax_over_the_last_axis_and_channels)
{
    static const size_t lines[] = {1, 2, 10, 15, 16, 17, 33, 1000};

    for (size_t i = 0; i < 4 * base_array_count(lines); i++) {
        struct one_op *o = one_op_new(MDL_OP_SOFTMAX);
        size_t n = lines[i / 4];
        bool log_wanted = i & 1, channels = i & 2;
        struct check k = {.bound = CHECK_ULP,
                          .ulps = 64 + (double)n,
                          .absolute = log_wanted ? 1e-5 : 1e-37,
                          .expect = "softmax_f32",
                          .in_place = i % 3 == 0};

        snprintf(o->name, sizeof(o->name), "softmax of %zu, log %d, channels %d", n, log_wanted,
                 channels);
        if (channels) {
            o->op.in[0] = one_op_image(o, 2, n, 3, 5, 0);
            o->op.out[0] = one_op_image(o, 2, n, 3, 5, k.in_place ? 0 : n + 2);
            o->op.attr.softmax.axis = 1;
        } else {
            o->op.in[0] = one_op_tensor(o, MDL_F32, MDL_HOME_ARENA, 2, (size_t[]){3, n}, NULL);
            o->op.out[0] = one_op_tensor(o, MDL_F32, MDL_HOME_OUTPUT, 2, (size_t[]){3, n}, NULL);
            o->op.attr.softmax.axis = 1;
        }
        o->op.attr.softmax.log = log_wanted;
        check_fill(o, o->op.in[0], 20.0f);
        T_TRUE(finish(o, &k));
    }
}

TEST(lrn_of_random_shapes)
{
    static const float betas[] = {0.75f, 0.5f, 1.0f};

    for (int i = 0; i < t_times(60); i++) {
        struct one_op *o = one_op_new(MDL_OP_LRN);
        size_t c = (size_t)t_range(1, 70);
        struct check k = {.bound = CHECK_ULP, .ulps = 32, .expect = "lrn_f32"};

        o->op.in[0] = one_op_image(o, 1, c, 3, 4, maybe_wider(c));
        o->op.out[0] = one_op_image(o, 1, c, 3, 4, maybe_wider(c));
        o->op.attr.lrn.size = (size_t)t_range(1, 7);
        o->op.attr.lrn.alpha = 0.3f;
        o->op.attr.lrn.beta = betas[i % 3];
        o->op.attr.lrn.bias = 1.5f;
        check_fill(o, o->op.in[0], 3.0f);
        snprintf(o->name, sizeof(o->name), "lrn of %zu channels, size %zu", c, o->op.attr.lrn.size);
        T_TRUE(finish(o, &k));
    }
}

TEST(copies_between_all_layouts)
{
    static const enum mdl_dtype dtypes[] = {MDL_F32, MDL_I64, MDL_U8};

    for (int i = 0; i < t_times(400); i++) {
        struct one_op *o = one_op_new(MDL_OP_COPY);
        struct check k = {.bound = CHECK_EXACT, .expect = "copy"};
        size_t dim[4], gap_x = t_range(0, 2) ? 0 : 3, gap_y = t_range(0, 2) ? 0 : 3;
        bool from = t_range(0, 1), to = t_range(0, 1);

        random_dims(dim);
        if (t_range(0, 3) == 0) {
            dim[1] = 3;
        }
        o->op.in[0] = random_tensor(o, dim, from, gap_x, t_range(0, 7) ? 0 : 2);
        o->op.out[0] = random_tensor(o, dim, to, gap_y, 0);
        check_fill(o, o->op.in[0], 1.0f);
        if (t_range(0, 3) == 0) { /* another element size: the values are bytes all the same */
            enum mdl_dtype t = dtypes[t_range(1, 2)];

            for (size_t s = 0; s < 2; s++) {
                one_op_buffer_free(&o->buffers[s]);
                o->tensors[s].dtype = t;
                o->buffers[s] = one_op_buffer_new(one_op_span(&o->tensors[s]), 1);
                for (size_t e = 0; e < o->buffers[s].bytes; e++) {
                    o->buffers[s].data[e] = (uint8_t)t_random();
                }
            }
        }
        snprintf(o->name, sizeof(o->name), "copy of %zux%zux%zux%zu nhwc %d -> %d", dim[0], dim[1],
                 dim[2], dim[3], from, to);
        T_TRUE(finish(o, &k));
    }
}

/* groups of channels that become the channels of groups: pairs and more, by any number of pixels */
TEST(shuffles_of_channels)
{
    for (size_t c = 1; c <= 40; c++) {
        struct one_op *o = one_op_new(MDL_OP_COPY);
        struct check k = {.bound = CHECK_EXACT, .expect = "copy"};
        size_t groups = c % 4 == 3 ? 3 : 2, pixels = 1 + c % 7;
        ptrdiff_t pixel = (ptrdiff_t)(groups * c);
        size_t dim[] = {1, c, groups, pixels};

        o->op.in[0] =
            one_op_tensor(o, MDL_F32, MDL_HOME_ARENA, 4, dim,
                          (ptrdiff_t[]){pixel * (ptrdiff_t)pixels, 1, (ptrdiff_t)c, pixel});
        o->op.out[0] =
            one_op_tensor(o, MDL_F32, MDL_HOME_ARENA, 4, dim,
                          (ptrdiff_t[]){pixel * (ptrdiff_t)pixels, (ptrdiff_t)groups, 1, pixel});
        check_fill(o, o->op.in[0], 1.0f);
        snprintf(o->name, sizeof(o->name), "shuffle of %zu groups of %zu, %zu pixels", groups, c,
                 pixels);
        T_TRUE(finish(o, &k));
    }
}

TEST(pads_of_random_shapes)
{
    for (int i = 0; i < t_times(200); i++) {
        struct one_op *o = one_op_new(MDL_OP_PAD);
        struct check k = {.bound = CHECK_EXACT, .expect = "pad_f32"};
        size_t dim[4], out[4];
        bool from = t_range(0, 1), to = t_range(0, 1);

        random_dims(dim);
        for (size_t d = 0; d < 4; d++) {
            ptrdiff_t begin = t_range(-2, 4), end = t_range(-2, 4);

            while ((ptrdiff_t)dim[d] + begin + end < 1) {
                begin++;
            }
            o->op.attr.pad.begin[d] = begin;
            o->op.attr.pad.end[d] = end;
            out[d] = (size_t)((ptrdiff_t)dim[d] + begin + end);
        }
        o->op.attr.pad.value = 0.5;
        o->op.in[0] = random_tensor(o, dim, from, 0, 0);
        o->op.out[0] = random_tensor(o, out, to, t_range(0, 2) ? 0 : 3, 0);
        check_fill(o, o->op.in[0], 1.0f);
        snprintf(o->name, sizeof(o->name), "pad of %zux%zux%zux%zu", dim[0], dim[1], dim[2],
                 dim[3]);
        T_TRUE(finish(o, &k));
    }
}

TEST(resizes_of_random_shapes)
{
    for (int i = 0; i < t_times(300); i++) {
        struct one_op *o = one_op_new(MDL_OP_RESIZE);
        struct check k = {
            .bound = CHECK_SUM, .terms = 16, .ulps = 8, .absolute = 2e-7, .expect = "resize_f32"};
        size_t c = (size_t)t_range(1, 40), h = (size_t)t_range(1, 8), w = (size_t)t_range(1, 8);
        size_t ho = (size_t)t_range(1, 16), wo = (size_t)t_range(1, 16);

        if (t_range(0, 1)) {
            ho = 2 * h;
            wo = 2 * w;
        }
        o->op.attr.resize.coord = (enum mdl_resize_coord)t_range(0, MDL_COORD_TF_HALF_PIXEL_NN);
        if (o->op.attr.resize.coord == MDL_COORD_TF_HALF_PIXEL_NN) {
            k.expect = NULL; /* moves channels in some roundings */
        }
        o->op.in[0] = one_op_image(o, 1, c, h, w, maybe_wider(c));
        o->op.out[0] = one_op_image(o, 1, c, ho, wo, maybe_wider(c));
        o->op.attr.resize.mode = (enum mdl_resize_mode)t_range(0, 1);
        o->op.attr.resize.round = (enum mdl_resize_round)t_range(0, MDL_ROUND_CEIL);
        o->op.attr.resize.scale[0] = o->op.attr.resize.scale[1] = 1.0f;
        o->op.attr.resize.scale[2] = (float)ho / (float)h;
        o->op.attr.resize.scale[3] = (float)wo / (float)w;
        check_fill(o, o->op.in[0], 1.0f);
        plain_epilogue(o, (enum mdl_act)(t_range(0, 1) ? 0 : t_range(0, MDL_ACT_SOFTPLUS)),
                       (enum mdl_residual)t_range(0, 2));
        snprintf(o->name, sizeof(o->name), "resize of %zux%zux%zu to %zux%zu mode %d coord %d", c,
                 h, w, ho, wo, (int)o->op.attr.resize.mode, (int)o->op.attr.resize.coord);
        T_TRUE(finish(o, &k));
    }
}

/* those on quantised values: test_variants_i8.c */
static bool ours(const struct krn_variant *v)
{
    return v->kind != MDL_OP_CONV && v->kind != MDL_OP_CONV_TRANSPOSE && v->kind != MDL_OP_GEMM &&
           v->kind != MDL_OP_MATMUL && !strstr(v->name, "_i8_");
}

TEST(no_variant_is_untested)
{
    if (check_partial) {
        T_SKIP("only some cases were asked for");
    }
    T_EQ(check_unexercised(ours), 0);
}

CHECK_MAIN()
