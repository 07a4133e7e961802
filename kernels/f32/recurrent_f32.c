/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RECURRENT: LSTM, GRU and RNN behind their input products.
 *
 * R is packed for each direction and pass as recurrent.h says; behind it lie the peepholes or the
 * recurrent bias, padded. One pass over the weights of a block serves several sequences.
 *
 * Directions and sequences are independent: a team shares them. If there are fewer than members, it
 * shares the blocks of every step instead, where a step is long enough to meet after it.
 */
#include "base/base.h"
#include "kernels/common/conv_common.h"
#include "kernels/common/planned.h"
#include "kernels/f32/recurrent.h"

#define STEP_MACS_MIN (1u << 17) /* of a step that a team shares */

static bool inner_dense(const struct mdl_tensor *t)
{
    return t->dim[t->rank - 1] <= 1 || t->stride[t->rank - 1] == 1;
}

static bool recurrent_of(const struct mdl_model *m, const struct mdl_op *op,
                         struct krn_recurrent *p)
{
    *p = (struct krn_recurrent){
        .cell = op->attr.recurrent.cell, .x = m->tensors[op->in[0]], .y = m->tensors[op->out[0]]};
    if (p->y.rank != 4 || !krn_is_const_f32(m, op->in[1]) || !inner_dense(&p->x) ||
        !inner_dense(&p->y) || mdl_elements(&p->y) == 0 ||
        (op->in[3] != MDL_NONE && !krn_is_const_f32(m, op->in[3]))) {
        return false;
    }
    if (op->in[2] != MDL_NONE) {
        p->state = m->tensors[op->in[2]];
    }
    if (op->out[1] != MDL_NONE) {
        p->c = m->tensors[op->out[1]];
    }
    if ((p->state.rank && !inner_dense(&p->state)) || (p->c.rank && !inner_dense(&p->c))) {
        return false;
    }
    p->steps = p->y.dim[0];
    p->dirs = p->y.dim[1];
    p->batch = p->y.dim[2];
    p->hidden = p->y.dim[3];
    p->blocks = (p->hidden + KRN_VL - 1) / KRN_VL;
    p->gates = p->cell == MDL_CELL_LSTM ? 4 : p->cell == MDL_CELL_GRU ? 3 : 1;
    p->extras = op->in[3] == MDL_NONE ? 0 : p->cell == MDL_CELL_LSTM ? 3 : 1;
    p->before_reset = p->cell == MDL_CELL_GRU && !op->attr.recurrent.linear_before_reset;
    return true;
}

KRN_SUPPORTS_BY(struct krn_recurrent, recurrent_of)

/* ---- packed weights ---- */

static size_t weights_of_direction(const struct krn_recurrent *p)
{
    return p->blocks * KRN_VL * p->hidden * p->gates;
}

/* where the extras of direction @d start */
static size_t extras_at(const struct krn_recurrent *p, size_t d)
{
    return p->dirs * weights_of_direction(p) + d * p->extras * p->blocks * KRN_VL;
}

KRN_PACKED_BYTES_BY(struct krn_recurrent, recurrent_of, extras_at(&p, p.dirs) * sizeof(float))

/* Packs @gates gates from @first on of direction @d. Return: the end. */
static float *pack_gates(const struct mdl_model *m, const struct mdl_op *op,
                         const struct krn_recurrent *p, size_t d, size_t first, size_t gates,
                         float *dst)
{
    const struct mdl_tensor *r = &m->tensors[op->in[1]];
    const uint8_t *src = krn_const_ptr(m, op->in[1]);

    for (size_t b = 0; b < p->blocks; b++) {
        for (size_t k = 0; k < p->hidden; k++) {
            for (size_t g = first; g < first + gates; g++) {
                for (size_t i = b * KRN_VL; i < (b + 1) * KRN_VL; i++) {
                    ptrdiff_t at = (ptrdiff_t)d * r->stride[0] +
                                   (ptrdiff_t)(g * p->hidden + i) * r->stride[1] +
                                   (ptrdiff_t)k * r->stride[2];

                    *dst++ = i < p->hidden ? krn_load_unaligned(src, at) : 0.0f;
                }
            }
        }
    }
    return dst;
}

static void pack(const struct mdl_model *m, const struct mdl_op *op, void *dst)
{
    struct krn_recurrent p;
    float *to = dst;

    if (!recurrent_of(m, op, &p)) {
        return;
    }
    for (size_t d = 0; d < p.dirs; d++) {
        to = pack_gates(m, op, &p, d, 0, p.before_reset ? 2 : p.gates, to);
        if (p.before_reset) {
            to = pack_gates(m, op, &p, d, 2, 1, to);
        }
    }
    for (size_t i = 0; i < p.dirs * p.extras * p.blocks * KRN_VL; i++) {
        const struct mdl_tensor *t = &m->tensors[op->in[3]];
        size_t unit = i % (p.blocks * KRN_VL), line = i / (p.blocks * KRN_VL);
        ptrdiff_t at = (ptrdiff_t)(line / p.extras) * t->stride[0] +
                       (ptrdiff_t)(line % p.extras * p.hidden + unit) * t->stride[1];

        *to++ = unit < p.hidden ? krn_load_unaligned(krn_const_ptr(m, op->in[3]), at) : 0.0f;
    }
}

/* ---- steps ---- */

