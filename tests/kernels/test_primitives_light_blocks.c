/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Norms, attention and products of values that are computed per frame: every primitive against its
 * reference, on the shapes of transformers made smaller and on random shapes and strides.
 */
#include <math.h>

#include "tests/kernels/light_case.h"

/* Adds a tensor whose dims lie in memory in @order, outermost first; 0 for those of @broadcast. */
static size_t ordered(struct one_op *o, size_t rank, const size_t *dim, const size_t *order,
                      unsigned broadcast)
{
    ptrdiff_t stride[MDL_RANK_MAX], next = 1;
    size_t t;

    for (size_t i = rank; i-- > 0;) {
        size_t d = order ? order[i] : i;

        stride[d] = broadcast >> d & 1 ? 0 : next;
        next *= broadcast >> d & 1 ? 1 : (ptrdiff_t)dim[d];
    }
    t = one_op_tensor(o, MDL_F32, MDL_HOME_ARENA, rank, dim, stride);
    check_fill(o, t, 2.0f);
    return t;
}

static const struct check norm_check = {
    .bound = CHECK_ULP, .ulps = 64, .absolute = 2e-5, .expect = "norm_f32"};

TEST(norms_of_rows)
{
    static const size_t lengths[] = {1, 3, 7, 8, 31, 32, 96, 100, 768};

    for (size_t i = 0; i < 8 * base_array_count(lengths); i++) {
        struct one_op *o = one_op_new(MDL_OP_NORM);
        size_t n = lengths[i / 8], dim[3] = {2, 5, n};
        struct check k = norm_check;

        o->op.in[0] = ordered(o, 3, dim, NULL, 0);
        if (i % 4 > 0) {
            o->op.in[1] = ordered(o, 3, dim, NULL, 3);
        }
        if (i % 4 > 1) {
            o->op.in[2] = ordered(o, 3, dim, NULL, i % 4 == 3 ? 7 : 3);
        }
        o->op.out[0] = ordered(o, 3, dim, NULL, 0);
        o->op.attr.norm.axes[2] = true;
        o->op.attr.norm.axes[1] = i % 3 == 0;
        o->op.attr.norm.rms = i & 4;
        o->op.attr.norm.epsilon = 1e-3f;
        o->op.act = i % 5 == 0 ? MDL_ACT_RELU : MDL_ACT_NONE;
        k.expect = "norm_f32_rows";
        snprintf(o->name, sizeof(o->name), "norm %zu of rows of %zu", i, n);
        T_TRUE(light_finish(o, &k));
    }
}

TEST(norms_of_images)
{
    static const size_t nhwc[5] = {0, 3, 4, 1, 2};

    for (int i = 0; i < t_times(120); i++) {
        struct one_op *o = one_op_new(MDL_OP_NORM);
        size_t groups = (size_t)t_range(1, 40), each = (size_t)t_range(1, 9);
        size_t dim[5] = {(size_t)t_range(1, 2), groups, each, (size_t)t_range(1, 20),
                         (size_t)t_range(1, 20)};
        bool grouped = t_range(0, 3) > 0, channels = !grouped || t_range(0, 1);
        struct check k = norm_check;

        dim[3] *= i % 10 == 0 ? 20 : 1; /* longer than one block of sums */
        o->op.in[0] = ordered(o, 5, dim, nhwc, 0);
        o->op.in[1] = ordered(o, 5, dim, nhwc, channels ? 1 + 8 + 16 : 1 + 4 + 8 + 16);
        o->op.in[2] = ordered(o, 5, dim, nhwc, 1 + 8 + 16);
        o->op.out[0] = ordered(o, 5, dim, nhwc, 0);
        o->op.attr.norm.axes[3] = o->op.attr.norm.axes[4] = true;
        o->op.attr.norm.axes[2] = grouped;
        o->op.attr.norm.rms = t_range(0, 3) == 0;
        o->op.attr.norm.epsilon = 1e-3f;
        o->op.act = t_range(0, 1) ? MDL_ACT_SILU : MDL_ACT_NONE;
        k.expect = dim[3] * dim[4] > 1 ? "norm_f32_nhwc" : "norm_f32";
        snprintf(o->name, sizeof(o->name), "norm of %zux%zux%zux%zux%zu", dim[0], dim[1], dim[2],
                 dim[3], dim[4]);
        T_TRUE(light_finish(o, &k));
    }
}

/* Far from 0 the mean must go before the squares. */
TEST(norms_far_from_zero)
{
    struct one_op *o = one_op_new(MDL_OP_NORM);
    size_t dim[2] = {3, 64};
    struct check k = norm_check;

    o->op.in[0] = ordered(o, 2, dim, NULL, 0);
    o->op.out[0] = ordered(o, 2, dim, NULL, 0);
    for (size_t i = 0; i < 3 * 64; i++) {
        float *x = (float *)(void *)o->buffers[o->op.in[0]].data;

        x[i] = 1000 + (float)(i % 7);
    }
    o->op.attr.norm.axes[1] = true;
    o->op.attr.norm.epsilon = 1e-5f;
    k.absolute = 2e-4;
    snprintf(o->name, sizeof(o->name), "norm far from 0");
    T_TRUE(light_finish(o, &k));
}

struct case_of {
    size_t heads, m, n, d, e;
};

