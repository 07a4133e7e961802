/* SPDX-License-Identifier: Apache-2.0 */
#include "model/lower/lower.h"

#include <string.h>

#include "model/ir/sort.h"
#include "model/lower/lowering.h"

const struct mdl_lower_row *const mdl_lower_tables[] = {
    mdl_lower_spatial,
    mdl_lower_products,
    mdl_lower_elements,
    mdl_lower_shapes,
    mdl_lower_slices,
    mdl_lower_pads,
    mdl_lower_resizes,
    mdl_lower_reduces,
    mdl_lower_consts,
    mdl_lower_quants,
    NULL,
};

/* Return: whether a node's domain is that of a row. */
static bool domain_is(const char *domain, const char *row)
{
    return row ? strcmp(domain, row) == 0 : !domain[0] || strcmp(domain, "ai.onnx") == 0;
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

const char *mdl_lower_label(const struct mdl_gnode *node)
{
    return node->name[0]                                       ? node->name
           : node->output_count && node->outputs[0][0] != '\0' ? node->outputs[0]
                                                               : node->op_type;
}

bool mdl_lower_knows(const struct mdl_gnode *node)
{
    return find_row(node) != NULL;
}

/* The value of a name: made by a node before (or refused), an initializer made on first use, an
 * input. */
static int resolve(struct mdl_ir *ir, const char *name, size_t *ret)
{
    struct mdl_ir_name *n = mdl_ir_find(ir, name);

    if (n->value == MDL_NONE && n->initializer != MDL_NONE) {
        const struct mdl_gtensor *t = &ir->g->initializers[n->initializer];
        int r = mdl_ir_const_new(ir, t->dtype, t->rank, t->dim, t->data, t->in_file, &n->value);

        if (r < 0) {
            return r;
        }
        ir->values[n->value].name = name;
        ir->values[n->value].named = true;
    }
    if (n->value == MDL_NONE && n->input != MDL_NONE) {
        n->value = ir->inputs[n->input];
    }
    if (n->value == MDL_NONE) {
        return mdl_ir_refuse(
            ir, -EOPNOTSUPP,
            "input \"%s\" is an optional output of another node that is not supported", name);
    }
    *ret = n->value;
    return 0;
}

static int bind_outputs(struct mdl_ir *ir, const struct mdl_lower *l)
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
        if (!v->data) {
            ir->run_time_bytes += (double)mdl_ir_bytes(v);
        }
    }
    return 0;
}

int mdl_lower_node(struct mdl_ir *ir, size_t node)
{
    const struct mdl_gnode *n = &ir->g->nodes[node];
    struct mdl_lower l = {.ir = ir, .node = n, .opset = ir->g->opset};
    const struct mdl_lower_row *row;
    size_t *in;
    int r;

    ir->node = n;
    ir->node_name = mdl_lower_label(n);
    row = find_row(n);
    if (!row) {
        bool own = domain_is(n->domain, NULL);

        return mdl_ir_refuse(
            ir, -EOPNOTSUPP,
            "operator %s%s%s is not supported; docs/operators.md lists those that are", n->op_type,
            own ? "" : " of domain ", own ? "" : n->domain);
    }
    l.in_count = n->input_count;
    l.out_count = n->output_count;
    l.in = in = mdl_pool_alloc(ir->pool, n->input_count, sizeof(*in));
    l.out = mdl_pool_alloc(ir->pool, n->output_count, sizeof(*l.out));
    if (!in || !l.out) {
        return mdl_ir_nomem(ir);
    }
    for (size_t i = 0; i < n->output_count; i++) {
        l.out[i] = MDL_NONE;
    }
    for (size_t i = 0; i < n->input_count; i++) {
        in[i] = MDL_NONE;
        if (n->inputs[i][0]) {
            r = resolve(ir, n->inputs[i], &in[i]);
            if (r < 0) {
                return r;
            }
        }
    }
    r = row->fn(&l, row->arg);
    if (r == 0) {
        r = l.error;
    }
    if (r == 0) {
        r = bind_outputs(ir, &l);
    }
    ir->node = NULL;
    return r;
}
