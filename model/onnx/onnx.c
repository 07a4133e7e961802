/* SPDX-License-Identifier: Apache-2.0 */
#include "model/onnx/onnx.h"

#include "base/base.h"
#include "model/common/pool.h"
#include "model/onnx/functions.h"
#include "model/onnx/node.h"
#include "model/onnx/tensor.h"
#include "model/onnx/versions.h"
#include "model/onnx/walk.h"
#include "onnx.pb-c.h"

/*
 * ONNX to struct mdl_graph. protobuf-c unpacks the walk's stripped copy straight into the graph's
 * pool (its allocator is the pool), so names need no second copy and the pool's cap bounds what a
 * hostile file can make it allocate.
 */

#define POOL_BASE_BYTES ((size_t)256 << 20)

static void *pool_alloc(void *pool, size_t bytes)
{
    return mdl_pool_alloc(pool, 1, bytes);
}

static void pool_no_free(void *pool, void *p)
{
}

/* ---- graph inputs and outputs ---- */

/* Return: whether it names one dimension. Some exporters give all that are open the same word. */
static bool is_symbol(const char *text)
{
    static const char *const words[] = {"", "?", "*", "-1", "None", "none", "unk", "dynamic"};

    for (size_t i = 0; i < base_array_count(words); i++) {
        if (strcmp(text, words[i]) == 0) {
            return false;
        }
    }
    return true;
}

static int read_value(struct mdl_onnx_reader *rd, const Onnx__ValueInfoProto *v, const char *what,
                      struct mdl_gvalue *out)
{
    const Onnx__TypeProto__Tensor *t = NULL;
    const struct mdl_onnx_type *type;

    out->name = mdl_onnx_text(v->name);
    snprintf(rd->where, sizeof(rd->where), "graph %s '%.80s'", what, out->name);
    if (out->name[0] == '\0') {
        return mdl_fail(rd->error, -EBADMSG, "%s has no name", rd->where);
    }
    if (v->type && v->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE) {
        t = v->type->tensor_type;
    }
    if (v->type && !t) {
        return mdl_fail(rd->error, -EOPNOTSUPP, "%s is not a tensor, and nothing else is supported",
                        rd->where);
    }
    if (!t || !t->has_elem_type || t->elem_type == 0) {
        return 0;
    }
    type = mdl_onnx_type(t->elem_type);
    if (!mdl_onnx_served(type)) {
        return mdl_fail(rd->error, -EOPNOTSUPP, "%s: element type %s is not supported", rd->where,
                        type->name);
    }
    out->has_dtype = true;
    out->dtype = type->dtype;
    out->stored = type->from == MDL_FROM_SAME ? NULL : type->name;
    out->narrow = type->narrow;
    if (!t->shape) {
        return 0;
    }
    out->rank = t->shape->n_dim;
    if (out->rank > MDL_RANK_MAX) {
        return mdl_fail(rd->error, -EOPNOTSUPP, "%s has %zu dimensions, more than %u", rd->where,
                        out->rank, MDL_RANK_MAX);
    }
    for (size_t i = 0; i < out->rank; i++) {
        const Onnx__TensorShapeProto__Dimension *d = t->shape->dim[i];

        out->dim[i] = -1;
        if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE) {
            /* -1 is what some exporters write for "any" */
            if (d->dim_value < -1 || d->dim_value > INT32_MAX) {
                return mdl_fail(rd->error, -EBADMSG, "%s: dimension %zu is %lld", rd->where, i,
                                (long long)d->dim_value);
            }
            out->dim[i] = d->dim_value;
        } else if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM &&
                   is_symbol(mdl_onnx_text(d->dim_param))) {
            out->symbol[i] = d->dim_param;
        }
    }
    out->typed = true;
    return 0;
}

/* ---- names: every value is made once ---- */

struct made {
    const char *name;
    const char *by; /* "initializer", "input" or the node's operator */
    size_t index;
};

static int made_compare(const void *a, const void *b)
{
    const struct made *x = a, *y = b;
    int order = strcmp(x->name, y->name);

    return order ? order : (x->index > y->index) - (x->index < y->index);
}

static int name_compare(const void *name, const void *made)
{
    return strcmp(name, ((const struct made *)made)->name);
}

