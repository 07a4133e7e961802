/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM, GRU and RNN: the input products of all steps are one GEMM; a RECURRENT op adds what the
 * step before contributes. Sequences that are shorter than the input are slices of it. */
#include <math.h>
#include <strings.h>

#include "model/lower/lowering.h"

#define SINGLE_SEQUENCES_MAX 64u /* of different lengths */

/* Inputs of a node. */
enum { X, W, R, B, LENGTHS, H0, C0, P };

struct recurrent {
    struct mdl_lower *l;
    enum mdl_cell cell;
    size_t gates, dirs, steps, batch, inputs, hidden;
    bool batch_first;
    struct mdl_ir_op op; /* attributes, R and the peepholes or the recurrent bias */
    size_t products;     /* [T][N][D gates H] */
    size_t state;        /* [1 or 2][D][N][H], or MDL_NONE */
};

static const size_t gates_of[] = {[MDL_CELL_RNN] = 1, [MDL_CELL_GRU] = 3, [MDL_CELL_LSTM] = 4};
static const size_t functions_of[] = {[MDL_CELL_RNN] = 1, [MDL_CELL_GRU] = 2, [MDL_CELL_LSTM] = 3};

/* ---- attributes ---- */

static void take_direction(struct recurrent *rc)
{
    const char *way = mdl_l_string(rc->l, "direction", "forward");
    bool both = strcmp(way, "bidirectional") == 0, reverse = strcmp(way, "reverse") == 0;

    mdl_bad_if(rc->l, !both && !reverse && strcmp(way, "forward") != 0,
               "direction %.40s is unknown", way);
    rc->dirs = both ? 2 : 1;
    rc->op.op.attr.recurrent.reverse[0] = reverse;
    rc->op.op.attr.recurrent.reverse[1] = both;
}

/* Alphas and betas are consumed by the functions that have one, in the order of the functions. */
struct numbers {
    const struct mdl_gattr *a;
    size_t used;
};

static float next_number(struct numbers *n, float fallback)
{
    return !n->a || n->used == n->a->count ? fallback : n->a->floats[n->used++];
}

static struct numbers numbers_of(struct recurrent *rc, const char *name)
{
    return (struct numbers){.a = mdl_l_typed(rc->l, name, MDL_ATTR_FLOATS)};
}

static void take_gate(struct recurrent *rc, const char *name, struct numbers *alpha,
                      struct numbers *beta, struct mdl_gate_of *ret)
{
    static const struct {
        const char *name;
        size_t numbers;
        float a, b;
    } known[] = {
#define KNOWN(ID, text, numbers, a, b) [MDL_GATE_##ID] = {text, numbers, a, b},
        MDL_GATES(KNOWN)
#undef KNOWN
    };

    for (size_t i = 0; i < base_array_count(known); i++) {
        if (strcasecmp(name, known[i].name) != 0) {
            continue;
        }
        *ret = (struct mdl_gate_of){(enum mdl_gate)i, 0, 0};
        ret->a = known[i].numbers > 0 ? next_number(alpha, known[i].a) : 0;
        ret->b = known[i].numbers > 1 ? next_number(beta, known[i].b) : 0;
        mdl_unserved_if(rc->l, isnan(ret->a) || isnan(ret->b),
                        "activation %s has no default for its parameters; give "
                        "activation_alpha and activation_beta",
                        known[i].name);
        return;
    }
    mdl_l_refuse(rc->l, -EOPNOTSUPP, "activation %.40s is not supported", name);
}

static void take_gates(struct recurrent *rc)
{
    const struct mdl_gattr *names = mdl_l_attr(rc->l, "activations");
    size_t each = functions_of[rc->cell], count = each * rc->dirs;
    struct numbers alpha = numbers_of(rc, "activation_alpha");
    struct numbers beta = numbers_of(rc, "activation_beta");

    mdl_bad_if(rc->l, names && (names->type != MDL_ATTR_STRINGS || names->count != count),
               "attribute activations must have %zu names", count);
    for (size_t i = 0; i < count; i++) {
        bool gate = rc->cell != MDL_CELL_RNN && i % each == 0;
        const char *name = names ? names->strings[i] : gate ? "Sigmoid" : "Tanh";

        take_gate(rc, name, &alpha, &beta, &rc->op.op.attr.recurrent.gates[i / each][i % each]);
    }
}

