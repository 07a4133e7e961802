/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/f32/recurrent.h - the units of recurrent cells: one step of a block of units, one vector
 * wide, of some sequences
 *
 * Weights are packed [block][k][gate][lane], so that the sums of all gates of a block are in
 * registers. A GRU whose reset gate is applied before the product takes two passes over a step:
 * first its gates z and r, which it leaves in y and (times the state) in the workspace, then h.
 * Any thread.
 */
#pragma once

#include "kernels/common/parallel.h"
#include "kernels/common/vec.h"
#include "kernels/primitive.h"

struct krn_recurrent {
    enum mdl_cell cell;
    size_t steps, dirs, batch, hidden, blocks, gates, extras;
    bool before_reset; /* a GRU of two passes */
    struct mdl_tensor x, y, state, c;
};

/* Rows of one step of one direction; each points to unit 0 of the first sequence. */
struct krn_cell_rows {
    const float *x, *h; /* h NULL: the state is 0 */
    const float *c;     /* likewise; in the second pass of a GRU the state before */
    float *y, *c_out;
    const struct mdl_gate_of *gates;
    const float *weights; /* of the direction, and of the pass */
    const float *extra;   /* peepholes or recurrent bias, [extras][blocks * KRN_VL], or NULL */
    ptrdiff_t x_row, h_row, c_row, y_row, c_out_row;
    float clip;
    bool coupled; /* input_forget */
};

/** krn_recurrent_block() - block @b of sequences @n; @pass: 0, or 1 for the second of a GRU */
void KRN_ISA_FN(krn_recurrent_block)(const struct krn_recurrent *p, const struct krn_cell_rows *at,
                                     struct krn_range n, size_t b, size_t pass);
