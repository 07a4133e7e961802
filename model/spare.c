/* SPDX-License-Identifier: Apache-2.0 */
/* Which weights a load does not read. */
#include "model/load_private.h"

#define LOOKS_MAX 3e7 /* a tenth of a second */

/* Return: how often nodes name @name; SIZE_MAX if one of them may look at its bytes. */
static size_t named_as_weight(const struct mdl_graph *g, const char *name)
{
    static const char *const products[] = {"Conv", "ConvTranspose", "Gemm", "MatMul"};
    size_t count = 0;

    for (size_t i = 0; i < g->node_count; i++) {
        const struct mdl_gnode *n = &g->nodes[i];

        for (size_t k = 0; k < n->input_count; k++) {
            bool product = false;

            if (strcmp(n->inputs[k], name) != 0) {
                continue;
            }
            for (size_t p = 0; p < base_array_count(products); p++) {
                product |= strcmp(n->op_type, products[p]) == 0;
            }
            if (!product || k != 1) {
                return SIZE_MAX;
            }
            count++;
        }
    }
    for (size_t i = 0; i < g->output_count; i++) {
        if (strcmp(g->outputs[i].name, name) == 0) {
            return SIZE_MAX;
        }
    }
    return count;
}

/* Return: how many ops read storage @storage as their weights; 0 if any reads it otherwise. */
static size_t read_as_weight(const struct mdl_model *m, size_t storage)
{
    size_t count = 0;

    for (size_t i = 0; i < m->op_count; i++) {
        const struct mdl_op *op = &m->ops[i];

        for (size_t k = 0; k <= MDL_OP_IN_MAX; k++) {
            size_t in = k < MDL_OP_IN_MAX ? op->in[k] : op->residual_in;

            if (in == MDL_NONE || m->tensors[in].storage != storage) {
                continue;
            }
            if (k != 1 || !mdl_op_is((int)op->kind, MDL_OP_HEAVY)) {
                return 0;
            }
            count++;
        }
    }
    return count;
}

static bool has_branches(const struct mdl_graph *g)
{
    for (size_t i = 0; i < g->node_count; i++) {
        for (size_t k = 0; k < g->nodes[i].attr_count; k++) {
            if (g->nodes[i].attrs[k].branch) {
                return true;
            }
        }
    }
    return false;
}

int mdl_spare_weights(const struct mdl_graph *g, struct mdl_model *m)
{
    bool *spare = mdl_pool_alloc(m->private->pool, m->storage_count, sizeof(*spare));

    if (!spare) {
        return -ENOMEM;
    }
    m->private->spare = spare;
    if (has_branches(g)) {
        return 0; /* nodes in branches name weights, too */
    }
    if ((double)m->storage_count * (double)(g->node_count + g->initializer_count + m->op_count) >
        LOOKS_MAX) {
        return 0;
    }
    for (size_t i = 0; i < m->storage_count; i++) {
        const struct mdl_storage *s = &m->storages[i];
        size_t named = SIZE_MAX;

        if (s->home != MDL_HOME_CONST || !mdl_map_has(m->private->map, s->data)) {
            continue;
        }
        for (size_t k = 0; k < g->initializer_count; k++) {
            const struct mdl_gtensor *t = &g->initializers[k];

            if (t->in_file && t->data == s->data && t->bytes == s->bytes) {
                named = named_as_weight(g, t->name);
            }
        }
        spare[i] = named != SIZE_MAX && named > 0 && read_as_weight(m, i) == named;
    }
    return 0;
}
