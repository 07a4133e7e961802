/* SPDX-License-Identifier: Apache-2.0 */
/* References of the operators that move elements, and the table they stand in. */
#include "tests/kernels/by_hand.h"

TEST(every_kind_has_one_reference_and_it_is_last)
{
    size_t count;
    const struct krn_primitive *v = krn_primitives(&count);

    for (size_t kind = 0; kind < MDL_OP_COUNT; kind++) {
        size_t last = count, references = 0;

        for (size_t i = 0; i < count; i++) {
            if ((size_t)v[i].kind == kind) {
                last = i;
                references += v[i].reference;
                T_TRUE(v[i].supports && v[i].run);
                /* who packs weights says how large they are */
                T_TRUE(v[i].packed_bytes ? v[i].pack || v[i].prepare : !v[i].pack);
                T_TRUE(!v[i].prepare == !v[i].release);
            }
        }
        T_EQ(references, 1);
        T_TRUE(v[last].reference && v[last].needs == 0);
        T_CONTAINS(v[last].name, "__ref");
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < i; k++) {
            T_TRUE(strcmp(v[i].name, v[k].name) != 0);
        }
    }
}

TEST(copy_transposes)
{
    BY_HAND(o, MDL_OP_COPY);
    o->op.in[0] = I64(o, DIMS(2, 3), 1, 2, 3, 4, 5, 6);
    o->op.out[0] = OUT(o, MDL_I64, DIMS(3, 2));
    struct mdl_tensor *x = &o->tensors[o->op.in[0]];
    x->dim[0] = 3;
    x->dim[1] = 2;
    x->stride[0] = 1;
    x->stride[1] = 3;
    T_TRUE(by_hand_run(o) && INTS_ARE(o, 1, 4, 2, 5, 3, 6));
}

TEST(copy_casts)
{
    {
        BY_HAND(o, MDL_OP_COPY);
        o->op.in[0] = F32(o, DIMS(6), -1.9f, 1.9f, NAN, 1e30f, -INFINITY, 255);
        o->op.out[0] = OUT(o, MDL_I32, DIMS(6));
        T_TRUE(by_hand_run(o) && INTS_ARE(o, -1, 1, 0, INT32_MAX, INT32_MIN, 255));
    }
    {
        BY_HAND(o, MDL_OP_COPY);
        o->op.in[0] = F32(o, DIMS(4), 0.5f, 0, NAN, -3);
        o->op.out[0] = OUT(o, MDL_BOOL, DIMS(4));
        T_TRUE(by_hand_run(o) && INTS_ARE(o, 1, 0, 1, 1));
    }
    {
        BY_HAND(o, MDL_OP_COPY);
        o->op.in[0] = I64(o, DIMS(3), 300, -1, (int64_t)1 << 40);
        o->op.out[0] = OUT(o, MDL_U8, DIMS(3));
        T_TRUE(by_hand_run(o) && INTS_ARE(o, 44, 255, 0));
    }
    {
        BY_HAND(o, MDL_OP_COPY);
        o->op.in[0] = I8(o, DIMS(2), -128, 127);
        o->op.out[0] = OUT(o, MDL_F32, DIMS(2));
        T_TRUE(by_hand_run(o) && F32_IS(o, -128, 127));
    }
}

/* Bits, not values: a copy must not touch NaN payloads or the sign of zero. */
TEST(copy_keeps_bits)
{
    const uint32_t bits[] = {0x7fa00001, 0xffc12345, 0x80000000};
    BY_HAND(o, MDL_OP_COPY);
    o->op.in[0] = F32(o, DIMS(3), 0, 0, 0);
    memcpy(o->buffers[o->op.in[0]].data, bits, sizeof(bits));
    o->op.out[0] = OUT(o, MDL_F32, DIMS(3));
    T_TRUE(by_hand_run(o));
    T_TRUE(memcmp(o->buffers[o->op.out[0]].data, bits, sizeof(bits)) == 0);
}

TEST(copy_writes_a_part_of_a_concat_only)
{
    BY_HAND(o, MDL_OP_COPY);
    o->op.in[0] = F32(o, DIMS(2, 2), 1, 2, 3, 4);
    o->op.out[0] = OUT(o, MDL_F32, DIMS(2, 3));
    float *y = (float *)(void *)o->buffers[o->op.out[0]].data;
    float before;

    memcpy(&before, &y[2], sizeof(before));
    o->tensors[o->op.out[0]].dim[1] = 2; /* the third column belongs to another */
    T_TRUE(by_hand_run(o));
    T_TRUE(memcmp(&before, &y[2], sizeof(before)) == 0);
    T_TRUE(y[0] == 1 && y[1] == 2 && y[3] == 3 && y[4] == 4);
}

