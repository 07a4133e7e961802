/* SPDX-License-Identifier: Apache-2.0 */
#include "model/lower/lower.h"

#include "model/lower/lowering.h"

#define TABLE(name) mdl_lower_##name,
const struct mdl_lower_row *const mdl_lower_tables[] = {MDL_LOWER_TABLES(TABLE) NULL};
#undef TABLE

/* Return: whether a node's domain is that of a row. */
static bool domain_is(const char *domain, const char *row)
{
    bool own = !domain[0] || strcmp(domain, "ai.onnx") == 0;

    if (row && strcmp(row, MDL_LOWER_BOTH) == 0) {
        return own || strcmp(domain, MDL_LOWER_MICROSOFT) == 0;
    }
    return row ? strcmp(domain, row) == 0 : own;
}

static const struct mdl_lower_row *find_row(const struct mdl_gnode *n)
{
    for (const struct mdl_lower_row *const *table = mdl_lower_tables; *table; table++) {
        for (const struct mdl_lower_row *row = *table; row->op_type; row++) {
            if (strcmp(row->op_type, n->op_type) == 0 && domain_is(n->domain, row->domain)) {
                return row;
            }
        }
    }
    return NULL;
}

/* Of the graph's nodes, ir.lowered[]. */
enum { LOWERED_NOT, LOWERED_BEGUN, LOWERED };

#define BRANCH_DEPTH_MAX 64u
#define E_SKIP 1 /* mdl_ir_leave(): an input is the result of a refused node */

static int64_t opset_of(const struct mdl_ir *ir, const struct mdl_gnode *n)
{
    return n->opset ? n->opset : ir->g->opset;
}

/* ---- is the operator known ---- */

static int check_version(const struct mdl_ir *ir, const struct mdl_gnode *n,
                         const struct mdl_lower_row *row)
{
    int until = row->until ? row->until : MDL_OPSET_KNOWN;
    int64_t opset = opset_of(ir, n);

    if (row->domain || (opset >= row->since && opset <= until)) {
        return 0;
    }
    return opset > until
               ? mdl_ir_say(ir, -EOPNOTSUPP,
                            "operator %s is supported up to operator set %d, and the model uses "
                            "%lld; export it with an older one",
                            n->op_type, until, (long long)opset)
               : mdl_ir_say(ir, -EOPNOTSUPP,
                            "operator %s is supported from operator set %d on, and the model "
                            "uses %lld; export it with a newer one",
                            n->op_type, row->since, (long long)opset);
}

/* Return: 0 with *ret, or -EOPNOTSUPP with the text in ir.error. */
static int known_row(const struct mdl_ir *ir, const struct mdl_gnode *n,
                     const struct mdl_lower_row **ret, long long *ret_version)
{
    bool own = domain_is(n->domain, NULL);
    int r;

    *ret_version = 0;
    *ret = find_row(n);
    if (!*ret) {
        return mdl_ir_say(
            ir, -EOPNOTSUPP,
            "operator %s%s%s is not supported; docs/operators.md lists those that are", n->op_type,
            own ? "" : " of domain ", own ? "" : n->domain);
    }
    *ret_version = opset_of(ir, n); /* where that is the reason */
    r = check_version(ir, n, *ret);
    *ret_version = r < 0 ? *ret_version : 0;
    return r;
}

static void fail_outputs(struct mdl_ir *ir, const struct mdl_gnode *n)
{
    for (size_t i = 0; i < n->output_count; i++) {
        if (n->outputs[i][0]) {
            mdl_ir_find(ir, n->outputs[i])->failed = true;
        }
    }
}

void mdl_lower_check(struct mdl_ir *ir)
{
    for (size_t i = 0; i < ir->order_count; i++) {
        const struct mdl_gnode *n = &ir->g->nodes[ir->order[i]];
        struct mdl_reason why = {.kind = MDL_REASON_OPERATOR};
        const struct mdl_lower_row *row;

        mdl_ir_begin(ir, n);
        why.code = known_row(ir, n, &row, &why.version);
        if (why.code < 0) {
            fail_outputs(ir, n);
            ir->lowered[ir->order[i]] = LOWERED;
            mdl_ir_reason(ir, &why, n, ir->node_name);
        }
    }
    ir->node = NULL;
}

/* ---- inputs and outputs ---- */

static void lower_with_inputs(struct mdl_lower *l, size_t node);
static void lower_branch(struct mdl_lower *l, const struct mdl_gbranch *b, const size_t *in,
                         size_t *ret_out);

