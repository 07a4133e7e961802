/* SPDX-License-Identifier: Apache-2.0 */
/* Equalises the ranges of a value's channels before it is rounded with one scale. */
#include <math.h>

#include "model/quant/calibration.h"
#include "model/quant/quant_private.h"

#define TRIED 11u /* sets of factors */
#define FACTOR_MAX 1e4
#define ROOM 2 /* a channel's range may be this many times that of the examples */

struct group { /* values that have the same channels */
    bool fits;
    size_t channels;
    size_t writers;
    bool clips;
    double clip;      /* of the writer */
    double low, high; /* of all channels */
    double *lows, *highs, *power;
    float *factor;
};

struct equal {
    struct mdl_ir *ir;
    const struct mdl_calibration *c;
    const bool *chosen; /* per op */
    size_t values;
    size_t *same; /* per value: a representative */
    struct group *groups;
};

size_t mdl_quant_find(size_t *same, size_t v)
{
    while (same[v] != v) {
        v = same[v] = same[same[v]];
    }
    return v;
}

static struct group *group_of(struct equal *e, size_t v)
{
    return &e->groups[mdl_quant_find(e->same, v)];
}

/* A pool or a reshape whose result has the channels of what it reads, in proportion. */
static bool keeps_channels(const struct mdl_ir *ir, const struct mdl_ir_op *op)
{
    const struct mdl_ir_value *x, *y;

    if (op->kind != MDL_OP_MAX_POOL && op->kind != MDL_OP_AVG_POOL && op->kind != MDL_IR_VIEW) {
        return false;
    }
    x = &ir->values[op->op.in[0]];
    y = &ir->values[op->op.out[0]];
    if (x->rank < 2 || y->rank < 2 || x->dim[1] != y->dim[1] || op->op.out[1] != MDL_NONE ||
        op->op.act != MDL_ACT_NONE || op->op.residual != MDL_RESIDUAL_NONE) {
        return false;
    }
    return op->kind != MDL_IR_VIEW || (op->view.kind == MDL_VIEW_RESHAPE && x->dim[0] == y->dim[0]);
}

/* f(s x) = s f(x), or f clips at both ends of which the lower is 0. */
static bool is_homogeneous(const struct mdl_op *op)
{
    return op->residual == MDL_RESIDUAL_NONE &&
           (op->act == MDL_ACT_NONE || op->act == MDL_ACT_RELU || op->act == MDL_ACT_LEAKY_RELU ||
            (op->act == MDL_ACT_CLIP && op->act_a == 0 && op->act_b > 0));
}

static bool is_finite(const struct mdl_qweights *w, const struct mdl_op *op, double *row)
{
    const struct mdl_qsides s = {.scale = op->scale};

    for (size_t c = 0; c < w->outputs; c++) {
        if (op->shift && !isfinite(op->shift[c])) {
            return false;
        }
        mdl_quant_row(w, &s, c, row);
        for (size_t i = 0; i < w->count; i++) {
            if (!isfinite(row[i])) {
                return false;
            }
        }
    }
    return true;
}

static void unfit(struct equal *e, size_t v)
{
    if (v < e->values) { /* MDL_NONE is not */
        group_of(e, v)->fits = false;
    }
}

