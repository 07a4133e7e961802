/* SPDX-License-Identifier: Apache-2.0 */
/* References of the window operators: convolutions and pools. */
#include "tests/kernels/by_hand.h"

static struct mdl_window window2(size_t kernel, size_t stride, size_t dilation, size_t pad)
{
    return (struct mdl_window){.rank = 2,
                               .kernel = {kernel, kernel},
                               .stride = {stride, stride},
                               .dilation = {dilation, dilation},
                               .pad_begin = {pad, pad},
                               .pad_end = {pad, pad}};
}

/* 1..9 in a 3x3 image */
static size_t nine(struct one_op *o)
{
    return F32(o, DIMS(1, 1, 3, 3), 1, 2, 3, 4, 5, 6, 7, 8, 9);
}

TEST(conv_two_by_two)
{
    BY_HAND(o, MDL_OP_CONV);
    o->op.attr.conv.window = window2(2, 1, 1, 0);
    o->op.attr.conv.groups = 1;
    o->op.in[0] = nine(o);
    o->op.in[1] = F32(o, DIMS(1, 1, 2, 2), 1, 2, 3, 4);
    o->op.out[0] = OUT(o, MDL_F32, DIMS(1, 1, 2, 2));
    /* 1+4+12+20, 2+6+15+24, 4+10+21+32, 5+12+24+36 */
    T_TRUE(by_hand_run(o) && F32_IS(o, 37, 47, 67, 77));
}

TEST(conv_scale_shift_bias_and_epilogue)
{
    const float scale[] = {2}, shift[] = {-100};
    BY_HAND(o, MDL_OP_CONV);
    o->op.attr.conv.window = window2(2, 1, 1, 0);
    o->op.attr.conv.groups = 1;
    o->op.in[0] = nine(o);
    o->op.in[1] = F32(o, DIMS(1, 1, 2, 2), 1, 2, 3, 4);
    o->op.in[2] = F32(o, DIMS(1), 10);
    o->op.out[0] = OUT(o, MDL_F32, DIMS(1, 1, 2, 2));
    o->op.scale = scale;
    o->op.shift = shift;
    o->op.channels = 1;
    /* 2 sum - 100 + 10: -16, 4, 44, 64 */
    T_TRUE(by_hand_run(o) && F32_IS(o, -16, 4, 44, 64));
    o->op.act = MDL_ACT_RELU;
    T_TRUE(by_hand_run(o) && F32_IS(o, 0, 4, 44, 64));
    o->op.residual_in = F32(o, DIMS(1, 1, 2, 2), -5, -5, -5, 20);
    o->op.residual = MDL_RESIDUAL_BEFORE_ACT;
    T_TRUE(by_hand_run(o) && F32_IS(o, 0, 0, 39, 84));
    o->op.residual = MDL_RESIDUAL_AFTER_ACT;
    T_TRUE(by_hand_run(o) && F32_IS(o, -5, -1, 39, 84));
}

TEST(conv_padding_asymmetric_and_stride)
{
    BY_HAND(o, MDL_OP_CONV);
    o->op.attr.conv.window = (struct mdl_window){.rank = 2,
                                                 .kernel = {2, 2},
                                                 .stride = {2, 1},
                                                 .dilation = {1, 1},
                                                 .pad_begin = {1, 0},
                                                 .pad_end = {0, 1}};
    o->op.attr.conv.groups = 1;
    o->op.in[0] = nine(o);
    o->op.in[1] = F32(o, DIMS(1, 1, 2, 2), 1, 1, 1, 1);
    o->op.out[0] = OUT(o, MDL_F32, DIMS(1, 1, 2, 3));
    /* primitives -1..0: 1+2, 2+3, 3; primitives 1..2: 4+5+7+8, 5+6+8+9, 6+9 */
    T_TRUE(by_hand_run(o) && F32_IS(o, 3, 5, 3, 24, 28, 15));
}