/* The value of a name: made by a node before (or refused), an initializer made on first use, an
 * input. */
static size_t resolve(struct mdl_lower *l, const char *name)
{
    struct mdl_ir *ir = l->ir;
    struct mdl_ir_name *n = mdl_ir_find(ir, name);

    /* of a branch; others are looked for when the graph is sorted */
    mdl_bad_if(l, !n, "input \"%s\" is produced by nothing", name);
    if (n->value == MDL_NONE && n->node != MDL_NONE) {
        lower_with_inputs(l, n->node);
    }
    if (n->failed) {
        mdl_ir_leave(ir, E_SKIP);
    }
    if (n->value == MDL_NONE && n->initializer != MDL_NONE) {
        const struct mdl_gtensor *t = &ir->g->initializers[n->initializer];

        n->value = mdl_ir_const_new(ir, t->dtype, t->rank, t->dim, t->data, t->in_file);
        ir->values[n->value].name = name;
        ir->values[n->value].named = true;
        ir->values[n->value].narrow = t->narrow;
    }
    if (n->value == MDL_NONE && n->input != MDL_NONE) {
        n->value = ir->inputs[n->input];
    }
    mdl_bad_if(l, n->value == MDL_NONE && n->branch,
               "input \"%s\" is made in a branch that is not taken, or later", name);
    mdl_unserved_if(l, n->value == MDL_NONE,
                    "input \"%s\" is an optional output of another node that is not supported",
                    name);
    return n->value;
}

static const struct mdl_lower_row *find_own(const char *op_type)
{
    const struct mdl_gnode plain = {.op_type = op_type, .domain = ""};

    return find_row(&plain);
}

static void bind_outputs(struct mdl_ir *ir, const struct mdl_lower *l)
{
    for (size_t i = 0; i < l->out_count; i++) {
        const char *name = l->node->outputs[i];
        struct mdl_ir_value *v;

        if (!name[0] || l->out[i] == MDL_NONE) {
            continue;
        }
        mdl_ir_find(ir, name)->value = l->out[i];
        v = &ir->values[l->out[i]];
        if (!v->named) {
            v->name = name;
            v->named = true;
        }
        if (!v->data && !v->sequence) {
            ir->run_time_bytes += (double)mdl_ir_bytes(v);
        }
    }
}

/* ---- a node ---- */

/* Lowers a node whose operator is known. */
static void lower_known(struct mdl_ir *ir, const struct mdl_gnode *n,
                        const struct mdl_lower_row *row)
{
    struct mdl_lower l = {
        .ir = ir, .node = n, .opset = opset_of(ir, n), .find = find_own, .branch = lower_branch};
    size_t *in;

    l.in_count = n->input_count;
    l.out_count = n->output_count;
    l.in = in = mdl_ir_alloc(ir, n->input_count, sizeof(*in));
    l.out = mdl_ir_alloc(ir, n->output_count, sizeof(*l.out));
    for (size_t i = 0; i < n->output_count; i++) {
        l.out[i] = MDL_NONE;
    }
    for (size_t i = 0; i < n->input_count; i++) {
        in[i] = n->inputs[i][0] ? resolve(&l, n->inputs[i]) : MDL_NONE;
        mdl_unserved_if(&l, in[i] != MDL_NONE && ir->values[in[i]].sequence && !row->sequences,
                        "input %zu is a sequence", i);
    }
    mdl_l_run(&l, row);
    mdl_narrow_outputs(&l, row);
    bind_outputs(ir, &l);
}

/* Looks up the operator and lowers the node; @why: how far it came. Return: 0, E_SKIP, -errno:
 * where that was refused. */
static int try_node(struct mdl_ir *ir, const struct mdl_gnode *n, struct mdl_reason *why)
{
    jmp_buf *const around = ir->leave;
    const size_t depth = ir->branch_depth;
    jmp_buf here;

    ir->failure = 0;
    ir->leave = &here;
    if (setjmp(here) == 0) {
        const struct mdl_lower_row *row;
        int r = known_row(ir, n, &row, &why->version);

        if (r < 0) {
            mdl_ir_leave(ir, r);
        }
        why->kind = MDL_REASON_NODE;
        lower_known(ir, n, row);
    }
    ir->leave = around;
    ir->branch_depth = depth;
    return ir->failure;
}