/* Records what the op means for the groups that it reads and writes. */
static void mark_op(struct equal *e, size_t k)
{
    struct mdl_ir *ir = e->ir;
    const struct mdl_ir_op *op = &ir->ops[k];
    struct mdl_qweights w;
    struct group *x, *y;
    double *row;

    if (keeps_channels(ir, op)) {
        return;
    }
    unfit(e, op->op.residual_in);
    for (size_t i = 0; i < op->concat_count; i++) {
        unfit(e, op->concat_in[i]);
    }
    if (op->kind >= (int)MDL_OP_COUNT || op->op.quant || !mdl_quant_is_product(ir, op)) {
        for (size_t i = 0; i < MDL_OP_IN_MAX; i++) {
            unfit(e, op->op.in[i]);
        }
        for (size_t i = 0; i < MDL_OP_OUT_MAX; i++) {
            unfit(e, op->op.out[i]);
        }
        return;
    }
    w = mdl_quant_weights(ir, op);
    row = mdl_ir_alloc(ir, w.count, sizeof(*row));
    x = group_of(e, op->op.in[0]);
    y = group_of(e, op->op.out[0]);
    if (!is_finite(&w, &op->op, row)) {
        x->fits = y->fits = false;
        return;
    }
    x->fits &= mdl_quant_has_channels(ir, op, &w, true);
    y->fits &=
        mdl_quant_has_channels(ir, op, &w, false) && is_homogeneous(&op->op) && y->writers++ == 0;
    if (op->op.act == MDL_ACT_CLIP) {
        y->clips = true;
        y->clip = (double)op->op.act_b;
        y->fits &= e->chosen[k]; /* the integers' range ends at the clip */
    }
}

static void find_groups(struct equal *e)
{
    struct mdl_ir *ir = e->ir;

    for (size_t v = 0; v < e->values; v++) {
        e->same[v] = v;
    }
    for (size_t k = 0; k < ir->op_count; k++) {
        const struct mdl_ir_op *op = &ir->ops[k];

        if (!op->dead && keeps_channels(ir, op)) {
            e->same[mdl_quant_find(e->same, op->op.in[0])] = mdl_quant_find(e->same, op->op.out[0]);
        }
    }
    for (size_t v = 0; v < e->values; v++) {
        e->groups[v].fits = true;
    }
    for (size_t v = 0; v < e->values; v++) {
        const struct mdl_ir_value *of = &ir->values[v];

        if (of->data || of->output || of->input != MDL_NONE || of->dtype != MDL_F32) {
            unfit(e, v);
        }
    }
    for (size_t k = 0; k < ir->op_count; k++) {
        if (!ir->ops[k].dead) {
            mark_op(e, k);
        }
    }
}

/* Finds the channels' ranges from the examples. */
static void find_channels(struct equal *e, size_t v)
{
    const struct mdl_ir_value *of = &e->ir->values[v];
    const struct mdl_channels *seen =
        of->name[0] && of->rank >= 2 ? mdl_calibration_channels(e->c, of->name) : NULL;
    struct group *g = group_of(e, v);

    if (!g->fits || !seen || of->data) {
        return;
    }
    if (seen->count != of->dim[1]) {
        g->fits = false;
        return;
    }
    if (!g->lows) {
        g->channels = seen->count;
        g->lows = mdl_ir_alloc(e->ir, g->channels, sizeof(*g->lows));
        g->highs = mdl_ir_alloc(e->ir, g->channels, sizeof(*g->highs));
        g->power = mdl_ir_alloc(e->ir, g->channels, sizeof(*g->power));
        g->factor = mdl_ir_alloc(e->ir, g->channels, sizeof(*g->factor));
    }
    for (size_t i = 0; i < g->channels; i++) {
        g->lows[i] = base_min(g->lows[i], (double)seen->low[i]);
        g->highs[i] = base_max(g->highs[i], (double)seen->high[i]);
        g->power[i] = base_max(g->power[i], (double)seen->power[i]);
        g->low = base_min(g->low, g->lows[i]);
        g->high = base_max(g->high, g->highs[i]);
    }
}

/* The factor by which channel @i fills the range, with some room. */
static double largest(const struct group *g, size_t i)
{
    double f = FACTOR_MAX;

    if (g->lows[i] == 0 && g->highs[i] == 0) {
        return 1; /* never non-zero: unknown */
    }
    f = g->highs[i] > 0 ? base_min(f, g->high / (ROOM * g->highs[i])) : f;
    f = g->lows[i] < 0 ? base_min(f, g->low / (ROOM * g->lows[i])) : f;
    return base_max(f, 1.0);
}

