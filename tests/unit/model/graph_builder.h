/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/unit/model/graph_builder.h - builds graphs in C, like those of the readers
 *
 *     struct gb g;
 *     gb_init(&g, 13);
 *     gb_input(&g, "x", 4, (int64_t[]){1, 3, 8, 8});
 *     gb_weights(&g, "w", 4, (size_t[]){4, 3, 3, 3});
 *     gb_node(&g, "Conv", "c1", "x w", "y");
 *     gb_ints(&g, "pads", 4, (int64_t[]){1, 1, 1, 1});
 *     gb_output(&g, "y");
 *     m = gb_compile(&g, NULL);
 *
 * Sizes are fixed and generous; an overflow aborts.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/common/pool.h"
#include "model/compile/compile.h"

#define GB_MAX 512
#define GB_PORTS 40
#define GB_ATTRS 8

struct gb {
    struct mdl_graph graph;
    struct mdl_pool *pool;
    struct mdl_gnode nodes[GB_MAX];
    struct mdl_gtensor weights[GB_MAX];
    struct mdl_gvalue inputs[8], outputs[8];
    char error[MDL_ERROR_MAX];
};

/* an assertion that stays on in release builds */
static inline void gb_need(bool holds)
{
    if (!holds) {
        abort();
    }
}

static inline void gb_init(struct gb *g, int64_t opset)
{
    memset(g, 0, sizeof(*g));
    if (mdl_pool_new(0, &g->pool) < 0) {
        abort();
    }
    g->graph = (struct mdl_graph){.name = "built",
                                  .ir_version = 7,
                                  .opset = opset,
                                  .nodes = g->nodes,
                                  .initializers = g->weights,
                                  .inputs = g->inputs,
                                  .outputs = g->outputs};
}

static inline void gb_free(struct gb *g)
{
    g->pool = mdl_pool_free(g->pool);
}

static inline void gb_typed_input(struct gb *g, const char *name, enum mdl_dtype dtype, size_t rank,
                                  const int64_t *dim)
{
    struct mdl_gvalue *v = &g->inputs[g->graph.input_count++];

    *v = (struct mdl_gvalue){
        .name = mdl_pool_strdup(g->pool, name), .typed = true, .dtype = dtype, .rank = rank};
    for (size_t d = 0; d < rank; d++)
        v->dim[d] = dim[d];
}

static inline void gb_input(struct gb *g, const char *name, size_t rank, const int64_t *dim)
{
    gb_typed_input(g, name, MDL_F32, rank, dim);
}

static inline void gb_output(struct gb *g, const char *name)
{
    g->outputs[g->graph.output_count++] =
        (struct mdl_gvalue){.name = mdl_pool_strdup(g->pool, name)};
}

static inline void gb_const(struct gb *g, const char *name, enum mdl_dtype dtype, size_t rank,
                            const size_t *dim, const void *data)
{
    struct mdl_gtensor *t = &g->weights[g->graph.initializer_count++];

    *t = (struct mdl_gtensor){.name = mdl_pool_strdup(g->pool, name), .dtype = dtype, .rank = rank};
    t->bytes = mdl_dtype_bytes(dtype);
    for (size_t i = 0; i < rank; i++) {
        t->dim[i] = dim[i];
        t->bytes *= dim[i];
    }
    t->data = mdl_pool_memdup(g->pool, data, t->bytes);
}

/* f32 with small, different values */
static inline void gb_weights(struct gb *g, const char *name, size_t rank, const size_t *dim)
{
    size_t n = 1;
    float *w;

    for (size_t i = 0; i < rank; i++) {
        n *= dim[i];
    }
    w = mdl_pool_alloc(g->pool, n, sizeof(*w));
    for (size_t i = 0; i < n; i++) {
        w[i] = 0.25f + 0.5f * (float)((i * 2654435761u >> 8) % 1000) / 1000;
    }
    gb_const(g, name, MDL_F32, rank, dim, w);
}

static inline void gb_i64(struct gb *g, const char *name, size_t count, const int64_t *values)
{
    gb_const(g, name, MDL_I64, 1, &count, values);
}

static inline void gb_scalar(struct gb *g, const char *name, float value)
{
    gb_const(g, name, MDL_F32, 0, NULL, &value);
}

