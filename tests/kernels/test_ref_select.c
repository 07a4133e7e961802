/* SPDX-License-Identifier: Apache-2.0 */
/* The references that choose elements by index or by value, on cases worked out by hand. Indices
 * come with the frame: the mapping around the data would fault. */
#include "tests/kernels/by_hand.h"

TEST(gather_counts_within_the_valid_rows)
{
    BY_HAND(o, MDL_OP_GATHER);
    o->op.in[0] = F32(o, DIMS(4, 2), 1, 2, 3, 4, 5, 6, 7, 8);
    o->op.in[1] = I64(o, DIMS(4), 0, -1, 3, 1);
    o->op.in[2] = I64(o, DIMS(1), 2);
    o->op.out[0] = OUT(o, MDL_F32, DIMS(4, 2));
    T_TRUE(by_hand_run(o) && F32_IS(o, 1, 2, 3, 4, 3, 4, 3, 4));
}

TEST(gather_from_no_valid_rows_gives_zeros)
{
    BY_HAND(o, MDL_OP_GATHER);
    o->op.in[0] = F32(o, DIMS(2, 2), 1, 2, 3, 4);
    o->op.in[1] = I64(o, DIMS(1), 1);
    o->op.in[2] = I64(o, DIMS(1), INT64_MIN);
    o->op.out[0] = OUT(o, MDL_F32, DIMS(1, 2));
    T_TRUE(by_hand_run(o) && F32_IS(o, 0, 0));
}

TEST(gather_elements_clamps)
{
    BY_HAND(o, MDL_OP_GATHER_ELEMENTS);
    o->op.in[0] = I32(o, DIMS(2, 3), 1, 2, 3, 4, 5, 6);
    o->op.in[1] = I64(o, DIMS(2, 4), 0, -1, INT64_MAX, 1, INT64_MIN, 2, 3, -3);
    o->op.attr.gather.axis = 1;
    o->op.out[0] = OUT(o, MDL_I32, DIMS(2, 4));
    T_TRUE(by_hand_run(o) && INTS_ARE(o, 1, 3, 3, 2, 4, 6, 6, 4));
}

TEST(gather_elements_of_fewer_rows)
{
    BY_HAND(o, MDL_OP_GATHER_ELEMENTS);
    o->op.in[0] = F32(o, DIMS(3, 2), 1, 2, 3, 4, 5, 6);
    o->op.in[1] = I32(o, DIMS(1, 2), 2, 0);
    o->op.out[0] = OUT(o, MDL_F32, DIMS(1, 2));
    T_TRUE(by_hand_run(o) && F32_IS(o, 5, 2));
}

TEST(gather_nd_of_batches)
{
    BY_HAND(o, MDL_OP_GATHER_ND);
    o->op.in[0] = F32(o, DIMS(2, 2, 2), 1, 2, 3, 4, 5, 6, 7, 8);
    o->op.in[1] = I64(o, DIMS(2, 1), 1, -9);
    o->op.attr.gather.batch_dims = 1;
    o->op.out[0] = OUT(o, MDL_F32, DIMS(2, 2));
    T_TRUE(by_hand_run(o) && F32_IS(o, 3, 4, 5, 6));
}

TEST(gather_nd_of_elements)
{
    BY_HAND(o, MDL_OP_GATHER_ND);
    o->op.in[0] = U8(o, DIMS(2, 2), 1, 2, 3, 4);
    o->op.in[1] = I32(o, DIMS(3, 2), 0, 1, -1, 0, 7, 7);
    o->op.out[0] = OUT(o, MDL_U8, DIMS(3));
    T_TRUE(by_hand_run(o) && INTS_ARE(o, 2, 3, 4));
}

TEST(scatter_elements_leaves_out_what_is_outside)
{
    BY_HAND(o, MDL_OP_SCATTER_ELEMENTS);
    o->op.in[0] = F32(o, DIMS(4), 1, 2, 3, 4);
    o->op.in[1] = I64(o, DIMS(5), 1, 1, -1, 4, INT64_MIN);
    o->op.in[2] = F32(o, DIMS(5), 10, 20, 30, 40, 50);
    o->op.out[0] = OUT(o, MDL_F32, DIMS(4));
    T_TRUE(by_hand_run(o) && F32_IS(o, 1, 20, 3, 30)); /* of two updates the last stays */
}

