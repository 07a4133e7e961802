/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kernels/wino_bound.h"

#include <math.h>

#define SPAN_MAX 10u
#define SIDE_MAX 7u

struct matrices {                 /* of one direction: absolute values */
    size_t size, side, span;      /* results, taps and inputs */
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

/* Toom and Cook's construction from the points, the last of which is infinity. One tap needs none:
 * all matrices are 1. */
static struct matrices matrices_of(size_t size, size_t side)
{
    static const double points[][SPAN_MAX] = {
        {0, 1, -1},
        {0, 0.5, -0.5, 2, -2},
        {0, 0.5, -0.5, 1, -1, 2, -2},
        {0, 0.375, -0.375, 0.75, -0.75, 1.25, -1.25, 2.5, -2.5}};
    struct matrices m = {.size = size, .side = side, .span = size + side - 1};
    const double *q = points[side > 1 ? m.span / 2 - 2 : 0];
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

/* a matrix of one direction: @rows x @cols, rows @ld apart */
struct pass {
    size_t rows, cols, ld;
    const double *at;
};

/* ret[i][j] = sum_{k,l} down[i][k] x[k][l] along[j][l] */
static void both_sides(struct pass down, struct pass along, double x[SPAN_MAX][SPAN_MAX],
                       double ret[SPAN_MAX][SPAN_MAX])
{
    double half[SPAN_MAX][SPAN_MAX] = {{0}};

    for (size_t i = 0; i < down.rows; i++) {
        for (size_t k = 0; k < down.cols; k++) {
            for (size_t l = 0; l < along.cols; l++) {
                half[i][l] += down.at[i * down.ld + k] * x[k][l];
            }
        }
    }
    for (size_t i = 0; i < down.rows; i++) {
        for (size_t j = 0; j < along.rows; j++) {
            ret[i][j] = 0;
            for (size_t l = 0; l < along.cols; l++) {
                ret[i][j] += half[i][l] * along.at[j * along.ld + l];
            }
        }
    }
}

static struct pass of_a(const struct matrices *m)
{
    return (struct pass){m->size, m->span, SPAN_MAX, &m->a[0][0]};
}

static struct pass of_g(const struct matrices *m)
{
    return (struct pass){m->span, m->side, SIDE_MAX, &m->g[0][0]};
}

static struct pass of_b(const struct matrices *m)
{
    return (struct pass){m->span, m->span, SPAN_MAX, &m->b[0][0]};
}

static double magnitude_at(const uint8_t *data, size_t element)
{
    float v;

    memcpy(&v, data + element * sizeof(v), sizeof(v));
    return fabs((double)v);
}

/* the transformed tile at (oy, ox) of one channel; @m: down and along */
static void tile_of(const struct one_op *o, const struct matrices m[2], size_t n, size_t c,
                    size_t oy, size_t ox, double ret[SPAN_MAX][SPAN_MAX])
{
    const struct mdl_tensor *x = &o->tensors[o->op.in[0]];
    const struct mdl_window *w = &o->op.attr.conv.window;
    double d[SPAN_MAX][SPAN_MAX] = {{0}};

    for (size_t i = 0; i < m[0].span; i++) {
        for (size_t j = 0; j < m[1].span; j++) {
            size_t y = oy + i - w->pad_begin[0], k = ox + j - w->pad_begin[1];

            if (y < x->dim[2] && k < x->dim[3]) { /* what is left of 0 wraps around */
                d[i][j] = magnitude_at(o->buffers[o->op.in[0]].data,
                                       n * (size_t)x->stride[0] + c * (size_t)x->stride[1] +
                                           y * (size_t)x->stride[2] + k * (size_t)x->stride[3]);
            }
        }
    }
    both_sides(of_b(&m[0]), of_b(&m[1]), d, ret);
}

/* |G| |g| |G|^T of every filter of one output channel */
static void filters_of(const struct one_op *o, const struct matrices m[2], size_t channel,
                       double (*u)[SPAN_MAX][SPAN_MAX])
{
    size_t channels = o->tensors[o->op.in[1]].dim[1], taps = m[0].side * m[1].side;

    for (size_t c = 0; c < channels; c++) {
        double g[SPAN_MAX][SPAN_MAX] = {{0}};

        for (size_t t = 0; t < taps; t++) {
            g[t / m[1].side][t % m[1].side] =
                magnitude_at(o->buffers[o->op.in[1]].data, (channel * channels + c) * taps + t);
        }
        both_sides(of_g(&m[0]), of_g(&m[1]), g, u[c]);
    }
}

static void store_tile(const struct one_op *o, const struct matrices m[2], size_t n, size_t channel,
                       size_t oy, size_t ox, double s[SPAN_MAX][SPAN_MAX],
                       struct one_op_buffer *out)
{
    const struct mdl_tensor *y = &o->tensors[o->op.out[0]];
    size_t residual = o->op.residual == MDL_RESIDUAL_NONE ? MDL_NONE : o->op.residual_in;
    double scale = o->op.scale ? fabs((double)o->op.scale[channel]) : 1;
    double shift = o->op.shift ? fabs((double)o->op.shift[channel]) : 0;

    for (size_t i = 0; i < m[0].size && oy + i < y->dim[2]; i++) {
        for (size_t j = 0; j < m[1].size && ox + j < y->dim[3]; j++) {
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
    struct matrices m[] = {matrices_of(w->dim[2] > 1 ? size : 1, w->dim[2]),
                           matrices_of(w->dim[3] > 1 ? size : 1, w->dim[3])};
    size_t channels = w->dim[1], rows = (y->dim[2] + m[0].size - 1) / m[0].size, roundings = 1;
    size_t cols = (y->dim[3] + m[1].size - 1) / m[1].size, tiles = y->dim[0] * rows * cols;
    double(*u)[SPAN_MAX][SPAN_MAX] = calloc(channels, sizeof(*u));
    double(*v)[SPAN_MAX][SPAN_MAX] = calloc(tiles * channels, sizeof(*v));

    if (!u || !v) {
        one_op_die("calloc");
    }
    for (size_t i = 0; i < tiles * channels; i++) {
        size_t t = i / channels;

        tile_of(o, m, t / cols / rows, i % channels, t / cols % rows * m[0].size,
                t % cols * m[1].size, v[i]);
    }
    for (size_t channel = 0; channel < w->dim[0]; channel++) {
        filters_of(o, m, channel, u);
        for (size_t t = 0; t < tiles; t++) {
            double products[SPAN_MAX][SPAN_MAX] = {{0}}, s[SPAN_MAX][SPAN_MAX];

            for (size_t c = 0; c < channels; c++) {
                for (size_t i = 0; i < SPAN_MAX * SPAN_MAX; i++) {
                    (&products[0][0])[i] += (&u[c][0][0])[i] * (&v[t * channels + c][0][0])[i];
                }
            }
            both_sides(of_a(&m[0]), of_a(&m[1]), products, s);
            store_tile(o, m, t / cols / rows, channel, t / cols % rows * m[0].size,
                       t % cols * m[1].size, s, out);
        }
    }
    free(u);
    free(v);
    /* With p pairs of points, a value is rounded at most p + 1 times by the pass of B in each
     * direction, r + 2 times by that of G (coefficient, product, r - 1 sums), p + 2 times by that
     * of A, once by the scale, and once for each channel. */
    for (size_t d = 0; d < 2; d++) {
        size_t pairs = m[d].span / 2 - 1;

        roundings += m[d].side > 1 ? pairs + 1 + m[d].side + 2 + pairs + 2 : 0;
    }
    return (double)(channels + roundings);
}
