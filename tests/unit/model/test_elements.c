/* SPDX-License-Identifier: Apache-2.0 */
/* Element, mask and reduction operators: values by hand, and what they refuse. */
#include "tests/unit/model/one_node.h"

static const struct one_node functions[] = {
    {9, "Sin", "", {"f[3] 0 1.5707963 -2"}, "f[3] 0 1 -0.90929743"},
    {9, "Atanh", "", {"f[3] 0 0.5 1"}, "f[3] 0 0.54930614 inf"},
    {9, "Acosh", "", {"f[2] 1 0.5"}, "f[2] 0 nan"},
    {9, "Tan", "", {"i[1] 1"}, "!type i32 is not supported"},
    {10, "ThresholdedRelu", "alpha~1", {"f[5] -2 1 1.5 nan inf"}, "f[5] 0 0 1.5 nan inf"},
    {9, "Shrink", "lambd~1 bias~0.5", {"f[5] -2 -1 0.5 3 nan"}, "f[5] -1.5 0 0 2.5 nan"},
    {9, "Shrink", "lambd:1", {"f[1] 1"}, "!attribute lambd has the wrong type"},
    {12, "Celu", "alpha~2", {"f[4] -2 0 3 nan"}, "f[4] -1.2642411 0 3 nan"},
    {12, "Celu", "alpha~0.5", {"f[3] 3e38 -3e38 1"}, "f[3] 3e38 -0.5 1"},
    {12, "Celu", "", {"f[2] -1 5"}, "f[2] -0.63212056 5"},
    {12, "Celu", "alpha~0", {"f[1] 1"}, "!alpha 0 is not supported"},
    {12, "Celu", "alpha~-1", {"f[1] 1"}, "!alpha -1 is not supported"},
    {13, "IsNaN", "", {"f[4] nan 1 inf -inf"}, "b[4] 1 0 0 0"},
    {13, "IsNaN", "", {"f[0]"}, "b[0]"},
    {10, "IsInf", "", {"f[4] nan 1 inf -inf"}, "b[4] 0 0 1 1"},
    {10, "IsInf", "detect_negative:0", {"f[4] nan 1 inf -inf"}, "b[4] 0 0 1 0"},
    {10, "IsInf", "detect_positive:0", {"f[4] nan 1 inf -inf"}, "b[4] 0 0 0 1"},
    {10, "IsInf", "detect_positive:0 detect_negative:0", {"f[3] nan inf -inf"}, "b[3] 0 0 0"},
    {13, "Mod", "", {"i[5] 7 -7 7 -7 5", "i[5] 3 3 -3 -3 0"}, "i[5] 1 2 -2 -1 0"},
    {13, "Mod", "fmod:1", {"i[5] 7 -7 7 -7 5", "i[5] 3 3 -3 -3 0"}, "i[5] 1 -1 1 -1 0"},
    {13, "Mod", "", {"i[1] -2147483648", "i[1] -1"}, "i[1] 0"},
    {13, "Mod", "fmod:1", {"f[4] 5.5 -5.5 1 1", "f[4] 2 2 0 inf"}, "f[4] 1.5 -1.5 nan 1"},
    {13, "Mod", "", {"f[1] 1", "f[1] 1"}, "!fmod 0 takes integers"},
    {13, "Mod", "", {"b[1] 1", "b[1] 1"}, "!type bool"},
    {13, "Mod", "", {"i[2] 1", "i[3] 1"}, "!do not broadcast"},
    {13, "Mod", "", {"i[1] 1", "l[1] 1"}, "!must be equal"},
    {7, "Xor", "", {"b[4] 0 0 1 1", "b[4] 0 1 0 1"}, "b[4] 0 1 1 0"},
    {7, "Xor", "", {"u[1] 0", "u[1] 0"}, "!must be bool"},
    {11, "BitShift", "direction'LEFT", {"u[4] 1 255 3 7", "u[4] 1 1 8 255"}, "u[4] 2 254 0 0"},
    {11, "BitShift", "direction'RIGHT", {"u[4] 4 255 3 7", "u[4] 1 1 8 255"}, "u[4] 2 127 0 0"},
    {11, "BitShift", "", {"u[1] 1", "u[1] 1"}, "!neither LEFT nor RIGHT"},
    {11, "BitShift", "direction'LEFT", {"i[1] 1", "i[1] 1"}, "!only uint8 and uint16"},
    {18, "BitwiseAnd", "", {"i[2] -1 6", "i[1] 3"}, "i[2] 3 2"},
    {18, "BitwiseOr", "", {"u[2] 8 6", "u[1] 3"}, "u[2] 11 7"},
    {18, "BitwiseXor", "", {"l[2] -1 6", "l[1] 3"}, "l[2] -4 5"},
    {18, "BitwiseNot", "", {"c[3] -128 0 5"}, "c[3] 127 -1 -6"},
    {18, "BitwiseNot", "", {"u[2] 0 5"}, "u[2] 255 250"},
    {18, "BitwiseNot", "", {"f[1] 0"}, "!must be an integer"},
    {18, "BitwiseAnd", "", {"f[1] 0", "f[1] 0"}, "!must be integers"},
    {15, "CastLike", "", {"f[3] 1.5 -3.9 nan", "l[1] 0"}, "l[3] 1 -3 0"},
    {15, "CastLike", "", {"i[2] 0 7", "b[1] 0"}, "b[2] 0 1"},
    {15, "CastLike", "", {"i[2] 0 7"}, "!input 1 is missing"},
};