static void made_check(struct mdl_onnx_reader *rd, struct made *list, size_t count)
{
    qsort(list, count, sizeof(*list), made_compare);
    for (size_t i = 1; i < count; i++) {
        if (strcmp(list[i - 1].name, list[i].name) == 0) {
            mdl_onnx_refuse(rd, -EBADMSG, "value '%.100s' is made twice: by %s %zu and %s %zu",
                            list[i].name, list[i - 1].by, list[i - 1].index, list[i].by,
                            list[i].index);
        }
    }
}

static size_t count_outputs(const struct mdl_gnode *nodes, size_t count)
{
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        n += nodes[i].output_count;
        for (size_t k = 0; k < nodes[i].attr_count; k++) {
            const struct mdl_gbranch *b = nodes[i].attrs[k].branch;

            n += b ? count_outputs(b->nodes, b->node_count) : 0;
        }
    }
    return n;
}

static void list_outputs(const struct mdl_gnode *nodes, size_t count, struct made *list, size_t *at)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < nodes[i].output_count; k++) {
            if (nodes[i].outputs[k][0] != '\0') {
                list[(*at)++] = (struct made){nodes[i].outputs[k], "node", i};
            }
        }
        for (size_t k = 0; k < nodes[i].attr_count; k++) {
            const struct mdl_gbranch *b = nodes[i].attrs[k].branch;

            if (b) {
                list_outputs(b->nodes, b->node_count, list, at);
            }
        }
    }
}

static void check_names(struct mdl_onnx_reader *rd)
{
    const struct mdl_graph *g = rd->graph;
    size_t count = g->initializer_count + g->input_count, at = 0;
    struct made *list;

    count += count_outputs(g->nodes, g->node_count);
    list = mdl_onnx_alloc(rd, count, sizeof(*list));
    for (size_t i = 0; i < g->initializer_count; i++) {
        list[at++] = (struct made){g->initializers[i].name, "initializer", i};
    }
    for (size_t i = 0; i < g->input_count; i++) {
        list[at++] = (struct made){g->inputs[i].name, "input", i};
    }
    list_outputs(g->nodes, g->node_count, list, &at);
    made_check(rd, list, at);
}

/* ---- the parts of the graph ---- */

static void read_initializers(struct mdl_onnx_reader *rd, const Onnx__GraphProto *p)
{
    rd->initializer_cap = p->n_initializer;
    rd->graph->initializers =
        mdl_onnx_alloc(rd, p->n_initializer, sizeof(*rd->graph->initializers));
    for (size_t i = 0; i < p->n_initializer; i++) {
        mdl_onnx_initializer(rd, p->initializer[i], i);
    }
}

static void read_known_value(struct mdl_onnx_reader *rd, const Onnx__ValueInfoProto *v,
                             const char *what, struct mdl_gvalue *out)
{
    int r = read_value(rd, v, what, out);

    if (r < 0) {
        mdl_onnx_leave(rd, r);
    }
}

/* Until IR 3, weights had to be listed as inputs too: those are not inputs. */
static void read_inputs(struct mdl_onnx_reader *rd, const Onnx__GraphProto *p)
{
    struct mdl_graph *g = rd->graph;
    struct made *list = mdl_onnx_alloc(rd, g->initializer_count, sizeof(*list));

    g->inputs = mdl_onnx_alloc(rd, p->n_input, sizeof(*g->inputs));
    for (size_t i = 0; i < g->initializer_count; i++) {
        list[i] = (struct made){g->initializers[i].name, "initializer", i};
    }
    qsort(list, g->initializer_count, sizeof(*list), made_compare);
    for (size_t i = 0; i < p->n_input; i++) {
        if (!bsearch(mdl_onnx_text(p->input[i]->name), list, g->initializer_count, sizeof(*list),
                     name_compare)) {
            read_known_value(rd, p->input[i], "input", &g->inputs[g->input_count]);
            g->input_count++;
        }
    }
}

static void read_outputs(struct mdl_onnx_reader *rd, const Onnx__GraphProto *p)
{
    struct mdl_graph *g = rd->graph;
    struct made *list = mdl_onnx_alloc(rd, p->n_output, sizeof(*list));

    g->outputs = mdl_onnx_alloc(rd, p->n_output, sizeof(*g->outputs));
    for (size_t i = 0; i < p->n_output; i++) {
        read_known_value(rd, p->output[i], "output", &g->outputs[i]);
        list[i] = (struct made){g->outputs[i].name, "output", i};
        g->output_count++;
    }
    made_check(rd, list, g->output_count);
}

