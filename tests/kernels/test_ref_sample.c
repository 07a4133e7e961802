/* SPDX-License-Identifier: Apache-2.0 */
/* References of the operators that read an image between its pixels, and of those that undo a
 * pooling: by hand, and at positions that no model should give. */
#include <math.h>

#include "tests/kernels/by_hand.h"

#define ROW 6

/* One row of pixels 1, 2, 3 read at positions @g, into *@y. */
static bool sample_row(enum mdl_resize_mode mode, enum mdl_grid_padding padding, bool corners,
                       const float *g, float *y)
{
    float grid[2 * ROW];
    bool ok;

    for (size_t i = 0; i < ROW; i++) {
        grid[2 * i] = g[i];
        grid[2 * i + 1] = 0;
    }
    BY_HAND(o, MDL_OP_GRID_SAMPLE);
    o->op.attr.grid.mode = mode;
    o->op.attr.grid.padding = padding;
    o->op.attr.grid.align_corners = corners;
    o->op.in[0] = F32(o, DIMS(1, 1, 1, 3), 1, 2, 3);
    o->op.in[1] = by_hand_tensor(o, MDL_F32, DIMS(1, 1, ROW, 2), grid);
    o->op.out[0] = OUT(o, MDL_F32, DIMS(1, 1, 1, ROW));
    ok = by_hand_run(o);
    memcpy(y, o->buffers[o->op.out[0]].data, ROW * sizeof(*y));
    return ok;
}

TEST(grids_by_hand)
{
    static const struct {
        enum mdl_resize_mode mode;
        enum mdl_grid_padding padding;
        bool corners;
        float g[ROW], y[ROW];
    } cases[] = {
        /* pixel centres at -2/3, 0 and 2/3; half a pixel outside half of the edge is left */
        {MDL_RESIZE_LINEAR,
         MDL_GRID_ZEROS,
         false,
         {0, -1, 1, -2, 2, 1.0f / 3},
         {2, 0.5f, 1.5f, 0, 0, 2.5f}},
        {MDL_RESIZE_LINEAR,
         MDL_GRID_BORDER,
         false,
         {0, -1, 1, -2, 2, 1.0f / 3},
         {2, 1, 3, 1, 3, 2.5f}},
        {MDL_RESIZE_LINEAR, MDL_GRID_ZEROS, true, {0, -1, 1, -2, 2, 0.5f}, {2, 1, 3, 0, 0, 2.5f}},
        /* about the centre of the outer pixel: -2 is pixel -1, the mirror image of pixel 1 */
        {MDL_RESIZE_LINEAR, MDL_GRID_REFLECTION, true, {0, -2, 2, -3, 3, 5}, {2, 2, 2, 3, 1, 3}},
        /* about its border: -4/3 is pixel -1, the mirror image of pixel 0 */
        {MDL_RESIZE_NEAREST,
         MDL_GRID_REFLECTION,
         false,
         {0, -4.0f / 3, -2, 4.0f / 3, 2, 8.0f / 3},
         {2, 1, 2, 3, 2, 1}},
        {MDL_RESIZE_NEAREST,
         MDL_GRID_ZEROS,
         false,
         {0, -1.1f, 1.1f, -0.9f, 0.9f, 0.2f},
         {2, 0, 0, 1, 3, 2}},
        {MDL_RESIZE_CUBIC,
         MDL_GRID_BORDER,
         true,
         {0, -1, 1, -9, 9, 0.5f},
         {2, 1, 3, 1, 3, 2.59375f}},
    };
    static const float hostile[ROW] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 1e20f};

    for (size_t i = 0; i < base_array_count(cases); i++) {
        float y[ROW];

        T_TRUE(sample_row(cases[i].mode, cases[i].padding, cases[i].corners, cases[i].g, y));
        for (size_t k = 0; k < ROW; k++) {
            if (!(fabsf(y[k] - cases[i].y[k]) < 1e-5f)) {
                T_FAIL("case %zu, position %zu: %g instead of %g", i, k, (double)y[k],
                       (double)cases[i].y[k]);
            }
        }
    }
    for (int mode = 0; mode < 3; mode++) {
        for (int padding = 0; padding < 3; padding++) {
            float y[ROW];

            for (int corners = 0; corners < 2; corners++) {
                T_TRUE(sample_row((enum mdl_resize_mode)mode, (enum mdl_grid_padding)padding,
                                  corners, hostile, y));
                for (size_t k = 0; k < ROW; k++) {
                    /* zeros: nothing is there; else a pixel, or a mix of pixels */
                    T_TRUE(padding == MDL_GRID_ZEROS ? y[k] == 0 : y[k] > 0 && y[k] < 4);
                }
            }
        }
    }
}