TEST(pad_modes)
{
    static const struct {
        enum mdl_pad_mode mode;
        ptrdiff_t begin, end;
        size_t n;
        float y[8];
    } cases[] = {
        {MDL_PAD_CONSTANT, 2, 1, 6, {9, 9, 1, 2, 3, 9}},
        {MDL_PAD_EDGE, 2, 1, 6, {1, 1, 1, 2, 3, 3}},
        {MDL_PAD_REFLECT, 2, 2, 7, {3, 2, 1, 2, 3, 2, 1}},
        {MDL_PAD_REFLECT, 4, 1, 8, {1, 2, 3, 2, 1, 2, 3, 2}},
        {MDL_PAD_WRAP, 4, 1, 8, {3, 1, 2, 3, 1, 2, 3, 1}},
        {MDL_PAD_CONSTANT, -1, 1, 3, {2, 3, 9}},
        {MDL_PAD_CONSTANT, -2, -1, 0, {0}},
    };

    for (size_t i = 0; i < base_array_count(cases); i++) {
        BY_HAND(o, MDL_OP_PAD);
        o->op.attr.pad.mode = cases[i].mode;
        o->op.attr.pad.begin[0] = cases[i].begin;
        o->op.attr.pad.end[0] = cases[i].end;
        o->op.attr.pad.value = 9;
        o->op.in[0] = F32(o, DIMS(3), 1, 2, 3);
        o->op.out[0] = OUT(o, MDL_F32, DIMS(cases[i].n));
        T_TRUE(by_hand_run(o) && by_hand_f32_is(o, cases[i].n, cases[i].y));
    }
}

TEST(pad_two_dims_of_bytes)
{
    BY_HAND(o, MDL_OP_PAD);
    o->op.attr.pad.begin[0] = 1;
    o->op.attr.pad.end[1] = 1;
    o->op.attr.pad.value = 200;
    o->op.in[0] = U8(o, DIMS(1, 2), 1, 2);
    o->op.out[0] = OUT(o, MDL_U8, DIMS(2, 3));
    T_TRUE(by_hand_run(o) && INTS_ARE(o, 200, 200, 200, 1, 2, 200));
}

TEST(pad_of_nothing)
{
    BY_HAND(o, MDL_OP_PAD);
    o->op.attr.pad.mode = MDL_PAD_EDGE;
    o->op.attr.pad.begin[0] = 2;
    o->op.attr.pad.value = 4;
    o->op.in[0] = F32(o, DIMS(0), 0);
    o->op.out[0] = OUT(o, MDL_F32, DIMS(2));
    T_TRUE(by_hand_run(o) && F32_IS(o, 4, 4));
}

TEST(gather_rows_and_columns)
{
    BY_HAND(o, MDL_OP_GATHER);
    o->op.in[0] = F32(o, DIMS(2, 3), 1, 2, 3, 4, 5, 6);
    o->op.in[1] = I64(o, DIMS(2, 1), 2, -3);
    o->op.attr.gather.axis = 1;
    o->op.out[0] = OUT(o, MDL_F32, DIMS(2, 2, 1));
    T_TRUE(by_hand_run(o) && F32_IS(o, 3, 1, 6, 4));
}

/* The indices come with the frame: the mapping around the data would fault. */
TEST(gather_never_reads_outside)
{
    BY_HAND(o, MDL_OP_GATHER);
    o->op.in[0] = I32(o, DIMS(3), 7, 8, 9);
    o->op.in[1] = I64(o, DIMS(6), INT64_MIN, -4, -3, 2, 3, INT64_MAX);
    o->op.out[0] = OUT(o, MDL_I32, DIMS(6));
    T_TRUE(by_hand_run(o) && INTS_ARE(o, 7, 7, 7, 9, 9, 9));
}

TEST(gather_scalar_index_and_empty_axis)
{
    {
        BY_HAND(o, MDL_OP_GATHER);
        o->op.in[0] = I64(o, DIMS(3), 7, 8, 9);
        o->op.in[1] = by_hand_tensor(o, MDL_I32, 0, NULL, (const int32_t[]){1});
        o->op.out[0] = by_hand_out(o, MDL_I64, 0, NULL);
        T_TRUE(by_hand_run(o) && INTS_ARE(o, 8));
    }
    {
        BY_HAND(o, MDL_OP_GATHER);
        o->op.in[0] = I64(o, DIMS(0), 0);
        o->op.in[1] = I64(o, DIMS(1), 0);
        o->op.out[0] = OUT(o, MDL_I64, DIMS(1));
        T_TRUE(by_hand_run(o) && INTS_ARE(o, 0));
    }
}

