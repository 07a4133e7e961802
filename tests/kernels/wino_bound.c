/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kernels/wino_bound.h"

#include <math.h>

#define SPAN_MAX 8u
#define SIDE_MAX 5u

struct matrices {                 /* absolute values */
    size_t size, side, span;      /* results, taps and inputs on a side */
    double a[SPAN_MAX][SPAN_MAX]; /* [output][point] */
    double g[SPAN_MAX][SIDE_MAX]; /* [point][tap] */
    double b[SPAN_MAX][SPAN_MAX]; /* [point][input] */
};

size_t wino_size(const char *primitive)
{
    const char *at = strstr(primitive, "_wino");
    size_t size = at ? strtoul(at + 5, NULL, 10) : 0;

    return at && size == 0 ? 6 : size; /* a library's, who knows which: the least exact */
}

static void multiply_by(double *poly, double root)
{
    for (size_t k = SPAN_MAX - 1; k > 0; k--) {
        poly[k] = poly[k - 1] - root * poly[k];
    }
    poly[0] *= -root;
}

/* Toom and Cook's construction from the points, the last of which is infinity. */
static struct matrices matrices_of(size_t size, size_t side)
{
    static const double points[][SPAN_MAX] = {
        {0, 1, -1}, {0, 0.5, -0.5, 2, -2}, {0, 0.5, -0.5, 1, -1, 2, -2}};
    struct matrices m = {.size = size, .side = side, .span = size + side - 1};
    const double *q = points[m.span / 2 - 2];
    size_t last = m.span - 1;

    m.a[size - 1][last] = 1;
    m.g[last][side - 1] = 1;
    m.b[last][0] = 1;
    for (size_t i = 0; i < last; i++) {
        double scale = 1;

        m.b[i][0] = 1;
        for (size_t k = 0; k < last; k++) {
            if (k != i) {
                multiply_by(m.b[i], q[k]);
                scale *= q[i] - q[k];
            }
        }
        multiply_by(m.b[last], q[i]);
        for (size_t j = 0; j < size; j++) {
            m.a[j][i] = pow(q[i], (double)j);
        }
        for (size_t j = 0; j < side; j++) {
            m.g[i][j] = pow(q[i], (double)j) / scale;
        }
    }
    for (size_t i = 0; i < m.span; i++) {
        for (size_t j = 0; j < SPAN_MAX; j++) {
            m.a[i][j] = fabs(m.a[i][j]);
            m.b[i][j] = fabs(m.b[i][j]);
            if (j < side) {
                m.g[i][j] = fabs(m.g[i][j]);
            }
        }
    }
    return m;
}

/* ret[i][j] = sum_{k,l} left[i][k] x[k][l] left[j][l]: @rows x @cols from @cols x @cols */
static void both_sides(size_t rows, size_t cols, size_t ld, const double *left,
                       double x[SPAN_MAX][SPAN_MAX], double ret[SPAN_MAX][SPAN_MAX])
{
    double half[SPAN_MAX][SPAN_MAX] = {{0}};

    for (size_t i = 0; i < rows; i++) {
        for (size_t k = 0; k < cols; k++) {
            for (size_t l = 0; l < cols; l++) {
                half[i][l] += left[i * ld + k] * x[k][l];
            }
        }
    }
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < rows; j++) {
            ret[i][j] = 0;
            for (size_t l = 0; l < cols; l++) {
                ret[i][j] += half[i][l] * left[j * ld + l];
            }
        }
    }
}

static double magnitude_at(const uint8_t *data, size_t element)
{
    float v;

    memcpy(&v, data + element * sizeof(v), sizeof(v));
    return fabs((double)v);
}

/* the transformed tile at (oy, ox) of one channel */
static void tile_of(const struct one_op *o, const struct matrices *m, size_t n, size_t c, size_t oy,
                    size_t ox, double ret[SPAN_MAX][SPAN_MAX])
{
    const struct mdl_tensor *x = &o->tensors[o->op.in[0]];
    const struct mdl_window *w = &o->op.attr.conv.window;
    double d[SPAN_MAX][SPAN_MAX] = {{0}};

    for (size_t i = 0; i < m->span; i++) {
        for (size_t j = 0; j < m->span; j++) {
            size_t y = oy + i - w->pad_begin[0], k = ox + j - w->pad_begin[1];

            if (y < x->dim[2] && k < x->dim[3]) { /* what is left of 0 wraps around */
                d[i][j] = magnitude_at(o->buffers[o->op.in[0]].data,
                                       n * (size_t)x->stride[0] + c * (size_t)x->stride[1] +
                                           y * (size_t)x->stride[2] + k * (size_t)x->stride[3]);
            }
        }
    }
    both_sides(m->span, m->span, SPAN_MAX, &m->b[0][0], d, ret);
}

