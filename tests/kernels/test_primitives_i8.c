/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every primitive of the operators on quantised values against the exact reference, to the bit:
 * types of both signs, zero points at both ends, sums at the extremes, ties, tile edges, guard
 * bytes. Element functions that are not linear exist for real results alone and have a bound.
 * Convolutions and products have files of their own.
 */
#include "tests/harness.h"
#include "tests/kernels/against_ref.h"
#include "tests/kernels/i8_case.h"

TEST(pools_of_random_shapes)
{
    for (int i = 0; i < t_times(500); i++) {
        bool max = t_range(0, 1);
        struct one_op *o = one_op_new(max ? MDL_OP_MAX_POOL : MDL_OP_AVG_POOL);
        enum mdl_dtype x = i8_random_type(), y = max ? x : i8_random_type();
        size_t c = (size_t)t_range(1, 150), h = (size_t)t_range(1, 9), w = (size_t)t_range(1, 9);
        size_t kh = (size_t)t_range(1, (int64_t)h), kw = (size_t)t_range(1, (int64_t)w);
        size_t s = (size_t)t_range(1, 3), top = (size_t)t_range(0, (int64_t)kh - 1);
        size_t left = (size_t)t_range(0, (int64_t)kw - 1);
        size_t x_pixel = t_range(0, 2) ? 0 : c + (size_t)t_range(1, 9);
        size_t y_pixel = t_range(0, 2) ? 0 : c + (size_t)t_range(1, 9);
        struct i8_case k = {.x = x, .y = y};
        struct mdl_quant *q = calloc(1, sizeof(*q));

        snprintf(o->name, sizeof(o->name), "pool max %d %zux%zux%zu %zux%zu/%zu pad %zu %zu", max,
                 c, h, w, kh, kw, s, top, left);
        o->op.in[0] = i8_image(o, x, 2, c, h, w, x_pixel);
        o->op.out[0] =
            i8_image(o, y, 2, c, (h + 2 * top - kh) / s + 1, (w + 2 * left - kw) / s + 1, y_pixel);
        o->op.attr.pool.window = (struct mdl_window){.rank = 2,
                                                     .kernel = {kh, kw},
                                                     .stride = {s, s},
                                                     .dilation = {1, 1},
                                                     .pad_begin = {top, left},
                                                     .pad_end = {top, left}};
        o->op.attr.pool.pad_end_model[0] = top;
        o->op.attr.pool.pad_end_model[1] = left;
        o->op.attr.pool.count_include_pad = t_range(0, 1);
        q->x_zero = i8_random_zero(x);
        q->y_zero = i8_random_zero(y);
        q->x_scale = t_range(0, 1) ? 0.5f : (float)t_range(1, 300) * 1e-2f;
        o->op.quant = max ? NULL : q;
        i8_fill(o, o->op.in[0], t_range(0, 5) ? 0 : (int)t_range(1, 3));
        T_TRUE(i8_finish(o, &k, q, "pool_i8"));
    }
}

TEST(sums_of_random_shapes)
{
    for (int i = 0; i < t_times(300); i++) {
        struct one_op *o = one_op_new(MDL_OP_BINARY);
        struct i8_case k = {.y = i8_random_type(), .act = (enum mdl_act)t_range(0, 3)};
        enum mdl_dtype a = i8_random_type(), b = i8_random_type();
        size_t c = (size_t)t_range(1, 90), h = (size_t)t_range(1, 4), w = (size_t)t_range(1, 4);
        struct mdl_quant *q = calloc(1, sizeof(*q));

        snprintf(o->name, sizeof(o->name), "add %zux%zux%zu", c, h, w);
        o->op.in[0] = i8_image(o, a, 1, c, h, w, t_range(0, 2) ? 0 : c + 5);
        o->op.in[1] = i8_image(o, b, 1, c, h, w, t_range(0, 2) ? 0 : c + 7);
        o->op.out[0] = i8_image(o, k.y, 1, c, h, w, t_range(0, 2) ? 0 : c + 3);
        o->op.attr.binary = MDL_BIN_ADD;
        *q = (struct mdl_quant){.x_zero = i8_random_zero(a),
                                .b_zero = i8_random_zero(b),
                                .y_zero = i8_random_zero(k.y),
                                .x_scale = t_range(0, 1) ? 0.5f : (float)t_range(1, 300) * 1e-2f,
                                .b_scale = t_range(0, 1) ? 1.5f : (float)t_range(1, 300) * 1e-2f};
        o->op.quant = q;
        o->op.act = k.act;
        o->op.act_a = k.act == MDL_ACT_CLIP ? -20.25f : 0.125f;
        o->op.act_b = 60.5f;
        i8_fill(o, o->op.in[0], 0);
        i8_fill(o, o->op.in[1], 0);
        T_TRUE(i8_finish(o, &k, q, c > 1 ? "binary_i8_add" : NULL));
    }
}

static void real_one(void *arg, size_t at, size_t index)
{
    float v = (float)t_range(-800, 800) * 0.25f;

    switch (t_range(0, 40)) {
    case 0:
        v = NAN;
        break;
    case 1:
        v = INFINITY;
        break;
    case 2:
        v = -INFINITY;
        break;
    case 3:
        v = 3e38f;
        break;
    default:
        break;
    }
    memcpy((uint8_t *)arg + at, &v, sizeof(v));
}

TEST(quantise_and_dequantise)
{
    for (int i = 0; i < t_times(300); i++) {
        bool to_bytes = t_range(0, 1);
        struct one_op *o = one_op_new(to_bytes ? MDL_OP_QUANTIZE : MDL_OP_DEQUANTIZE);
        struct i8_case k = {.y = MDL_U8};
        enum mdl_dtype t = i8_random_type();
        size_t c = (size_t)t_range(1, 90), h = (size_t)t_range(1, 4), w = (size_t)t_range(1, 4);
        float scale = t_range(0, 1) ? 0.5f : (float)t_range(1, 300) * 1e-2f;

        snprintf(o->name, sizeof(o->name), "quantise %d %zux%zux%zu", to_bytes, c, h, w);
        o->op.in[0] = i8_image(o, to_bytes ? MDL_F32 : t, 1, c, h, w, t_range(0, 2) ? 0 : c + 5);
        o->op.in[1] = one_op_tensor(o, MDL_F32, MDL_HOME_CONST, 4, (size_t[]){1, 1, 1, 1}, NULL);
        o->op.in[2] = one_op_tensor(o, t, MDL_HOME_CONST, 4, (size_t[]){1, 1, 1, 1}, NULL);
        o->op.out[0] = i8_image(o, to_bytes ? t : MDL_F32, 1, c, h, w, t_range(0, 2) ? 0 : c + 3);
        memcpy(o->buffers[o->op.in[1]].data, &scale, sizeof(scale));
        *o->buffers[o->op.in[2]].data = (uint8_t)i8_random_zero(t);
        if (to_bytes) {
            one_op_each(&o->tensors[o->op.in[0]], real_one, o->buffers[o->op.in[0]].data);
        } else {
            i8_fill(o, o->op.in[0], 0);
        }
        T_TRUE(i8_finish(o, &k, NULL, c > 1 ? "quantize_i8" : NULL));
    }
}

static bool ours(const struct krn_primitive *v)
{
    return strstr(v->name, "_i8_") != NULL;
}

TEST_LAST(no_primitive_is_untested)
{
    if (check_partial) {
        T_SKIP("only some cases were asked for");
    }
    T_EQ(check_unexercised(ours), 0);
    T_TRUE(i8_emulated_runs() > (size_t)t_times(100) || !check_wants("i8__emulated"));
}

CHECK_MAIN()
