/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every primitive of the memory-bound operators against its reference, on layers of real networks
 * made smaller and on random shapes, strides and epilogues. Fails for a primitive that no case
 * reached. Here are softmax, LRN and what moves values; pooling and operators on elements have
 * files of their own.
 */
#include "tests/kernels/light_case.h"

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
        T_TRUE(light_finish(o, &k));
    }
}

TEST(lrn_of_random_shapes)
{
    static const float betas[] = {0.75f, 0.5f, 1.0f};

    for (int i = 0; i < t_times(60); i++) {
        struct one_op *o = one_op_new(MDL_OP_LRN);
        size_t c = (size_t)t_range(1, 70);
        struct check k = {.bound = CHECK_ULP, .ulps = 32, .expect = "lrn_f32"};

        o->op.in[0] = one_op_image(o, 1, c, 3, 4, light_maybe_wider(c));
        o->op.out[0] = one_op_image(o, 1, c, 3, 4, light_maybe_wider(c));
        o->op.attr.lrn.size = (size_t)t_range(1, 7);
        o->op.attr.lrn.alpha = 0.3f;
        o->op.attr.lrn.beta = betas[i % 3];
        o->op.attr.lrn.bias = 1.5f;
        check_fill(o, o->op.in[0], 3.0f);
        snprintf(o->name, sizeof(o->name), "lrn of %zu channels, size %zu", c, o->op.attr.lrn.size);
        T_TRUE(light_finish(o, &k));
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

        light_dims(dim);
        if (t_range(0, 3) == 0) {
            dim[1] = 3;
        }
        o->op.in[0] = light_tensor(o, dim, from, gap_x, t_range(0, 7) ? 0 : 2);
        o->op.out[0] = light_tensor(o, dim, to, gap_y, 0);
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
        T_TRUE(light_finish(o, &k));
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
        T_TRUE(light_finish(o, &k));
    }
}

TEST(pads_of_random_shapes)
{
    for (int i = 0; i < t_times(200); i++) {
        struct one_op *o = one_op_new(MDL_OP_PAD);
        struct check k = {.bound = CHECK_EXACT, .expect = "pad_f32"};
        size_t dim[4], out[4];
        bool from = t_range(0, 1), to = t_range(0, 1);

        light_dims(dim);
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
        o->op.in[0] = light_tensor(o, dim, from, 0, 0);
        o->op.out[0] = light_tensor(o, out, to, t_range(0, 2) ? 0 : 3, 0);
        check_fill(o, o->op.in[0], 1.0f);
        snprintf(o->name, sizeof(o->name), "pad of %zux%zux%zux%zu", dim[0], dim[1], dim[2],
                 dim[3]);
        T_TRUE(light_finish(o, &k));
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
        o->op.in[0] = one_op_image(o, 1, c, h, w, light_maybe_wider(c));
        o->op.out[0] = one_op_image(o, 1, c, ho, wo, light_maybe_wider(c));
        o->op.attr.resize.mode = (enum mdl_resize_mode)t_range(0, 1);
        o->op.attr.resize.round = (enum mdl_resize_round)t_range(0, MDL_ROUND_CEIL);
        o->op.attr.resize.scale[0] = o->op.attr.resize.scale[1] = 1.0f;
        o->op.attr.resize.scale[2] = (float)ho / (float)h;
        o->op.attr.resize.scale[3] = (float)wo / (float)w;
        check_fill(o, o->op.in[0], 1.0f);
        light_epilogue(o, (enum mdl_act)(t_range(0, 1) ? 0 : t_range(0, MDL_ACT_SOFTPLUS)),
                       (enum mdl_residual)t_range(0, 2));
        snprintf(o->name, sizeof(o->name), "resize of %zux%zux%zu to %zux%zu mode %d coord %d", c,
                 h, w, ho, wo, (int)o->op.attr.resize.mode, (int)o->op.attr.resize.coord);
        T_TRUE(light_finish(o, &k));
    }
}

/* Cubic and antialiased ones: some weights are negative, so the error is absolute. */
TEST(wide_resizes_of_random_shapes)
{
    for (int i = 0; i < t_times(200); i++) {
        struct one_op *o = one_op_new(MDL_OP_RESIZE);
        struct check k = {.bound = CHECK_SUM,
                          .terms = 16,
                          .ulps = 8,
                          .absolute = 4e-6,
                          .expect = "resize_f32_nhwc_wide"};
        size_t c = (size_t)t_range(1, 40), h = (size_t)t_range(1, 20), w = (size_t)t_range(1, 20);
        size_t ho = (size_t)t_range(1, 20), wo = (size_t)t_range(1, 20);

        o->op.attr.resize.coord =
            t_range(0, 1) ? MDL_COORD_HALF_PIXEL_SYMMETRIC
                          : (enum mdl_resize_coord)t_range(0, MDL_COORD_PYTORCH_HALF_PIXEL);
        o->op.in[0] = one_op_image(o, 2, c, h, w, light_maybe_wider(c));
        o->op.out[0] = one_op_image(o, 2, c, ho, wo, light_maybe_wider(c));
        o->op.attr.resize.mode = (enum mdl_resize_mode)t_range(1, 2);
        o->op.attr.resize.antialias = o->op.attr.resize.mode == MDL_RESIZE_LINEAR || t_range(0, 1);
        o->op.attr.resize.exclude_outside = t_range(0, 1);
        o->op.attr.resize.cubic_a = t_range(0, 1) ? -0.5f : -0.75f;
        o->op.attr.resize.scale[0] = o->op.attr.resize.scale[1] = 1.0f;
        o->op.attr.resize.scale[2] = (float)ho / (float)h;
        o->op.attr.resize.scale[3] = (float)wo / (float)w;
        check_fill(o, o->op.in[0], 1.0f);
        light_epilogue(o, (enum mdl_act)(t_range(0, 1) ? 0 : t_range(0, MDL_ACT_SOFTPLUS)),
                       (enum mdl_residual)t_range(0, 2));
        snprintf(o->name, sizeof(o->name),
                 "wide resize of %zux%zux%zu to %zux%zu mode %d coord %d antialias %d", c, h, w, ho,
                 wo, (int)o->op.attr.resize.mode, (int)o->op.attr.resize.coord,
                 (int)o->op.attr.resize.antialias);
        T_TRUE(light_finish(o, &k));
    }
}

/* those on quantised values: test_primitives_i8.c */
static bool ours(const struct krn_primitive *v)
{
    return v->kind != MDL_OP_CONV && v->kind != MDL_OP_CONV_TRANSPOSE && v->kind != MDL_OP_GEMM &&
           v->kind != MDL_OP_MATMUL && !strstr(v->name, "_i8_");
}

TEST_LAST(no_primitive_is_untested)
{
    if (check_partial) {
        T_SKIP("only some cases were asked for");
    }
    T_EQ(check_unexercised(ours), 0);
}

CHECK_MAIN()