TEST(functions_of_elements)
{
    for (size_t i = 0; i < base_array_count(functions); i++) {
        T_TRUE(one_node_check(&functions[i]));
    }
}

static const struct one_node powers[] = {
    {13, "Pow", "", {"f[3] -3 0 2", "=f[] 2"}, "f[3] 9 0 4"},
    {13, "Pow", "", {"f[3] -3 0 2", "=f[1] 3"}, "f[3] -27 0 8"},
    {13, "Pow", "", {"f[3] -3 nan 2", "=i[] 1"}, "f[3] -3 nan 2"},
    {13, "Pow", "", {"f[2] 3 2", "=f[1,1] 2"}, "f[1,2] 9 4"},
    {13, "Pow", "", {"f[2] 4 2", "f[2] 0.5 2"}, "f[2] 2 4"},
    {13, "Pow", "", {"i[3] 4 2 10", "f[3] 0.5 1.5 -1"}, "i[3] 2 2 0"}, /* not 4^0, 2^1 */
    {13, "Pow", "", {"l[2] 3 -2", "i[2] 4 3"}, "l[2] 81 -8"},
    {13, "Pow", "", {"b[1] 1", "f[1] 1"}, "!not bool"},
    {12, "Clip", "", {"i[4] -9 -1 3 9", "i[] -2", "i[] 4"}, "i[4] -2 -1 3 4"},
    {12, "Clip", "", {"u[3] 0 7 255", "-", "u[] 9"}, "u[3] 0 7 9"},
    {13, "Max", "", {"l[2] 1 5", "l[1] 2", "l[] 3"}, "l[2] 3 5"},
    {13, "Min", "", {"c[2] -7 5"}, "c[2] -7 5"},
    {13, "Mean", "", {"f[2] 1 2", "f[2] 3 4", "f[1] 5"}, "f[2] 3 3.6666667"},
    {13, "Sign", "", {"i[3] -4 0 9"}, "i[3] -1 0 1"},
    {13, "Where", "", {"b[2] 1 0", "u[2] 1 2", "u[1] 9"}, "u[2] 1 9"},
    {13, "Less", "", {"l[3] 0 1 2", "l[1,1] 2"}, "b[1,3] 1 1 0"},
    {13, "Greater", "", {"i[1,1] 2", "i[3] 1 2 3"}, "b[1,3] 1 0 0"},
    {13, "Equal", "", {"l[1] 2", "l[1,1] 2"}, "b[1,1] 1"},
    {13, "Cast", "to:2", {"f[5] 300 -1.5 1e20 nan 7.9"}, "u[5] 255 0 255 0 7"},
    {13, "Cast", "to:3", {"f[4] 300 -300 1e20 nan"}, "c[4] 127 -128 127 0"},
    {13, "Cast", "to:6", {"f[3] 3e9 -3e9 nan"}, "i[3] 2147483647 -2147483648 0"},
    {13, "Cast", "to:2", {"i[2] 300 -1"}, "u[2] 44 255"}, /* integers are cut */
    {13, "Slice", "", {"f[4] 1", "=l[1] 0", "=l[1,1] 2"}, "!input 2 has rank 2; it must be a list"},
    {11, "Round", "", {"f[6] 0.5 1.5 -0.5 2.5 nan 8388609"}, "f[6] 0 2 0 2 nan 8388609"},
};

TEST(powers_limits_and_types)
{
    for (size_t i = 0; i < base_array_count(powers); i++) {
        T_TRUE(one_node_check(&powers[i]));
    }
}