static void take_attributes(struct recurrent *rc)
{
    struct mdl_lower *l = rc->l;
    float clip = mdl_l_float(l, "clip", INFINITY);
    int64_t layout = mdl_l_int(l, "layout", 0);

    take_direction(rc);
    take_gates(rc);
    mdl_unserved_if(l, l->opset < 7, "this operator is supported from operator set 7 on");
    mdl_bad_if(l, !(clip > 0) || layout < 0 || layout > 1,
               "attribute clip must be positive, layout 0 or 1");
    rc->op.op.attr.recurrent.cell = rc->cell;
    rc->op.op.attr.recurrent.clip = clip;
    rc->op.op.attr.recurrent.linear_before_reset =
        rc->cell == MDL_CELL_GRU && mdl_l_int(l, "linear_before_reset", 0) != 0;
    rc->op.op.attr.recurrent.input_forget =
        rc->cell == MDL_CELL_LSTM && mdl_l_int(l, "input_forget", 0) != 0;
    rc->batch_first = layout == 1;
}

/* ---- shapes ---- */

static void check_dims(struct recurrent *rc, size_t input, size_t rank, const size_t *dim)
{
    size_t v = mdl_l_in(rc->l, input);
    const struct mdl_ir_value *x = v == MDL_NONE ? NULL : mdl_l_value(rc->l, v);

    mdl_l_f32(rc->l, input);
    for (size_t i = 0; x && i < rank; i++) {
        mdl_bad_if(rc->l, x->rank != rank || x->dim[i] != dim[i],
                   "input %zu does not fit %zu directions, %zu sequences, %zu "
                   "inputs and a hidden size of %zu",
                   input, rc->dirs, rc->batch, rc->inputs, rc->hidden);
    }
}

static void take_shapes(struct recurrent *rc)
{
    struct mdl_lower *l = rc->l;
    const struct mdl_ir_value *x = mdl_l_value(l, l->in[X]), *w = mdl_l_value(l, l->in[R]);
    size_t rows, wide, n;
    int64_t hidden;

    mdl_bad_if(l, x->rank != 3 || w->rank != 3, "inputs 0 and 2 have rank %zu and %zu, not 3",
               x->rank, w->rank);
    rc->steps = x->dim[rc->batch_first];
    rc->batch = x->dim[!rc->batch_first];
    rc->inputs = x->dim[2];
    rc->hidden = w->dim[2];
    hidden = mdl_l_int(l, "hidden_size", (int64_t)rc->hidden);
    mdl_bad_if(l, hidden < 1 || (size_t)hidden != rc->hidden || rc->steps == 0 || rc->batch == 0,
               "hidden_size %lld does not fit recurrent weights of %zu, or the "
               "input has no step or no sequence",
               (long long)hidden, rc->hidden);
    mdl_large_if(l, !base_mul(rc->hidden, 2 * rc->gates, &wide) || !base_mul(wide, rc->dirs, &n),
                 "the hidden size %zu is too large", rc->hidden);
    rows = wide / 2;
    check_dims(rc, X, 3, (size_t[]){x->dim[0], x->dim[1], rc->inputs});
    check_dims(rc, W, 3, (size_t[]){rc->dirs, rows, rc->inputs});
    check_dims(rc, R, 3, (size_t[]){rc->dirs, rows, rc->hidden});
    check_dims(rc, B, 2, (size_t[]){rc->dirs, wide});
    for (size_t i = H0; i <= (rc->cell == MDL_CELL_LSTM ? C0 : H0); i++) {
        size_t outer = rc->batch_first ? rc->batch : rc->dirs;

        check_dims(rc, i, 3, (size_t[]){outer, rc->batch * rc->dirs / outer, rc->hidden});
    }
    if (rc->cell == MDL_CELL_LSTM) {
        check_dims(rc, P, 2, (size_t[]){rc->dirs, 3 * rc->hidden});
    }
}

/* ---- values ---- */

static size_t zeros(struct recurrent *rc, size_t rank, const size_t *dim)
{
    size_t bytes = sizeof(float);
    void *data;

    for (size_t i = 0; i < rank; i++) {
        mdl_large_if(rc->l, !base_mul(bytes, dim[i], &bytes), "a state or result is too large");
    }
    data = mdl_ir_fold_alloc(rc->l->ir, bytes);
    return mdl_ir_const_new(rc->l->ir, MDL_F32, rank, dim, data, false);
}

/* Wb + Rb, flat. What a GRU with linear_before_reset adds to its recurrent product stays apart. */
static size_t take_bias(struct recurrent *rc)
{
    size_t h = rc->hidden, rows = rc->gates * h, wb, rb, both[2];
    struct mdl_ir *ir = rc->l->ir;

    wb = mdl_ir_part(ir, rc->l->in[B], 1, 0, rows);
    rb = mdl_ir_part(ir, rc->l->in[B], 1, rows, rows);
    if (rc->op.op.attr.recurrent.linear_before_reset) {
        rc->op.op.in[3] = mdl_ir_part(ir, rb, 1, 2 * h, h);
        both[0] = mdl_ir_part(ir, rb, 1, 0, 2 * h);
        both[1] = zeros(rc, 2, (size_t[]){rc->dirs, h});
        rb = mdl_ir_concat(ir, both, 2, 1);
    }
    wb = mdl_ir_binary(ir, MDL_BIN_ADD, wb, rb);
    return mdl_ir_reshape(ir, wb, 1, (size_t[]){rc->dirs * rows});
}

