/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of products for the quantising passes: per output channel, with the factors of the values
 * on both sides. */
#include <math.h>

#include "model/quant/calibration.h"
#include "model/quant/quant_private.h"

#define BIAS_MAX ((double)(1 << 29)) /* steps of a bias */
#define GRID_ERROR 1e-3              /* of a step: f32 is nearer than that */

bool mdl_quant_is_product(const struct mdl_ir *ir, const struct mdl_ir_op *op)
{
    return (op->kind == MDL_OP_CONV || op->kind == MDL_OP_GEMM || op->kind == MDL_OP_MATMUL) &&
           mdl_ir_is_const(ir, op->op.in[1]) && ir->values[op->op.in[1]].dtype == MDL_F32 &&
           op->op.in[2] == MDL_NONE &&
           (op->kind == MDL_OP_CONV || ir->values[op->op.in[1]].rank == 2);
}

struct mdl_qweights mdl_quant_weights(const struct mdl_ir *ir, const struct mdl_ir_op *op)
{
    const struct mdl_ir_value *w = &ir->values[op->op.in[1]];
    size_t all = mdl_ir_elements(w);

    if (op->kind == MDL_OP_CONV) {
        size_t outputs = base_max(w->dim[0], (size_t)1), count = all / outputs;

        return (struct mdl_qweights){
            .data = w->data,
            .outputs = w->dim[0],
            .count = count,
            .first = count,
            .step = 1,
            .taps = base_max(count / base_max(w->dim[1], (size_t)1), (size_t)1),
            .outputs_of_group = outputs / base_max(op->op.attr.conv.groups, (size_t)1)};
    }
    if (op->kind == MDL_OP_GEMM && op->op.attr.gemm.trans_b) {
        return (struct mdl_qweights){w->data, w->dim[0], w->dim[1], w->dim[1], 1, 1, w->dim[0]};
    }
    return (struct mdl_qweights){w->data, w->dim[1], w->dim[0], 1, w->dim[1], 1, w->dim[1]};
}

bool mdl_quant_has_channels(const struct mdl_ir *ir, const struct mdl_ir_op *op,
                            const struct mdl_qweights *w, bool in)
{
    const struct mdl_ir_value *v = &ir->values[in ? op->op.in[0] : op->op.out[0]];
    size_t inputs = w->count / w->taps * (w->outputs / base_max(w->outputs_of_group, (size_t)1));

    if (w->count == 0 || v->rank < 2 || v->dim[1] != (in ? inputs : w->outputs)) {
        return false;
    }
    return op->kind == MDL_OP_CONV ||
           (v->rank == 2 && (op->kind == MDL_OP_MATMUL || !op->op.attr.gemm.trans_a));
}

static double load(const void *data, size_t i)
{
    float v;

    memcpy(&v, (const char *)data + i * sizeof(v), sizeof(v));
    return (double)v;
}

size_t mdl_quant_first_channel(const struct mdl_qweights *w, size_t output)
{
    return output / base_max(w->outputs_of_group, (size_t)1) * (w->count / w->taps);
}

void mdl_quant_row(const struct mdl_qweights *w, const struct mdl_qsides *s, size_t output,
                   double *ret)
{
    size_t from = mdl_quant_first_channel(w, output), at = output * w->first;
    double scale = s->scale ? (double)s->scale[output] : 1;

    scale *= s->y ? (double)s->y[output] : 1;
    for (size_t i = 0; i < w->count; from++) {
        double f = s->x ? scale / (double)s->x[from] : scale;

        for (size_t t = 0; t < w->taps; t++, i++) {
            ret[i] = load(w->data, at + i * w->step) * f;
        }
    }
}

/* The mean of what rounding adds to @output. @row: before it. */
static double drift(const struct mdl_qweights *w, const struct mdl_qsides *s, size_t output,
                    const double *row, const int8_t *q, double scale)
{
    size_t from = mdl_quant_first_channel(w, output), at = output * w->first;
    double sum = 0;

    for (size_t i = 0; i < w->count; from++) {
        double error = 0;

        for (size_t t = 0; t < w->taps; t++, i++) {
            error += scale * q[at + i * w->step] - row[i];
        }
        sum += error * (double)s->x_mean[from] * (s->x ? (double)s->x[from] : 1);
    }
    return sum;
}

