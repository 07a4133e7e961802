/* SPDX-License-Identifier: Apache-2.0 */
/* If and Loop, whose bodies are taken or unrolled. */
#include "model/lower/lowering.h"

/* ---- If ---- */

static void take_branch(struct mdl_lower *l, bool then)
{
    const struct mdl_gattr *a = mdl_l_attr(l, then ? "then_branch" : "else_branch");

    mdl_bad_if(l, !a || a->type != MDL_ATTR_BRANCH, "a branch is missing");
    mdl_bad_if(l, a->branch->output_count != l->out_count, "a branch has %zu outputs, the node %zu",
               a->branch->output_count, l->out_count);
    l->branch(l, a->branch, NULL, l->out);
}

/* Return: whether @y is @empty, a constant without elements, where @count is 0. */
static bool is_empty_if(const struct mdl_lower *l, size_t y, size_t empty, size_t count)
{
    struct mdl_ir_value a, b;

    if (y == MDL_NONE || empty == MDL_NONE) {
        return y == empty;
    }
    a = *mdl_l_value(l, y);
    b = *mdl_l_value(l, empty);
    if (!b.data || a.rows == MDL_NONE || a.dtype != b.dtype || a.rank != b.rank) {
        return false;
    }
    a.dim[a.rows_dim] = 0;
    return mdl_ir_same_dims(&a, &b) && mdl_rows_none_if(l->ir, y, count);
}

/* "Is there any box?", as torchvision's suppression asks: the branch for boxes is taken always, if
 * without boxes it gives what the other does. */
static void if_any(struct mdl_lower *l, size_t count, bool none)
{
    size_t *empty;

    take_branch(l, none);
    empty = mdl_ir_memdup(l->ir, l->out, l->out_count * sizeof(*empty));
    take_branch(l, !none);
    for (size_t i = 0; i < l->out_count; i++) {
        mdl_unserved_if(l, !is_empty_if(l, l->out[i], empty[i], count),
                        "its condition asks whether there are rows; that both branches give the "
                        "same where there are none is not known");
    }
}

/* An If whose condition is known when the model is loaded is one of its branches. Exporters write
 * such where a shape was open, and the shape is known here. */
static size_t lower_if(struct mdl_lower *l, int arg)
{
    const struct mdl_ir_value *condition = mdl_l_value(l, l->in[0]);
    size_t count;
    bool none;

    mdl_bad_if(l, mdl_ir_elements(condition) != 1, "its condition has %zu elements",
               mdl_ir_elements(condition));
    if (condition->data) {
        take_branch(l, mdl_const_int(condition, 0) != 0);
    } else if (mdl_rows_asks(l->ir, l->in[0], &count, &none)) {
        if_any(l, count, none);
    } else {
        mdl_l_refuse(l, -EOPNOTSUPP,
                     "its condition must be a constant, and depends on the model's input");
    }
    return l->out[0];
}

/* ---- Loop ---- */

/* A Loop becomes its body, as often as it runs: how often must follow from constants. What depends
 * on constants alone is computed at load, so loops over shapes and indices leave nothing. */

#define UNROLLED_MAX 100000u /* nodes that all loops of a model may become */

/* A Loop that is being put in. */
struct loop {
    const struct mdl_gbranch *body;
    size_t carried, scans;
    size_t nodes;    /* of the body, branches included */
    size_t *in;      /* of the body: number, condition, carried values */
    size_t *out;     /* of the body: condition, carried values, scans */
    size_t **rounds; /* of each scan: its value in each round */
    size_t round, round_cap;
    bool asks; /* the condition of the body counts */
};

static size_t count_nodes(const struct mdl_gbranch *b)
{
    size_t count = 0;

    for (size_t i = 0; i < b->node_count; i++) {
        count += base_max(b->nodes[i].output_count, (size_t)1); /* one may have very many */
        for (size_t k = 0; k < b->nodes[i].attr_count; k++) {
            count += b->nodes[i].attrs[k].branch ? count_nodes(b->nodes[i].attrs[k].branch) : 0;
        }
    }
    return count;
}

static void read_loop(struct mdl_lower *l, struct loop *p)
{
    const struct mdl_gattr *a = mdl_l_attr(l, "body");

    mdl_bad_if(l, !a || a->type != MDL_ATTR_BRANCH, "its body is missing");
    p->body = a->branch;
    p->carried = l->in_count > 2 ? l->in_count - 2 : 0;
    mdl_bad_if(l,
               p->body->input_count != p->carried + 2 || p->body->output_count < p->carried + 1 ||
                   l->out_count > p->body->output_count - 1,
               "its body has %zu inputs and %zu outputs, the node %zu and %zu",
               p->body->input_count, p->body->output_count, l->in_count, l->out_count);
    for (size_t i = 0; i < p->carried; i++) {
        mdl_bad_if(l, l->in[i + 2] == MDL_NONE, "input %zu is missing", i + 2);
    }
    p->scans = p->body->output_count - 1 - p->carried;
    p->nodes = count_nodes(p->body) + 1;
    p->asks = mdl_l_in(l, 1) != MDL_NONE;
    p->in = mdl_ir_alloc(l->ir, p->body->input_count, sizeof(*p->in));
    p->out = mdl_ir_alloc(l->ir, p->body->output_count, sizeof(*p->out));
    p->rounds = mdl_ir_alloc(l->ir, p->scans, sizeof(*p->rounds));
    if (p->carried) {
        memcpy(p->in + 2, l->in + 2, p->carried * sizeof(*p->in));
    }
}