/* A cube of 2 x 2 x 2 in its middle: the mean. */
TEST(grid_of_three_dims)
{
    BY_HAND(o, MDL_OP_GRID_SAMPLE);
    o->op.attr.grid.mode = MDL_RESIZE_LINEAR;
    o->op.in[0] = F32(o, DIMS(1, 1, 2, 2, 2), 0, 1, 2, 3, 4, 5, 6, 7);
    /* x, y, z: the last is the outermost dim */
    o->op.in[1] = F32(o, DIMS(1, 1, 1, 2, 3), 0, 0, 0, -0.5f, -0.5f, 0.5f);
    o->op.out[0] = OUT(o, MDL_F32, DIMS(1, 1, 1, 1, 2));
    T_TRUE(by_hand_run(o) && F32_IS(o, 3.5f, 4));
}

static struct one_op *roi_case(bool max, size_t samples, const float *roi, int64_t image)
{
    struct one_op *o = one_op_new(MDL_OP_ROI_ALIGN);

    o->op.attr.roi.max = max;
    o->op.attr.roi.scale = 1;
    o->op.attr.roi.half_pixel = true;
    o->op.attr.roi.samples = samples;
    o->op.in[0] = F32(o, DIMS(1, 1, 2, 2), 1, 2, 3, 4);
    o->op.in[1] = by_hand_tensor(o, MDL_F32, DIMS(1, 4), roi);
    o->op.in[2] = I64(o, DIMS(1), image);
    o->op.out[0] = OUT(o, MDL_F32, DIMS(1, 1, 1, 1));
    return o;
}

static float roi_answer(struct one_op *o)
{
    float y = NAN;

    if (by_hand_run(o)) {
        memcpy(&y, o->buffers[o->op.out[0]].data, sizeof(y));
    }
    one_op_free(o);
    return y;
}

TEST(regions_by_hand)
{
    static const float whole[] = {0, 0, 2, 2}, far[] = {100, 100, 200, 200};
    static const float hostile[][4] = {{NAN, NAN, NAN, NAN},
                                       {-INFINITY, 0, INFINITY, 2},
                                       {-3e38f, -3e38f, 3e38f, 3e38f},
                                       {3e38f, 0, -3e38f, -1e9f},
                                       {0, 0, INFINITY, NAN}};

    T_TRUE(roi_answer(roi_case(false, 1, whole, 0)) == 2.5f);
    T_TRUE(roi_answer(roi_case(false, 0, whole, 0)) == 2.5f);
    T_TRUE(roi_answer(roi_case(true, 2, whole, 0)) == 4.0f);
    T_TRUE(roi_answer(roi_case(false, 2, far, 0)) == 0);
    /* images that do not exist */
    T_TRUE(roi_answer(roi_case(false, 1, whole, 1)) == 0);
    T_TRUE(roi_answer(roi_case(false, 1, whole, -1)) == 0);
    T_TRUE(roi_answer(roi_case(false, 1, whole, INT64_MIN)) == 0);
    for (size_t i = 0; i < base_array_count(hostile); i++) {
        float y = roi_answer(roi_case(i & 1, 0, hostile[i], 0));

        T_TRUE(y >= 0 && y <= 4);
    }
}

TEST(regions_pooled_by_hand)
{
    BY_HAND(o, MDL_OP_MAX_ROI_POOL);
    o->op.attr.roi.scale = 0.5f;
    o->op.in[0] = F32(o, DIMS(1, 1, 2, 2), 1, 2, 3, 4);
    o->op.in[1] = F32(o, DIMS(5, 5), 0, 0, 0, 2, 2, 0, 2, 0, 2, 2, 1, 0, 0, 2, 2, NAN, 0, 0, 2, 2,
                      0, -INFINITY, NAN, 3e38f, INFINITY);
    o->op.out[0] = OUT(o, MDL_F32, DIMS(5, 1, 1, 1));
    T_TRUE(by_hand_run(o) && F32_IS(o, 4, 4, 0, 0, 4));
}

