/* SPDX-License-Identifier: Apache-2.0 */
/* What the data of an initializer becomes, of every type, and what is refused. */
#include "tests/unit/model/read_model.h"

TEST(half_and_double_become_f32)
{
    static const int64_t d[] = {6};
    static const uint16_t half[] = {0x3c00, 0xc000, 0x0001, 0x7c00, 0x3555, 0x8000};
    static const double want[] = {1, -2, 0x1p-24, INFINITY, 0.333251953125, -0.0};
    static const double wide[] = {1.5, -2, 1e-3, 4, 5, 6};
    static const uint16_t brain[] = {0x3f80, 0xc000, 0x7f80, 0x0000, 0x3dcc, 0x4049};
    struct mdl_graph *g = NULL;
    struct pb t = pb_tensor("t", 10, d, 1);
    const float *f;

    pb_bytes(&t, 9, half, sizeof(half));
    T_EQ(read_model(model_with(t), &g), 0);
    f = g->initializers[0].data;
    T_EQ(g->initializers[0].dtype, MDL_F32);
    T_EQ(g->initializers[0].bytes, 24);
    T_TRUE(!g->initializers[0].in_file);
    for (int i = 0; i < 6; i++) {
        T_TRUE((double)f[i] == want[i]);
    }
    T_TRUE(signbit(f[5]));

    t = pb_tensor("t", 10, d, 1); /* halves in int32_data */
    for (int i = 0; i < 6; i++) {
        pb_int(&t, 5, half[i]);
    }
    T_EQ(read_model(model_with(t), &g), 0);
    f = g->initializers[0].data;
    T_NEAR(f[4], want[4], 0);
    T_NEAR(f[1], -2, 0);

    t = pb_tensor("t", 11, d, 1);
    pb_bytes(&t, 10, wide, sizeof(wide)); /* packed double_data */
    T_EQ(read_model(model_with(t), &g), 0);
    f = g->initializers[0].data;
    T_NEAR(f[0], 1.5, 0);
    T_NEAR(f[2], 1e-3f, 0);

    t = pb_tensor("t", 16, d, 1);
    pb_bytes(&t, 9, brain, sizeof(brain));
    T_EQ(read_model(model_with(t), &g), 0);
    f = g->initializers[0].data;
    T_NEAR(f[0], 1, 0);
    T_NEAR(f[1], -2, 0);
    T_NEAR(f[5], 3.140625, 0);
}

TEST(typed_integers)
{
    static const int64_t d[] = {2, 2}, scalar[] = {0};
    struct mdl_graph *g = NULL;
    struct pb t = pb_tensor("t", 7, d, 2), packed = {0};
    const int64_t *l;
    const int8_t *c;

    pb_varint(&packed, (uint64_t)-5);
    pb_varint(&packed, 1);
    pb_varint(&packed, (uint64_t)INT64_MAX);
    pb_varint(&packed, 0);
    pb_sub(&t, 7, packed);
    T_EQ(read_model(model_with(t), &g), 0);
    l = g->initializers[0].data;
    T_EQ(g->initializers[0].dtype, MDL_I64);
    T_EQ(l[0], -5);
    T_EQ(l[2], INT64_MAX);

    t = pb_tensor("t", 3, d, 2);
    for (int i = -2; i < 2; i++) {
        pb_int(&t, 5, i * 64);
    }
    T_EQ(read_model(model_with(t), &g), 0);
    c = g->initializers[0].data;
    T_EQ(g->initializers[0].bytes, 4);
    T_EQ(c[0], -128);
    T_EQ(c[3], 64);

    t = pb_tensor("t", 3, d, 2);
    for (int i = 0; i < 4; i++) {
        pb_int(&t, 5, 100 + 10 * i);
    }
    T_EQ(read_model(model_with(t), NULL), -EBADMSG);
    T_CONTAINS(read_error, "initializer 0 't': a value does not fit into int8");

    t = pb_tensor("t", 1, scalar, 0); /* a scalar has one element */
    pb_float(&t, 4, 3);
    T_EQ(read_model(model_with(t), &g), 0);
    T_EQ(g->initializers[0].rank, 0);
    T_EQ(g->initializers[0].bytes, 4);
    t = pb_tensor("t", 1, scalar, 1); /* a dimension of 0 has none */
    pb_bytes(&t, 9, "", 0);
    T_EQ(read_model(model_with(t), &g), 0);
    T_EQ(g->initializers[0].bytes, 0);
}

