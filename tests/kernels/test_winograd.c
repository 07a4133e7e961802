/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the bounds of test_primitives.c leave open about Winograd primitives: how far they really
 * are from the exact result on ordinary data, and which of them the static rule takes.
 */
#include <math.h>

#include "tests/harness.h"
#include "tests/kernels/conv_shape.h"
#include "tests/kernels/wino_bound.h"

static struct one_op *op_of(struct conv_shape s)
{
    struct one_op *op = one_op_new(MDL_OP_CONV);

    op->op.in[0] = one_op_image(op, 1, s.c, s.h, s.w, 0);
    op->op.in[1] =
        one_op_tensor(op, MDL_F32, MDL_HOME_CONST, 4, (size_t[]){s.o, s.c, s.kh, s.kw}, NULL);
    op->op.out[0] = one_op_image(op, 1, s.o, s.h, s.w, 0);
    op->op.attr.conv.groups = 1;
    op->op.attr.conv.window = conv_window(&s);
    return op;
}

static struct one_op *layer_op(size_t c, size_t h, size_t w, size_t o, size_t side)
{
    return op_of(conv_same(c, h, w, o, side, side));
}

static struct one_op *line_op(size_t c, size_t h, size_t w, size_t o, size_t side, bool down)
{
    return op_of(conv_same(c, h, w, o, down ? side : 1, down ? 1 : side));
}

/* a sum of uniform numbers: nearly normal, of variance 1 */
static void fill_normal(struct one_op_buffer *b)
{
    for (size_t i = 0; i < b->bytes / sizeof(float); i++) {
        float v = -6;

        for (size_t k = 0; k < 12; k++) {
            v += (float)t_range(0, 1 << 20) / (float)(1 << 20);
        }
        memcpy(b->data + i * sizeof(v), &v, sizeof(v));
    }
}

static struct one_op_buffer result_of(const struct krn_primitive *v, struct one_op *o)
{
    struct one_op_buffer out[MDL_OP_OUT_MAX] = {
        one_op_buffer_new(o->buffers[o->op.out[0]].bytes, 64)};
    struct one_op_buffer packed =
        one_op_buffer_new(v->packed_bytes ? v->packed_bytes(&o->m, &o->op) : 0, 64);
    struct one_op_buffer scratch =
        one_op_buffer_new(v->scratch_bytes ? v->scratch_bytes(&o->m, &o->op, 1) : 0, 64);
    struct krn_call call = one_op_call(o, out, NULL, 1, packed.data, scratch.data);

    if (v->pack) {
        v->pack(&o->m, &o->op, packed.data);
    }
    v->run(&call);
    one_op_buffer_free(&packed);
    one_op_buffer_free(&scratch);
    return out[0];
}

/* root mean square of a - b, or of a */
static double rms(const struct one_op_buffer *a, const struct one_op_buffer *b)
{
    size_t n = a->bytes / sizeof(float);
    double sum = 0;

    for (size_t i = 0; i < n; i++) {
        float x, y = 0;

        memcpy(&x, a->data + i * sizeof(x), sizeof(x));
        if (b) {
            memcpy(&y, b->data + i * sizeof(y), sizeof(y));
        }
        sum += ((double)x - (double)y) * ((double)x - (double)y);
    }
    return sqrt(sum / (double)n);
}

static bool is_ours(const struct krn_primitive *v)
{
    return strstr(v->name, "conv_f32_nhwc_wino") && !strstr(v->name, "wino__");
}

/* Return: how many primitives ran, if each result is within @limits[m] of the reference; else 0. */
static size_t errors_within(struct one_op *o, const double *limits)
{
    struct one_op_buffer exact = {0};
    size_t count, seen = 0;
    bool ok = true;
    const struct krn_primitive *v = krn_primitives(&count);

    fill_normal(&o->buffers[o->op.in[0]]);
    fill_normal(&o->buffers[o->op.in[1]]);
    for (size_t i = 0; i < count; i++) {
        if (v[i].kind == MDL_OP_CONV && v[i].reference) {
            exact = result_of(&v[i], o);
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (is_ours(&v[i]) && !(v[i].needs & ~krn_cpu_features()) &&
            v[i].packed_bytes(&o->m, &o->op)) {
            struct one_op_buffer y = result_of(&v[i], o);
            double error = rms(&exact, &y) / rms(&exact, NULL);

            if (!(error <= limits[wino_size(v[i].name)])) {
                fprintf(stderr, "%s: relative error %.3g\n", v[i].name, error);
                ok = false;
            }
            one_op_buffer_free(&y);
            seen++;
        }
    }
    one_op_buffer_free(&exact);
    one_op_free(o);
    return ok ? seen : 0;
}

/* Twice what sums of 64 channels of normal numbers show for these points: a wrong coefficient, or
 * worse points, would be far outside. 1x7 shows 2e-6 and may have no more than 5x5. */
TEST(errors_are_small_on_ordinary_data)
{
    static const double of_3x3[] = {[2] = 6e-7, [4] = 2e-6, [6] = 8e-6}, of_5x5[] = {[2] = 2.4e-6};
    static const double lines[][5] = {
        [3] = {[4] = 9e-7}, [5] = {[4] = 1.5e-6}, [7] = {[4] = 2.4e-6}};

    T_TRUE(errors_within(layer_op(64, 12, 12, 16, 3), of_3x3) >= 3);
    T_TRUE(errors_within(layer_op(64, 12, 12, 16, 5), of_5x5) >= 1);
    for (size_t k = 3; k <= 7; k += 2) {
        T_TRUE(errors_within(line_op(64, 12, 12, 16, k, false), lines[k]) >= 1);
        T_TRUE(errors_within(line_op(64, 12, 12, 16, k, true), lines[k]) >= 1);
    }
}

/* The first primitive that takes a layer is what runs it unless something was measured. */
static const struct krn_primitive *first_of(struct one_op *o)
{
    size_t count;
    const struct krn_primitive *v = krn_primitives(&count);

    for (size_t i = 0; i < count; i++) {
        if (v[i].kind == MDL_OP_CONV && !v[i].inexact && strstr(v[i].name, "__vec") &&
            v[i].supports(&o->m, &o->op)) {
            return &v[i];
        }
    }
    return NULL;
}

TEST(large_layers_are_taken_and_small_ones_left)
{
    struct one_op *large = layer_op(64, 56, 56, 64, 3), *small = layer_op(8, 3, 3, 8, 3);
    struct one_op *wide = layer_op(64, 27, 27, 192, 5);

    for (size_t i = 0; i < 6; i++) {
        size_t k = 3 + i / 2 * 2;
        struct one_op *line = line_op(128, 17, 17, 192, k, i % 2);
        struct one_op *little = line_op(8, 3, 3, 8, k, i % 2);

        T_EQ(wino_size(first_of(line)->name), 4);
        T_EQ(wino_size(first_of(little)->name), 0);
        one_op_free(line);
        one_op_free(little);
    }
    T_EQ(wino_size(first_of(large)->name), 4);
    T_EQ(wino_size(first_of(wide)->name), 2);
    one_op_free(wide);
    T_EQ(wino_size(first_of(small)->name), 0);
    one_op_free(large);
    one_op_free(small);
}

int main(int argc, char **argv)
{
    return t_main(argc, argv);
}
