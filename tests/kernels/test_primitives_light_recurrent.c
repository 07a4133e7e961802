/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM, GRU and RNN behind their input products: every function, direction and option, on sizes
 * around the vectors, and steps that a team shares. */
#include <math.h>

#include "tests/kernels/light_case.h"

struct shape {
    enum mdl_cell cell;
    size_t steps, dirs, batch, hidden;
};

static size_t gates_of(enum mdl_cell cell)
{
    return cell == MDL_CELL_LSTM ? 4 : cell == MDL_CELL_GRU ? 3 : 1;
}

/* A dense tensor, or one with @gap elements between its innermost rows. */
static size_t tensor(struct one_op *o, enum mdl_home home, size_t rank, const size_t *dim,
                     size_t gap)
{
    ptrdiff_t stride[MDL_RANK_MAX], next = 1;

    for (size_t d = rank; d-- > 0;) {
        stride[d] = next;
        next = next * (ptrdiff_t)dim[d] + (d + 1 == rank ? (ptrdiff_t)gap : 0);
    }
    return one_op_tensor(o, MDL_F32, home, rank, dim, stride);
}

static size_t maybe_gap(void)
{
    return t_range(0, 2) ? 0 : (size_t)t_range(1, 9);
}

static void random_gates(struct one_op *o)
{
    for (size_t i = 0; i < 6; i++) {
        struct mdl_gate_of *g = &o->op.attr.recurrent.gates[i / 3][i % 3];

        *g = (struct mdl_gate_of){.which = i % 3 ? MDL_GATE_TANH : MDL_GATE_SIGMOID};
        if (t_range(0, 2) == 0) {
            /* a threshold is a step, which no bound of rounding covers: away from the values */
            g->which = (enum mdl_gate)t_range(0, MDL_GATE_COUNT - 1);
            g->a = g->which == MDL_GATE_THRESHOLDED_RELU ? -100 : 0.25f;
            g->b = 0.5f;
        }
    }
}

static struct one_op *recurrent(const struct shape *s)
{
    struct one_op *o = one_op_new(MDL_OP_RECURRENT);
    size_t h = s->hidden, rows = gates_of(s->cell) * h, lstm = s->cell == MDL_CELL_LSTM;
    float scale = 1.0f / sqrtf((float)h);

    o->op.attr.recurrent.cell = s->cell;
    o->op.attr.recurrent.reverse[0] = t_range(0, 1);
    o->op.attr.recurrent.reverse[1] = !o->op.attr.recurrent.reverse[0];
    o->op.attr.recurrent.linear_before_reset = s->cell == MDL_CELL_GRU && t_range(0, 1);
    o->op.attr.recurrent.input_forget = lstm && t_range(0, 3) == 0;
    o->op.attr.recurrent.clip = t_range(0, 3) ? INFINITY : 0.5f;
    random_gates(o);
    o->op.in[0] =
        tensor(o, MDL_HOME_ARENA, 3, (size_t[]){s->steps, s->batch, s->dirs * rows}, maybe_gap());
    check_fill(o, o->op.in[0], 1.0f);
    o->op.in[1] = tensor(o, MDL_HOME_CONST, 3, (size_t[]){s->dirs, rows, h}, 0);
    check_fill(o, o->op.in[1], scale);
    if (t_range(0, 1)) {
        o->op.in[2] =
            tensor(o, MDL_HOME_ARENA, 4, (size_t[]){1 + lstm, s->dirs, s->batch, h}, maybe_gap());
        check_fill(o, o->op.in[2], 1.0f);
    }
    if ((lstm || o->op.attr.recurrent.linear_before_reset) && t_range(0, 1)) {
        o->op.in[3] = tensor(o, MDL_HOME_CONST, 2, (size_t[]){s->dirs, lstm ? 3 * h : h}, 0);
        check_fill(o, o->op.in[3], 0.5f);
    }
    o->op.out[0] =
        tensor(o, MDL_HOME_ARENA, 4, (size_t[]){s->steps, s->dirs, s->batch, h}, maybe_gap());
    if (s->cell != MDL_CELL_RNN) {
        o->op.out[1] = tensor(o, MDL_HOME_ARENA, 3, (size_t[]){s->dirs, s->batch, h}, maybe_gap());
    }
    snprintf(o->name, sizeof(o->name), "cell %d of %zu steps, %zu directions, %zu sequences, %zu",
             (int)s->cell, s->steps, s->dirs, s->batch, h);
    return o;
}

static bool finish(struct one_op *o)
{
    struct check k = {.bound = CHECK_ULP, .ulps = 64, .absolute = 4e-5, .expect = "recurrent_f32"};

    return light_finish(o, &k);
}

TEST(recurrent_cells)
{
    static const size_t hidden[] = {1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 48};

    for (int i = 0; i < t_times(400); i++) {
        struct shape s = {.cell = (enum mdl_cell)(i % 3),
                          .steps = (size_t)t_range(1, 5),
                          .dirs = (size_t)t_range(1, 2),
                          .batch = (size_t)t_range(1, 6),
                          .hidden = hidden[t_range(0, (int64_t)base_array_count(hidden) - 1)]};

        T_TRUE(finish(recurrent(&s)));
    }
}

/* steps so long that the members of a team meet after each */
TEST(recurrent_steps_of_a_team)
{
    static const struct shape shapes[] = {
        {MDL_CELL_LSTM, 3, 1, 1, 184}, {MDL_CELL_LSTM, 2, 2, 1, 193}, {MDL_CELL_GRU, 3, 1, 1, 221},
        {MDL_CELL_GRU, 2, 1, 2, 210},  {MDL_CELL_RNN, 3, 1, 1, 370},
    };

    for (size_t i = 0; i < 2 * base_array_count(shapes); i++) {
        T_TRUE(finish(recurrent(&shapes[i / 2])));
    }
}
