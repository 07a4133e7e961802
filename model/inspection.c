/* SPDX-License-Identifier: Apache-2.0 */
#include "model/inspection.h"

#include <stdio.h>
#include <string.h>

#include "base.h"
#include "model/class_names.h"
#include "model/declared.h"
#include "model/open_shapes.h"

#define TEXT_BYTES 256u
#define EXAMPLE_SIZE 64 /* of an open dimension that is not of a picture */

static const char *copy(struct mdl_inspection *in, const char *s)
{
    const char *made = mdl_pool_strdup(in->pool, s ? s : "");

    return made ? made : "";
}

/* Return: how many of @count fit into the list, all or none. */
static size_t room(const void *list, size_t count)
{
    return list ? count : 0;
}

static struct mdl_inspected_io *copy_values(struct mdl_inspection *in, const struct mdl_gvalue *v,
                                            size_t count, size_t *ret_count)
{
    struct mdl_inspected_io *list = mdl_pool_alloc(in->pool, count, sizeof(*list));

    *ret_count = room(list, count);
    for (size_t i = 0; i < *ret_count; i++) {
        char shape[TEXT_BYTES];

        list[i].name = copy(in, v[i].name);
        list[i].dtype = v[i].has_dtype || v[i].typed ? mdl_dtype_name(v[i].dtype) : "?";
        list[i].shape = copy(in, mdl_shape_format(&v[i], shape, sizeof(shape)));
        list[i].stored = v[i].stored;
        list[i].rank = v[i].rank;
        for (size_t k = 0; k < v[i].rank; k++) {
            list[i].dim[k] = v[i].dim[k];
            list[i].symbol[k] = v[i].symbol[k] ? copy(in, v[i].symbol[k]) : NULL;
        }
    }
    return list;
}

/* Sizes for what is open, so that the network can be compiled: a guessed size of a picture, 1 for
 * batches, EXAMPLE_SIZE for the rest. */
static void find_example(struct mdl_inspection *in, const struct mdl_graph *g, const char *given)
{
    const char *text = given ? given : "";
    bool open = false;

    for (size_t i = 0; text && i < g->input_count; i++) {
        const struct mdl_gvalue *v = &g->inputs[i];
        char dims[TEXT_BYTES] = "";
        bool here = false;

        for (size_t k = 0; v->typed && k < v->rank; k++) {
            size_t guessed = mdl_guess_size(&in->guess, i, k);
            size_t size = v->dim[k] >= 0 ? (size_t)v->dim[k]
                          : k == 0       ? 1
                          : guessed      ? guessed
                                         : EXAMPLE_SIZE;
            size_t used = strlen(dims);

            here |= v->dim[k] < 0 && k > 0;
            snprintf(dims + used, sizeof(dims) - used, "%s%zu", k ? "x" : "", size);
        }
        if (here) {
            open = true;
            text = mdl_pool_printf(in->pool, "%s%s%s=%s", text, text[0] ? "," : "", v->name, dims);
        }
    }
    in->example = open ? text : NULL;
}

struct looking {
    struct mdl_inspection *in;
    const char *given;
};

static void look(void *arg, const struct mdl_graph *g)
{
    struct looking *l = arg;
    struct mdl_inspection *in = l->in;

    if (in->read) { /* the second time, with the example */
        return;
    }
    in->read = true;
    in->ir_version = g->ir_version;
    in->opset = g->opset;
    in->producer = copy(in, g->producer);
    in->producer_version = copy(in, g->producer_version);
    in->node_count = g->node_count;
    for (size_t i = 0; i < g->initializer_count; i++) {
        in->weight_count += g->initializers[i].bytes / mdl_dtype_bytes(g->initializers[i].dtype);
        in->weight_bytes += g->initializers[i].bytes;
    }
    in->inputs = copy_values(in, g->inputs, g->input_count, &in->input_count);
    in->outputs = copy_values(in, g->outputs, g->output_count, &in->output_count);
    in->labels = mdl_class_names(g->names ? g->names : "", in->pool, &in->label_count);
    mdl_guess(g, &in->guess);
    find_example(in, g, l->given);
}

/* Outputs are shown as they are served. */
static void show_served(struct mdl_inspection *in)
{
    for (size_t i = 0; i < in->output_count && i < in->model->output_count; i++) {
        struct mdl_inspected_io *io = &in->outputs[i];
        struct mdl_gvalue served = mdl_served_output(in->model, i), declared = {.rank = io->rank};
        char shape[TEXT_BYTES];

        declared.typed = io->shape[0] == '[';
        memcpy(declared.dim, io->dim, sizeof(declared.dim));
        if (declared.typed && mdl_is_declared(in->model, i, &declared)) {
            continue; /* with the names of open dimensions */
        }
        io->declared = declared.typed ? io->shape : NULL;
        io->shape = copy(in, mdl_shape_format(&served, shape, sizeof(shape)));
        io->dtype = mdl_dtype_name(served.dtype);
        io->rank = served.rank;
        memcpy(io->dim, served.dim, sizeof(io->dim));
        memset(io->symbol, 0, sizeof(io->symbol));
    }
}

int mdl_inspect(const char *path, const struct mdl_load_options *options,
                struct mdl_inspection *ret)
{
    struct mdl_load_options o = *options;
    struct looking l = {ret, options->shapes};
    int r;

    *ret = (struct mdl_inspection){.producer = "", .producer_version = ""};
    r = mdl_pool_new(64u << 20, &ret->pool);
    if (r < 0) {
        return r;
    }
    o.look = look;
    o.look_arg = &l;
    o.reasons = &ret->reasons;
    r = mdl_load(path, &o, ret->why, &ret->model);
    if (r == 0) {
        ret->example = NULL; /* the caller or the sidecar gave all sizes */
    } else if (ret->example) {
        o.shapes = ret->example;
        mdl_reasons_deinit(&ret->reasons); /* the open sizes */
        r = mdl_load(path, &o, ret->why, &ret->model);
    }
    if (r == 0) {
        show_served(ret);
        ret->why[0] = '\0';
    }
    return r == -ENOMEM ? r : 0;
}

void mdl_inspection_deinit(struct mdl_inspection *in)
{
    in->model = mdl_free(in->model);
    mdl_reasons_deinit(&in->reasons);
    in->pool = mdl_pool_free(in->pool);
}