TEST(scatter_elements_reduces)
{
    static const int32_t want[MDL_SCATTER_COUNT][2] = {{5, 2}, {9, 2}, {30, 2}, {1, 2}, {5, 2}};

    for (int which = 0; which < MDL_SCATTER_COUNT; which++) {
        BY_HAND(o, MDL_OP_SCATTER_ELEMENTS);
        o->op.in[0] = I32(o, DIMS(1, 2), 1, 2);
        o->op.in[1] = I64(o, DIMS(1, 2), 0, 0);
        o->op.in[2] = I32(o, DIMS(1, 2), which == MDL_SCATTER_MUL ? 6 : 3, 5);
        o->op.attr.scatter.axis = 1;
        o->op.attr.scatter.which = (enum mdl_scatter)which;
        o->op.out[0] = OUT(o, MDL_I32, DIMS(1, 2));
        T_TRUE(by_hand_run(o) && INTS_ARE(o, want[which][0], want[which][1]));
    }
}

TEST(scatter_nd_adds_rows)
{
    BY_HAND(o, MDL_OP_SCATTER_ND);
    o->op.in[0] = F32(o, DIMS(3, 2), 1, 2, 3, 4, 5, 6);
    o->op.in[1] = I64(o, DIMS(3, 1), 2, 2, 3);
    o->op.in[2] = F32(o, DIMS(3, 2), 10, 20, 30, 40, 50, 60);
    o->op.attr.scatter.which = MDL_SCATTER_ADD;
    o->op.out[0] = OUT(o, MDL_F32, DIMS(3, 2));
    T_TRUE(by_hand_run(o) && F32_IS(o, 1, 2, 3, 4, 45, 66));
}

TEST(scatter_min_keeps_nan)
{
    BY_HAND(o, MDL_OP_SCATTER_ND);
    o->op.in[0] = F32(o, DIMS(3), NAN, 2, 3);
    o->op.in[1] = I64(o, DIMS(3, 1), 0, 1, 2);
    o->op.in[2] = F32(o, DIMS(3), 1, NAN, 1);
    o->op.attr.scatter.which = MDL_SCATTER_MIN;
    o->op.out[0] = OUT(o, MDL_F32, DIMS(3));
    T_TRUE(by_hand_run(o) && F32_IS(o, NAN, NAN, 1));
}

TEST(top_k_orders_nan_above_all_and_equals_by_place)
{
    BY_HAND(o, MDL_OP_TOP_K);
    o->op.in[0] = F32(o, DIMS(7), 2, NAN, 3, 2, -INFINITY, NAN, INFINITY);
    o->op.attr.top_k.largest = true;
    o->op.out[0] = OUT(o, MDL_F32, DIMS(6));
    o->op.out[1] = OUT(o, MDL_I64, DIMS(6));
    T_TRUE(by_hand_run(o) && F32_IS(o, NAN, NAN, INFINITY, 3, 2, 2));
    T_TRUE(INDICES_ARE(o, 1, 5, 6, 2, 0, 3));
}

TEST(top_k_smallest_of_integers)
{
    BY_HAND(o, MDL_OP_TOP_K);
    o->op.in[0] = I64(o, DIMS(2, 3), INT64_MAX, INT64_MIN, 0, 1, 1, 0);
    o->op.attr.top_k.axis = 1;
    o->op.out[0] = OUT(o, MDL_I64, DIMS(2, 2));
    o->op.out[1] = OUT(o, MDL_I64, DIMS(2, 2));
    T_TRUE(by_hand_run(o) && INTS_ARE(o, INT64_MIN, 0, 0, 1) && INDICES_ARE(o, 1, 2, 2, 0));
}