/* x W' + Wb + Rb of all steps, sequences, directions and gates. */
static void make_products(struct recurrent *rc)
{
    struct mdl_ir *ir = rc->l->ir;
    struct mdl_ir_op op = mdl_ir_op_make(ir, MDL_OP_GEMM);
    size_t rows = rc->steps * rc->batch, out = rc->dirs * rc->gates * rc->hidden, y;
    size_t dim[3] = {rc->batch_first ? rc->batch : rc->steps,
                     rc->batch_first ? rc->steps : rc->batch, out};

    op.op.in[0] = mdl_ir_reshape(ir, rc->l->in[X], 2, (size_t[]){rows, rc->inputs});
    op.op.in[1] = mdl_ir_reshape(ir, rc->l->in[W], 2, (size_t[]){out, rc->inputs});
    op.op.attr.gemm.trans_b = true;
    op.op.attr.gemm.alpha = op.op.attr.gemm.beta = 1;
    op.op.macs = (double)rows * (double)out * (double)rc->inputs;
    y = mdl_ir_emit(ir, &op, MDL_F32, 2, (size_t[]){rows, out});
    if (mdl_l_in(rc->l, B) != MDL_NONE) {
        y = mdl_ir_binary(ir, MDL_BIN_ADD, y, take_bias(rc));
    }
    rc->products = mdl_ir_reshape(ir, y, 3, dim);
    if (rc->batch_first) {
        rc->products = mdl_ir_permute(ir, rc->products, (size_t[]){1, 0, 2});
    }
}

/* [1][D][N][H] of initial state @input; zeros where it is absent */
static size_t one_state(struct recurrent *rc, size_t input)
{
    size_t v = mdl_l_in(rc->l, input), dim[4] = {1, rc->dirs, rc->batch, rc->hidden};

    if (v == MDL_NONE) {
        return zeros(rc, 4, dim);
    }
    if (rc->batch_first) {
        v = mdl_ir_permute(rc->l->ir, v, (size_t[]){1, 0, 2});
    }
    return mdl_ir_reshape(rc->l->ir, v, 4, dim);
}

static void make_state(struct recurrent *rc)
{
    size_t kinds = rc->cell == MDL_CELL_LSTM ? 2 : 1, part[2];
    bool any = false;

    for (size_t i = 0; i < kinds; i++) {
        any |= mdl_l_in(rc->l, H0 + i) != MDL_NONE;
    }
    for (size_t i = 0; any && i < kinds; i++) {
        part[i] = one_state(rc, H0 + i);
    }
    rc->state = any ? mdl_ir_concat(rc->l->ir, part, kinds, 0) : MDL_NONE;
}

/* ---- the recurrence ---- */

struct results {
    size_t y; /* [T][D][N][H] */
    size_t h; /* [D][N][H] */
    size_t c; /* [D][N][H], or MDL_NONE */
};

/* The state after the last step of each direction. */
static size_t last_states(struct recurrent *rc, size_t y, size_t steps, size_t batch)
{
    size_t part[2], dim[3] = {1, batch, rc->hidden};

    for (size_t d = 0; d < rc->dirs; d++) {
        size_t at = rc->op.op.attr.recurrent.reverse[d] ? 0 : steps - 1;

        part[d] = mdl_ir_part(rc->l->ir, y, 0, at, 1);
        part[d] = mdl_ir_part(rc->l->ir, part[d], 1, d, 1);
        part[d] = mdl_ir_reshape(rc->l->ir, part[d], 3, dim);
    }
    return mdl_ir_concat(rc->l->ir, part, rc->dirs, 0);
}

/* Sequences @first .. @first + @batch - 1, of @steps each; Y is filled with zeros behind them. */
static struct results run_some(struct recurrent *rc, size_t first, size_t batch, size_t steps)
{
    struct mdl_ir *ir = rc->l->ir;
    struct mdl_ir_op op = rc->op;
    size_t dim[4] = {steps, rc->dirs, batch, rc->hidden}, both[2];
    bool workspace = rc->cell == MDL_CELL_LSTM ||
                     (rc->cell == MDL_CELL_GRU && !op.op.attr.recurrent.linear_before_reset);
    struct results out;

