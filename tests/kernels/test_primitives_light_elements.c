/* SPDX-License-Identifier: Apache-2.0 */
/* What computes each element by itself: binary operators, element functions, affine ones. */
#include <math.h>

#include "base/base.h"
#include "tests/kernels/light_case.h"
#include "tests/kernels/real_layers.h"

TEST(binary_of_random_shapes)
{
    static const unsigned broadcasts[] = {0, 0, 0, 0xf, 0xd, 0x3, 0xc, 0x2};

    for (int i = 0; i < t_times(500); i++) {
        struct one_op *o = one_op_new(t_range(0, 4) ? MDL_OP_BINARY : MDL_OP_PRELU);
        bool nhwc = t_range(0, 1);
        unsigned b = broadcasts[t_range(0, base_array_count(broadcasts) - 1)];
        struct check k = {.bound = CHECK_ULP, .ulps = 64, .absolute = 2e-6};
        size_t dim[4];

        light_dims(dim);
        k.in_place = t_range(0, 3) == 0;
        o->op.out[0] = light_tensor(o, dim, nhwc, 0, 0);
        o->op.in[0] = light_tensor(o, dim, nhwc, k.in_place || t_range(0, 2) ? 0 : 3, 0);
        o->op.in[1] = light_tensor(o, dim, t_range(0, 4) ? nhwc : !nhwc, t_range(0, 2) ? 0 : 3, b);
        check_fill(o, o->op.in[0], 2.0f);
        check_fill(o, o->op.in[1], 2.0f);
        if (o->op.kind == MDL_OP_BINARY) {
            o->op.attr.binary = (enum mdl_binary)t_range(MDL_BIN_ADD, MDL_BIN_MIN);
        }
        if (t_range(0, 2) == 0) {
            light_epilogue(o, (enum mdl_act)t_range(0, MDL_ACT_SOFTPLUS),
                           (enum mdl_residual)t_range(0, 2));
        }
        snprintf(o->name, sizeof(o->name), "%s %d of %zux%zux%zux%zu nhwc %d broadcast %x act %d",
                 o->op.kind == MDL_OP_BINARY ? "binary" : "prelu", (int)o->op.attr.binary, dim[0],
                 dim[1], dim[2], dim[3], nhwc, b, (int)o->op.act);
        T_TRUE(light_finish(o, &k));
    }
}

TEST(binary_of_the_common_broadcasts_is_fast)
{
    for (unsigned b = 0; b < 16; b++) {
        struct one_op *o = one_op_new(MDL_OP_BINARY);
        struct check k = {.bound = CHECK_ULP, .ulps = 1, .expect = "binary_f32"};
        size_t dim[4] = {1, 37, 6, 5};

        o->op.out[0] = light_tensor(o, dim, true, 0, 0);
        o->op.in[0] = light_tensor(o, dim, true, 0, 0);
        o->op.in[1] = light_tensor(o, dim, true, 0, b);
        check_fill(o, o->op.in[0], 2.0f);
        check_fill(o, o->op.in[1], 2.0f);
        snprintf(o->name, sizeof(o->name), "add with broadcast %x", b);
        T_TRUE(light_finish(o, &k));
    }
}

/* along any dims, of both operands the same or others, where XNNPACK takes rows */
TEST(binary_of_operands_that_both_repeat)
{
    static const size_t dims[][4] = {{1, 16, 6, 8}, {2, 4, 3, 12}};
    const unsigned all = 256 * (MDL_BIN_MIN + 1);

    for (unsigned i = 0; i < all; i += all / (unsigned)t_times((int)all) | 1) {
        struct one_op *o = one_op_new(MDL_OP_BINARY);
        struct check k = {.bound = CHECK_ULP, .ulps = 1, .expect = "binary_f32"};
        const size_t *dim = dims[i % 3 == 0];
        unsigned a = i & 15, b = i >> 4 & 15;
        bool nhwc = i % 5 < 3;

        o->op.attr.binary = (enum mdl_binary)(i >> 8);
        o->op.out[0] = light_tensor(o, dim, nhwc, 0, 0);
        o->op.in[0] = light_tensor(o, dim, nhwc, 0, a);
        o->op.in[1] = light_tensor(o, dim, nhwc, 0, b);
        check_fill(o, o->op.in[0], 2.0f);
        check_fill(o, o->op.in[1], 2.0f);
        snprintf(o->name, sizeof(o->name), "binary %u of %zux%zux%zux%zu nhwc %d repeated %x %x",
                 i >> 8, dim[0], dim[1], dim[2], dim[3], nhwc, a, b);
        T_TRUE(light_finish(o, &k));
    }
}