TEST(conv_dilation)
{
    BY_HAND(o, MDL_OP_CONV);
    o->op.attr.conv.window = window2(2, 1, 2, 0);
    o->op.attr.conv.groups = 1;
    o->op.in[0] = nine(o);
    o->op.in[1] = F32(o, DIMS(1, 1, 2, 2), 1, 10, 100, 1000);
    o->op.out[0] = OUT(o, MDL_F32, DIMS(1, 1, 1, 1));
    T_TRUE(by_hand_run(o) && F32_IS(o, 1 + 30 + 700 + 9000));
}

TEST(conv_groups_and_batch)
{
    BY_HAND(o, MDL_OP_CONV);
    o->op.attr.conv.window = window2(1, 1, 1, 0);
    o->op.attr.conv.groups = 2;
    /* two images, four channels of one pixel; each output channel sees its group's two channels */
    o->op.in[0] = F32(o, DIMS(2, 4, 1, 1), 1, 2, 3, 4, 5, 6, 7, 8);
    o->op.in[1] = F32(o, DIMS(2, 2, 1, 1), 1, 10, 100, 1000);
    o->op.out[0] = OUT(o, MDL_F32, DIMS(2, 2, 1, 1));
    T_TRUE(by_hand_run(o) && F32_IS(o, 21, 4300, 65, 8700));
}

TEST(conv_one_and_three_dims)
{
    {
        BY_HAND(o, MDL_OP_CONV);
        o->op.attr.conv.window = (struct mdl_window){.rank = 1,
                                                     .kernel = {3},
                                                     .stride = {1},
                                                     .dilation = {1},
                                                     .pad_begin = {1},
                                                     .pad_end = {1}};
        o->op.attr.conv.groups = 1;
        o->op.in[0] = F32(o, DIMS(1, 1, 4), 1, 2, 3, 4);
        o->op.in[1] = F32(o, DIMS(1, 1, 3), 1, 10, 100);
        o->op.out[0] = OUT(o, MDL_F32, DIMS(1, 1, 4));
        T_TRUE(by_hand_run(o) && F32_IS(o, 210, 321, 432, 43));
    }
    {
        BY_HAND(o, MDL_OP_CONV);
        o->op.attr.conv.window = (struct mdl_window){
            .rank = 3, .kernel = {2, 1, 2}, .stride = {1, 1, 1}, .dilation = {1, 1, 1}};
        o->op.attr.conv.groups = 1;
        o->op.in[0] = F32(o, DIMS(1, 1, 2, 1, 3), 1, 2, 3, 4, 5, 6);
        o->op.in[1] = F32(o, DIMS(1, 1, 2, 1, 2), 1, 10, 100, 1000);
        o->op.out[0] = OUT(o, MDL_F32, DIMS(1, 1, 1, 1, 2));
        T_TRUE(by_hand_run(o) && F32_IS(o, 1 + 20 + 400 + 5000, 2 + 30 + 500 + 6000));
    }
}

/* An image read backwards (negative strides) through a 1x1 weight is the image turned. */
TEST(conv_negative_strides)
{
    BY_HAND(o, MDL_OP_CONV);
    o->op.attr.conv.window = window2(1, 1, 1, 0);
    o->op.attr.conv.groups = 1;
    o->op.in[0] = nine(o);
    o->op.in[1] = F32(o, DIMS(1, 1, 1, 1), 2);
    o->op.out[0] = OUT(o, MDL_F32, DIMS(1, 1, 3, 3));
    o->tensors[o->op.in[0]].stride[2] = -3;
    o->tensors[o->op.in[0]].stride[3] = -1;
    o->buffers[o->op.in[0]].data += 8 * sizeof(float);
    T_TRUE(by_hand_run(o) && F32_IS(o, 18, 16, 14, 12, 10, 8, 6, 4, 2));
    o->buffers[o->op.in[0]].data -= 8 * sizeof(float);
}

