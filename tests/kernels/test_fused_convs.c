/* SPDX-License-Identifier: Apache-2.0 */
/* A depthwise convolution and a 1x1 one, in either order. */
#include "tests/harness.h"
#include "tests/kernels/fused_pair.h"

/* MobileNets: channels and windows as they are, height and width smaller */
TEST(pairs_of_real_networks)
{
    static const struct fused_case pairs[] = {
        {.c = 32, .h = 24, .w = 24, .o = 64, .k = 3, .stride = 1, .pad = 1, .dw_first = true},
        {.c = 64, .h = 24, .w = 24, .o = 128, .k = 3, .stride = 2, .pad = 1, .dw_first = true},
        {.c = 512, .h = 6, .w = 7, .o = 96, .k = 3, .stride = 1, .pad = 1, .dw_first = true},
        {.c = 1024, .h = 7, .w = 7, .o = 40, .k = 3, .stride = 1, .pad = 1, .dw_first = true},
        {.c = 96, .h = 20, .w = 56, .o = 24, .k = 5, .stride = 2, .pad = 2, .dw_first = true},
        {.c = 16, .h = 26, .w = 112, .o = 96, .k = 3, .stride = 2, .pad = 1},
        {.c = 24, .h = 40, .w = 56, .o = 144, .k = 3, .stride = 1, .pad = 1},
        {.c = 24, .h = 14, .w = 14, .o = 96, .k = 5, .stride = 2, .pad = 2},
        {.c = 40, .h = 14, .w = 14, .o = 240, .k = 5, .stride = 1, .pad = 2},
        {.c = 96, .h = 7, .w = 7, .o = 576, .k = 3, .stride = 1, .pad = 1},
    };

    for (size_t i = 0; i < base_array_count(pairs); i++) {
        struct fused_case k = pairs[i];

        k.n = 1;
        k.act[0] = i % 2 ? MDL_ACT_CLIP : MDL_ACT_RELU;
        k.act[1] = k.dw_first ? MDL_ACT_NONE : MDL_ACT_HARD_SWISH;
        k.residual = i % 3 == 0 ? MDL_RESIDUAL_AFTER_ACT : MDL_RESIDUAL_NONE;
        T_TRUE(fused_passes(&k));
    }
}

TEST(pairs_of_random_shapes)
{
    for (int i = 0; i < t_times(120); i++) {
        struct fused_case k = {.n = (size_t)t_range(1, 2),
                               .c = (size_t)t_range(2, 40),
                               .h = (size_t)t_range(1, 20),
                               .w = (size_t)t_range(1, 20),
                               .o = (size_t)t_range(2, 70),
                               .k = (size_t)t_range(1, 6),
                               .stride = (size_t)t_range(1, 3),
                               .dw_first = t_range(0, 1),
                               .x_pixel = (size_t)(t_range(0, 2) ? 0 : t_range(1, 9)),
                               .y_pixel = (size_t)(t_range(0, 2) ? 0 : t_range(1, 9)),
                               .x_row = (size_t)(t_range(0, 2) ? 0 : t_range(1, 9)),
                               .act = {(enum mdl_act)t_range(0, MDL_ACT_SOFTPLUS),
                                       (enum mdl_act)t_range(0, MDL_ACT_SOFTPLUS)},
                               .residual = (enum mdl_residual)t_range(0, 2)};

        k.pad = (size_t)t_range(0, (int)k.k - 1);
        k.h = base_max(k.h, k.k);
        k.w = base_max(k.w, k.k);
        T_TRUE(fused_passes(&k));
    }
}

/* images of many strips, with a residual that lies where the result is written */
TEST(pairs_of_many_strips)
{
    for (int i = 0; i < t_times(12); i++) {
        struct fused_case k = {.n = 1 + (size_t)i % 2,
                               .c = (size_t)t_range(30, 90),
                               .h = (size_t)t_range(40, 60),
                               .w = (size_t)t_range(60, 90),
                               .o = (size_t)t_range(30, 90),
                               .k = i % 4 < 2 ? 3 : 5,
                               .stride = (size_t)t_range(1, 2),
                               .pad = (size_t)t_range(0, 2),
                               .dw_first = i % 4 % 2,
                               .residual = MDL_RESIDUAL_BEFORE_ACT,
                               .in_place = true};

        T_TRUE(fused_passes(&k));
    }
}
