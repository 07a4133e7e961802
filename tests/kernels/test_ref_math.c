/* SPDX-License-Identifier: Apache-2.0 */
/* References of products, element functions and reductions. */
#include <float.h>

#include "tests/kernels/by_hand.h"

TEST(gemm_all_terms)
{
    const float scale[] = {1, 10}, shift[] = {1000, 2000};
    BY_HAND(o, MDL_OP_GEMM);
    o->op.attr.gemm.alpha = 2;
    o->op.attr.gemm.beta = 0.5f;
    o->op.in[0] = F32(o, DIMS(1, 2), 1, 2);
    o->op.in[1] = F32(o, DIMS(2, 2), 1, 2, 3, 4); /* products: 7, 10 */
    o->op.in[2] = F32(o, DIMS(1, 2), 4, 8);
    o->op.out[0] = OUT(o, MDL_F32, DIMS(1, 2));
    T_TRUE(by_hand_run(o) && F32_IS(o, 16, 24));
    o->op.scale = scale;
    o->op.shift = shift;
    o->op.channels = 2;
    T_TRUE(by_hand_run(o) && F32_IS(o, 1016, 2204));
    o->op.attr.gemm.trans_b = true; /* 1 2 . 1 2 = 5, 1 2 . 3 4 = 11 */
    o->op.scale = o->op.shift = NULL;
    T_TRUE(by_hand_run(o) && F32_IS(o, 12, 26));
}

TEST(gemm_transposed_a_and_scalar_c)
{
    BY_HAND(o, MDL_OP_GEMM);
    o->op.attr.gemm.alpha = o->op.attr.gemm.beta = 1;
    o->op.attr.gemm.trans_a = true;
    o->op.in[0] = F32(o, DIMS(2, 3), 1, 2, 3, 4, 5, 6);
    o->op.in[1] = F32(o, DIMS(2, 1), 1, 10);
    o->op.in[2] = F32(o, DIMS(1), 100);
    o->op.out[0] = OUT(o, MDL_F32, DIMS(3, 1));
    T_TRUE(by_hand_run(o) && F32_IS(o, 141, 152, 163));
}

TEST(gemm_nothing_to_sum)
{
    BY_HAND(o, MDL_OP_GEMM);
    o->op.attr.gemm.alpha = o->op.attr.gemm.beta = 1;
    o->op.in[0] = F32(o, DIMS(1, 0), 0);
    o->op.in[1] = F32(o, DIMS(0, 2), 0);
    o->op.in[2] = F32(o, DIMS(2), 3, 4);
    o->op.out[0] = OUT(o, MDL_F32, DIMS(1, 2));
    T_TRUE(by_hand_run(o) && F32_IS(o, 3, 4));
}

TEST(matmul_batches_broadcast)
{
    BY_HAND(o, MDL_OP_MATMUL);
    o->op.in[0] = F32(o, DIMS(2, 1, 1, 2), 1, 2, 3, 4);
    o->op.in[1] = F32(o, DIMS(2, 2, 1), 1, 1, 10, 100);
    o->op.out[0] = OUT(o, MDL_F32, DIMS(2, 2, 1, 1));
    T_TRUE(by_hand_run(o) && F32_IS(o, 3, 210, 7, 430));
}

TEST(matmul_vectors)
{
    {
        BY_HAND(o, MDL_OP_MATMUL);
        o->op.in[0] = F32(o, DIMS(2), 1, 2);
        o->op.in[1] = F32(o, DIMS(2), 3, 4);
        o->op.out[0] = by_hand_out(o, MDL_F32, 0, NULL);
        T_TRUE(by_hand_run(o) && F32_IS(o, 11));
    }
    {
        BY_HAND(o, MDL_OP_MATMUL);
        o->op.in[0] = F32(o, DIMS(2), 1, 2);
        o->op.in[1] = F32(o, DIMS(2, 3), 1, 2, 3, 4, 5, 6);
        o->op.out[0] = OUT(o, MDL_F32, DIMS(3));
        T_TRUE(by_hand_run(o) && F32_IS(o, 9, 12, 15));
    }
    {
        BY_HAND(o, MDL_OP_MATMUL);
        o->op.in[0] = F32(o, DIMS(2, 2), 1, 2, 3, 4);
        o->op.in[1] = F32(o, DIMS(2), 5, 6);
        o->op.out[0] = OUT(o, MDL_F32, DIMS(2));
        T_TRUE(by_hand_run(o) && F32_IS(o, 17, 39));
    }
}