/* What is refused becomes a reason, and the next node is looked at. */
static void lower_node(struct mdl_ir *ir, const struct mdl_gnode *n)
{
    const struct mdl_gnode *around = ir->node;
    const char *around_name = ir->node_name;
    struct mdl_reason why = {.kind = MDL_REASON_OPERATOR};

    mdl_ir_begin(ir, n);
    why.code = try_node(ir, n, &why);
    if (why.code != 0) {
        fail_outputs(ir, n);
    }
    if (why.code == -EOPNOTSUPP || why.code == -EBADMSG) {
        mdl_ir_reason(ir, &why, n, ir->node_name);
    } else if (why.code < 0) {
        mdl_ir_leave(ir, why.code);
    }
    ir->failure = 0;
    ir->node = around;
    ir->node_name = around_name;
}

void mdl_lower_node(struct mdl_ir *ir, size_t node)
{
    if (ir->lowered[node] != LOWERED) {
        ir->lowered[node] = LOWERED_BEGUN;
        lower_node(ir, &ir->g->nodes[node]);
        ir->lowered[node] = LOWERED;
    }
}

/* ---- branches ---- */

struct needed {
    size_t node, next_input;
};

static void push(struct mdl_lower *l, struct needed **stack, size_t *depth, size_t *cap,
                 size_t node)
{
    struct mdl_ir *ir = l->ir;

    if (ir->lowered[node] == LOWERED_BEGUN) {
        while (*depth) { /* another node may need them, too */
            ir->lowered[(*stack)[--*depth].node] = LOWERED_NOT;
        }
        mdl_l_refuse(l, -EBADMSG, "a branch needs what is made from its own result");
    }
    mdl_ir_grow(ir, (void **)stack, cap, *depth, sizeof(**stack));
    ir->lowered[node] = LOWERED_BEGUN;
    (*stack)[(*depth)++] = (struct needed){node, 0};
}

/* A branch may read what nothing else does: that is lowered now, inputs first. An explicit stack,
 * so that a file cannot choose the depth of ours. */
static void lower_with_inputs(struct mdl_lower *l, size_t node)
{
    struct mdl_ir *ir = l->ir;
    struct needed *stack = NULL;
    size_t depth = 0, cap = 0;

    if (ir->lowered[node] != LOWERED) {
        push(l, &stack, &depth, &cap, node);
    }
    while (depth) {
        struct needed *top = &stack[depth - 1];
        const struct mdl_gnode *n = &ir->g->nodes[top->node];
        const struct mdl_ir_name *from;

        if (top->next_input == n->input_count) {
            depth--;
            lower_node(ir, n);
            ir->lowered[top->node] = LOWERED;
            continue;
        }
        from = mdl_ir_find(ir, n->inputs[top->next_input++]);
        if (from && from->node != MDL_NONE && ir->lowered[from->node] != LOWERED) {
            push(l, &stack, &depth, &cap, from->node);
        }
    }
}

/* What a body made when it was lowered before is not there yet. */
static void forget(struct mdl_ir *ir, const struct mdl_gbranch *b)
{
    for (size_t i = 0; i < b->node_count; i++) {
        const struct mdl_gnode *n = &b->nodes[i];

        for (size_t k = 0; k < n->output_count; k++) {
            struct mdl_ir_name *name = n->outputs[k][0] ? mdl_ir_find(ir, n->outputs[k]) : NULL;

            if (name) {
                name->value = MDL_NONE;
                name->failed = false;
            }
        }
        for (size_t k = 0; k < n->attr_count; k++) {
            if (n->attrs[k].branch) {
                forget(ir, n->attrs[k].branch);
            }
        }
    }
}

static void lower_branch(struct mdl_lower *l, const struct mdl_gbranch *b, const size_t *in,
                         size_t *ret_out)
{
    size_t refused = l->ir->reasons->total;

    mdl_large_if(l, ++l->ir->branch_depth > BRANCH_DEPTH_MAX,
                 "branches need one another deeper than %u", BRANCH_DEPTH_MAX);
    forget(l->ir, b);
    for (size_t i = 0; in && i < b->input_count; i++) {
        if (b->inputs[i][0]) {
            mdl_ir_find(l->ir, b->inputs[i])->value = in[i];
        }
    }
    for (size_t i = 0; i < b->node_count; i++) {
        lower_node(l->ir, &b->nodes[i]);
    }
    if (l->ir->reasons->total > refused) {
        mdl_ir_leave(l->ir, E_SKIP);
    }
    for (size_t i = 0; i < b->output_count; i++) {
        if (b->outputs[i][0]) {
            ret_out[i] = resolve(l, b->outputs[i]);
        }
    }
    l->ir->branch_depth--;
}
