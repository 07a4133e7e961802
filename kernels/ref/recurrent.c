/* SPDX-License-Identifier: Apache-2.0 */
/* RNN, LSTM and GRU. */
#include <math.h>

#include "base/base.h"
#include "kernels/ref/ref.h"
#include "kernels/table.h"

/* One sequence in one direction, one step. */
struct step {
    const struct krn_call *c;
    size_t d, n, t;
    size_t before; /* the step before, where !first */
    bool first;
};

static ptrdiff_t at4(const struct mdl_tensor *t, size_t a, size_t b, size_t i, size_t k)
{
    return ref_offset(t, (size_t[]){a, b, i, k});
}

static ptrdiff_t at3(const struct mdl_tensor *t, size_t a, size_t b, size_t i)
{
    return ref_offset(t, (size_t[]){a, b, i});
}

/* state @which (0: H, 1: C) of unit @k before the first step */
static double initial(const struct step *s, size_t which, size_t k)
{
    return s->c->op->in[2] == MDL_NONE
               ? 0
               : (double)ref_f32(s->c->in[2], at4(ref_in(s->c, 2), which, s->d, s->n, k));
}

static double h_before(const struct step *s, size_t k)
{
    return s->first
               ? initial(s, 0, k)
               : (double)ref_f32(s->c->out[0], at4(ref_out(s->c, 0), s->before, s->d, s->n, k));
}

static double cell(const struct step *s, size_t k)
{
    return (double)ref_f32(s->c->out[1], at3(ref_out(s->c, 1), s->d, s->n, k));
}

static void set_cell(const struct step *s, size_t k, double v)
{
    ref_set_f32(s->c->out[1], at3(ref_out(s->c, 1), s->d, s->n, k), v);
}

static double product(const struct step *s, size_t gate, size_t k)
{
    size_t row = gate * ref_out(s->c, 0)->dim[3] + k;
    size_t rows = ref_in(s->c, 1)->dim[1];

    return (double)ref_f32(s->c->in[0], at3(ref_in(s->c, 0), s->t, s->n, s->d * rows + row));
}

/* sum over the units before, or over what the workspace holds of them */
static double recurrent(const struct step *s, size_t gate, size_t k, bool reset)
{
    const struct mdl_tensor *r = ref_in(s->c, 1);
    size_t h = ref_out(s->c, 0)->dim[3];
    double sum = 0;

    for (size_t i = 0; i < h; i++) {
        sum += (double)ref_f32(s->c->in[1], at3(r, s->d, gate * h + k, i)) *
               (reset ? cell(s, i) : h_before(s, i));
    }
    return sum;
}

/* of the peepholes or the recurrent bias */
static double extra(const struct step *s, size_t i)
{
    const struct mdl_tensor *t = s->c->op->in[3] == MDL_NONE ? NULL : ref_in(s->c, 3);

    return t ? (double)ref_f32(s->c->in[3],
                               (ptrdiff_t)s->d * t->stride[0] + (ptrdiff_t)i * t->stride[1])
             : 0;
}

static double gate_of(const struct step *s, size_t function, double x)
{
    static const enum mdl_act act_of[MDL_GATE_COUNT] = {
        [MDL_GATE_SIGMOID] = MDL_ACT_SIGMOID,   [MDL_GATE_TANH] = MDL_ACT_TANH,
        [MDL_GATE_RELU] = MDL_ACT_RELU,         [MDL_GATE_SOFTSIGN] = MDL_ACT_SOFTSIGN,
        [MDL_GATE_SOFTPLUS] = MDL_ACT_SOFTPLUS, [MDL_GATE_LEAKY_RELU] = MDL_ACT_LEAKY_RELU,
        [MDL_GATE_ELU] = MDL_ACT_ELU,           [MDL_GATE_HARD_SIGMOID] = MDL_ACT_HARD_SIGMOID,
    };
    const struct mdl_gate_of *g = &s->c->op->attr.recurrent.gates[s->d][function];
    double clip = function == 2 ? (double)INFINITY : (double)s->c->op->attr.recurrent.clip;
    double a = (double)g->a, b = (double)g->b;

    x = x < -clip ? -clip : x > clip ? clip : x;
    switch (g->which) {
    case MDL_GATE_THRESHOLDED_RELU:
        return x > a || isnan(x) ? x : 0;
    case MDL_GATE_AFFINE:
        return a * x + b;
    case MDL_GATE_SCALED_TANH:
        return a * tanh(b * x);
    default:
        return ref_act(act_of[g->which], a, b, x);
    }
}

static double lstm_unit(const struct step *s, size_t k)
{
    const bool coupled = s->c->op->attr.recurrent.input_forget;
    size_t h = ref_out(s->c, 0)->dim[3];
    double before = s->first ? initial(s, 1, k) : cell(s, k), i, o, f, c;

    i = gate_of(s, 0, product(s, 0, k) + recurrent(s, 0, k, false) + extra(s, k) * before);
    f = product(s, 2, k) + recurrent(s, 2, k, false) + extra(s, 2 * h + k) * before;
    f = coupled ? 1 - i : gate_of(s, 0, f);
    c = gate_of(s, 1, product(s, 3, k) + recurrent(s, 3, k, false));
    c = f * before + i * c;
    o = gate_of(s, 0, product(s, 1, k) + recurrent(s, 1, k, false) + extra(s, h + k) * c);
    set_cell(s, k, c);
    return o * gate_of(s, 2, c);
}

