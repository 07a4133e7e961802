/* SPDX-License-Identifier: Apache-2.0 */
#include "model/onnx/onnx.h"

#include "model/onnx/reader.h"
#include "onnx.pb-c.h"

/* ONNX to struct mdl_graph. protobuf-c unpacks the walk's stripped copy straight into the graph's
 * pool (its allocator is the pool), so names need no second copy and the pool's cap bounds what a
 * hostile file can make it allocate. */

#define POOL_BASE_BYTES ((size_t)256 << 20)

static void *pool_alloc(void *pool, size_t bytes)
{
    return mdl_pool_alloc(pool, 1, bytes);
}

static void pool_no_free(void *pool, void *p)
{
}

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
    int r = mdl_onnx_value(rd, v, what, out);

    if (r < 0) {
        mdl_onnx_leave(rd, r);
    }
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Until IR 3, weights had to be listed as inputs too: those are not inputs. */
static void read_inputs(struct mdl_onnx_reader *rd, const Onnx__GraphProto *p)
{
    struct mdl_graph *g = rd->graph;
    const char **weights = mdl_onnx_alloc(rd, g->initializer_count, sizeof(*weights));

    g->inputs = mdl_onnx_alloc(rd, p->n_input, sizeof(*g->inputs));
    for (size_t i = 0; i < g->initializer_count; i++) {
        weights[i] = g->initializers[i].name;
    }
    qsort(weights, g->initializer_count, sizeof(*weights), by_text);
    for (size_t i = 0; i < p->n_input; i++) {
        const char *name = mdl_onnx_text(p->input[i]->name);

        if (!bsearch(&name, weights, g->initializer_count, sizeof(*weights), by_text)) {
            read_known_value(rd, p->input[i], "input", &g->inputs[g->input_count]);
            g->input_count++;
        }
    }
}

static void read_outputs(struct mdl_onnx_reader *rd, const Onnx__GraphProto *p)
{
    struct mdl_graph *g = rd->graph;
    const char **names = mdl_onnx_alloc(rd, p->n_output, sizeof(*names));

    g->outputs = mdl_onnx_alloc(rd, p->n_output, sizeof(*g->outputs));
    for (size_t i = 0; i < p->n_output; i++) {
        read_known_value(rd, p->output[i], "output", &g->outputs[i]);
        names[i] = g->outputs[i].name;
    }
    g->output_count = p->n_output;
    qsort(names, p->n_output, sizeof(*names), by_text);
    for (size_t i = 1; i < p->n_output; i++) {
        if (strcmp(names[i - 1], names[i]) == 0) {
            mdl_onnx_refuse(rd, -EBADMSG, "the model has output '%.100s' twice", names[i]);
        }
    }
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
    jmp_buf here;

    rd->leave = &here;
    if (setjmp(here) == 0) {
        mdl_onnx_versions(rd, model);
        mdl_onnx_functions(rd, model);
        read_graph(rd, model->graph);
    }
    return rd->failure;
}

int mdl_onnx_read(const void *map, size_t bytes, struct mdl_data_files *data,
                  char ret_error[MDL_ERROR_MAX], struct mdl_graph **ret)
{
    base_cleanup(mdl_walk_deinit) struct mdl_walk walk = MDL_WALK_NULL;
    mdl_autopool struct mdl_pool *pool = NULL;
    struct mdl_onnx_reader rd = {
        .walk = &walk, .data = data, .branch = mdl_onnx_branch, .error = ret_error};
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
