/* SPDX-License-Identifier: Apache-2.0 */
/* Order: names sorted once and found by bisection, because a hash table can be made quadratic by a
 * hostile file. Nodes come out in file order wherever the file is already sorted: exporters' order
 * is good for memory. */
#include "model/ir/ir.h"

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct mdl_ir_name *)a)->name, ((const struct mdl_ir_name *)b)->name);
}

struct mdl_ir_name *mdl_ir_find(const struct mdl_ir *ir, const char *name)
{
    struct mdl_ir_name key = {.name = name};

    return ir->name_count
               ? bsearch(&key, ir->names, ir->name_count, sizeof(*ir->names), compare_names)
               : NULL;
}

static size_t add_name(struct mdl_ir *ir, const char *name)
{
    ir->names[ir->name_count] = (struct mdl_ir_name){
        .name = name,
        .node = MDL_NONE,
        .initializer = MDL_NONE,
        .input = MDL_NONE,
        .value = MDL_NONE,
    };
    return ir->name_count++;
}

/* The inputs of a node's branches, and the outputs of the nodes in them. @ir: NULL: they are only
 * counted. */
static size_t branch_names(struct mdl_ir *ir, const struct mdl_gnode *n)
{
    size_t count = 0;

    for (size_t a = 0; a < n->attr_count; a++) {
        const struct mdl_gbranch *b = n->attrs[a].branch;

        count += b ? b->input_count : 0;
        for (size_t i = 0; b && ir && i < b->input_count; i++) {
            if (b->inputs[i][0]) {
                ir->names[add_name(ir, b->inputs[i])].branch = true;
            }
        }
        for (size_t i = 0; b && i < b->node_count; i++) {
            const struct mdl_gnode *inner = &b->nodes[i];

            count += inner->output_count + branch_names(ir, inner);
            for (size_t k = 0; ir && k < inner->output_count; k++) {
                if (inner->outputs[k][0]) {
                    ir->names[add_name(ir, inner->outputs[k])].branch = true;
                }
            }
        }
    }
    return count;
}

static void collect_names(struct mdl_ir *ir)
{
    const struct mdl_graph *g = ir->g;
    size_t count = g->initializer_count + g->input_count;

    for (size_t i = 0; i < g->node_count; i++) {
        count += g->nodes[i].output_count + branch_names(NULL, &g->nodes[i]);
    }
    ir->names = mdl_ir_alloc(ir, count, sizeof(*ir->names));
    for (size_t i = 0; i < g->initializer_count; i++) {
        ir->names[add_name(ir, g->initializers[i].name)].initializer = i;
    }
    for (size_t i = 0; i < g->input_count; i++) {
        ir->names[add_name(ir, g->inputs[i].name)].input = i;
    }
    for (size_t i = 0; i < g->node_count; i++) {
        for (size_t k = 0; k < g->nodes[i].output_count; k++) {
            if (g->nodes[i].outputs[k][0]) {
                ir->names[add_name(ir, g->nodes[i].outputs[k])].node = i;
            }
        }
    }
    for (size_t i = 0; i < g->node_count; i++) {
        branch_names(ir, &g->nodes[i]);
    }
    if (ir->name_count) {
        qsort(ir->names, ir->name_count, sizeof(*ir->names), compare_names);
    }
    for (size_t i = 1; i < ir->name_count; i++) {
        if (strcmp(ir->names[i].name, ir->names[i - 1].name) == 0) {
            size_t node = ir->names[i].node != MDL_NONE ? ir->names[i].node : ir->names[i - 1].node;

            if (node != MDL_NONE) {
                mdl_ir_begin(ir, &ir->g->nodes[node]);
                mdl_ir_refuse(ir, -EBADMSG, "value \"%s\" is produced twice", ir->names[i].name);
            }
            mdl_ir_refuse(ir, -EBADMSG, "value \"%s\" is defined twice", ir->names[i].name);
        }
    }
}

/* Return: the node that makes input @k of @node; MDL_NONE: a constant, a model input, nothing. */
static size_t input_node(struct mdl_ir *ir, size_t node, size_t k)
{
    const char *name = ir->g->nodes[node].inputs[k];
    const struct mdl_ir_name *n;

    if (!name[0]) {
        return MDL_NONE;
    }
    n = mdl_ir_find(ir, name);
    if (!n) {
        mdl_ir_begin(ir, &ir->g->nodes[node]);
        mdl_ir_refuse(ir, -EBADMSG, "input \"%s\" is produced by nothing", name);
    }
    return n->node;
}

struct visit {
    size_t node, next_input;
};
enum { WHITE, GREY, BLACK };

/* Depth first from one output's node, inputs before users; an explicit stack, so that a file cannot
 * choose our stack depth. */
static void visit_from(struct mdl_ir *ir, size_t first, struct visit *stack, unsigned char *colour)
{
    size_t depth = 0;

    if (colour[first] != WHITE) {
        return;
    }
    colour[first] = GREY;
    stack[depth++] = (struct visit){first, 0};
    while (depth) {
        struct visit *top = &stack[depth - 1];
        size_t from;

        if (top->next_input == ir->g->nodes[top->node].input_count) {
            colour[top->node] = BLACK;
            ir->order[ir->order_count++] = top->node;
            depth--;
            continue;
        }
        from = input_node(ir, top->node, top->next_input++);
        if (from == MDL_NONE || colour[from] == BLACK) {
            continue;
        }
        if (colour[from] == GREY) {
            mdl_ir_begin(ir, &ir->g->nodes[from]);
            mdl_ir_refuse(ir, -EBADMSG, "is part of a cycle");
        }
        colour[from] = GREY;
        stack[depth++] = (struct visit){from, 0};
    }
}

/* Marks the nodes that a model output needs. */
static void mark_live(struct mdl_ir *ir, size_t *stack, bool *live)
{
    size_t depth = 0;

    for (size_t i = 0; i < ir->g->output_count; i++) {
        const struct mdl_ir_name *n = mdl_ir_find(ir, ir->g->outputs[i].name);

        if (!n) {
            mdl_ir_refuse(ir, -EBADMSG, "model output \"%s\" is produced by nothing",
                          ir->g->outputs[i].name);
        }
        if (n->node != MDL_NONE && !live[n->node]) {
            live[n->node] = true;
            stack[depth++] = n->node;
        }
    }
    while (depth) {
        size_t node = stack[--depth];

        for (size_t k = 0; k < ir->g->nodes[node].input_count; k++) {
            size_t from = input_node(ir, node, k);

            if (from != MDL_NONE && !live[from]) {
                live[from] = true;
                stack[depth++] = from;
            }
        }
    }
}

void mdl_ir_sort(struct mdl_ir *ir)
{
    size_t n = ir->g->node_count;
    struct visit *stack = mdl_ir_alloc(ir, n, sizeof(*stack));
    size_t *todo = mdl_ir_alloc(ir, n, sizeof(*todo));
    bool *live = mdl_ir_alloc(ir, n, sizeof(*live));
    unsigned char *colour = mdl_ir_alloc(ir, n, 1);

    ir->order = mdl_ir_alloc(ir, n, sizeof(*ir->order));
    ir->lowered = mdl_ir_alloc(ir, n, 1);
    collect_names(ir);
    mark_live(ir, todo, live);
    for (size_t i = 0; i < n; i++) {
        if (live[i]) {
            visit_from(ir, i, stack, colour);
        }
    }
}