TEST(binary_reals)
{
    static const struct {
        enum mdl_binary which;
        float y[4];
    } cases[] = {
        {MDL_BIN_ADD, {5, -1, NAN, INFINITY}}, {MDL_BIN_SUB, {1, -5, NAN, INFINITY}},
        {MDL_BIN_MUL, {6, -6, NAN, INFINITY}}, {MDL_BIN_DIV, {1.5f, -1.5f, NAN, INFINITY}},
        {MDL_BIN_MAX, {3, 2, NAN, INFINITY}},  {MDL_BIN_MIN, {2, -3, NAN, 1}},
        {MDL_BIN_POW, {9, 9, NAN, INFINITY}},
    };

    for (size_t i = 0; i < base_array_count(cases); i++) {
        BY_HAND(o, MDL_OP_BINARY);
        o->op.attr.binary = cases[i].which;
        o->op.in[0] = F32(o, DIMS(4), 3, -3, NAN, INFINITY);
        o->op.in[1] = F32(o, DIMS(4), 2, 2, 1, 1);
        o->op.out[0] = OUT(o, MDL_F32, DIMS(4));
        T_TRUE(by_hand_run(o) && by_hand_f32_is(o, 4, cases[i].y));
    }
}

TEST(binary_integers_wrap_and_never_trap)
{
    static const struct {
        enum mdl_binary which;
        int64_t y[4];
    } cases[] = {
        {MDL_BIN_ADD, {-5, 7, INT32_MIN - (int64_t)INT32_MIN + INT32_MAX, 1}},
        {MDL_BIN_DIV, {-3, 0, INT32_MIN, 0}},
        {MDL_BIN_MUL, {-14, 0, INT32_MIN, 0}},
        {MDL_BIN_MAX, {2, 7, -1, 1}},
        {MDL_BIN_MIN, {-7, 0, INT32_MIN, 0}},
        {MDL_BIN_POW, {49, 1, 0, 0}},
    };

    for (size_t i = 0; i < base_array_count(cases); i++) {
        BY_HAND(o, MDL_OP_BINARY);
        o->op.attr.binary = cases[i].which;
        o->op.in[0] = I32(o, DIMS(4), -7, 7, INT32_MIN, 0);
        o->op.in[1] = I32(o, DIMS(4), 2, 0, -1, 1);
        o->op.out[0] = OUT(o, MDL_I32, DIMS(4));
        T_TRUE(by_hand_run(o) && by_hand_ints_are(o, 0, 4, cases[i].y));
    }
}