TEST(top_k_of_valid_elements)
{
    BY_HAND(o, MDL_OP_TOP_K);
    o->op.in[0] = F32(o, DIMS(4, 1), 1, 2, 9, 9);
    o->op.in[1] = I64(o, DIMS(1), 2);
    o->op.attr.top_k.largest = true;
    o->op.out[0] = OUT(o, MDL_F32, DIMS(3, 1));
    o->op.out[1] = OUT(o, MDL_I64, DIMS(3, 1));
    T_TRUE(by_hand_run(o) && F32_IS(o, 2, 1, 0) && INDICES_ARE(o, 1, 0, 0));
}

/* against a sort, for every k */
TEST(top_k_is_a_sort)
{
    float x[37];

    for (size_t i = 0; i < 37; i++) {
        x[i] = (float)t_range(-5, 5);
    }
    for (size_t k = 1; k <= 37; k++) {
        BY_HAND(o, MDL_OP_TOP_K);
        o->op.in[0] = by_hand_tensor(o, MDL_F32, DIMS(37), x);
        o->op.attr.top_k.largest = true;
        o->op.out[0] = OUT(o, MDL_F32, DIMS(k));
        o->op.out[1] = OUT(o, MDL_I64, DIMS(k));
        T_TRUE(by_hand_run(o));
        const int64_t *at = (const int64_t *)(const void *)o->buffers[o->op.out[1]].data;

        for (size_t i = 0; i < k; i++) {
            size_t before = 0;

            for (int64_t j = 0; j < 37; j++) {
                before += x[j] > x[at[i]] || (x[j] == x[at[i]] && j < at[i]);
            }
            T_EQ(before, i);
        }
    }
}

TEST(non_zero_pads_with_zeros)
{
    BY_HAND(o, MDL_OP_NON_ZERO);
    o->op.in[0] = F32(o, DIMS(2, 2), 0, NAN, -0.0f, 3);
    o->op.out[0] = OUT(o, MDL_I64, DIMS(2, 4));
    o->op.out[1] = OUT(o, MDL_I64, DIMS(1));
    T_TRUE(by_hand_run(o) && INTS_ARE(o, 0, 1, 0, 0, 1, 1, 0, 0) && INDICES_ARE(o, 2));
}

TEST(join_rows_packs_and_fills)
{
    BY_HAND(o, MDL_OP_JOIN_ROWS);
    o->op.in[0] = F32(o, DIMS(1, 3), 1, 2, 3);
    o->op.in[1] = I64(o, DIMS(1), 1);
    o->op.in[2] = F32(o, DIMS(1, 2), 4, 5);
    o->op.in[3] = I64(o, DIMS(1), 99); /* a count past the dim is the dim */
    o->op.attr.join_rows.axis = 1;
    o->op.attr.join_rows.fill = -INFINITY;
    o->op.out[0] = OUT(o, MDL_F32, DIMS(1, 5));
    T_TRUE(by_hand_run(o) && F32_IS(o, 1, 4, 5, -INFINITY, -INFINITY));
}

TEST(join_rows_fills_integers_with_the_lowest)
{
    BY_HAND(o, MDL_OP_JOIN_ROWS);
    o->op.in[0] = I64(o, DIMS(2, 2), 1, 2, 3, 4);
    o->op.in[1] = I64(o, DIMS(1), -1);
    o->op.attr.join_rows.fill = -INFINITY;
    o->op.out[0] = OUT(o, MDL_I64, DIMS(2, 2));
    T_TRUE(by_hand_run(o) && INTS_ARE(o, INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN));
}

TEST(reverse_sequence_clamps_lengths)
{
    BY_HAND(o, MDL_OP_REVERSE_SEQUENCE);
    o->op.in[0] = U8(o, DIMS(3, 3), 1, 2, 3, 4, 5, 6, 7, 8, 9);
    o->op.in[1] = I64(o, DIMS(3), 2, INT64_MAX, INT64_MIN);
    o->op.attr.reverse.time = 1;
    o->op.out[0] = OUT(o, MDL_U8, DIMS(3, 3));
    T_TRUE(by_hand_run(o) && INTS_ARE(o, 2, 1, 3, 6, 5, 4, 7, 8, 9));
}

TEST_MAIN()