TEST(deformed_taps_by_hand)
{
    BY_HAND(o, MDL_OP_DEFORM_COLUMNS);
    o->op.attr.deform.window =
        (struct mdl_window){.rank = 2, .kernel = {1, 2}, .stride = {1, 1}, .dilation = {1, 1}};
    o->op.attr.deform.groups = 1;
    o->op.attr.deform.offset_groups = 1;
    o->op.in[0] = F32(o, DIMS(1, 2, 1, 2), 1, 2, 10, 20);
    /* tap 0: nothing, half a pixel to the right; tap 1: out of the image */
    o->op.in[1] = F32(o, DIMS(1, 4, 1, 1), 0, 0.5f, 0, INFINITY);
    o->op.in[2] = F32(o, DIMS(1, 2, 1, 1), 2, 1);
    o->op.out[0] = OUT(o, MDL_F32, DIMS(1, 4, 1, 1));
    T_TRUE(by_hand_run(o) && F32_IS(o, 3, 30, 0, 0));
}

TEST(columns_to_an_image)
{
    BY_HAND(o, MDL_OP_COL2IM);
    o->op.attr.col2im.window =
        (struct mdl_window){.rank = 1, .kernel = {2}, .stride = {1}, .dilation = {1}};
    o->op.attr.col2im.blocks[0] = 2;
    o->op.in[0] = F32(o, DIMS(1, 2, 2), 1, 2, 10, 20);
    o->op.out[0] = OUT(o, MDL_F32, DIMS(1, 1, 3));
    T_TRUE(by_hand_run(o) && F32_IS(o, 1, 12, 20));
}

/* indices outside are left out, of equal ones the last counts */
TEST(unpooling)
{
    BY_HAND(o, MDL_OP_MAX_UNPOOL);
    o->op.in[0] = F32(o, DIMS(1, 1, 6), 1, 2, 3, 4, 5, 6);
    o->op.in[1] = I64(o, DIMS(1, 1, 6), 3, 0, 3, -1, 5, INT64_MAX);
    o->op.out[0] = OUT(o, MDL_F32, DIMS(1, 1, 5));
    T_TRUE(by_hand_run(o) && F32_IS(o, 2, 0, 0, 3, 0));
}

TEST(cubic_weights)
{
    /* between two pixels: -0.09375, 0.59375, 0.59375, -0.09375 */
    BY_HAND(o, MDL_OP_RESIZE);
    o->op.attr.resize.mode = MDL_RESIZE_CUBIC;
    o->op.attr.resize.coord = MDL_COORD_ALIGN_CORNERS;
    o->op.attr.resize.cubic_a = -0.75f;
    o->op.attr.resize.scale[0] = 7.0f / 4;
    o->op.in[0] = F32(o, DIMS(4), 0, 0, 1, 0);
    o->op.out[0] = OUT(o, MDL_F32, DIMS(7));
    T_TRUE(by_hand_run(o) && F32_IS(o, 0, -0.09375f, 0, 0.59375f, 1, 0.59375f, 0));
}

TEST(crops_of_an_image)
{
    BY_HAND(o, MDL_OP_RESIZE);
    o->op.attr.resize.mode = MDL_RESIZE_LINEAR;
    o->op.attr.resize.coord = MDL_COORD_TF_CROP_AND_RESIZE;
    o->op.attr.resize.scale[0] = 1;
    o->op.attr.resize.roi_begin[0] = 0.5f;
    o->op.attr.resize.roi_end[0] = 1.5f;
    o->op.attr.resize.extrapolation = -7;
    o->op.in[0] = F32(o, DIMS(5), 1, 2, 3, 4, 5);
    o->op.out[0] = OUT(o, MDL_F32, DIMS(5));
    T_TRUE(by_hand_run(o) && F32_IS(o, 3, 4, 5, -7, -7));
}

TEST_MAIN()
