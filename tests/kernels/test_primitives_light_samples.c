/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that read an image between its pixels, at positions of which some are absurd. */
#include <math.h>

#include "tests/kernels/light_case.h"

/* Puts values that no model should give in the place of some of a tensor's. */
static void spoil(struct one_op *o, size_t tensor)
{
    static const float values[] = {NAN, INFINITY, -INFINITY, 3e38f, -1e20f, 1e9f};
    float *p = (float *)(void *)o->buffers[tensor].data;

    for (int i = 0; i < 4; i++) {
        p[t_range(0, (int64_t)(o->buffers[tensor].bytes / sizeof(*p)) - 1)] =
            values[t_range(0, (int64_t)base_array_count(values) - 1)];
    }
}

static size_t add(struct one_op *o, enum mdl_dtype dtype, size_t rank, const size_t *dim,
                  float scale)
{
    size_t i = one_op_tensor(o, dtype, MDL_HOME_ARENA, rank, dim, NULL);

    if (dtype == MDL_F32) {
        check_fill(o, i, scale);
        spoil(o, i);
    }
    return i;
}

TEST(grids_of_random_positions)
{
    for (int i = 0; i < t_times(150); i++) {
        struct one_op *o = one_op_new(MDL_OP_GRID_SAMPLE);
        struct check k = {
            .bound = CHECK_ULP, .ulps = 8, .absolute = 8e-6, .expect = "grid_sample_f32"};
        size_t n = (size_t)t_range(1, 2), c = (size_t)t_range(1, 40);
        size_t h = (size_t)t_range(1, 9), w = (size_t)t_range(1, 9);
        size_t ho = (size_t)t_range(1, 9), wo = (size_t)t_range(1, 9);

        o->op.in[0] = one_op_image(o, n, c, h, w, light_maybe_wider(c));
        o->op.out[0] = one_op_image(o, n, c, ho, wo, light_maybe_wider(c));
        o->op.in[1] = add(o, MDL_F32, 4, (size_t[]){n, ho, wo, 2}, 1.5f);
        o->op.attr.grid.mode = (enum mdl_resize_mode)t_range(0, 2);
        o->op.attr.grid.padding = (enum mdl_grid_padding)t_range(0, 2);
        o->op.attr.grid.align_corners = t_range(0, 1);
        check_fill(o, o->op.in[0], 1.0f);
        snprintf(o->name, sizeof(o->name), "grid of %zux%zu in %zux%zux%zu mode %d padding %d", ho,
                 wo, c, h, w, (int)o->op.attr.grid.mode, (int)o->op.attr.grid.padding);
        T_TRUE(light_finish(o, &k));
    }
}

TEST(regions_of_random_sizes)
{
    for (int i = 0; i < t_times(100); i++) {
        struct one_op *o = one_op_new(MDL_OP_ROI_ALIGN);
        struct check k = {
            .bound = CHECK_ULP, .ulps = 8, .absolute = 2e-5, .expect = "roi_align_f32"};
        size_t n = (size_t)t_range(1, 2), c = (size_t)t_range(1, 40), rois = (size_t)t_range(1, 5);
        size_t h = (size_t)t_range(1, 20), w = (size_t)t_range(1, 20);

        o->op.in[0] = one_op_image(o, n, c, h, w, light_maybe_wider(c));
        o->op.in[1] = add(o, MDL_F32, 2, (size_t[]){rois, 4}, 25);
        o->op.in[2] = add(o, MDL_I64, 1, (size_t[]){rois}, 0);
        o->op.out[0] = one_op_image(o, rois, c, (size_t)t_range(1, 7), (size_t)t_range(1, 7),
                                    light_maybe_wider(c));
        for (size_t r = 0; r < rois; r++) {
            ((int64_t *)(void *)o->buffers[o->op.in[2]].data)[r] = t_range(-1, 2);
        }
        o->op.attr.roi.scale = t_range(0, 1) ? 1 : 0.5f;
        o->op.attr.roi.half_pixel = t_range(0, 1);
        o->op.attr.roi.samples = (size_t)t_range(0, 3);
        check_fill(o, o->op.in[0], 1.0f);
        snprintf(o->name, sizeof(o->name), "%zu regions of %zux%zux%zu", rois, c, h, w);
        T_TRUE(light_finish(o, &k));
    }
}