TEST(an_operand_of_another_layout_is_fast)
{
    for (int planes = 0; planes < 2; planes++) {
        struct one_op *o = one_op_new(MDL_OP_BINARY);
        struct check k = {.bound = CHECK_ULP, .ulps = 1, .expect = "binary_f32"};
        size_t dim[4] = {1, 17, 6, 5};

        o->op.out[0] = light_tensor(o, dim, !planes, 0, 0);
        o->op.in[0] = light_tensor(o, dim, !planes, 0, 0);
        o->op.in[1] = light_tensor(o, dim, planes, 0, 1);
        o->op.attr.binary = MDL_BIN_DIV;
        check_fill(o, o->op.in[0], 2.0f);
        check_fill(o, o->op.in[1], 2.0f);
        snprintf(o->name, sizeof(o->name), "division, planes %d", planes);
        T_TRUE(light_finish(o, &k));
    }
}

/* Few different values, so that many are equal, and some that are no numbers. */
static void fill_for_extremes(struct one_op *o, size_t tensor)
{
    static const float values[] = {1, 1, -1, 2, 2, 0, -0.0f, -3};
    float *x = (float *)o->buffers[tensor].data;

    for (size_t i = 0, n = o->buffers[tensor].bytes / sizeof(float); i < n; i++) {
        x[i] = t_range(0, 99) == 0 ? NAN : values[t_range(0, base_array_count(values) - 1)];
    }
}

TEST(places_of_extremes)
{
    for (int i = 0; i < t_times(200); i++) {
        struct one_op *o = one_op_new(MDL_OP_ARG);
        struct check k = {.bound = CHECK_EXACT, .expect = "arg_f32"};
        size_t dim[4], one[4], axis = (size_t)t_range(0, 3);
        ptrdiff_t stride[4] = {0};

        light_dims(dim);
        o->op.in[0] = light_tensor(o, dim, t_range(0, 1), t_range(0, 1) ? 3 : 0, 0);
        for (size_t d = 4, next = 1; d-- > 0;) {
            one[d] = d == axis ? 1 : dim[d];
            stride[d] = (ptrdiff_t)next;
            next *= one[d];
        }
        o->op.out[0] = one_op_tensor(o, MDL_I64, MDL_HOME_ARENA, 4, one, stride);
        o->op.attr.arg.axis = axis;
        o->op.attr.arg.max = t_range(0, 1);
        fill_for_extremes(o, o->op.in[0]);
        snprintf(o->name, sizeof(o->name), "extremes of %zux%zux%zux%zu along %zu, max %d", dim[0],
                 dim[1], dim[2], dim[3], axis, o->op.attr.arg.max);
        T_TRUE(light_finish(o, &k));
    }
}

TEST(reductions_along_one_dim)
{
    for (int i = 0; i < t_times(300); i++) {
        struct one_op *o = one_op_new(MDL_OP_REDUCE);
        struct check k = {.bound = CHECK_ULP, .ulps = 60, .expect = "reduce_f32_rows"};
        size_t dim[4], one[4], axis = (size_t)t_range(0, 3);

        light_dims(dim);
        dim[axis] = t_range(0, 9) ? dim[axis] : (size_t)t_range(500, 2000);
        /* n roundings of partial sums that wander to sqrt(n): some n u */
        k.absolute = 2e-5 + 1e-7 * (double)dim[axis];
        for (size_t d = 0; d < 4; d++) {
            one[d] = d == axis ? 1 : dim[d];
        }
        o->op.in[0] = light_tensor(o, dim, t_range(0, 1), t_range(0, 1) ? 3 : 0, 0);
        o->op.out[0] = light_tensor(o, one, t_range(0, 1), 0, 0);
        o->op.attr.reduce.which = (enum mdl_reduce)t_range(0, MDL_RED_COUNT - 1);
        o->op.attr.reduce.axes[axis] = true;
        check_fill(o, o->op.in[0], 1.0f);
        if (t_range(0, 9) == 0) {
            ((float *)(void *)o->buffers[o->op.in[0]].data)[0] = NAN;
        }
        snprintf(o->name, sizeof(o->name), "reduction %d of %zux%zux%zux%zu along %zu",
                 (int)o->op.attr.reduce.which, dim[0], dim[1], dim[2], dim[3], axis);
        T_TRUE(light_finish(o, &k));
    }
}