/* An empty batch writes nothing; no input channels leave the shift. */
TEST(conv_empty)
{
    const float shift[] = {7};
    {
        BY_HAND(o, MDL_OP_CONV);
        o->op.attr.conv.window = window2(1, 1, 1, 0);
        o->op.attr.conv.groups = 1;
        o->op.in[0] = F32(o, DIMS(0, 1, 1, 1), 0);
        o->op.in[1] = F32(o, DIMS(1, 1, 1, 1), 2);
        o->op.out[0] = OUT(o, MDL_F32, DIMS(0, 1, 1, 1));
        T_TRUE(by_hand_run(o));
    }
    {
        BY_HAND(o, MDL_OP_CONV);
        o->op.attr.conv.window = window2(1, 1, 1, 0);
        o->op.attr.conv.groups = 1;
        o->op.in[0] = F32(o, DIMS(1, 0, 1, 1), 0);
        o->op.in[1] = F32(o, DIMS(1, 0, 1, 1), 0);
        o->op.out[0] = OUT(o, MDL_F32, DIMS(1, 1, 1, 1));
        o->op.shift = shift;
        o->op.channels = 1;
        T_TRUE(by_hand_run(o) && F32_IS(o, 7));
    }
}

TEST(conv_refuses_what_does_not_fit)
{
    const struct krn_primitive *v = by_hand_reference(MDL_OP_CONV);
    BY_HAND(o, MDL_OP_CONV);
    o->op.attr.conv.window = window2(2, 1, 1, 0);
    o->op.attr.conv.groups = 1;
    o->op.in[0] = nine(o);
    o->op.in[1] = F32(o, DIMS(1, 1, 2, 2), 1, 2, 3, 4);
    o->op.out[0] = OUT(o, MDL_F32, DIMS(1, 1, 2, 2));
    T_TRUE(v->supports(&o->m, &o->op));
    o->op.attr.conv.groups = 2;
    T_TRUE(!v->supports(&o->m, &o->op));
    o->op.attr.conv.groups = 1;
    o->op.attr.conv.window.kernel[1] = 3;
    T_TRUE(!v->supports(&o->m, &o->op));
    o->op.attr.conv.window.kernel[1] = 2;
    o->tensors[o->op.in[0]].dtype = MDL_U8;
    T_TRUE(!v->supports(&o->m, &o->op));
}

TEST(conv_transpose_stride_two)
{
    BY_HAND(o, MDL_OP_CONV_TRANSPOSE);
    o->op.attr.conv.window = window2(2, 2, 1, 0);
    o->op.attr.conv.groups = 1;
    o->op.in[0] = F32(o, DIMS(1, 1, 1, 2), 1, 2);
    o->op.in[1] = F32(o, DIMS(1, 1, 2, 2), 1, 10, 100, 1000);
    o->op.out[0] = OUT(o, MDL_F32, DIMS(1, 1, 2, 4));
    T_TRUE(by_hand_run(o) && F32_IS(o, 1, 10, 2, 20, 100, 1000, 200, 2000));
}

TEST(conv_transpose_overlap_pads_groups)
{
    BY_HAND(o, MDL_OP_CONV_TRANSPOSE);
    o->op.attr.conv.window = (struct mdl_window){
        .rank = 1, .kernel = {3}, .stride = {1}, .dilation = {1}, .pad_begin = {1}, .pad_end = {0}};
    o->op.attr.conv.groups = 2;
    o->op.in[0] = F32(o, DIMS(1, 2, 2), 1, 2, 3, 4);
    o->op.in[1] = F32(o, DIMS(2, 1, 3), 1, 10, 100, 1, 1, 1);
    /* unpadded: 1, 12, 120, 200 and 3, 7, 7, 4; the first is cut off */
    o->op.out[0] = OUT(o, MDL_F32, DIMS(1, 2, 3));
    T_TRUE(by_hand_run(o) && F32_IS(o, 12, 120, 200, 7, 7, 4));
}

TEST(max_pool_indices)
{
    BY_HAND(o, MDL_OP_MAX_POOL);
    o->op.attr.pool.window = window2(2, 1, 1, 0);
    o->op.attr.pool.indices_row_major = true;
    o->op.in[0] = F32(o, DIMS(1, 2, 2, 3), 1, 9, 3, 4, 5, 6, -1, -2, -3, -4, -5, -6);
    o->op.out[0] = OUT(o, MDL_F32, DIMS(1, 2, 1, 2));
    o->op.out[1] = OUT(o, MDL_I64, DIMS(1, 2, 1, 2));
    T_TRUE(by_hand_run(o) && F32_IS(o, 9, 9, -1, -2) && INDICES_ARE(o, 1, 1, 6, 7));
    o->op.attr.pool.indices_row_major = false; /* column-major in the image: h + w H */
    T_TRUE(by_hand_run(o) && INDICES_ARE(o, 2, 2, 6, 8));
}