struct job {
    const struct krn_call *call;
    struct krn_recurrent p;
    size_t parts;
    size_t step, pass; /* where a team shares the blocks of a step */
};

static const float *state_of(const struct job *j, size_t which, size_t d)
{
    const struct mdl_tensor *s = &j->p.state;

    return s->rank ? (const float *)j->call->in[2] + (ptrdiff_t)which * s->stride[0] +
                         (ptrdiff_t)d * s->stride[1]
                   : NULL;
}

/* The rows of step @k in order of time of direction @d. */
static struct krn_cell_rows place_of(const struct job *j, size_t d, size_t k)
{
    const struct krn_recurrent *p = &j->p;
    const struct mdl_op *op = j->call->op;
    bool reverse = op->attr.recurrent.reverse[d];
    size_t t = reverse ? p->steps - 1 - k : k;
    float *y = (float *)j->call->out[0] + (ptrdiff_t)d * p->y.stride[1];
    struct krn_cell_rows at = {
        .x = (const float *)j->call->in[0] + (ptrdiff_t)t * p->x.stride[0] +
             d * p->gates * p->hidden,
        .y = y + (ptrdiff_t)t * p->y.stride[0],
        .gates = op->attr.recurrent.gates[d],
        .weights = (const float *)j->call->packed + d * weights_of_direction(p),
        .extra = p->extras ? (const float *)j->call->packed + extras_at(p, d) : NULL,
        .x_row = p->x.stride[1],
        .y_row = p->y.stride[2],
        .clip = op->attr.recurrent.clip,
        .coupled = op->attr.recurrent.input_forget};

    at.h = k ? y + (ptrdiff_t)(reverse ? t + 1 : t - 1) * p->y.stride[0] : state_of(j, 0, d);
    at.h_row = k ? p->y.stride[2] : p->state.stride[2];
    if (p->c.rank) {
        at.c_out = (float *)j->call->out[1] + (ptrdiff_t)d * p->c.stride[0];
        at.c_out_row = p->c.stride[1];
    }
    if (p->cell == MDL_CELL_LSTM) {
        at.c = k ? at.c_out : state_of(j, 1, d);
        at.c_row = k ? at.c_out_row : p->state.stride[2];
    }
    return at;
}

/* What the second pass of a GRU reads. */
static struct krn_cell_rows second_pass(const struct krn_recurrent *p, struct krn_cell_rows at)
{
    at.c = at.h;
    at.c_row = at.h_row;
    at.h = at.h ? at.c_out : NULL;
    at.h_row = at.c_out_row;
    at.weights += p->blocks * KRN_VL * p->hidden * 2;
    return at;
}

/* Step @k of sequences @rows of direction @d. */
static void run_pass(const struct job *j, size_t d, size_t k, struct krn_range rows,
                     struct krn_range blocks, size_t pass)
{
    struct krn_cell_rows at = place_of(j, d, k);

    if (pass == 1) {
        at = second_pass(&j->p, at);
    }
    for (size_t b = blocks.begin; b < blocks.end; b++) {
        KRN_ISA_FN(krn_recurrent_block)(&j->p, &at, rows, b, pass);
    }
}

/* A share of all sequences, those of the first direction first. */
static void sequences_part(void *arg, size_t part)
{
    const struct job *j = arg;
    struct krn_range mine = krn_share(j->p.dirs * j->p.batch, 1, part, j->parts);
    struct krn_range blocks = {0, j->p.blocks};

    while (mine.begin < mine.end) {
        size_t d = mine.begin / j->p.batch, first = mine.begin % j->p.batch;
        size_t now = base_min(j->p.batch - first, mine.end - mine.begin);
        struct krn_range rows = {first, first + now};

        for (size_t k = 0; k < j->p.steps; k++) {
            for (size_t pass = 0; pass <= j->p.before_reset; pass++) {
                run_pass(j, d, k, rows, blocks, pass);
            }
        }
        mine.begin += now;
    }
}

/* A share of the blocks of one step, of all directions and sequences. */
static void step_part(void *arg, size_t part)
{
    const struct job *j = arg;
    struct krn_range blocks = krn_share(j->p.blocks, 1, part, j->parts);

    for (size_t d = 0; d < j->p.dirs; d++) {
        run_pass(j, d, j->step, (struct krn_range){0, j->p.batch}, blocks, j->pass);
    }
}

static void run(const struct krn_call *call)
{
    struct job j = {.call = call, .parts = base_max(call->width, 1u)};
    size_t sequences, macs;

    if (!recurrent_of(call->model, call->op, &j.p)) {
        return;
    }
    sequences = j.p.dirs * j.p.batch;
    macs = sequences * weights_of_direction(&j.p);
    if (sequences >= j.parts || macs < STEP_MACS_MIN) {
        j.parts = base_min(j.parts, sequences);
        krn_parallel(call->pool, j.parts, sequences_part, &j);
        return;
    }
    for (j.step = 0; j.step < j.p.steps; j.step++) {
        for (j.pass = 0; j.pass <= j.p.before_reset; j.pass++) {
            krn_parallel(call->pool, j.parts, step_part, &j);
        }
    }
}

/* whole: of few sequences and short steps */
KRN_ISA_PRIMITIVE(recurrent_f32, MDL_OP_RECURRENT, KRN_ISA_NEEDS, .whole = true,
                  .supports = supports, .packed_bytes = packed_bytes, .pack = pack, .run = run);