TEST(sums_of_real_networks)
{
    for (size_t i = 0; i < base_array_count(layer_sums); i++) {
        const struct layer_sum *l = &layer_sums[i];
        struct one_op *o = one_op_new(MDL_OP_BINARY);
        struct check k = {.bound = CHECK_ULP, .ulps = 1, .expect = "binary_f32"};
        size_t dim[4] = {1, l->c, base_min(l->h, (size_t)28), base_min(l->w, (size_t)28)};

        o->op.out[0] = light_tensor(o, dim, true, 0, 0);
        o->op.in[0] = light_tensor(o, dim, true, 0, 0);
        o->op.in[1] = light_tensor(o, dim, true, 0, l->channels ? 0xd : 0);
        o->op.attr.binary = l->product ? MDL_BIN_MUL : MDL_BIN_ADD;
        check_fill(o, o->op.in[0], 2.0f);
        check_fill(o, o->op.in[1], 2.0f);
        snprintf(o->name, sizeof(o->name), "%s", l->name);
        T_TRUE(light_finish(o, &k));
    }
}

TEST(prelu_of_constant_slopes)
{
    for (int i = 0; i < t_times(80); i++) {
        struct one_op *o = one_op_new(MDL_OP_PRELU);
        struct check k = {.bound = CHECK_ULP, .ulps = 64, .absolute = 2e-6};
        size_t c = (size_t)t_range(1, 12) * (t_range(0, 2) ? 4 : 1);
        size_t h = (size_t)t_range(1, 6), w = (size_t)t_range(1, 6);

        o->op.in[0] = one_op_image(o, 2, c, h, w, light_maybe_wider(c));
        o->op.out[0] = one_op_image(o, 2, c, h, w, light_maybe_wider(c));
        o->op.in[1] = one_op_tensor(o, MDL_F32, MDL_HOME_CONST, 4, (size_t[]){2, c, h, w},
                                    (ptrdiff_t[]){0, i % 3 != 0, 0, 0});
        check_fill(o, o->op.in[0], 2.0f);
        check_fill(o, o->op.in[1], 1.0f);
        if (t_range(0, 2) == 0) {
            light_epilogue(o, (enum mdl_act)t_range(0, MDL_ACT_SOFTPLUS),
                           (enum mdl_residual)t_range(0, 2));
        }
        snprintf(o->name, sizeof(o->name), "prelu of %zux%zux%zu, slopes %d, act %d", c, h, w,
                 i % 3 != 0, (int)o->op.act);
        T_TRUE(light_finish(o, &k));
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
        MDL_ACT_RELU,      MDL_ACT_CLIP,     MDL_ACT_LEAKY_RELU, MDL_ACT_SIGMOID,
        MDL_ACT_ELU,       MDL_ACT_SOFTPLUS, MDL_ACT_TANH,       MDL_ACT_HARD_SIGMOID,
        MDL_ACT_SOFTSIGN,  MDL_ACT_SQRT,     MDL_ACT_NEG,        MDL_ACT_ABS,
        MDL_ACT_FLOOR,     MDL_ACT_CEIL,     MDL_ACT_ROUND,      MDL_ACT_SIGN,
        MDL_ACT_LOG,       MDL_ACT_SIN,      MDL_ACT_COS,        MDL_ACT_THRESHOLDED_RELU,
        MDL_ACT_SHRINK,    MDL_ACT_SWISH,    MDL_ACT_MISH,       MDL_ACT_GELU,
        MDL_ACT_GELU_TANH, MDL_ACT_ERF};
    size_t dim[4] = {1, 36, 5, 7};

    for (size_t i = 0; i < base_array_count(acts) + MDL_BIN_MIN + 1; i++) {
        bool unary = i < base_array_count(acts);
        struct one_op *o = one_op_new(unary ? MDL_OP_UNARY : MDL_OP_BINARY);
        struct check k = {.bound = CHECK_ULP, .ulps = 8, .absolute = 1e-6};

        o->op.in[0] = light_tensor(o, dim, true, 0, 0);
        o->op.out[0] = light_tensor(o, dim, true, 0, 0);
        o->op.act = unary ? acts[i] : MDL_ACT_NONE;
        o->op.act_a = o->op.act == MDL_ACT_CLIP ? -0.5f : 0.2f;
        o->op.act_b = 0.5f;
        check_fill(o, o->op.in[0], 4.0f);
        if (!unary) {
            o->op.in[1] = light_tensor(o, dim, true, 0, 0);
            o->op.attr.binary = (enum mdl_binary)(i - base_array_count(acts));
            check_fill(o, o->op.in[1], 4.0f);
            memset(o->buffers[o->op.in[1]].data + 28, 0, 2 * sizeof(float));
        }
        plant(o, o->op.in[0]);
        snprintf(o->name, sizeof(o->name), "%s %zu of NaN and infinity",
                 unary ? "function" : "binary",
                 unary ? (size_t)o->op.act : (size_t)o->op.attr.binary);
        T_TRUE(light_finish(o, &k));
    }
}