static const struct one_node masks[] = {
    {13, "Hardmax", "", {"f[2,3] 1 3 3 nan 1 5"}, "f[2,3] 0 1 0 1 0 0"},
    {13, "Hardmax", "axis:0", {"f[2,3] 1 3 3 2 1 5"}, "f[2,3] 0 1 0 1 0 1"},
    {11, "Hardmax", "", {"f[1,2,2] 1 3 4 2"}, "f[1,2,2] 0 0 1 0"}, /* the last two together */
    {13, "Hardmax", "axis:2", {"f[2,3] 1"}, "!axis 2"},
    {13, "Hardmax", "", {"f[2,0]"}, "!dimension 1 of the input is 0"},
    {11, "OneHot", "", {"l[4] 1 -1 3 -4", "=l[] 3", "f[2] 5 7"}, "f[4,3] 5 7 5 5 5 7 5 5 5 5 5 5"},
    {11, "OneHot", "axis:0", {"i[2] 0 1", "=f[1] 2", "u[2] 0 1"}, "u[2,2] 1 0 0 1"},
    {11, "OneHot", "", {"f[3] 1.9 nan inf", "=l[] 2", "l[2] 0 1"}, "l[3,2] 0 1 1 0 0 0"},
    {11,
     "OneHot",
     "",
     {"l[2] 9223372036854775807 -9223372036854775808", "=l[] 2", "f[2] 0 1"},
     "f[2,2] 0"},
    {11, "OneHot", "", {"l[1] 0", "=l[] 0", "f[2] 0 1"}, "!depth 0"},
    {11, "OneHot", "", {"l[1] 0", "=l[] -3", "f[2] 0 1"}, "!depth -3"},
    {11, "OneHot", "", {"l[1] 0", "=l[] 1e18", "f[2] 0 1"}, "!out of range"},
    {11, "OneHot", "", {"l[1] 0", "=l[] 2e9", "f[2] 0 1"}, "!node it (OneHot)"},
    {11, "OneHot", "", {"l[1] 0", "=l[2] 2", "f[2] 0 1"}, "!input 1 has 2 values"},
    {11, "OneHot", "", {"l[1] 0", "l[] 2", "f[2] 0 1"}, "!must be a constant"},
    {11, "OneHot", "", {"l[1] 0", "=l[] 2", "f[3] 0 1"}, "!must hold two values"},
    {11, "OneHot", "axis:2", {"l[1] 0", "=l[] 2", "f[2] 0 1"}, "!axis 2"},
    {11, "OneHot", "", {"l[1,1,1,1,1,1,1,1] 0", "=l[] 2", "f[2] 0 1"}, "!rank 9"},
    {14, "Trilu", "", {"f[2,3] 1 2 3 4 5 nan"}, "f[2,3] 1 2 3 0 5 nan"},
    {14, "Trilu", "upper:0", {"f[2,3] 1 nan 3 4 5 6", "=l[] 0"}, "f[2,3] 1 0 0 4 5 0"},
    {14, "Trilu", "", {"l[2,2,2] 1 2 3 4", "=l[] 1"}, "l[2,2,2] 0 2 0 0"},
    {14, "Trilu", "upper:0", {"u[2,2] 1 2 3 4", "=l[] -9e18"}, "u[2,2] 0"},
    {14, "Trilu", "", {"f[2,0]"}, "f[2,0]"},
    {14, "Trilu", "", {"f[3] 1"}, "!rank 1"},
    {14, "Trilu", "", {"f[2,2] 1", "l[] 1"}, "!must be a constant"},
    {9, "EyeLike", "k:1", {"f[2,3] 7"}, "f[2,3] 0 1 0 0 0 1"},
    {9, "EyeLike", "dtype:7", {"f[2,2] 7"}, "l[2,2] 1 0 0 1"},
    {9, "EyeLike", "dtype:8", {"f[2,2] 7"}, "!element type 8 is not supported"},
    {9, "EyeLike", "", {"f[2,2,2] 7"}, "!rank 3"},
    {11, "CumSum", "", {"f[4] 1 2 3 4", "=l[] 0"}, "f[4] 1 3 6 10"},
    {11, "CumSum", "exclusive:1", {"i[4] 1 2 3 4", "=i[1] 0"}, "i[4] 0 1 3 6"},
    {11, "CumSum", "reverse:1", {"l[2,2] 1 2 3 4", "=l[] 0"}, "l[2,2] 4 6 3 4"},
    {11,
     "CumSum",
     "reverse:1 exclusive:1",
     {"f[2,3] 1 2 3 4 5 6", "=l[] -1"},
     "f[2,3] 5 3 0 11 6 0"},
    {11, "CumSum", "", {"f[2,0]", "=l[] 1"}, "f[2,0]"},
    {11, "CumSum", "", {"f[2] 1", "=l[] 1"}, "!axis 1"},
    {11, "CumSum", "", {"f[2] 1", "l[] 0"}, "!must be a constant"},
    {11, "CumSum", "", {"b[2] 1", "=l[] 0"}, "!bool"},
    {11, "CumSum", "", {"f[] 1", "=l[] 0"}, "!axis 0"},
};

TEST(masks_and_running_sums)
{
    for (size_t i = 0; i < base_array_count(masks); i++) {
        T_TRUE(one_node_check(&masks[i]));
    }
}