    op.op.in[0] = mdl_ir_part(ir, rc->products, 0, 0, steps);
    op.op.in[0] = mdl_ir_part(ir, op.op.in[0], 1, first, batch);
    if (rc->state != MDL_NONE) {
        op.op.in[2] = mdl_ir_part(ir, rc->state, 2, first, batch);
    }
    op.op.in[1] = rc->l->in[R];
    op.op.macs = (double)(steps * rc->gates) * (double)(batch * rc->dirs) * (double)rc->hidden *
                 (double)rc->hidden;
    if (workspace) {
        op.op.out[1] = mdl_ir_value_new(ir, MDL_F32, 3, dim + 1);
    }
    out.y = mdl_ir_emit(ir, &op, MDL_F32, 4, dim);
    out.h = last_states(rc, out.y, steps, batch);
    out.c = op.op.out[1];
    if (steps < rc->steps) {
        both[0] = out.y;
        dim[0] = rc->steps - steps;
        both[1] = zeros(rc, 4, dim);
        out.y = mdl_ir_concat(ir, both, 2, 0);
    }
    return out;
}

/* Sequences of different lengths run one by one. */
static struct results run_each(struct recurrent *rc, const struct mdl_ir_value *length)
{
    size_t y[SINGLE_SEQUENCES_MAX], h[SINGLE_SEQUENCES_MAX], c[SINGLE_SEQUENCES_MAX];
    struct mdl_ir *ir = rc->l->ir;
    struct results out = {.c = MDL_NONE};

    for (size_t i = 0; i < rc->batch; i++) {
        struct results one = run_some(rc, i, 1, (size_t)mdl_const_int(length, i));

        y[i] = one.y;
        h[i] = one.h;
        c[i] = one.c;
    }
    out.y = mdl_ir_concat(ir, y, rc->batch, 2);
    out.h = mdl_ir_concat(ir, h, rc->batch, 1);
    if (rc->cell == MDL_CELL_LSTM) {
        out.c = mdl_ir_concat(ir, c, rc->batch, 1);
    }
    return out;
}

static struct results run_lengths(struct recurrent *rc)
{
    size_t v = mdl_l_in(rc->l, LENGTHS);
    const struct mdl_ir_value *x = mdl_l_value(rc->l, v);
    bool equal = true;

    if (v == MDL_NONE) {
        return run_some(rc, 0, rc->batch, rc->steps);
    }
    mdl_unserved_if(rc->l, !x->data,
                    "input 4 (sequence_lens) must be a constant; export the model with a "
                    "fixed length");
    mdl_bad_if(rc->l, x->dtype != MDL_I32 || x->rank != 1 || x->dim[0] != rc->batch,
               "input 4 (sequence_lens) must have one int32 for each sequence");
    for (size_t i = 0; i < rc->batch; i++) {
        int64_t n = mdl_const_int(x, i);

        if (n < 1 || (uint64_t)n > rc->steps) {
            mdl_l_refuse(rc->l, n < 0 ? -EBADMSG : -EOPNOTSUPP,
                         "a sequence of %lld steps is not supported (1 to %zu are)", (long long)n,
                         rc->steps);
        }
        equal &= n == mdl_const_int(x, 0);
    }
    mdl_unserved_if(rc->l, !equal && rc->batch > SINGLE_SEQUENCES_MAX,
                    "%zu sequences of different lengths are not supported (%u are)", rc->batch,
                    SINGLE_SEQUENCES_MAX);
    return equal ? run_some(rc, 0, rc->batch, (size_t)mdl_const_int(x, 0)) : run_each(rc, x);
}

static size_t lower_recurrent(struct mdl_lower *l, int cell)
{
    struct recurrent rc = {.l = l, .cell = (enum mdl_cell)cell, .gates = gates_of[cell]};
    struct results out;
    bool lstm = cell == MDL_CELL_LSTM;

    rc.op = mdl_ir_op_make(l->ir, MDL_OP_RECURRENT);
    take_attributes(&rc);
    take_shapes(&rc);
    rc.op.op.in[3] = lstm ? mdl_l_in(l, P) : MDL_NONE;
    make_products(&rc);
    make_state(&rc);
    out = run_lengths(&rc);
    if (rc.batch_first) {
        out.y = mdl_ir_permute(l->ir, out.y, (size_t[]){2, 0, 1, 3});
        out.h = mdl_ir_permute(l->ir, out.h, (size_t[]){1, 0, 2});
        out.c = lstm ? mdl_ir_permute(l->ir, out.c, (size_t[]){1, 0, 2}) : out.c;
    }
    mdl_l_give(l, 1, out.h);
    mdl_l_give(l, 2, lstm ? out.c : MDL_NONE);
    return out.y;
}

const struct mdl_lower_row mdl_lower_recurrents[] = {
    {"LSTM", lower_recurrent, 3, 0, MDL_CELL_LSTM},
    {"GRU", lower_recurrent, 3, 0, MDL_CELL_GRU},
    {"RNN", lower_recurrent, 3, 0, MDL_CELL_RNN},
    {0},
};