TEST(affine_of_random_shapes)
{
    for (int i = 0; i < t_times(100); i++) {
        struct one_op *o = one_op_new(MDL_OP_AFFINE);
        size_t c = (size_t)t_range(1, 50), h = (size_t)t_range(1, 6), w = (size_t)t_range(1, 6);
        struct check k = {
            .bound = CHECK_SUM, .terms = 2, .ulps = 8, .absolute = 2e-7, .expect = "affine_f32"};

        o->op.in[0] = one_op_image(o, 2, c, h, w, light_maybe_wider(c));
        o->op.out[0] = one_op_image(o, 2, c, h, w, light_maybe_wider(c));
        check_fill(o, o->op.in[0], 2.0f);
        check_epilogue(o, c, (enum mdl_act)t_range(0, MDL_ACT_SOFTPLUS),
                       (enum mdl_residual)t_range(0, 2));
        snprintf(o->name, sizeof(o->name), "affine of %zux%zux%zu act %d", c, h, w, (int)o->op.act);
        T_TRUE(light_finish(o, &k));
    }
}

/*
 * Element functions over their whole range against libm in double: the error that
 * kernels/common/vec.h states, in units of 2^-24 of the result, with an absolute term where the
 * result goes to 0.
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
        {MDL_ACT_ABS, 0, 0, 10, false},          {MDL_ACT_SWISH, 6, 2e-7, 120, false},
        {MDL_ACT_SWISH, 9, 0, 10, false},        {MDL_ACT_MISH, 7, 1e-35, 8, false},
        {MDL_ACT_MISH, 7, 1e-35, 150, false},    {MDL_ACT_MISH, 7, 1e-35, 3e38f, false},
        {MDL_ACT_GELU, 9, 0, 1, false},          {MDL_ACT_GELU, 24, 1e-37, 4, false},
        {MDL_ACT_GELU, 8, 2e-7, 20, false},      {MDL_ACT_GELU, 8, 2e-7, 3e38f, false},
        {MDL_ACT_GELU_TANH, 8, 0, 1, false},     {MDL_ACT_GELU_TANH, 24, 1e-35, 4, false},
        {MDL_ACT_GELU_TANH, 8, 2e-7, 20, false}, {MDL_ACT_GELU_TANH, 8, 2e-7, 3e38f, false},
        {MDL_ACT_ERF, 4, 0, 0.1f, false},        {MDL_ACT_ERF, 4, 0, 1, false},
        {MDL_ACT_ERF, 4, 0, 8, false},           {MDL_ACT_ERF, 4, 0, 3e38f, false},
        {MDL_ACT_FLOOR, 0, 0, 10, false},        {MDL_ACT_FLOOR, 0, 0, 1e9f, false},
        {MDL_ACT_CEIL, 0, 0, 10, false},         {MDL_ACT_CEIL, 0, 0, 3e7f, false},
        {MDL_ACT_ROUND, 0, 0, 4, false},         {MDL_ACT_ROUND, 0, 0, 1e9f, false},
        {MDL_ACT_SIGN, 0, 0, 1, false},          {MDL_ACT_LOG, 3, 0, 2, true},
        {MDL_ACT_LOG, 3, 0, 3e38f, true},        {MDL_ACT_LOG, 3, 0, 1e-37f, true},
        {MDL_ACT_SIN, 0, 1.2e-7, 4, false},      {MDL_ACT_SIN, 0, 1.2e-7, 8192, false},
        {MDL_ACT_SIN, 0, 1.2e-7, 1e6f, false},   {MDL_ACT_COS, 0, 1.2e-7, 4, false},
        {MDL_ACT_COS, 0, 1.2e-7, 8192, false},   {MDL_ACT_COS, 0, 1.2e-7, 1e6f, false},
        {MDL_ACT_SHRINK, 1, 0, 2, false},        {MDL_ACT_THRESHOLDED_RELU, 0, 0, 2, false},
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
        o->op.in[0] = light_tensor(o, dim, true, 0, 0);
        o->op.out[0] = light_tensor(o, dim, true, 0, 0);
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
        T_TRUE(light_finish(o, &k));
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

        light_dims(dim);
        dim[1]++; /* primitives of one element with gaps are for the reference */
        dim[3]++;
        o->op.out[0] = light_tensor(o, dim, nhwc, 0, 0);
        o->op.in[0] = light_tensor(o, dim, nhwc, k.in_place || t_range(0, 1) ? 0 : 3, 0);
        o->op.act = (enum mdl_act)t_range(MDL_ACT_NONE, MDL_ACT_SOFTPLUS);
        o->op.act_a = 0.2f;
        o->op.act_b = 0.5f;
        check_fill(o, o->op.in[0], 4.0f);
        snprintf(o->name, sizeof(o->name), "unary %d of %zux%zux%zux%zu", (int)o->op.act, dim[0],
                 dim[1], dim[2], dim[3]);
        T_TRUE(light_finish(o, &k));
    }
}