/* How often it runs at most; INT64_MAX: the condition alone ends it. */
static int64_t trip_count(struct mdl_lower *l)
{
    const struct mdl_ir_value *v;

    if (mdl_l_in(l, 0) == MDL_NONE) {
        return INT64_MAX;
    }
    v = mdl_l_value(l, l->in[0]);
    mdl_bad_if(l, v->sequence || mdl_ir_elements(v) != 1, "its trip count is not one number");
    mdl_unserved_if(l, !v->data,
                    "its trip count must be a constant, and depends on the model's input");
    return mdl_const_int(v, 0);
}

/* Is @v, the condition, true? */
static bool is_true(struct mdl_lower *l, size_t v)
{
    const struct mdl_ir_value *c = v == MDL_NONE ? NULL : mdl_l_value(l, v);

    mdl_bad_if(l, !c || c->sequence || mdl_ir_elements(c) != 1, "its condition is not one value");
    mdl_unserved_if(l, !c->data,
                    "its condition must be a constant, and depends on the model's input");
    return mdl_const_int(c, 0) != 0;
}

/* Keeps the scans of this round. */
static void keep_scans(struct mdl_lower *l, struct loop *p)
{
    size_t cap = p->round_cap;

    for (size_t i = 0; i < p->scans; i++) {
        size_t v = p->out[1 + p->carried + i];

        mdl_bad_if(l, v == MDL_NONE || mdl_l_value(l, v)->sequence,
                   "output %zu of its body is not a tensor", 1 + p->carried + i);
        cap = p->round_cap;
        mdl_ir_grow(l->ir, (void **)&p->rounds[i], &cap, p->round, sizeof(**p->rounds));
        p->rounds[i][p->round] = mdl_lower_new_axis(l, v, 0);
    }
    p->round_cap = cap;
}

static void run_round(struct mdl_lower *l, struct loop *p)
{
    mdl_large_if(l, p->nodes > UNROLLED_MAX - l->ir->unrolled,
                 "loops become their bodies, as often as they run; the model's become "
                 "more than %u nodes (this one has run %zu times)",
                 UNROLLED_MAX, p->round);
    l->ir->unrolled += p->nodes;
    p->in[0] = mdl_ir_scalar(l->ir, MDL_I64, (double)p->round);
    p->in[1] = mdl_ir_scalar(l->ir, MDL_BOOL, 1);
    l->branch(l, p->body, p->in, p->out);
    for (size_t i = 0; i < p->carried; i++) {
        mdl_bad_if(l, p->out[1 + i] == MDL_NONE, "output %zu of its body has no name", 1 + i);
        p->in[2 + i] = p->out[1 + i];
    }
    keep_scans(l, p);
    p->round++;
}

/* Output @i, a scan of a loop that never runs, is empty. */
static size_t no_rounds(struct mdl_lower *l, const struct loop *p, size_t i)
{
    const struct mdl_gvalue *v = p->body->declared ? &p->body->declared[1 + i] : NULL;
    size_t dim[MDL_RANK_MAX] = {0}, y;
    bool known = v && v->typed && v->rank < MDL_RANK_MAX;

    for (size_t d = 0; known && d < v->rank; d++) {
        known = v->dim[d] >= 0;
        dim[1 + d] = (size_t)v->dim[d];
    }
    mdl_unserved_if(l, !known,
                    "it never runs, so the shape of output %zu is not known, and the body "
                    "does not declare it",
                    i);
    y = mdl_ir_const_new(l->ir, v->dtype, v->rank + 1, dim, NULL, false);
    l->ir->values[y].narrow = v->narrow;
    return y;
}

static size_t lower_loop(struct mdl_lower *l, int arg)
{
    struct loop p = {0};
    int64_t count;
    bool more;

    read_loop(l, &p);
    count = trip_count(l);
    more = !p.asks || is_true(l, l->in[1]);
    while (more && (int64_t)p.round < count) {
        run_round(l, &p);
        more = !p.asks || is_true(l, p.out[0]);
    }
    for (size_t i = 0; i < l->out_count; i++) {
        if (i < p.carried) {
            l->out[i] = p.in[2 + i];
        } else if (mdl_l_wants(l, i)) {
            l->out[i] = p.round == 0 ? no_rounds(l, &p, i)
                                     : mdl_lower_concat_of(l, p.rounds[i - p.carried], p.round, 0);
        }
    }
    return l->out[0];
}

const struct mdl_lower_row mdl_lower_bodies[] = {
    {"If", lower_if, 1, .narrow = MDL_NARROW_OWN},
    {"Loop", lower_loop, 0, .sequences = true, .narrow = MDL_NARROW_OWN},
    {0},
};