TEST(bits_and_remainders_of_integers)
{
    static const struct {
        enum mdl_binary which;
        int64_t y[4];
    } cases[] = {
        {MDL_BIN_MOD, {1, 0, 0, 2}},       {MDL_BIN_FMOD, {-1, 0, 0, -1}},
        {MDL_BIN_BIT_AND, {0, 0, -8, 0}},  {MDL_BIN_BIT_OR, {-5, 7, -1, -1}},
        {MDL_BIN_BIT_XOR, {-5, 7, 7, -1}},
    };

    for (size_t i = 0; i < base_array_count(cases); i++) {
        BY_HAND(o, MDL_OP_BINARY);
        o->op.attr.binary = cases[i].which;
        o->op.in[0] = I32(o, DIMS(4), -7, 7, -8, -4);
        o->op.in[1] = I32(o, DIMS(4), 2, 0, -1, 3);
        o->op.out[0] = OUT(o, MDL_I32, DIMS(4));
        if (!by_hand_run(o) || !by_hand_ints_are(o, 0, 4, cases[i].y)) {
            T_FAIL("case %zu", i);
        }
    }
    {
        BY_HAND(o, MDL_OP_BINARY);
        o->op.in[0] = U8(o, DIMS(4), 129, 129, 129, 129);
        o->op.in[1] = U8(o, DIMS(4), 0, 1, 8, 200);
        o->op.out[0] = OUT(o, MDL_U8, DIMS(4));
        o->op.attr.binary = MDL_BIN_SHIFT_LEFT;
        T_TRUE(by_hand_run(o) && INTS_ARE(o, 129, 2, 0, 0));
        o->op.attr.binary = MDL_BIN_SHIFT_RIGHT;
        T_TRUE(by_hand_run(o) && INTS_ARE(o, 129, 64, 0, 0));
    }
    {
        /* bits of a float mean nothing here */
        BY_HAND(o, MDL_OP_BINARY);
        o->op.in[0] = o->op.in[1] = F32(o, DIMS(1), 1);
        o->op.out[0] = OUT(o, MDL_F32, DIMS(1));
        o->op.attr.binary = MDL_BIN_BIT_AND;
        T_TRUE(!by_hand_reference(MDL_OP_BINARY)->supports(&o->m, &o->op));
        o->op.attr.binary = MDL_BIN_FMOD;
        T_TRUE(by_hand_run(o) && F32_IS(o, 0));
    }
}

TEST(binary_broadcast_by_strides_and_compare)
{
    BY_HAND(o, MDL_OP_BINARY);
    o->op.attr.binary = MDL_BIN_GREATER;
    o->op.in[0] = I64(o, DIMS(2, 2), INT64_MAX, INT64_MAX - 1, 3, 4);
    o->op.in[1] = I64(o, DIMS(2), INT64_MAX - 1, 3);
    o->tensors[o->op.in[1]].rank = 2;
    o->tensors[o->op.in[1]].dim[0] = o->tensors[o->op.in[1]].dim[1] = 2;
    o->tensors[o->op.in[1]].stride[0] = 0;
    o->tensors[o->op.in[1]].stride[1] = 1;
    o->op.out[0] = OUT(o, MDL_BOOL, DIMS(2, 2));
    /* doubles could not tell INT64_MAX from INT64_MAX - 1 */
    T_TRUE(by_hand_run(o) && INTS_ARE(o, 1, 1, 0, 1));
    o->op.attr.binary = MDL_BIN_EQUAL;
    T_TRUE(by_hand_run(o) && INTS_ARE(o, 0, 0, 0, 0));
}