static void resize_scales(struct one_op *o)
{
    const struct mdl_tensor *x = &o->tensors[o->op.in[0]], *y = &o->tensors[o->op.out[0]];

    for (size_t d = 0; d < x->rank; d++) {
        o->op.attr.resize.scale[d] = (float)((double)y->dim[d] / (double)x->dim[d]);
    }
}

TEST(resize_nearest)
{
    BY_HAND(o, MDL_OP_RESIZE);
    o->op.attr.resize.coord = MDL_COORD_ASYMMETRIC;
    o->op.attr.resize.round = MDL_ROUND_FLOOR;
    o->op.in[0] = I64(o, DIMS(1, 1, 1, 2), 5, 6);
    o->op.out[0] = OUT(o, MDL_I64, DIMS(1, 1, 2, 4));
    resize_scales(o);
    T_TRUE(by_hand_run(o) && INTS_ARE(o, 5, 5, 6, 6, 5, 5, 6, 6));
}

/* 11 by 1.7f, which is not 18 / 11: row 17 is torch's 10, not 9.9999997 */
TEST(resize_nearest_of_a_broken_scale)
{
    BY_HAND(o, MDL_OP_RESIZE);
    o->op.attr.resize.coord = MDL_COORD_ASYMMETRIC;
    o->op.attr.resize.round = MDL_ROUND_FLOOR;
    o->op.attr.resize.scale[0] = 1.7f;
    o->op.in[0] = I64(o, DIMS(11), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10);
    o->op.out[0] = OUT(o, MDL_I64, DIMS(18));
    T_TRUE(by_hand_run(o) && INTS_ARE(o, 0, 0, 1, 1, 2, 2, 3, 4, 4, 5, 5, 6, 7, 7, 8, 8, 9, 10));
}

/* 4 to 2: centres at 0.5 and 2.5, which are ties */
TEST(resize_nearest_ties)
{
    static const struct {
        enum mdl_resize_round round;
        int64_t y[2];
    } cases[] = {{MDL_ROUND_PREFER_FLOOR, {0, 2}},
                 {MDL_ROUND_PREFER_CEIL, {1, 3}},
                 {MDL_ROUND_FLOOR, {0, 2}},
                 {MDL_ROUND_CEIL, {1, 3}}};

    for (size_t i = 0; i < base_array_count(cases); i++) {
        BY_HAND(o, MDL_OP_RESIZE);
        o->op.attr.resize.coord = MDL_COORD_HALF_PIXEL;
        o->op.attr.resize.round = cases[i].round;
        o->op.in[0] = I64(o, DIMS(4), 0, 1, 2, 3);
        o->op.out[0] = OUT(o, MDL_I64, DIMS(2));
        resize_scales(o);
        T_TRUE(by_hand_run(o) && by_hand_ints_are(o, 0, 2, cases[i].y));
    }
}

TEST(resize_linear_coordinates)
{
    static const struct {
        enum mdl_resize_coord coord;
        float y[4];
    } cases[] = {
        {MDL_COORD_HALF_PIXEL, {0, 2.5f, 7.5f, 10}},
        {MDL_COORD_ASYMMETRIC, {0, 5, 10, 10}},
        {MDL_COORD_ALIGN_CORNERS, {0, 3.3333333f, 6.6666667f, 10}},
        {MDL_COORD_PYTORCH_HALF_PIXEL, {0, 2.5f, 7.5f, 10}},
    };

    for (size_t i = 0; i < base_array_count(cases); i++) {
        BY_HAND(o, MDL_OP_RESIZE);
        o->op.attr.resize.mode = MDL_RESIZE_LINEAR;
        o->op.attr.resize.coord = cases[i].coord;
        o->op.in[0] = F32(o, DIMS(1, 2), 0, 10);
        o->op.out[0] = OUT(o, MDL_F32, DIMS(1, 4));
        resize_scales(o);
        T_TRUE(by_hand_run(o) && by_hand_f32_is(o, 4, cases[i].y));
    }
}

TEST(resize_linear_two_dims)
{
    BY_HAND(o, MDL_OP_RESIZE);
    o->op.attr.resize.mode = MDL_RESIZE_LINEAR;
    o->op.attr.resize.coord = MDL_COORD_ALIGN_CORNERS;
    o->op.in[0] = F32(o, DIMS(2, 2), 0, 2, 4, 10);
    o->op.out[0] = OUT(o, MDL_F32, DIMS(3, 3));
    resize_scales(o);
    T_TRUE(by_hand_run(o) && F32_IS(o, 0, 1, 2, 2, 4, 6, 4, 7, 10));
}

TEST_MAIN()
