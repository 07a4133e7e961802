/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kernels/strassen_bound.h"

#include <math.h>

size_t strassen_lanes(const char *primitive)
{
    if (!strstr(primitive, "_strassen__")) {
        return 0;
    }
    return strstr(primitive, "__avx512") ? 32 : strstr(primitive, "__avx2") ? 16 : 8;
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

/* |x| of the channels of pixel @i */
static void channels_of(const struct one_op *o, size_t i, size_t k, double *ret)
{
    const struct mdl_tensor *x = &o->tensors[o->op.in[0]], *y = &o->tensors[o->op.out[0]];
    size_t at = pixel_of(x, y, i, 0, o->op.attr.conv.window.stride);

    for (size_t c = 0; c < k; c++) {
        ret[c] = magnitude_at(o->buffers[o->op.in[0]].data, at + c * (size_t)x->stride[1]);
    }
}

/* [odd][right] sums of a pair of pixels and of outputs, all of @half channels, then as many more */
static void sums_of(const double *even, const double *odd, const double *left, const double *right,
                    size_t half, double s[2][2])
{
    double p1 = 0, p2 = 0, p3 = 0, p4 = 0, p5 = 0, p6 = 0, p7 = 0;

    for (size_t c = 0; c < half; c++) {
        double s1 = odd[c] + odd[c + half], s2 = s1 + even[c];
        double t1 = right[c] + left[c], t2 = right[c + half] + t1;

        p1 += even[c] * left[c];
        p2 += even[c + half] * left[c + half];
        p3 += (even[c + half] + s2) * right[c + half];
        p4 += odd[c + half] * (t2 + left[c + half]);
        p5 += s1 * t1;
        p6 += s2 * t2;
        p7 += (even[c] + odd[c]) * (right[c + half] + right[c]);
    }
    s[0][0] = p1 + p2;
    s[0][1] = p1 + p6 + p5 + p3;
    s[1][0] = p1 + p6 + p7 + p4;
    s[1][1] = p1 + p6 + p7 + p5;
}

static double plain_sum(const double *x, const double *w, size_t k)
{
    double s = 0;

    for (size_t c = 0; c < k; c++) {
        s += x[c] * w[c];
    }
    return s;
}

static void store(const struct one_op *o, size_t pixel, size_t channel, double s,
                  struct one_op_buffer *out)
{
    static const size_t one[2] = {1, 1};
    const struct mdl_tensor *y = &o->tensors[o->op.out[0]];
    double shift = o->op.shift ? fabs((double)o->op.shift[channel]) : 0;
    float v = (float)(s + shift);

    if (o->op.residual != MDL_RESIDUAL_NONE) {
        size_t r = o->op.residual_in;

        v += (float)magnitude_at(o->buffers[r].data,
                                 pixel_of(&o->tensors[r], y, pixel, channel, one));
    }
    memcpy(out->data + pixel_of(y, y, pixel, channel, one) * sizeof(v), &v, sizeof(v));
}

double strassen_magnitude(const struct one_op *o, size_t lanes, struct one_op_buffer *out)
{
    const struct mdl_tensor *t = &o->tensors[o->op.in[1]], *y = &o->tensors[o->op.out[0]];
    size_t k = t->dim[1], outs = t->dim[0], pixels = y->dim[0] * y->dim[2] * y->dim[3];
    size_t paired = outs / lanes / 2 * 2 * lanes;
    double *w = calloc(outs * k + 2 * k, sizeof(*w)), *even = w + outs * k, *odd = even + k;

    if (!w) {
        one_op_die("calloc");
    }
    for (size_t i = 0; i < outs * k; i++) {
        double scale = o->op.scale ? fabs((double)o->op.scale[i / k]) : 1;

        w[i] = scale * magnitude_at(o->buffers[o->op.in[1]].data, i);
    }
    for (size_t i = 0; i < pixels; i += 2) {
        size_t other = i + 1 < pixels ? i + 1 : i; /* an odd pixel is a pair with itself */

        channels_of(o, i, k, even);
        channels_of(o, other, k, odd);
        for (size_t c = 0; c < outs; c++) {
            size_t right = c / lanes % 2;
            double s[2][2];

            if (c < paired) {
                sums_of(even, odd, w + (right ? c - lanes : c) * k, w + (right ? c : c + lanes) * k,
                        k / 2, s);
            } else {
                s[0][right] = plain_sum(even, w + c * k, k);
                s[1][right] = plain_sum(odd, w + c * k, k);
            }
            store(o, i, c, s[0][right], out);
            if (other != i) {
                store(o, other, c, s[1][right], out);
            }
        }
    }
    free(w);
    return 1.5 * (double)k + 9;
}