TEST(unary_formulas)
{
    static const struct {
        enum mdl_act act;
        float a, b, y[5];
    } cases[] = {
        {MDL_ACT_RELU, 0, 0, {0, 0, 0, 0.5f, 4}},
        {MDL_ACT_CLIP, -1, 2, {-1, -0.5f, 0, 0.5f, 2}},
        {MDL_ACT_CLIP, 3, 1, {1, 1, 1, 1, 1}}, /* min(max(x, 3), 1) */
        {MDL_ACT_LEAKY_RELU, 0.1f, 0, {-0.4f, -0.05f, 0, 0.5f, 4}},
        {MDL_ACT_SIGMOID, 0, 0, {0.01798621f, 0.37754067f, 0.5f, 0.62245933f, 0.98201379f}},
        {MDL_ACT_HARD_SIGMOID, 0.2f, 0.5f, {0, 0.4f, 0.5f, 0.6f, 1}},
        {MDL_ACT_HARD_SWISH, 0, 0, {0, -0.20833333f, 0, 0.29166667f, 4}},
        {MDL_ACT_SILU, 0, 0, {-0.07194484f, -0.18877033f, 0, 0.31122967f, 3.92805516f}},
        {MDL_ACT_TANH, 0, 0, {-0.99932930f, -0.46211716f, 0, 0.46211716f, 0.99932930f}},
        {MDL_ACT_ELU, 2, 0, {-1.96336872f, -0.78693868f, 0, 0.5f, 4}},
        {MDL_ACT_SOFTPLUS, 0, 0, {0.01814993f, 0.47407698f, 0.69314718f, 0.97407698f, 4.01814993f}},
        {MDL_ACT_SWISH, 2, 0, {-0.00134140f, -0.13447071f, 0, 0.36552929f, 3.99865860f}},
        {MDL_ACT_MISH, 0, 0, {-0.07259174f, -0.22074377f, 0, 0.37524521f, 3.99741281f}},
        {MDL_ACT_GELU, 0, 0, {-0.00012668f, -0.15426877f, 0, 0.34573123f, 3.99987332f}},
        {MDL_ACT_GELU_TANH, 0, 0, {-0.00007025f, -0.15428599f, 0, 0.34571401f, 3.99992975f}},
        {MDL_ACT_SELU, 2, 3, {-5.89010617f, -2.36081604f, 0, 1.5f, 12}},
        {MDL_ACT_SOFTSIGN, 0, 0, {-0.8f, -0.33333333f, 0, 0.33333333f, 0.8f}},
        {MDL_ACT_NEG, 0, 0, {4, 0.5f, 0, -0.5f, -4}},
        {MDL_ACT_ABS, 0, 0, {4, 0.5f, 0, 0.5f, 4}},
        {MDL_ACT_FLOOR, 0, 0, {-4, -1, 0, 0, 4}},
        {MDL_ACT_CEIL, 0, 0, {-4, 0, 0, 1, 4}},
        {MDL_ACT_ROUND, 0, 0, {-4, 0, 0, 0, 4}}, /* ties to even */
        {MDL_ACT_SIGN, 0, 0, {-1, -1, 0, 1, 1}},
        {MDL_ACT_EXP, 0, 0, {0.01831564f, 0.60653066f, 1, 1.64872127f, 54.59815003f}},
        {MDL_ACT_LOG, 0, 0, {NAN, NAN, -INFINITY, -0.69314718f, 1.38629436f}},
        {MDL_ACT_SQRT, 0, 0, {NAN, NAN, 0, 0.70710678f, 2}},
        {MDL_ACT_RECIPROCAL, 0, 0, {-0.25f, -2, INFINITY, 2, 0.25f}},
        {MDL_ACT_ERF, 0, 0, {-0.99999998f, -0.52049988f, 0, 0.52049988f, 0.99999998f}},
        {MDL_ACT_SIN, 0, 0, {0.75680250f, -0.47942554f, 0, 0.47942554f, -0.75680250f}},
        {MDL_ACT_COS, 0, 0, {-0.65364362f, 0.87758256f, 1, 0.87758256f, -0.65364362f}},
        {MDL_ACT_TAN, 0, 0, {-1.15782128f, -0.54630249f, 0, 0.54630249f, 1.15782128f}},
        {MDL_ACT_ASIN, 0, 0, {NAN, -0.52359878f, 0, 0.52359878f, NAN}},
        {MDL_ACT_ACOS, 0, 0, {NAN, 2.09439510f, 1.57079633f, 1.04719755f, NAN}},
        {MDL_ACT_ATAN, 0, 0, {-1.32581766f, -0.46364761f, 0, 0.46364761f, 1.32581766f}},
        {MDL_ACT_SINH, 0, 0, {-27.2899172f, -0.52109531f, 0, 0.52109531f, 27.2899172f}},
        {MDL_ACT_COSH, 0, 0, {27.3082328f, 1.12762597f, 1, 1.12762597f, 27.3082328f}},
        {MDL_ACT_ASINH, 0, 0, {-2.09471255f, -0.48121183f, 0, 0.48121183f, 2.09471255f}},
        {MDL_ACT_ACOSH, 0, 0, {NAN, NAN, NAN, NAN, 2.06343707f}},
        {MDL_ACT_ATANH, 0, 0, {NAN, -0.54930614f, 0, 0.54930614f, NAN}},
        {MDL_ACT_THRESHOLDED_RELU, 0.5f, 0, {0, 0, 0, 0, 4}},
        {MDL_ACT_THRESHOLDED_RELU, -1, 0, {0, -0.5f, 0, 0.5f, 4}},
        {MDL_ACT_SHRINK, 0.5f, 0.25f, {-3.75f, 0, 0, 0, 3.75f}},
    };
    bool seen[MDL_ACT_COUNT] = {
        [MDL_ACT_NONE] = true, [MDL_ACT_NOT] = true, [MDL_ACT_BIT_NOT] = true};

    for (size_t i = 0; i < base_array_count(cases); i++) {
        BY_HAND(o, MDL_OP_UNARY);
        o->op.act = cases[i].act;
        o->op.act_a = cases[i].a;
        o->op.act_b = cases[i].b;
        o->op.in[0] = F32(o, DIMS(5), -4, -0.5f, 0, 0.5f, 4);
        o->op.out[0] = OUT(o, MDL_F32, DIMS(5));
        if (!by_hand_run(o) || !by_hand_f32_is(o, 5, cases[i].y)) {
            T_FAIL("case %zu, act %d", i, (int)cases[i].act);
        }
        seen[cases[i].act] = true;
    }
    for (size_t i = 0; i < MDL_ACT_COUNT; i++) {
        T_TRUE(seen[i]);
    }
}