/* |G| |g| |G|^T of every filter of one output channel */
static void filters_of(const struct one_op *o, const struct matrices *m, size_t channel,
                       double (*u)[SPAN_MAX][SPAN_MAX])
{
    size_t channels = o->tensors[o->op.in[1]].dim[1], taps = m->side * m->side;

    for (size_t c = 0; c < channels; c++) {
        double g[SPAN_MAX][SPAN_MAX] = {{0}};

        for (size_t t = 0; t < taps; t++) {
            g[t / m->side][t % m->side] =
                magnitude_at(o->buffers[o->op.in[1]].data, (channel * channels + c) * taps + t);
        }
        both_sides(m->span, m->side, SIDE_MAX, &m->g[0][0], g, u[c]);
    }
}

static void store_tile(const struct one_op *o, const struct matrices *m, size_t n, size_t channel,
                       size_t oy, size_t ox, double s[SPAN_MAX][SPAN_MAX],
                       struct one_op_buffer *out)
{
    const struct mdl_tensor *y = &o->tensors[o->op.out[0]];
    size_t residual = o->op.residual == MDL_RESIDUAL_NONE ? MDL_NONE : o->op.residual_in;
    double scale = o->op.scale ? fabs((double)o->op.scale[channel]) : 1;
    double shift = o->op.shift ? fabs((double)o->op.shift[channel]) : 0;

    for (size_t i = 0; i < m->size && oy + i < y->dim[2]; i++) {
        for (size_t j = 0; j < m->size && ox + j < y->dim[3]; j++) {
            size_t at[] = {n, channel, oy + i, ox + j}, to = 0, from = 0;
            float v = (float)(scale * s[i][j] + shift);

            for (size_t d = 0; d < 4; d++) {
                to += at[d] * (size_t)y->stride[d];
                from += residual == MDL_NONE ? 0 : at[d] * (size_t)o->tensors[residual].stride[d];
            }
            if (residual != MDL_NONE) {
                v += (float)magnitude_at(o->buffers[residual].data, from);
            }
            memcpy(out->data + to * sizeof(v), &v, sizeof(v));
        }
    }
}

double wino_magnitude(const struct one_op *o, size_t size, struct one_op_buffer *out)
{
    const struct mdl_tensor *w = &o->tensors[o->op.in[1]], *y = &o->tensors[o->op.out[0]];
    struct matrices m = matrices_of(size, w->dim[2]);
    size_t pairs = m.span / 2 - 1;
    size_t channels = w->dim[1], rows = (y->dim[2] + size - 1) / size;
    size_t cols = (y->dim[3] + size - 1) / size, tiles = y->dim[0] * rows * cols;
    double(*u)[SPAN_MAX][SPAN_MAX] = calloc(channels, sizeof(*u));
    double(*v)[SPAN_MAX][SPAN_MAX] = calloc(tiles * channels, sizeof(*v));

    if (!u || !v) {
        one_op_die("calloc");
    }
    for (size_t i = 0; i < tiles * channels; i++) {
        size_t t = i / channels;

        tile_of(o, &m, t / cols / rows, i % channels, t / cols % rows * size, t % cols * size,
                v[i]);
    }
    for (size_t channel = 0; channel < w->dim[0]; channel++) {
        filters_of(o, &m, channel, u);
        for (size_t t = 0; t < tiles; t++) {
            double products[SPAN_MAX][SPAN_MAX] = {{0}}, s[SPAN_MAX][SPAN_MAX];

            for (size_t c = 0; c < channels; c++) {
                for (size_t i = 0; i < SPAN_MAX * SPAN_MAX; i++) {
                    (&products[0][0])[i] += (&u[c][0][0])[i] * (&v[t * channels + c][0][0])[i];
                }
            }
            both_sides(m.size, m.span, SPAN_MAX, &m.a[0][0], products, s);
            store_tile(o, &m, t / cols / rows, channel, t / cols % rows * size, t % cols * size, s,
                       out);
        }
    }
    free(u);
    free(v);
    /* With p pairs of points, a value is rounded at most p + 1 times by each of the two passes of
     * B, r + 2 times by those of G and before by the scale (coefficient, product, r - 1 sums), p +
     * 2 times by those of A, and once for each channel. */
    return (double)(channels + 2 * (pairs + 1) + 2 * (m.side + 2) + 1 + 2 * (pairs + 2));
}