static const struct one_node reductions[] = {
    {18, "ReduceLogSum", "", {"f[2,2] 1 2 3 4", "=l[1] 1"}, "f[2,1] 1.0986123 1.9459101"},
    {13, "ReduceLogSum", "axes=0 keepdims:0", {"f[2,1] 1 2"}, "f[1] 1.0986123"},
    {18, "ReduceLogSumExp", "", {"f[2] 1000 1000", "=l[1] 0"}, "f[1] 1000.6931472"},
    {18, "ReduceLogSumExp", "keepdims:0", {"f[2,2] -inf -inf inf 1", "=l[1] 1"}, "f[2] -inf inf"},
    {18, "ReduceLogSumExp", "", {"f[2] nan 1"}, "f[1] nan"},
    {18, "ReduceLogSumExp", "", {"i[2] 1 1"}, "!type i32"},
    {18, "ReduceLogSumExp", "noop_with_empty_axes:1", {"f[2] -1 1"}, "f[2] -1 1"},
    {18, "ReduceLogSum", "noop_with_empty_axes:1", {"f[1] 1"}, "f[1] 0"},
    {18, "ReduceSumSquare", "noop_with_empty_axes:1", {"i[2] -3 1"}, "i[2] 9 1"},
    {18, "ReduceL2", "noop_with_empty_axes:1", {"f[2] -3 1", "=l[0]"}, "f[2] 3 1"},
    {18, "ReduceSum", "noop_with_empty_axes:1", {"f[2] -3 1"}, "f[2] -3 1"},
    {20, "ReduceMax", "", {"f[2,0]", "=l[1] 1"}, "f[2,1] -inf"},
    {20, "ReduceMin", "", {"i[0,2]", "=l[1] 0"}, "i[1,2] 2147483647"},
    {20, "ReduceMax", "keepdims:0", {"b[3] 0 1 0"}, "b[] 1"},
    {18, "ReduceLogSum", "", {"f[0]"}, "f[1] -inf"},
    {18, "ReduceMean", "", {"f[0]"}, "!a reduced dimension is empty"},
    {18, "ReduceMean", "", {"l[4] 1 2 3 5", "=l[1] 0"}, "l[1] 2"},
    {18, "ReduceMax", "", {"f[2] 1", "=l[1] 1"}, "!axis 1"},
    {18, "ReduceSum", "", {"f[2] 1", "l[1] 0"}, "!must be a constant"},
    {11, "ArgMax", "", {"u[3] 3 255 9"}, "l[1] 1"},
    {13, "LpNormalization", "p:1", {"f[2,2] 1 -3 0 0"}, "f[2,2] 0.25 -0.75 0 0"},
    {13, "LpNormalization", "axis:0", {"f[2,2] 3 0 4 1e-30"}, "f[2,2] 0.6 0 0.8 1"},
    {13, "LpNormalization", "p:3", {"f[2] 1"}, "!p 3 is out of range"},
    {18, "LpPool", "kernel_shape=2 strides=2", {"f[1,1,4] 3 4 0 -2"}, "f[1,1,2] 5 2"},
    {18, "LpPool", "kernel_shape=2 pads=1,0 p:1", {"f[1,1,2] -3 4"}, "f[1,1,2] 3 7"},
    {18,
     "LpPool",
     "kernel_shape=2 strides=2 ceil_mode:1 p:3",
     {"f[1,1,3] 1 1 -2"},
     "f[1,1,2] 1.2599210 2"},
    {18, "LpPool", "kernel_shape=2 pads=2,0", {"f[1,1,2] 1"}, "!without any input"},
    {18, "LpPool", "kernel_shape=2 p:0", {"f[1,1,2] 1"}, "!p 0 is out of range"},
    {18, "LpPool", "kernel_shape=2", {"f[2,2] 1"}, "!rank 2"},
    {18, "LpPool", "kernel_shape=9", {"f[1,1,2] 1"}, "!larger than the input"},
    {13, "GlobalLpPool", "", {"f[1,2,2] 3 -4 0 2"}, "f[1,2,1] 5 2"},
    {13, "GlobalLpPool", "p:3", {"f[1,1,2,1] 1 -2"}, "f[1,1,1,1] 2.0800838"},
    {13, "MeanVarianceNormalization", "axes=1", {"f[1,2] 1 3"}, "f[1,2] -1 1"},
    {13, "MeanVarianceNormalization", "", {"f[1,2,1,2] 7"}, "f[1,2,1,2] 0"},
    {13, "MeanVarianceNormalization", "", {"f[1,2] 1"}, "!axis 2"},
};

TEST(reductions_and_norms)
{
    for (size_t i = 0; i < base_array_count(reductions); i++) {
        T_TRUE(one_node_check(&reductions[i]));
    }
}

TEST_MAIN()