/* "a  b" -> {"a", "b"}; "-" is an absent one */
static inline const char *const *gb_names(struct gb *g, const char *text, size_t *ret_count)
{
    const char **names = mdl_pool_alloc(g->pool, GB_PORTS, sizeof(*names));
    char *copy = mdl_pool_strdup(g->pool, text), *save = NULL;

    *ret_count = 0;
    for (char *s = strtok_r(copy, " ", &save); s; s = strtok_r(NULL, " ", &save)) {
        gb_need(*ret_count < GB_PORTS);
        names[(*ret_count)++] = strcmp(s, "-") == 0 ? "" : s;
    }
    return names;
}

static inline void gb_node(struct gb *g, const char *op, const char *name, const char *inputs,
                           const char *outputs)
{
    struct mdl_gnode *n = &g->nodes[g->graph.node_count++];

    gb_need(g->graph.node_count <= GB_MAX);
    *n = (struct mdl_gnode){.op_type = mdl_pool_strdup(g->pool, op),
                            .domain = "",
                            .name = mdl_pool_strdup(g->pool, name)};
    n->inputs = gb_names(g, inputs, &n->input_count);
    n->outputs = gb_names(g, outputs, &n->output_count);
    n->attrs = mdl_pool_alloc(g->pool, GB_ATTRS, sizeof(*n->attrs));
}

/* adds attributes to the last node */
static inline struct mdl_gattr *gb_attr(struct gb *g, const char *name, enum mdl_attr_type type)
{
    struct mdl_gnode *n = &g->nodes[g->graph.node_count - 1];
    struct mdl_gattr *a = (struct mdl_gattr *)(uintptr_t)&n->attrs[n->attr_count++];

    gb_need(n->attr_count <= GB_ATTRS);
    *a = (struct mdl_gattr){.name = name, .type = type};
    return a;
}

static inline void gb_int(struct gb *g, const char *name, int64_t value)
{
    gb_attr(g, name, MDL_ATTR_INT)->i = value;
}

static inline void gb_float(struct gb *g, const char *name, float value)
{
    gb_attr(g, name, MDL_ATTR_FLOAT)->f = value;
}

static inline void gb_string(struct gb *g, const char *name, const char *value)
{
    gb_attr(g, name, MDL_ATTR_STRING)->s = value;
}

static inline void gb_ints(struct gb *g, const char *name, size_t count, const int64_t *values)
{
    struct mdl_gattr *a = gb_attr(g, name, MDL_ATTR_INTS);

    a->ints = mdl_pool_memdup(g->pool, values, count * sizeof(*values));
    a->count = count;
}

/* Takes the last @count nodes out of the graph, as the branch or body of these inputs that makes
 * these outputs. */
static inline const struct mdl_gbranch *gb_cut(struct gb *g, size_t count, const char *inputs,
                                               const char *outputs)
{
    struct mdl_gbranch *b = mdl_pool_alloc(g->pool, 1, sizeof(*b));

    gb_need(g->graph.node_count >= count);
    g->graph.node_count -= count;
    b->node_count = count;
    b->nodes = mdl_pool_memdup(g->pool, &g->nodes[g->graph.node_count], count * sizeof(*b->nodes));
    b->inputs = gb_names(g, inputs, &b->input_count);
    b->outputs = gb_names(g, outputs, &b->output_count);
    return b;
}

/* Return: NULL if it is refused; g->error has the reason */
static inline struct mdl_model *gb_compile(struct gb *g, const struct mdl_load_options *options)
{
    struct mdl_model *m = NULL;

    g->error[0] = '\0';
    if (mdl_compile(&g->graph, options, g->error, &m) < 0) {
        return NULL;
    }
    return m;
}

static inline const struct mdl_tensor *gb_out(const struct mdl_model *m, size_t i)
{
    return &m->tensors[m->outputs[i].tensor];
}

static inline size_t gb_count_ops(const struct mdl_model *m, enum mdl_op_kind kind)
{
    size_t n = 0;

    for (size_t i = 0; i < m->op_count; i++) {
        n += m->ops[i].kind == kind;
    }
    return n;
}

/* Return: the first op of this kind, or NULL */
static inline const struct mdl_op *gb_op(const struct mdl_model *m, enum mdl_op_kind kind)
{
    for (size_t i = 0; i < m->op_count; i++) {
        if (m->ops[i].kind == kind) {
            return &m->ops[i];
        }
    }
    return NULL;
}