TEST(unary_extremes)
{
    BY_HAND(o, MDL_OP_UNARY);
    o->op.in[0] = F32(o, DIMS(3), -FLT_MAX, FLT_MAX, NAN);
    o->op.out[0] = OUT(o, MDL_F32, DIMS(3));
    o->op.act = MDL_ACT_SIGMOID;
    T_TRUE(by_hand_run(o) && F32_IS(o, 0, 1, NAN));
    o->op.act = MDL_ACT_SOFTPLUS;
    T_TRUE(by_hand_run(o) && F32_IS(o, 0, FLT_MAX, NAN));
    o->op.act = MDL_ACT_RELU;
    T_TRUE(by_hand_run(o) && F32_IS(o, 0, FLT_MAX, NAN));
}

TEST(unary_integers_and_booleans)
{
    {
        BY_HAND(o, MDL_OP_UNARY);
        o->op.act = MDL_ACT_CLIP;
        o->op.act_a = -3;
        o->op.act_b = 5;
        o->op.in[0] = I8(o, DIMS(4), -128, -3, 4, 127);
        o->op.out[0] = OUT(o, MDL_I8, DIMS(4));
        T_TRUE(by_hand_run(o) && INTS_ARE(o, -3, -3, 4, 5));
    }
    {
        BY_HAND(o, MDL_OP_UNARY);
        o->op.act = MDL_ACT_NOT;
        o->op.in[0] = BOOL(o, DIMS(2), 1, 0);
        o->op.out[0] = OUT(o, MDL_BOOL, DIMS(2));
        T_TRUE(by_hand_run(o) && INTS_ARE(o, 0, 1));
    }
    {
        BY_HAND(o, MDL_OP_UNARY);
        o->op.act = MDL_ACT_BIT_NOT;
        o->op.in[0] = I8(o, DIMS(2), 5, -128);
        o->op.out[0] = OUT(o, MDL_I8, DIMS(2));
        T_TRUE(by_hand_run(o) && INTS_ARE(o, -6, 127));
    }
    {
        /* bounds of Clip's defaults lie outside every integer */
        BY_HAND(o, MDL_OP_UNARY);
        o->op.act = MDL_ACT_CLIP;
        o->op.act_a = -FLT_MAX;
        o->op.act_b = FLT_MAX;
        o->op.in[0] = I64(o, DIMS(2), INT64_MIN, INT64_MAX);
        o->op.out[0] = OUT(o, MDL_I64, DIMS(2));
        T_TRUE(by_hand_run(o) && INTS_ARE(o, INT64_MIN, INT64_MAX));
    }
}

