/* SPDX-License-Identifier: Apache-2.0 */
/* First layers: with the change from NCHW before them, or with the max pooling behind them. */
#include "tests/harness.h"
#include "tests/kernels/fused_pair.h"

TEST(first_layers_read_planes)
{
    for (int i = 0; i < t_times(80); i++) {
        struct fused_case k = {.n = (size_t)t_range(1, 2),
                               .c = (size_t)(t_range(0, 1) ? 3 : t_range(1, 7)),
                               .h = (size_t)t_range(1, 40),
                               .w = (size_t)t_range(1, 50),
                               .o = (size_t)t_range(1, 40),
                               .k = (size_t)t_range(2, 7),
                               .stride = (size_t)t_range(1, 4),
                               .planes = true,
                               .x_pixel = (size_t)(t_range(0, 2) ? 0 : t_range(1, 9)),
                               .y_pixel = (size_t)(t_range(0, 2) ? 0 : t_range(1, 9)),
                               .act = {MDL_ACT_NONE, (enum mdl_act)t_range(0, MDL_ACT_SOFTPLUS)},
                               .residual = (enum mdl_residual)t_range(0, 2)};

        if (i == 0) { /* one that every primitive takes */
            k.c = k.k = 3;
            k.h = 40;
            k.w = 60;
            k.stride = 2;
        }
        k.pad = (size_t)t_range(0, (int)k.k - 1);
        k.h = base_max(k.h, k.k);
        k.w = base_max(k.w, k.k);
        T_TRUE(fused_passes(&k));
    }
}

/* first layers of ResNets, SqueezeNet and AlexNet with their poolings, made smaller, and others */
TEST(first_layers_with_pooling)
{
    static const struct fused_case pairs[] = {
        {.h = 40, .w = 60, .o = 64, .k = 7, .stride = 2, .pad = 3, .pool_k = 3, .pool_pad = 1},
        {.h = 41, .w = 61, .o = 64, .k = 3, .stride = 2, .pool_k = 3},
        {.h = 70, .w = 80, .o = 64, .k = 11, .stride = 4, .pad = 2, .pool_k = 3},
        {.h = 24, .w = 30, .o = 16, .k = 3, .stride = 1, .pad = 1, .pool_k = 2},
        {.h = 40, .w = 50, .o = 40, .k = 3, .stride = 2, .pad = 1, .pool_k = 8},
    };

    for (int i = 0; i < t_times(60); i++) {
        struct fused_case k = pairs[(size_t)i % base_array_count(pairs)];

        k.pool = true;
        k.c = 3;
        k.n = (size_t)t_range(1, 2);
        k.pool_stride = 2;
        k.act[0] = MDL_ACT_RELU;
        if ((size_t)i >= base_array_count(pairs)) {
            k.act[0] = (enum mdl_act)t_range(0, MDL_ACT_SOFTPLUS);
            k.h = (size_t)t_range(16, 40);
            k.w = (size_t)t_range(52, 70); /* at least one row of tiles, whatever the stride */
            k.o = (size_t)t_range(1, 90);
            k.pool_k = (size_t)t_range(1, 4);
            k.pool_stride = (size_t)t_range(1, 4);
            k.pool_pad = (size_t)t_range(0, (int)k.pool_k - 1);
            k.x_pixel = (size_t)(t_range(0, 2) ? 0 : t_range(1, 9));
            k.y_pixel = (size_t)(t_range(0, 2) ? 0 : t_range(1, 9));
        }
        k.pool_k = base_min(k.pool_k, (k.h + 2 * k.pad - k.k) / k.stride + 1);
        T_TRUE(fused_passes(&k));
    }
}
