/* SPDX-License-Identifier: Apache-2.0 */
/* Products and gates of recurrent layers, by vectors. */
#include "kernels/f32/recurrent.h"

#include <math.h>

#include "base/base.h"
#include "kernels/common/epilogue_vec.h"

#define GATES_MAX 4u
#define ROWS (KRN_VL == 16 ? 4u : 2u) /* sequences that share a pass over the weights */

KRN_INLINE vf gate_plain(const struct mdl_gate_of *g, vf x)
{
    if (g->which == MDL_GATE_SIGMOID) {
        return vf_sigmoid(x);
    }
    return vf_tanh(x);
}

static __attribute__((noinline)) vf gate_other(const struct mdl_gate_of *g, vf x)
{
    const vf nought = vf_set(0.0f);

    switch (g->which) {
    case MDL_GATE_RELU:
        return vf_max(nought, x);
    case MDL_GATE_SOFTSIGN:
        return x / (1.0f + vf_abs(x));
    case MDL_GATE_SOFTPLUS:
        return krn_act_slow(MDL_ACT_SOFTPLUS, x, 0, 0);
    case MDL_GATE_LEAKY_RELU:
        return vf_select(x < 0.0f, x * g->a, x);
    case MDL_GATE_THRESHOLDED_RELU:
        return vf_select(x <= g->a, nought, x);
    case MDL_GATE_ELU:
        return krn_act_slow(MDL_ACT_ELU, x, g->a, 0);
    case MDL_GATE_HARD_SIGMOID:
        return krn_act_clip01(x * g->a + g->b);
    case MDL_GATE_AFFINE:
        return x * g->a + g->b;
    case MDL_GATE_SCALED_TANH:
        return g->a * vf_tanh(x * g->b);
    default:
        return x;
    }
}

KRN_INLINE vf gate(const struct krn_cell_rows *at, size_t function, vf x)
{
    const struct mdl_gate_of *g = &at->gates[function];

    if (at->clip < INFINITY && function < 2) {
        x = vf_min(vf_set(at->clip), vf_max(vf_set(-at->clip), x));
    }
    return g->which <= MDL_GATE_TANH ? gate_plain(g, x) : gate_other(g, x);
}

/* sums[row][gate] += the product of block @w [k][gate][lane]. @rows and @gates are constants after
 * inlining. A single row has several chains of sums, because each must wait for itself. */
KRN_INLINE void add_products(vf (*sums)[GATES_MAX], const float *h, ptrdiff_t h_row, const float *w,
                             size_t hidden, const size_t rows, const size_t gates)
{
    const size_t chains = rows > 1 ? 1 : gates > 2 ? 2 : 4, part = hidden / chains;
    vf acc[4][ROWS][GATES_MAX];

#pragma GCC unroll 4
    for (size_t s = 0; s < chains; s++) {
#pragma GCC unroll 4
        for (size_t i = 0; i < rows * gates; i++) {
            acc[s][i / gates][i % gates] = vf_set(0.0f);
        }
    }
    for (size_t k = 0; k < part; k++) {
#pragma GCC unroll 4
        for (size_t s = 0; s < chains; s++) {
            const float *line = w + (s * part + k) * gates * KRN_VL;

#pragma GCC unroll 4
            for (size_t r = 0; r < rows; r++) {
                vf x = vf_set(h[(ptrdiff_t)r * h_row + (ptrdiff_t)(s * part + k)]);

#pragma GCC unroll 4
                for (size_t g = 0; g < gates; g++) {
                    acc[s][r][g] += x * vf_load(line + g * KRN_VL);
                }
            }
        }
    }
    for (size_t r = 0; r < rows; r++) {
        for (size_t g = 0; g < gates; g++) {
            for (size_t s = 0; s < chains; s++) {
                sums[r][g] += acc[s][r][g];
            }
            for (size_t k = chains * part; k < hidden; k++) {
                sums[r][g] += vf_set(h[(ptrdiff_t)r * h_row + (ptrdiff_t)k]) *
                              vf_load(w + (k * gates + g) * KRN_VL);
            }
        }
    }
}

/* The recurrent sums of @rows sequences, from 0 on. */
KRN_INLINE void sums_of(vf (*sums)[GATES_MAX], const struct krn_cell_rows *at, size_t row,
                        const float *w, size_t hidden, const size_t rows, const size_t gates)
{
    for (size_t r = 0; r < rows; r++) {
        for (size_t g = 0; g < gates; g++) {
            sums[r][g] = vf_set(0.0f);
        }
    }
    if (at->h) {
        add_products(sums, at->h + (ptrdiff_t)row * at->h_row, at->h_row, w, hidden, rows, gates);
    }
}

/* One row's units of a block: @n of them from unit @j on. */
struct units {
    const struct krn_recurrent *p;
    const struct krn_cell_rows *at;
    const float *x; /* products of the row */
    size_t row, j, n;
};

KRN_INLINE vf x_of(const struct units *u, size_t g)
{
    return vf_load_n(u->x + g * u->p->hidden + u->j, u->n);
}

KRN_INLINE vf row_of(const float *p, ptrdiff_t stride, const struct units *u)
{
    return p ? vf_load_n(p + (ptrdiff_t)u->row * stride + u->j, u->n) : vf_set(0.0f);
}