TEST(prelu_where_affine)
{
    const float scale[] = {2, 3}, shift[] = {10, 20};
    {
        BY_HAND(o, MDL_OP_PRELU);
        o->op.in[0] = F32(o, DIMS(2, 2), -1, 2, -3, 4);
        o->op.in[1] = F32(o, DIMS(2, 1), 0.5f, 10);
        o->op.out[0] = OUT(o, MDL_F32, DIMS(2, 2));
        T_TRUE(by_hand_run(o) && F32_IS(o, -0.5f, 2, -30, 4));
    }
    {
        BY_HAND(o, MDL_OP_WHERE);
        o->op.in[0] = BOOL(o, DIMS(2), 1, 0);
        o->op.in[1] = I64(o, DIMS(2), 5, 6);
        o->op.in[2] = I64(o, DIMS(1), -1);
        o->op.out[0] = OUT(o, MDL_I64, DIMS(2));
        T_TRUE(by_hand_run(o) && INTS_ARE(o, 5, -1));
    }
    {
        BY_HAND(o, MDL_OP_AFFINE);
        o->op.in[0] = F32(o, DIMS(1, 2, 2), 1, 2, 3, -40);
        o->op.out[0] = OUT(o, MDL_F32, DIMS(1, 2, 2));
        o->op.scale = scale;
        o->op.shift = shift;
        o->op.channels = 2;
        o->op.act = MDL_ACT_RELU;
        T_TRUE(by_hand_run(o) && F32_IS(o, 12, 14, 29, 0));
    }
}

TEST(softmax_along_either_axis)
{
    BY_HAND(o, MDL_OP_SOFTMAX);
    o->op.in[0] = F32(o, DIMS(2, 2), 0, 0.69314718f, 1.0986123f, 0);
    o->op.out[0] = OUT(o, MDL_F32, DIMS(2, 2));
    o->op.attr.softmax.axis = 1; /* 1:2 and 3:1 */
    T_TRUE(by_hand_run(o) && F32_IS(o, 1 / 3.0f, 2 / 3.0f, 0.75f, 0.25f));
    o->op.attr.softmax.axis = 0; /* 1:3 and 2:1 */
    T_TRUE(by_hand_run(o) && F32_IS(o, 0.25f, 2 / 3.0f, 0.75f, 1 / 3.0f));
    o->op.attr.softmax.log = true;
    T_TRUE(by_hand_run(o) && F32_IS(o, -1.3862944f, -0.4054651f, -0.2876821f, -1.0986123f));
}

TEST(softmax_large_values)
{
    BY_HAND(o, MDL_OP_SOFTMAX);
    o->op.in[0] = F32(o, DIMS(1, 3), 10000, 10000, -10000);
    o->op.out[0] = OUT(o, MDL_F32, DIMS(1, 3));
    o->op.attr.softmax.axis = 1;
    T_TRUE(by_hand_run(o) && F32_IS(o, 0.5f, 0.5f, 0));
}

TEST(reduce_each)
{
    static const struct {
        enum mdl_reduce which;
        float y[2];
    } cases[] = {
        {MDL_RED_MEAN, {-1, 2}},       {MDL_RED_SUM, {-2, 4}},         {MDL_RED_MAX, {1, 4}},
        {MDL_RED_MIN, {-3, 0}},        {MDL_RED_PROD, {-3, 0}},        {MDL_RED_L1, {4, 4}},
        {MDL_RED_L2, {3.1622777f, 4}}, {MDL_RED_SUM_SQUARE, {10, 16}},
    };

    T_EQ(base_array_count(cases), MDL_RED_COUNT);
    for (size_t i = 0; i < base_array_count(cases); i++) {
        BY_HAND(o, MDL_OP_REDUCE);
        o->op.attr.reduce.which = cases[i].which;
        o->op.attr.reduce.axes[1] = true;
        o->op.in[0] = F32(o, DIMS(2, 2), 1, -3, 0, 4);
        o->op.out[0] = OUT(o, MDL_F32, DIMS(2, 1));
        T_TRUE(by_hand_run(o) && by_hand_f32_is(o, 2, cases[i].y));
    }
}

