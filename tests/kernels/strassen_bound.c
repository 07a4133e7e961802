/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kernels/strassen_bound.h"

#include <math.h>

size_t strassen_lanes(const char *variant)
{
    if (!strstr(variant, "_strassen__")) {
        return 0;
    }
    return strstr(variant, "__avx512") ? 32 : strstr(variant, "__avx2") ? 16 : 8;
}

static double magnitude_at(const uint8_t *data, size_t element)
{
    float v;

    memcpy(&v, data + element * sizeof(v), sizeof(v));
    return fabs((double)v);
}

/* pixel @i of all images at channel @c, in elements; steps of the convolution */
static size_t pixel_of(const struct mdl_tensor *t, const struct mdl_tensor *y, size_t i, size_t c,
                       const size_t *step)
{
    size_t x = i % y->dim[3], row = i / y->dim[3] % y->dim[2], n = i / y->dim[3] / y->dim[2];

    return n * (size_t)t->stride[0] + c * (size_t)t->stride[1] +
           row * step[0] * (size_t)t->stride[2] + x * step[1] * (size_t)t->stride[3];
}

struct pair {
    const struct one_op *o;
    size_t pixel[2]; /* even and odd, the same where the odd one is missing */
};

static double x_of(const struct pair *p, size_t i, size_t c)
{
    const struct mdl_op *op = &p->o->op;

    return magnitude_at(p->o->buffers[op->in[0]].data,
                        pixel_of(&p->o->tensors[op->in[0]], &p->o->tensors[op->out[0]], p->pixel[i],
                                 c, op->attr.conv.window.stride));
}

static double w_of(const struct pair *p, size_t o, size_t c)
{
    const struct mdl_op *op = &p->o->op;

    return magnitude_at(p->o->buffers[op->in[1]].data, o * p->o->tensors[op->in[1]].dim[1] + c);
}

/* [odd][right] sums of one pair of pixels and the outputs @left and @right */
static void sums_of(const struct pair *p, size_t k, size_t left, size_t right, double s[2][2])
{
    double p1 = 0, p2 = 0, p3 = 0, p4 = 0, p5 = 0, p6 = 0, p7 = 0;

    for (size_t c = 0; c < k / 2; c++) {
        double x11 = x_of(p, 0, c), x12 = x_of(p, 0, c + k / 2);
        double x21 = x_of(p, 1, c), x22 = x_of(p, 1, c + k / 2);
        double w11 = w_of(p, left, c), w21 = w_of(p, left, c + k / 2);
        double w12 = w_of(p, right, c), w22 = w_of(p, right, c + k / 2);
        double s1 = x21 + x22, s2 = s1 + x11, t1 = w12 + w11, t2 = w22 + t1;

        p1 += x11 * w11;
        p2 += x12 * w21;
        p3 += (x12 + s2) * w22;
        p4 += x22 * (t2 + w21);
        p5 += s1 * t1;
        p6 += s2 * t2;
        p7 += (x11 + x21) * (w22 + w12);
    }
    s[0][0] = p1 + p2;
    s[0][1] = p1 + p6 + p5 + p3;
    s[1][0] = p1 + p6 + p7 + p4;
    s[1][1] = p1 + p6 + p7 + p5;
}

static double plain_sum(const struct pair *p, size_t i, size_t k, size_t channel)
{
    double s = 0;

    for (size_t c = 0; c < k; c++) {
        s += x_of(p, i, c) * w_of(p, channel, c);
    }
    return s;
}

static void store(const struct one_op *o, size_t pixel, size_t channel, double s,
                  struct one_op_buffer *out)
{
    static const size_t one[2] = {1, 1};
    const struct mdl_tensor *y = &o->tensors[o->op.out[0]];
    double scale = o->op.scale ? fabs((double)o->op.scale[channel]) : 1;
    double shift = o->op.shift ? fabs((double)o->op.shift[channel]) : 0;
    float v = (float)(scale * s + shift);

    if (o->op.residual != MDL_RESIDUAL_NONE) {
        size_t r = o->op.residual_in;

        v += (float)magnitude_at(o->buffers[r].data,
                                 pixel_of(&o->tensors[r], y, pixel, channel, one));
    }
    memcpy(out->data + pixel_of(y, y, pixel, channel, one) * sizeof(v), &v, sizeof(v));
}

double strassen_magnitude(const struct one_op *o, size_t lanes, struct one_op_buffer *out)
{
    const struct mdl_tensor *w = &o->tensors[o->op.in[1]], *y = &o->tensors[o->op.out[0]];
    size_t k = w->dim[1], pixels = y->dim[0] * y->dim[2] * y->dim[3];
    size_t paired = w->dim[0] / lanes / 2 * 2 * lanes;

    for (size_t i = 0; i < pixels; i += 2) {
        struct pair p = {o, {i, i + 1 < pixels ? i + 1 : i}};

        for (size_t c = 0; c < w->dim[0]; c++) {
            size_t right = c / lanes % 2;
            double s[2][2];

            if (c < paired) {
                sums_of(&p, k, right ? c - lanes : c, right ? c : c + lanes, s);
            } else {
                s[0][right] = plain_sum(&p, 0, k, c);
                s[1][right] = plain_sum(&p, 1, k, c);
            }
            store(o, p.pixel[0], c, s[0][right], out);
            if (p.pixel[1] != p.pixel[0]) {
                store(o, p.pixel[1], c, s[1][right], out);
            }
        }
    }
    return 1.5 * (double)k + 9;
}