/* Return: whether the weights are integers times most / @n, except for rounding. */
static bool lie_on(const double *row, size_t count, double most, size_t n)
{
    for (size_t i = 0; i < count; i++) {
        double v = row[i] * (double)n / most;

        if (fabs(v - nearbyint(v)) > GRID_ERROR) {
            return false;
        }
    }
    return true;
}

static double rounded(double w, double scale)
{
    return base_min(base_max(nearbyint(w / scale), -127.0), 127.0);
}

static double square_error(const double *row, size_t count, double scale)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++) {
        double d = rounded(row[i], scale) * scale - row[i];

        sum += d * d;
    }
    return sum;
}

/* The scale of a row: if its weights are integers times a number and most fit, that number; else
 * the one that maps the largest to 127. */
static double scale_of(const double *row, size_t count, double most)
{
    double plain = most / 127;

    for (size_t n = 1; most > 0 && n < 256; n++) {
        if (lie_on(row, count, most, n)) {
            double once = most / (double)n;

            return n <= 127 || square_error(row, count, once) < square_error(row, count, plain)
                       ? once
                       : plain;
        }
    }
    return plain;
}

/* One output channel. Return: false: a weight is not finite. */
static bool round_row(const struct mdl_qweights *w, size_t output, const double *row, double least,
                      int8_t *ret_q, float *ret_scale)
{
    double most = 0;

    for (size_t i = 0; i < w->count; i++) {
        if (!isfinite(row[i])) {
            return false;
        }
        most = base_max(most, fabs(row[i]));
    }
    *ret_scale = (float)base_max(scale_of(row, w->count, most), base_max(least, 1e-30));
    for (size_t i = 0; i < w->count; i++) {
        ret_q[output * w->first + i * w->step] = (int8_t)rounded(row[i], (double)*ret_scale);
    }
    return true;
}

bool mdl_quant_round(const struct mdl_qweights *w, const struct mdl_qsides *s, const float *shift,
                     double x_scale, double *row, struct mdl_qrounded *ret)
{
    for (size_t c = 0; c < w->outputs; c++) {
        double b = shift ? (double)shift[c] * (s->y ? (double)s->y[c] : 1) : 0;

        mdl_quant_row(w, s, c, row);
        if (!isfinite(b) ||
            !round_row(w, c, row, fabs(b) / (x_scale * BIAS_MAX), ret->q, &ret->scale[c])) {
            return false;
        }
        if (s->x_mean) {
            b -= drift(w, s, c, row, ret->q, (double)ret->scale[c]);
        }
        ret->shift[c] = (float)b;
    }
    return true;
}

void mdl_quant_rescale(struct mdl_ir *ir, struct mdl_ir_op *op, const struct mdl_qsides *sides)
{
    struct mdl_qsides s = {.x = sides->x, .y = sides->y}; /* the batch norm stays where it is */
    struct mdl_qweights w = mdl_quant_weights(ir, op);
    const struct mdl_ir_value old = ir->values[op->op.in[1]];
    float *to = mdl_ir_alloc(ir, mdl_ir_elements(&old) + 1, sizeof(*to));
    float *shift = mdl_ir_alloc(ir, w.outputs, sizeof(*shift));
    double *row = mdl_ir_alloc(ir, w.count, sizeof(*row));

    for (size_t c = 0; c < w.outputs; c++) {
        mdl_quant_row(&w, &s, c, row);
        for (size_t i = 0; i < w.count; i++) {
            to[c * w.first + i * w.step] = (float)row[i];
        }
        shift[c] = op->op.shift ? op->op.shift[c] * (s.y ? s.y[c] : 1) : 0;
    }
    op->op.shift = op->op.shift ? shift : NULL;
    op->op.in[1] = mdl_ir_const_new(ir, MDL_F32, old.rank, old.dim, to, false);
}
