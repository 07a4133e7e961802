/* SPDX-License-Identifier: Apache-2.0 */
#include "model/inspection.h"

#include <inttypes.h>

#include "model/declared.h"
#include "model/open_shapes.h"
#include "model/recipes.h"
#include "model/sidecar_output.h"

#define TEXT_BYTES 256u
#define PICTURE_SIZE 224

static const char *copy(struct mdl_inspection *in, const char *s)
{
    const char *made = mdl_pool_strdup(in->pool, s ? s : "");

    return made ? made : "";
}

static struct mdl_inspected_io *copy_values(struct mdl_inspection *in, const struct mdl_gvalue *v,
                                            size_t count, size_t *ret_count)
{
    struct mdl_inspected_io *list = mdl_pool_alloc(in->pool, count, sizeof(*list));

    *ret_count = list ? count : 0;
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

/* Height and width for which the file was exported, of its kind of network, or of most. */
static int64_t picture_size(const struct mdl_signs *s, const struct mdl_recipe *r, size_t k)
{
    size_t exported[] = {s->height, s->width}, kind[] = {r ? r->height : 0, r ? r->width : 0};
    size_t at = s->guess.nhwc ? 1 : 2;

    return !s->guess.picture || (k != at && k != at + 1) ? 0
           : exported[k - at]                            ? (int64_t)exported[k - at]
           : kind[k - at]                                ? (int64_t)kind[k - at]
                                                         : PICTURE_SIZE;
}

struct looking {
    struct mdl_inspection *in;
    const char *given;
    struct mdl_signs signs;
    const struct mdl_recipe *recipe;
    bool retry; /* with the example */
};

/* Return: the size that stands for an earlier dimension of the name of dimension @k of input @i. */
static int64_t same_name(const struct mdl_inspection *in, size_t i, size_t k)
{
    const char *name = in->inputs[i].symbol[k];

    for (size_t n = 0; name && n <= i; n++) {
        const struct mdl_inspected_io *io = &in->inputs[n];

        for (size_t d = 0; d < io->rank && (n < i || d < k); d++) {
            if (io->symbol[d] && strcmp(io->symbol[d], name) == 0) {
                return io->settled[d];
            }
        }
    }
    return 0;
}

static char *listed(struct mdl_inspection *in, const char *list, const char *between,
                    const char *item)
{
    return mdl_pool_printf(in->pool, "%s%s%s", list, list[0] ? between : "", item);
}

/* Sizes for what is still open in @g, so that the network can be compiled: a size of a picture,
 * MDL_EXAMPLE_SIZE for the rest, of which nobody knows anything. */
static void find_example(struct looking *l, const struct mdl_graph *g)
{
    struct mdl_inspection *in = l->in;
    const char *text = l->given ? l->given : "", *ask = "", *sizes = "";
    int64_t before = 0;

    for (size_t i = 0; text && ask && sizes && i < in->input_count; i++) {
        struct mdl_inspected_io *io = &in->inputs[i];
        char dims[TEXT_BYTES] = "", wanted[TEXT_BYTES] = "", size[24];
        bool open = false;

        for (size_t k = 0; k < io->rank; k++) {
            bool here = g->inputs[i].dim[k] < 0;
            int64_t same = here ? same_name(in, i, k) : 0;
            int64_t guessed = i == 0 ? picture_size(&l->signs, l->recipe, k) : 0;

            io->settled[k] = !here     ? g->inputs[i].dim[k]
                             : same    ? same
                             : guessed ? guessed
                                       : MDL_EXAMPLE_SIZE;
            snprintf(size, sizeof(size), "%" PRId64, io->settled[k]);
            if (here && sizes && io->settled[k] != before) {
                sizes = listed(in, sizes, " x ", size);
                before = io->settled[k];
            }
            open |= here;
            base_append(dims, sizeof(dims), "%s%s", k ? "x" : "", size);
            base_append(wanted, sizeof(wanted), "%s%s", k ? "x" : "", here ? "N" : size);
        }
        if (open) {
            text = listed(in, text, ",", mdl_pool_printf(in->pool, "%s=%s", io->name, dims));
            ask =
                listed(in, ask, " ", mdl_pool_printf(in->pool, "--shape %s=%s", io->name, wanted));
        }
    }
    in->example = text && ask && ask[0] && sizes ? text : NULL;
    in->ask = ask;
    in->sizes = sizes;
}

static void look(void *arg, const struct mdl_graph *g)
{
    struct looking *l = arg;
    struct mdl_inspection *in = l->in;
    struct mdl_match match;

    if (l->retry) {
        return;
    }
    if (in->read) {
        find_example(l, g);
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
    in->labels =
        (const char *const *)mdl_class_names(g->names ? g->names : "", in->pool, &in->label_count);
    mdl_signs_read(g, in->label_count, in->pool, &l->signs);
    l->recipe = mdl_recipe_find(&l->signs, &match, &in->guess);
}

static const char *folder_of(const struct mdl_inspection *in, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *folder =
        slash ? mdl_pool_strndup(in->pool, path, (size_t)(slash - path) + 1) : NULL;

    return folder ? folder : ".";
}

/* The draft, by what the file shows and, if it compiled, by what is served. */
static void draft(struct looking *l, const char *path)
{
    static const struct mdl_recipe classes = {.name = "classifiers",
                                              .output = "{\"decode\": \"classes\"}"};
    struct mdl_inspection *in = l->in;
    const struct mdl_recipe *r;
    struct mdl_match match;

    if (in->model) {
        mdl_signs_serve(&l->signs, in->model);
    }
    r = mdl_recipe_find(&l->signs, &match, &in->guess);
    r = r ? r : &classes;
    in->output = mdl_draft_output(r, &l->signs, &match, folder_of(in, path), in->pool, &in->needs);
    if (!in->label_count && r->labels[0]) {
        in->labels = r->labels;
        in->label_count = r->labels[1] ? 2 : 1;
    }
    if (in->output && r->output != classes.output) {
        mdl_guess_say(&in->guess, "Its outputs are read as those of %s.", r->name);
    }
    if (in->model && in->example && in->guess.open_size) {
        mdl_guess_say(&in->guess, "The size is open; %zu x %zu is an example.", in->guess.height,
                      in->guess.width);
    }
}

/* Outputs are shown as they are served. */
static void show_served(struct mdl_inspection *in)
{
    for (size_t i = 0; i < in->input_count && i < in->model->input_count; i++) {
        const struct mdl_tensor *t = &in->model->tensors[in->model->inputs[i].tensor];

        for (size_t k = 0; k < t->rank && t->rank == in->inputs[i].rank; k++) {
            in->inputs[i].settled[k] = (int64_t)t->dim[k];
        }
    }
    for (size_t i = 0; i < in->output_count && i < in->model->output_count; i++) {
        struct mdl_inspected_io *io = &in->outputs[i];
        struct mdl_gvalue served = mdl_served_output(in->model, i);
        char shape[TEXT_BYTES];

        io->declared = mdl_declared(in->model, i);
        if (!io->declared && io->shape[0] == '[') {
            continue; /* with the names of open dimensions */
        }
        io->shape = copy(in, mdl_shape_format(&served, shape, sizeof(shape)));
        io->dtype = mdl_dtype_name(served.dtype);
        io->rank = served.rank;
        memcpy(io->dim, served.dim, sizeof(io->dim));
        memset(io->symbol, 0, sizeof(io->symbol));
    }
}

void mdl_inspection_blame(struct mdl_inspection *in)
{
    char why[MDL_ERROR_MAX];

    for (size_t i = 0; i < in->reasons.count; i++) {
        if (in->reasons.list[i].kind == MDL_REASON_OPERATOR) {
            return; /* no size helps */
        }
    }
    if (in->example) {
        snprintf(why, sizeof(why), "%s", in->why);
        snprintf(
            in->why, sizeof(in->why),
            "with the example size %.40s, as the file leaves it open: %.640s; give %.200s with "
            "a size that it takes",
            in->sizes, why, in->ask);
    }
}

int mdl_inspect(const char *path, const struct mdl_load_options *options,
                struct mdl_inspection *ret)
{
    struct mdl_load_options o = *options;
    struct looking l = {.in = ret, .given = options->shapes};
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
    if (r < 0 && ret->example) {
        l.retry = true;
        o.shapes = ret->example;
        mdl_reasons_deinit(&ret->reasons); /* the open sizes */
        r = mdl_load(path, &o, ret->why, &ret->model);
    }
    if (r == 0) {
        show_served(ret);
        ret->why[0] = '\0';
    } else {
        mdl_inspection_blame(ret);
    }
    if (ret->read) {
        draft(&l, path);
    }
    return r == -ENOMEM ? r : 0;
}

int mdl_inspection_describe(struct mdl_inspection *in, const char *path,
                            char ret_error[MDL_ERROR_MAX])
{
    json_auto_t *output = json_loads(in->output, 0, NULL);
    base_autoclose int dir_fd = open(folder_of(in, path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct mdl_model *m = in->model;
    struct mdl_data_file alphabet;
    char *text;
    int r = mdl_sidecar_output(output, "the draft", dir_fd, in->pool, ret_error, &text, &alphabet);

    m->labels = (char **)(uintptr_t)in->labels; /* nobody writes them */
    m->label_count = in->label_count;
    return r < 0 ? r : mdl_describe_output(m, NULL, text, ret_error);
}

void mdl_inspection_deinit(struct mdl_inspection *in)
{
    in->model = mdl_free(in->model);
    mdl_reasons_deinit(&in->reasons);
    in->pool = mdl_pool_free(in->pool);
}