static void read_graph(struct mdl_onnx_reader *rd, const Onnx__GraphProto *p)
{
    if (!p || p->n_node == 0) {
        mdl_onnx_refuse(rd, -EBADMSG, "the model's graph has no nodes");
    }
    if (p->n_output == 0) {
        mdl_onnx_refuse(rd, -EBADMSG, "the model's graph has no outputs");
    }
    rd->graph->name = mdl_onnx_text(p->name);
    read_initializers(rd, p);
    read_inputs(rd, p);
    read_outputs(rd, p);
    mdl_onnx_nodes(rd, p->node, p->n_node, &rd->graph->nodes, &rd->graph->node_count);
    check_names(rd);
}

static void walk_cleanup(struct mdl_walk *w)
{
    mdl_walk_deinit(w);
}

/* What Ultralytics' exporter writes: who made the network, what for, its classes, for which size,
 * its points. Those who export readers of PaddleOCR write their characters. */
static void read_notes(struct mdl_graph *g, const Onnx__ModelProto *model)
{
    const struct {
        const char *key, **to;
    } wanted[] = {{"author", &g->author},    {"task", &g->task},
                  {"names", &g->names},      {"imgsz", &g->image_size},
                  {"kpt_shape", &g->points}, {"character", &g->characters}};

    for (size_t i = 0; i < model->n_metadata_props; i++) {
        const Onnx__StringStringEntryProto *note = model->metadata_props[i];

        for (size_t k = 0; k < base_array_count(wanted); k++) {
            if (strcmp(mdl_onnx_text(note->key), wanted[k].key) == 0) {
                *wanted[k].to = mdl_onnx_text(note->value);
            }
        }
    }
}

/* Return: 0, or what a part leaves with. */
static int try_model(struct mdl_onnx_reader *rd, const Onnx__ModelProto *model)
{
    struct mdl_onnx_functions functions = {0};
    jmp_buf here;

    rd->leave = &here;
    rd->functions = &functions;
    if (setjmp(here) == 0) {
        mdl_onnx_versions(rd, model);
        functions = mdl_onnx_functions(rd, model);
        read_graph(rd, model->graph);
    }
    return rd->failure;
}

int mdl_onnx_read(const void *map, size_t bytes, struct mdl_data_files *data,
                  char ret_error[MDL_ERROR_MAX], struct mdl_graph **ret)
{
    base_cleanup(walk_cleanup) struct mdl_walk walk = MDL_WALK_NULL;
    mdl_autopool struct mdl_pool *pool = NULL;
    struct mdl_onnx_reader rd = {.walk = &walk,
                                 .data = data,
                                 .branch = mdl_onnx_branch,
                                 .value = read_value,
                                 .error = ret_error};
    ProtobufCAllocator allocator = {.alloc = pool_alloc, .free = pool_no_free};
    Onnx__ModelProto *model;
    size_t cap;
    int r;

    ret_error[0] = '\0';
    if (bytes == 0) {
        return mdl_fail(ret_error, -EBADMSG, "the file is empty");
    }
    r = mdl_walk_init(&walk, map, bytes, ret_error);
    if (r < 0) {
        return r;
    }
    /* 16 bit weights double when they are converted; the rest is structure */
    if (!base_mul(bytes, 2, &cap) || !base_add(cap, POOL_BASE_BYTES, &cap)) {
        return mdl_fail(ret_error, -E2BIG, "the file is too large");
    }
    r = mdl_pool_new(cap, &pool);
    if (r < 0) {
        return mdl_fail(ret_error, r, "out of memory");
    }
    rd.graph = mdl_pool_alloc(pool, 1, sizeof(*rd.graph));
    if (!rd.graph) {
        return mdl_fail(ret_error, -ENOMEM, "out of memory");
    }
    rd.graph->pool = pool;
    rd.graph->file_map = map;
    rd.graph->file_bytes = bytes;
    allocator.allocator_data = pool;
    model = onnx__model_proto__unpack(&allocator, walk.copy_bytes, walk.copy);
    if (!model) {
        return mdl_pool_used(pool) > cap / 2
                   ? mdl_fail(ret_error, -E2BIG, "the model's structure needs too much memory")
                   : mdl_fail(ret_error, -EBADMSG, "not an ONNX model: its fields do not parse");
    }
    rd.graph->producer = mdl_onnx_text(model->producer_name);
    rd.graph->producer_version = mdl_onnx_text(model->producer_version);
    read_notes(rd.graph, model);
    r = try_model(&rd, model);
    if (r < 0) {
        return r;
    }
    *ret = rd.graph;
    pool = NULL; /* now owned by the graph */
    return 0;
}