static double gru_unit(const struct step *s, size_t k)
{
    double z = gate_of(s, 0, product(s, 0, k) + recurrent(s, 0, k, false)), r, h;

    if (s->c->op->attr.recurrent.linear_before_reset) {
        r = gate_of(s, 0, product(s, 1, k) + recurrent(s, 1, k, false));
        h = product(s, 2, k) + r * (recurrent(s, 2, k, false) + extra(s, k));
    } else {
        h = product(s, 2, k) + recurrent(s, 2, k, true);
    }
    return (1 - z) * gate_of(s, 1, h) + z * h_before(s, k);
}

/*
 * RECURRENT  with x the input products, h and c the state before, . the product of elements:
 *   RNN   h' = f(x + R h)
 *   LSTM  gates i, o, f, c: i = f(xi + Ri h + Pi . c), f likewise or 1 - i, g = g(xc + Rc h),
 *         c' = f . c + i . g, o = f(xo + Ro h + Po . c'), h' = o . h(c')
 *   GRU   gates z, r, h: z = f(xz + Rz h), r = f(xr + Rr h),
 *         g = g(xh + Rh (r . h)), or with linear_before_reset g(xh + r . (Rh h + Rbh)),
 *         h' = (1 - z) . g + z . h
 * What f and g get is clipped, not what h gets, as in ONNX Runtime. P and Rbh are in[3]. out[1]
 * holds c; of a GRU without linear_before_reset it holds r . h.
 * Source: ONNX LSTM-22, GRU-22, RNN-22.
 */
static void step_run(const struct step *s)
{
    enum mdl_cell kind = s->c->op->attr.recurrent.cell;
    const struct mdl_tensor *y = ref_out(s->c, 0);

    if (kind == MDL_CELL_GRU && !s->c->op->attr.recurrent.linear_before_reset) {
        for (size_t k = 0; k < y->dim[3]; k++) {
            double reset = gate_of(s, 0, product(s, 1, k) + recurrent(s, 1, k, false));

            set_cell(s, k, reset * h_before(s, k));
        }
    }
    for (size_t k = 0; k < y->dim[3]; k++) {
        double v = kind == MDL_CELL_LSTM ? lstm_unit(s, k)
                   : kind == MDL_CELL_GRU
                       ? gru_unit(s, k)
                       : gate_of(s, 0, product(s, 0, k) + recurrent(s, 0, k, false));

        ref_set_f32(s->c->out[0], at4(y, s->t, s->d, s->n, k), v);
    }
}

/* sequences, those of the first direction first */
static void recurrent_body(const struct krn_call *c, size_t begin, size_t end)
{
    size_t steps = ref_out(c, 0)->dim[0], batch = ref_out(c, 0)->dim[2];

    for (size_t i = begin; i < end; i++) {
        struct step s = {.c = c, .d = i / batch, .n = i % batch};

        for (size_t k = 0; k < steps; k++) {
            s.first = k == 0;
            s.t = c->op->attr.recurrent.reverse[s.d] ? steps - 1 - k : k;
            step_run(&s);
            s.before = s.t;
        }
    }
}

static void recurrent_run(const struct krn_call *c)
{
    ref_share(c, ref_out(c, 0)->dim[1] * ref_out(c, 0)->dim[2], recurrent_body);
}

static bool has_dims(const struct mdl_model *m, size_t tensor, size_t rank, const size_t *dim)
{
    const struct mdl_tensor *t = tensor == MDL_NONE ? NULL : &m->tensors[tensor];

    if (!t || t->dtype != MDL_F32 || t->rank != rank) {
        return false;
    }
    for (size_t i = 0; i < rank; i++) {
        if (t->dim[i] != dim[i]) {
            return false;
        }
    }
    return true;
}

static bool recurrent_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    static const size_t gates_of[] = {[MDL_CELL_RNN] = 1, [MDL_CELL_GRU] = 3, [MDL_CELL_LSTM] = 4};
    const struct mdl_tensor *y = &m->tensors[op->out[0]];
    enum mdl_cell cell = op->attr.recurrent.cell;
    size_t steps, dirs, batch, h, rows, states = cell == MDL_CELL_LSTM ? 2 : 1;
    bool workspace =
        cell == MDL_CELL_LSTM || (cell == MDL_CELL_GRU && !op->attr.recurrent.linear_before_reset);

    if (y->rank != 4 || y->dtype != MDL_F32 || y->dim[1] < 1 || y->dim[1] > 2 || !ref_plain(op)) {
        return false;
    }
    steps = y->dim[0];
    dirs = y->dim[1];
    batch = y->dim[2];
    h = y->dim[3];
    rows = gates_of[cell] * h;
    return has_dims(m, op->in[0], 3, (size_t[]){steps, batch, dirs * rows}) &&
           has_dims(m, op->in[1], 3, (size_t[]){dirs, rows, h}) &&
           (op->in[2] == MDL_NONE ||
            has_dims(m, op->in[2], 4, (size_t[]){states, dirs, batch, h})) &&
           (op->in[3] == MDL_NONE ||
            has_dims(m, op->in[3], 2, (size_t[]){dirs, cell == MDL_CELL_LSTM ? 3 * h : h})) &&
           (!workspace || has_dims(m, op->out[1], 3, (size_t[]){dirs, batch, h}));
}

REF_PRIMITIVE(recurrent, MDL_OP_RECURRENT, recurrent_supports, recurrent_run);