TEST(deformed_columns_of_random_offsets)
{
    for (int i = 0; i < t_times(100); i++) {
        struct one_op *o = one_op_new(MDL_OP_DEFORM_COLUMNS);
        struct check k = {
            .bound = CHECK_ULP, .ulps = 8, .absolute = 4e-6, .expect = "deform_columns_f32"};
        size_t groups = (size_t)t_range(1, 3), offsets = (size_t)t_range(1, 3);
        size_t n = (size_t)t_range(1, 2), c = groups * offsets * (size_t)t_range(1, 7);
        size_t h = (size_t)t_range(1, 9), w = (size_t)t_range(1, 9);
        size_t ho = (size_t)t_range(1, 9), wo = (size_t)t_range(1, 9);
        struct mdl_window win = {.rank = 2,
                                 .kernel = {(size_t)t_range(1, 3), (size_t)t_range(1, 3)},
                                 .stride = {(size_t)t_range(1, 2), 1},
                                 .dilation = {1, (size_t)t_range(1, 2)},
                                 .pad_begin = {(size_t)t_range(0, 2), 1}};
        size_t taps = win.kernel[0] * win.kernel[1];

        o->op.attr.deform.window = win;
        o->op.attr.deform.groups = groups;
        o->op.attr.deform.offset_groups = offsets;
        o->op.in[0] = one_op_image(o, n, c, h, w, light_maybe_wider(c));
        o->op.in[1] = add(o, MDL_F32, 4, (size_t[]){n, 2 * offsets * taps, ho, wo}, 3);
        if (t_range(0, 1)) {
            size_t dim[] = {n, offsets * taps, ho, wo};

            o->op.in[2] = one_op_tensor(o, MDL_F32, MDL_HOME_ARENA, 4, dim, NULL);
            check_fill(o, o->op.in[2], 1);
        }
        o->op.out[0] = one_op_image(o, n, c * taps, ho, wo, light_maybe_wider(c * taps));
        check_fill(o, o->op.in[0], 1.0f);
        snprintf(o->name, sizeof(o->name), "%zu taps of %zux%zux%zu in %zu and %zu groups", taps, c,
                 h, w, groups, offsets);
        T_TRUE(light_finish(o, &k));
    }
}

/* Rounds to quarters, so that scores and corners are equal. */
static void make_equal(struct one_op *o, size_t tensor)
{
    float *x = (float *)(void *)o->buffers[tensor].data;

    for (size_t i = 0, n = o->buffers[tensor].bytes / sizeof(*x); i < n; i++) {
        x[i] = roundf(x[i] * 4) / 4;
    }
}

TEST(boxes_that_overlap_better_ones)
{
    for (int i = 0; i < t_times(200); i++) {
        struct one_op *o = one_op_new(MDL_OP_NMS);
        struct check k = {.bound = CHECK_EXACT, .expect = "nms_f32"};
        size_t n = (size_t)t_range(1, 2), classes = (size_t)t_range(1, 4);
        size_t boxes = (size_t)t_range(1, t_range(0, 3) ? 30 : 300);
        size_t each = (size_t)t_range(1, (int)boxes);
        bool rounded = t_range(0, 1);

        o->op.in[0] = add(o, MDL_F32, 3, (size_t[]){n, boxes, 4}, 4);
        o->op.in[1] = add(o, MDL_F32, 3, (size_t[]){n, classes, boxes}, 1);
        for (size_t t = 2; t < 4; t++) {
            if (t_range(0, 3)) {
                o->op.in[t] = add(o, MDL_F32, 1, (size_t[]){1}, 0);
                *(float *)(void *)o->buffers[o->op.in[t]].data =
                    t_range(0, 9) ? (float)t_range(0, 4) / 4 : NAN;
            }
        }
        o->op.attr.nms.each = each;
        o->op.attr.nms.centre = t_range(0, 1);
        o->op.out[0] = add(o, MDL_I64, 2, (size_t[]){n * classes * each, 3}, 0);
        o->op.out[1] = add(o, MDL_I64, 0, (size_t[]){1}, 0);
        for (size_t t = 0; rounded && t < 2; t++) {
            make_equal(o, o->op.in[t]);
        }
        snprintf(o->name, sizeof(o->name), "%zu boxes of %zu classes, %zu each, in %zu", boxes,
                 classes, each, n);
        T_TRUE(light_finish(o, &k));
    }
}