TEST(reduce_integers_several_axes_and_nothing)
{
    {
        BY_HAND(o, MDL_OP_REDUCE);
        o->op.attr.reduce.which = MDL_RED_MEAN;
        o->op.attr.reduce.axes[0] = o->op.attr.reduce.axes[2] = true;
        o->op.in[0] = I64(o, DIMS(2, 2, 2), -1, -2, 3, 4, -5, 1, 7, 9);
        o->op.out[0] = OUT(o, MDL_I64, DIMS(1, 2, 1));
        T_TRUE(by_hand_run(o) && INTS_ARE(o, -7 / 4, 23 / 4));
    }
    {
        BY_HAND(o, MDL_OP_REDUCE);
        o->op.attr.reduce.which = MDL_RED_MAX;
        o->op.attr.reduce.axes[0] = true;
        o->op.in[0] = I8(o, DIMS(0, 2), 0);
        o->op.out[0] = OUT(o, MDL_I8, DIMS(1, 2));
        T_TRUE(by_hand_run(o) && INTS_ARE(o, -128, -128));
        o->op.attr.reduce.which = MDL_RED_PROD;
        T_TRUE(by_hand_run(o) && INTS_ARE(o, 1, 1));
    }
}

TEST(cumsum_along_either_axis)
{
    BY_HAND(o, MDL_OP_CUMSUM);
    o->op.in[0] = F32(o, DIMS(2, 3), 1, 2, 3, 4, 5, NAN);
    o->op.out[0] = OUT(o, MDL_F32, DIMS(2, 3));
    o->op.attr.cumsum.axis = 1;
    T_TRUE(by_hand_run(o) && F32_IS(o, 1, 3, 6, 4, 9, NAN));
    o->op.attr.cumsum.exclusive = true;
    T_TRUE(by_hand_run(o) && F32_IS(o, 0, 1, 3, 0, 4, 9));
    o->op.attr.cumsum.axis = 0;
    T_TRUE(by_hand_run(o) && F32_IS(o, 0, 0, 0, 1, 2, 3));
    {
        BY_HAND(p, MDL_OP_CUMSUM);
        p->op.in[0] = I8(p, DIMS(3), 100, 100, -1);
        p->op.out[0] = OUT(p, MDL_I8, DIMS(3));
        T_TRUE(by_hand_run(p) && INTS_ARE(p, 100, -56, -57)); /* wraps */
    }
}

TEST(arg_first_and_last)
{
    BY_HAND(o, MDL_OP_ARG);
    o->op.in[0] = F32(o, DIMS(2, 3), 5, 5, 1, -1, -1, 0);
    o->op.out[0] = OUT(o, MDL_I64, DIMS(2, 1));
    o->op.attr.arg.axis = 1;
    o->op.attr.arg.max = true;
    T_TRUE(by_hand_run(o) && INTS_ARE(o, 0, 2));
    o->op.attr.arg.last = true;
    T_TRUE(by_hand_run(o) && INTS_ARE(o, 1, 2));
    o->op.attr.arg.max = false;
    T_TRUE(by_hand_run(o) && INTS_ARE(o, 2, 1));
}

TEST(lrn_window_is_cut_at_the_ends)
{
    BY_HAND(o, MDL_OP_LRN);
    o->op.attr.lrn.size = 3;
    o->op.attr.lrn.alpha = 3;
    o->op.attr.lrn.beta = 0.5f;
    o->op.attr.lrn.bias = 2;
    o->op.in[0] = F32(o, DIMS(1, 3, 1, 1), 1, 1, 5);
    o->op.out[0] = OUT(o, MDL_F32, DIMS(1, 3, 1, 1));
    /* 1/sqrt(2+2), 1/sqrt(2+27), 5/sqrt(2+26) */
    T_TRUE(by_hand_run(o) && F32_IS(o, 0.5f, 0.185695338f, 0.944911183f));
}

TEST_MAIN()