/* Set @which of @reach: more and more of what the range allows. */
static void fill_factors(const struct group *g, const double *reach, size_t which, float *ret)
{
    for (size_t i = 0; i < g->channels; i++) {
        ret[i] = (float)pow(reach[i], (double)which / (TRIED - 1));
    }
}

/* The noise of rounding value and weights behind product @op. */
static double noise(const struct group *g, const float *s, const struct mdl_qweights *w,
                    const struct mdl_qsides *sides, double *row)
{
    double step = (g->high - g->low) / 255, sum = 0;

    for (size_t c = 0; c < w->outputs; c++) {
        size_t from = mdl_quant_first_channel(w, c), i = 0;
        double most = 0, heard = 0, read = 0;

        mdl_quant_row(w, sides, c, row);
        for (size_t ch = from; i < w->count; ch++) {
            double f = (double)s[ch], square = 0, peak = 0;

            for (size_t t = 0; t < w->taps; t++, i++) {
                square += row[i] * row[i];
                peak = base_max(peak, fabs(row[i]));
            }
            most = base_max(most, peak / f);
            heard += square / (f * f);
            read += f * f * g->power[ch] * (double)w->taps;
        }
        sum += step * step * heard + most / 127 * (most / 127) * read;
    }
    return sum;
}

/* The set of factors of the least noise, over all that reads the group. */
static void choose_factors(struct equal *e, size_t root)
{
    struct mdl_ir *ir = e->ir;
    struct group *g = &e->groups[root];
    double *reach = mdl_ir_alloc(ir, g->channels, sizeof(*reach)), total[TRIED] = {0};
    float *tried = mdl_ir_alloc(ir, g->channels, sizeof(*tried));
    size_t best = 0;

    for (size_t i = 0; i < g->channels; i++) {
        reach[i] = largest(g, i);
    }
    for (size_t k = 0; k < ir->op_count; k++) {
        const struct mdl_ir_op *op = &ir->ops[k];
        struct mdl_qsides sides = {.scale = op->op.scale};
        struct mdl_qweights w;
        double *row;

        if (op->dead || op->kind >= (int)MDL_OP_COUNT || !mdl_quant_is_product(ir, op) ||
            mdl_quant_find(e->same, op->op.in[0]) != root) {
            continue;
        }
        w = mdl_quant_weights(ir, op);
        row = mdl_ir_alloc(ir, w.count, sizeof(*row));
        for (size_t n = 0; n < TRIED; n++) {
            fill_factors(g, reach, n, tried);
            total[n] += noise(g, tried, &w, &sides, row);
        }
    }
    for (size_t n = 1; n < TRIED; n++) {
        best = total[n] < total[best] ? n : best;
    }
    fill_factors(g, reach, best, g->factor);
}

void mdl_quant_equalise(struct mdl_ir *ir, const bool *chosen, float **ret)
{
    struct equal e = {
        .ir = ir, .c = ir->options->calibration, .chosen = chosen, .values = ir->value_count};

    if (!e.c->equalised || e.c->channels_count == 0) {
        return;
    }
    e.same = mdl_ir_alloc(ir, e.values, sizeof(*e.same));
    e.groups = mdl_ir_alloc(ir, e.values, sizeof(*e.groups));
    find_groups(&e);
    for (size_t v = 0; v < e.values; v++) {
        find_channels(&e, v);
    }
    for (size_t v = 0; v < e.values; v++) {
        struct group *g = &e.groups[v];

        g->fits &=
            e.same[v] == v && g->writers == 1 && g->lows && (!g->clips || g->high <= g->clip);
        if (g->fits) {
            choose_factors(&e, v);
        }
    }
    for (size_t v = 0; v < e.values; v++) {
        const struct group *g = group_of(&e, v);

        ret[v] = g->fits && ir->values[v].rank >= 2 && ir->values[v].dim[1] == g->channels
                     ? g->factor
                     : NULL;
    }
}