/* halves of bytes from the lower on, of an odd number of elements; 16 bits; both kinds of data */
TEST(integers_of_4_and_16_bits)
{
    static const int64_t d[] = {3};
    static const struct {
        int type;
        enum mdl_dtype dtype;
        enum mdl_narrow narrow;
        int32_t want[3];
    } cases[] = {{21, MDL_U8, MDL_NARROW_U4, {15, 2, 8}},
                 {22, MDL_I8, MDL_NARROW_I4, {-1, 2, -8}},
                 {4, MDL_I32, MDL_NARROW_U16, {65535, 2, 32768}},
                 {5, MDL_I32, MDL_NARROW_I16, {-1, 2, -32768}}};

    for (size_t i = 0; i < 2 * base_array_count(cases); i++) {
        bool half = i / 2 < 2;
        struct pb t = pb_tensor("t", cases[i / 2].type, d, 1);
        const struct mdl_gtensor *got;
        struct mdl_graph *g = NULL;

        if (i % 2 == 0) {
            pb_bytes(&t, 9, half ? "\x2f\x08" : "\xff\xff\x02\x00\x00\x80", half ? 2 : 6);
        } else {
            for (int k = 0; k < (half ? 2 : 3); k++) {
                pb_int(&t, 5, half ? (k ? 0x08 : 0x2f) : cases[i / 2].want[k]);
            }
        }
        T_EQ(read_model(model_with(t), &g), 0);
        got = &g->initializers[0];
        T_EQ(got->dtype, cases[i / 2].dtype);
        T_EQ(got->narrow, cases[i / 2].narrow);
        T_EQ(got->bytes, 3 * mdl_dtype_bytes(got->dtype));
        for (int k = 0; k < 3; k++) {
            int32_t want = cases[i / 2].want[k];

            T_EQ(!half                  ? ((const int32_t *)got->data)[k]
                 : got->dtype == MDL_I8 ? ((const int8_t *)got->data)[k]
                                        : ((const uint8_t *)got->data)[k],
                 want);
        }
        t = pb_tensor("t", cases[i / 2].type, d, 1);
        pb_bytes(&t, 9, "\x2f", 1); /* too short */
        T_EQ(read_model(model_with(t), NULL), -EBADMSG);
    }
}

TEST(types_of_the_future_are_refused_by_name)
{
    static const int64_t d[] = {1};
    static const char *const names[] = {[17] = "float8e4m3fn", [18] = "float8e4m3fnuz",
                                        [19] = "float8e5m2",   [20] = "float8e5m2fnuz",
                                        [23] = "float4e2m1",   [24] = "float8e8m0",
                                        [25] = "uint2",        [26] = "int2"};

    for (size_t i = 0; i < base_array_count(names); i++) {
        if (names[i]) {
            T_EQ(read_model(model_with(pb_tensor("w", (int)i, d, 1)), NULL), -EOPNOTSUPP);
            T_CONTAINS(read_error, names[i]);
        }
    }
}

TEST(data_and_shape_must_agree)
{
    static const int64_t d[] = {4}, negative[] = {2, -3}, huge[] = {1ll << 40, 1ll << 40},
                         hidden[] = {0, 1ll << 40, 1ll << 40}, deep[] = {1, 1, 1, 1, 1, 1, 1, 1, 1},
                         wide[] = {(1ll << 62) + 1};
    struct pb t = pb_tensor("w", 1, d, 1);

    pb_bytes(&t, 9, "0123456789abcde", 15);
    T_EQ(read_model(model_with(t), NULL), -EBADMSG);
    T_STR(read_error, "initializer 0 'w': 15 bytes of data where its shape of float32 needs 16");
    T_EQ(read_model(model_with(pb_tensor("w", 1, d, 1)), NULL), -EBADMSG);
    T_CONTAINS(read_error, "0 bytes of data");
    t = pb_tensor("w", 1, d, 1); /* raw and typed */
    pb_bytes(&t, 9, "0123456789abcdef", 16);
    pb_bytes(&t, 4, "0123456789abcdef", 16);
    T_EQ(read_model(model_with(t), NULL), -EBADMSG);
    T_CONTAINS(read_error, "several or in wrong fields");
    t = pb_tensor("w", 1, d, 1);
    pb_bytes(&t, 9, "01234567", 8);
    pb_bytes(&t, 9, "89abcdef", 8);
    T_EQ(read_model(model_with(t), NULL), -EBADMSG);
    T_CONTAINS(read_error, "raw_data is given twice");
    t = pb_tensor("w", 6, d, 1); /* integers in float_data */
    pb_bytes(&t, 4, "0123456789abcdef", 16);
    T_EQ(read_model(model_with(t), NULL), -EBADMSG);
    T_EQ(read_model(model_with(pb_tensor("w", 1, negative, 2)), NULL), -EBADMSG);
    T_STR(read_error, "initializer 0 'w': dimension 1 is negative (-3)");
    T_EQ(read_model(model_with(pb_tensor("w", 1, huge, 2)), NULL), -E2BIG);
    T_CONTAINS(read_error, "initializer 0 'w': the number of elements overflows");
    T_EQ(read_model(model_with(pb_tensor("w", 1, hidden, 3)), NULL), -E2BIG);
    T_EQ(read_model(model_with(pb_tensor("w", 1, deep, 9)), NULL), -EOPNOTSUPP);
    T_CONTAINS(read_error, "9 dimensions, more than 8");
    T_EQ(read_model(model_with(pb_tensor("w", 1, wide, 1)), NULL), -E2BIG);
    T_CONTAINS(read_error, "the number of bytes overflows");
}