/* The operands in one of the orders in which models have them. */
static struct one_op *attention(const struct case_of *c, unsigned how)
{
    static const size_t inner[4] = {0, 2, 1, 3}, swapped[4] = {0, 1, 3, 2};
    struct one_op *o = one_op_new(MDL_OP_ATTENTION);
    const size_t *order = how & 1 ? inner : NULL, *of_v = how & 2 ? swapped : order;
    size_t q[4] = {1, c->heads, c->m, c->d}, k[4] = {1, c->heads, c->n, c->d};
    size_t v[4] = {1, c->heads, c->n, c->e}, y[4] = {1, c->heads, c->m, c->e};
    size_t mask[4] = {1, c->heads, c->m, c->n};

    o->op.in[0] = ordered(o, 4, q, how & 4 ? swapped : order, 0);
    o->op.in[1] = ordered(o, 4, k, how & 8 ? swapped : order, how & 64 ? 2 : 0);
    o->op.in[2] = ordered(o, 4, v, of_v, 0);
    if (how & 16) {
        o->op.in[3] = ordered(o, 4, mask, how & 32 ? swapped : NULL, how & 128 ? 4 : 2);
        if (how & 32) { /* some keys are not attended to, or hardly */
            float *p = (float *)(void *)o->buffers[o->op.in[3]].data;
            float hidden = how & 1024 ? -100 : how & 2048 ? -8 : -INFINITY;

            for (size_t i = 1; (i + 1) * sizeof(*p) <= o->buffers[o->op.in[3]].bytes; i += 3) {
                p[i] = hidden;
            }
            p[0] = 0;
        }
    }
    o->op.out[0] = ordered(o, 4, y, order, 0);
    o->op.attr.attention.scale = 0.7f;
    o->op.attr.attention.softcap = how & 256 ? 1.5f : 0;
    o->op.attr.attention.causal = how & 512;
    snprintf(o->name, sizeof(o->name), "attention of %zu heads, %zux%zu of %zu and %zu, how %x",
             c->heads, c->m, c->n, c->d, c->e, how);
    return o;
}

/* A row of scores that are all negative infinity is NaN, which compares equal to nothing: the mask
 * of the first key is 0, and it is never in the future. */
static const struct check attention_check = {
    .bound = CHECK_ULP, .ulps = 256, .absolute = 3e-5, .expect = "attention_f32"};

TEST(attention_of_known_shapes)
{
    static const struct case_of shapes[] = {
        {3, 50, 50, 64, 64},   /* ViT-B/32 */
        {3, 49, 49, 32, 32},   /* a window of Swin */
        {2, 100, 100, 32, 64}, /* YOLO11 */
        {2, 1, 7, 16, 16},     {1, 77, 300, 8, 3}, {1, 3, 2000, 4, 20}, {4, 13, 1, 1, 1},
    };

    for (size_t i = 0; i < base_array_count(shapes); i++) {
        for (unsigned how = 0; how < 4; how++) {
            T_TRUE(light_finish(attention(&shapes[i], how == 3 ? 14 : how), &attention_check));
        }
    }
}

/* Swin subtracts 100 where windows wrap around. */
TEST(attention_of_masks_that_subtract)
{
    static const struct case_of shapes[] = {
        {3, 49, 49, 32, 32}, {2, 5, 33, 8, 7}, {1, 3, 500, 4, 20}};

    for (size_t i = 0; i < base_array_count(shapes); i++) {
        T_TRUE(light_finish(attention(&shapes[i], 16 | 32 | 1024), &attention_check));
        T_TRUE(light_finish(attention(&shapes[i], 16 | 32 | 2048), &attention_check));
    }
}

TEST(attention_of_random_shapes)
{
    for (int i = 0; i < t_times(150); i++) {
        struct case_of c = {(size_t)t_range(1, 3), (size_t)t_range(1, 40), (size_t)t_range(1, 70),
                            (size_t)t_range(1, 40), (size_t)t_range(1, 40)};
        unsigned how = (unsigned)t_range(0, 1023);

        /* a mask that is the same for all keys and hides them, or all keys of a transposed row */
        how = how & 32 && c.m > 1 ? how & ~32u : how;
        T_TRUE(light_finish(attention(&c, how), &attention_check));
    }
}

TEST(products_of_batches)
{
    static const size_t swapped[3] = {0, 2, 1}, middle[3] = {1, 0, 2};

    for (int i = 0; i < t_times(150); i++) {
        struct one_op *o = one_op_new(MDL_OP_MATMUL);
        size_t b = (size_t)t_range(1, 4), m = (size_t)t_range(1, 40), n = (size_t)t_range(1, 50);
        size_t k = (size_t)t_range(1, i % 20 == 0 ? 9000 : 60), how = (size_t)t_range(0, 7);
        struct check c = {
            .bound = CHECK_SUM, .terms = (double)k, .ulps = 8, .expect = "matmul_f32_batch"};

        o->op.in[0] = ordered(o, 3, (size_t[]){b, m, k}, how & 1 ? swapped : NULL, 0);
        if (i % 5 == 0) {
            o->op.in[1] = ordered(o, 2, (size_t[]){k, n}, NULL, 0);
        } else {
            o->op.in[1] =
                ordered(o, 3, (size_t[]){b, k, n}, how & 2 ? swapped : middle, i % 7 == 0 ? 1 : 0);
        }
        o->op.out[0] = ordered(o, 3, (size_t[]){b, m, n}, how & 4 ? middle : NULL, 0);
        o->op.act = i % 3 == 0 ? MDL_ACT_RELU : MDL_ACT_NONE;
        snprintf(o->name, sizeof(o->name), "%zu products of %zux%zux%zu, how %zu", b, m, k, n, how);
        T_TRUE(light_finish(o, &c));
    }
}