KRN_INLINE vf extra(const struct units *u, size_t i)
{
    return u->at->extra ? vf_load(u->at->extra + i * u->p->blocks * KRN_VL + u->j) : vf_set(0.0f);
}

KRN_INLINE void put(float *p, ptrdiff_t stride, const struct units *u, vf v)
{
    vf_store_n(p + (ptrdiff_t)u->row * stride + u->j, v, u->n);
}

KRN_INLINE void lstm_cell(const struct units *u, const vf *sum)
{
    const struct krn_cell_rows *at = u->at;
    vf before = row_of(at->c, at->c_row, u), i, o, f, c;

    i = gate(at, 0, x_of(u, 0) + sum[0] + extra(u, 0) * before);
    f = at->coupled ? 1.0f - i : gate(at, 0, x_of(u, 2) + sum[2] + extra(u, 2) * before);
    c = f * before + i * gate(at, 1, x_of(u, 3) + sum[3]);
    o = gate(at, 0, x_of(u, 1) + sum[1] + extra(u, 1) * c);
    put(at->c_out, at->c_out_row, u, c);
    put(at->y, at->y_row, u, o * gate(at, 2, c));
}

KRN_INLINE void gru_cell(const struct units *u, const vf *sum)
{
    const struct krn_cell_rows *at = u->at;
    vf z = gate(at, 0, x_of(u, 0) + sum[0]), r = gate(at, 0, x_of(u, 1) + sum[1]);
    vf h = gate(at, 1, x_of(u, 2) + r * (sum[2] + extra(u, 0)));

    put(at->y, at->y_row, u, h + z * (row_of(at->h, at->h_row, u) - h));
}

/* The first pass leaves z in y, and r times the state in c. */
KRN_INLINE void gru_gates(const struct units *u, const vf *sum)
{
    const struct krn_cell_rows *at = u->at;

    put(at->y, at->y_row, u, gate(at, 0, x_of(u, 0) + sum[0]));
    put(at->c_out, at->c_out_row, u,
        gate(at, 0, x_of(u, 1) + sum[1]) * row_of(at->h, at->h_row, u));
}

/* @at->h is what the first pass left; c is the state before. */
KRN_INLINE void gru_result(const struct units *u, const vf *sum)
{
    const struct krn_cell_rows *at = u->at;
    vf z = row_of(at->y, at->y_row, u), h = gate(at, 1, x_of(u, 2) + sum[0]);

    put(at->y, at->y_row, u, h + z * (row_of(at->c, at->c_row, u) - h));
}

KRN_INLINE void rnn_cell(const struct units *u, const vf *sum)
{
    put(u->at->y, u->at->y_row, u, gate(u->at, 0, x_of(u, 0) + sum[0]));
}

/* Block @b of @rows sequences from @row on. */
#define BLOCK(name, gates, cell_of)                                                                \
    KRN_INLINE void name##_rows(const struct krn_recurrent *p, const struct krn_cell_rows *at,     \
                                size_t row, size_t b, const size_t rows)                           \
    {                                                                                              \
        size_t h = p->hidden;                                                                      \
        struct units u = {.p = p, .at = at, .j = b * KRN_VL};                                      \
        vf sums[ROWS][GATES_MAX];                                                                  \
                                                                                                   \
        u.n = base_min(h - u.j, (size_t)KRN_VL);                                                   \
        sums_of(sums, at, row, at->weights + b * h * gates * KRN_VL, h, rows, gates);              \
        for (size_t r = 0; r < rows; r++) {                                                        \
            u.row = row + r;                                                                       \
            u.x = at->x + (ptrdiff_t)u.row * at->x_row;                                            \
            cell_of(&u, sums[r]);                                                                  \
        }                                                                                          \
    }                                                                                              \
    static __attribute__((noinline)) void name##_block(const struct krn_recurrent *p,              \
                                                       const struct krn_cell_rows *at,             \
                                                       struct krn_range n, size_t b)               \
    {                                                                                              \
        size_t row = n.begin;                                                                      \
                                                                                                   \
        for (; row + ROWS <= n.end; row += ROWS) {                                                 \
            name##_rows(p, at, row, b, ROWS);                                                      \
        }                                                                                          \
        for (; row < n.end; row++) {                                                               \
            name##_rows(p, at, row, b, 1);                                                         \
        }                                                                                          \
    }

BLOCK(lstm, 4, lstm_cell)
BLOCK(gru, 3, gru_cell)
BLOCK(gru_first, 2, gru_gates)
BLOCK(gru_second, 1, gru_result)
BLOCK(rnn, 1, rnn_cell)

void KRN_ISA_FN(krn_recurrent_block)(const struct krn_recurrent *p, const struct krn_cell_rows *at,
                                     struct krn_range n, size_t b, size_t pass)
{
    if (p->cell == MDL_CELL_LSTM) {
        lstm_block(p, at, n, b);
    } else if (p->cell == MDL_CELL_RNN) {
        rnn_block(p, at, n, b);
    } else if (!p->before_reset) {
        gru_block(p, at, n, b);
    } else if (pass == 0) {
        gru_first_block(p, at, n, b);
    } else {
        gru_second_block(p, at, n, b);
    }
}