TEST(max_pool_pads_do_not_count)
{
    BY_HAND(o, MDL_OP_MAX_POOL);
    o->op.attr.pool.window = window2(3, 2, 1, 1);
    o->op.in[0] = F32(o, DIMS(1, 1, 3, 3), -1, -2, -3, -4, -5, -6, -7, -8, -9);
    o->op.out[0] = OUT(o, MDL_F32, DIMS(1, 1, 2, 2));
    T_TRUE(by_hand_run(o) && F32_IS(o, -1, -2, -4, -5));
}

TEST(max_pool_keeps_nan)
{
    BY_HAND(o, MDL_OP_MAX_POOL);
    o->op.attr.pool.window = window2(2, 1, 1, 0);
    o->op.in[0] = F32(o, DIMS(1, 1, 2, 4), 1, 2, NAN, 3, 4, 5, 6, INFINITY);
    o->op.out[0] = OUT(o, MDL_F32, DIMS(1, 1, 1, 3));
    o->op.out[1] = OUT(o, MDL_I64, DIMS(1, 1, 1, 3));
    o->op.attr.pool.indices_row_major = true;
    T_TRUE(by_hand_run(o) && F32_IS(o, 5, NAN, NAN) && INDICES_ARE(o, 5, 2, 2));
}

TEST(max_pool_bytes)
{
    BY_HAND(o, MDL_OP_MAX_POOL);
    o->op.attr.pool.window = window2(2, 1, 1, 0);
    o->op.in[0] = I8(o, DIMS(1, 1, 2, 2), -128, -3, -7, -100);
    o->op.out[0] = OUT(o, MDL_I8, DIMS(1, 1, 1, 1));
    T_TRUE(by_hand_run(o) && INTS_ARE(o, -3));
}

TEST(avg_pool_counts)
{
    BY_HAND(o, MDL_OP_AVG_POOL);
    o->op.attr.pool.window = window2(2, 2, 1, 1);
    o->op.attr.pool.pad_end_model[0] = o->op.attr.pool.pad_end_model[1] = 1;
    o->op.in[0] = nine(o);
    o->op.out[0] = OUT(o, MDL_F32, DIMS(1, 1, 2, 2));
    T_TRUE(by_hand_run(o) && F32_IS(o, 1, 2.5f, 5.5f, 7));
    o->op.attr.pool.count_include_pad = true;
    T_TRUE(by_hand_run(o) && F32_IS(o, 0.25f, 1.25f, 2.75f, 7));
    /* what ceil_mode added counts for nothing: no pad at the end in the model's words */
    o->op.attr.pool.window.pad_begin[0] = o->op.attr.pool.window.pad_begin[1] = 0;
    o->op.attr.pool.pad_end_model[0] = o->op.attr.pool.pad_end_model[1] = 0;
    T_TRUE(by_hand_run(o) && F32_IS(o, 3, 4.5f, 7.5f, 9));
}

TEST(avg_pool_global_of_strided_input)
{
    BY_HAND(o, MDL_OP_AVG_POOL);
    o->op.attr.pool.window = window2(2, 1, 1, 0);
    o->op.in[0] = F32(o, DIMS(1, 2, 2, 2), 1, 10, 2, 20, 3, 30, 4, 40);
    memcpy(o->tensors[o->op.in[0]].stride, ((ptrdiff_t[]){8, 1, 4, 2}), 4 * sizeof(ptrdiff_t));
    o->op.out[0] = OUT(o, MDL_F32, DIMS(1, 2, 1, 1));
    T_TRUE(by_hand_run(o) && F32_IS(o, 2.5f, 25));
}

TEST_MAIN()
