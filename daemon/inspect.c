/* SPDX-License-Identifier: Apache-2.0 */
/* piped --inspect: looks at a model without a daemon. pipectl models inspect runs it. */
#include "base/cli/cli.h"
#include "base/json_text.h"
#include "base/tensor_name.h"
#include "base/whole_file.h"
#include "daemon/daemon.h"
#include "daemon/models/loading.h"
#include "ipc/piped.h"
#include "kernels/kernels.h"
#include "model/declared.h"
#include "model/inspection.h"
#include "model/open_shapes.h"
#include "model/sidecar.h"

/* ---- as JSON ---- */

/* Cut within a character, perhaps. */
static json_t *shown(const char *text)
{
    return text ? json_text_shown(text) : NULL;
}

static json_t *ios_json(const struct mdl_inspected_io *io, size_t count)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++) {
        json_t *shape = json_array();
        char name[TENSOR_NAME_BYTES];

        for (size_t k = 0; k < io[i].rank; k++) {
            json_array_append_new(shape, io[i].dim[k] >= 0 ? json_integer(io[i].dim[k])
                                         : io[i].symbol[k] ? json_string(io[i].symbol[k])
                                                           : json_null());
        }
        json_array_append_new(list, json_pack("{s:s, s:s, s:s?, s:o, s:o?}", "name",
                                              tensor_name(io[i].name, name), "dtype", io[i].dtype,
                                              "stored", io[i].stored, "shape", shape, "declared",
                                              shown(io[i].declared)));
    }
    return list;
}

/* Why it cannot be served. */
static json_t *reasons_json(const struct mdl_reasons *all)
{
    static const char *const kinds[] = {[MDL_REASON_OPERATOR] = "operator",
                                        [MDL_REASON_NODE] = "node",
                                        [MDL_REASON_INPUT] = "input"};
    json_t *list = json_array();

    for (size_t i = 0; i < all->count; i++) {
        const struct mdl_reason *r = &all->list[i];

        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:s}", "kind", kinds[r->kind],
                                              "node", r->node, "op", r->op_type, "domain",
                                              r->domain, "why", r->text));
    }
    return list;
}

static json_t *warnings_json(const struct mdl_model *m)
{
    json_t *list = json_array();

    for (size_t i = 0; m && mdl_note(m, i); i++) {
        json_array_append_new(list, json_text_shown(mdl_note(m, i)->text));
    }
    return list;
}

/* What the network costs; null if it cannot be compiled. */
static json_t *costs_json(const struct mdl_model *m)
{
    if (!m) {
        return json_null();
    }
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "macs", (json_int_t)m->macs, "weight_bytes",
                     (json_int_t)m->weight_bytes, "arena_bytes", (json_int_t)m->arena_bytes,
                     "units", (json_int_t)m->unit_count, "ops", (json_int_t)m->op_count, "integers",
                     (json_int_t)mdl_integer_ops(m));
}

static json_t *channels(const float v[3])
{
    return v[0] == v[1] && v[1] == v[2] ? json_real(v[0]) : json_pack("[f,f,f]", v[0], v[1], v[2]);
}

/* Sizes for the open dimensions of one input: its whole shape. */
static void open_shapes(const struct mdl_inspection *in, json_t *shapes)
{
    for (size_t i = 0; i < in->input_count; i++) {
        const struct mdl_inspected_io *io = &in->inputs[i];
        json_t *list = json_array();
        bool open = false;

        for (size_t k = 0; k < io->rank; k++) {
            open |= io->dim[k] < 0 && (k > 0 || io->settled[k] > 1);
            json_array_append_new(list, json_integer(io->settled[k]));
        }
        if (open) {
            json_object_set(shapes, io->name, list);
        }
        json_decref(list);
    }
}

static json_t *preprocess_json(const struct mdl_guess *g)
{
    json_t *pad = g->pad < 0 ? json_string("mean") : json_integer(g->pad);
    json_t *j = json_pack("{s:f, s:o, s:o, s:s*, s:s, s:s, s:O*}", "scale", g->scale, "mean",
                          channels(g->mean), "std", channels(g->std), "colour",
                          g->channels <= 1 ? NULL
                          : g->bgr         ? "bgr"
                                           : "rgb",
                          "layout", g->nhwc ? "nhwc" : "nchw", "fit", picture_fit_words[g->fit],
                          "pad", g->fit == PICTURE_LETTERBOX ? pad : NULL);

    json_decref(pad);
    return j;
}

/* A draft of the sidecar: open shapes, and preprocessing as it was guessed. */
static json_t *sidecar_draft(const struct mdl_inspection *in)
{
    const char *why = in->guess.picture ? in->guess.why : "Its input is not a picture.";
    json_auto_t *shapes = json_object();

    if (in->model) { /* else they do not work */
        open_shapes(in, shapes);
    }
    return json_pack("{s:o, s:O*, s:o*, s:o*, s:o*}", "comment",
                     json_sprintf("A draft by pipectl models inspect. %s", why), "shapes",
                     json_object_size(shapes) > 0 ? shapes : NULL, "preprocess",
                     in->guess.picture ? preprocess_json(&in->guess) : NULL, "labels",
                     in->label_count > 0
                         ? json_text_list((const char *const *)in->labels, in->label_count)
                         : NULL,
                     "output", in->output ? json_loads(in->output, 0, NULL) : NULL);
}

/* @sidecar: its path. @draft: of it, borrowed. */
static json_t *inspection_json(const struct mdl_inspection *in, const char *file,
                               const char *sidecar, bool has_sidecar, json_t *draft)
{
    json_t *j = json_pack("{s:o, s:b, s:o}", "file", json_text_path(file), "can_be_served",
                          in->model != NULL, "why", json_text_shown(in->why));

    if (!j || !in->read) {
        return j;
    }
    json_object_update_new(
        j, json_pack("{s:I, s:I, s:o*, s:o*, s:I, s:I, s:o, s:o, s:o, s:I, s:s?, s:o, s:o, "
                     "s:{s:o, s:b, s:b, s:s?, s:O}}",
                     "ir_version", (json_int_t)in->ir_version, "opset", (json_int_t)in->opset,
                     "producer", json_string(in->producer), "producer_version",
                     json_string(in->producer_version), "nodes", (json_int_t)in->node_count,
                     "weights", (json_int_t)in->weight_count, "inputs",
                     ios_json(in->inputs, in->input_count), "outputs",
                     ios_json(in->outputs, in->output_count), "reasons", reasons_json(&in->reasons),
                     "reason_count", (json_int_t)in->reasons.total, "example", in->example,
                     "compiled", costs_json(in->model), "warnings", warnings_json(in->model),
                     "sidecar", "path", json_text_path(sidecar), "exists", has_sidecar,
                     "shown_by_graph", in->guess.shown, "needs", in->needs, "draft", draft));
    return j;
}

/* ---- for people ---- */

static void print_ios(const char *what, const struct mdl_inspected_io *io, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        shown_printf("%-12s", i ? "" : what);
        shown_text_print(io[i].name);
        shown_printf("  %s  ", io[i].dtype);
        shown_text_print(io[i].shape);
        if (io[i].declared) {
            printf("  but the file declares ");
            shown_text_print(io[i].declared);
        }
        if (io[i].stored) {
            shown_printf("  %s in the file%s", io[i].stored,
                         strcmp(io[i].dtype, "f32") == 0 ? "; clients may use f16" : "");
        }
        putchar('\n');
    }
}

static bool same_operator(const struct mdl_reason *a, const struct mdl_reason *b)
{
    return a->kind == b->kind && a->version == b->version && strcmp(a->op_type, b->op_type) == 0 &&
           strcmp(a->domain, b->domain) == 0;
}

/* An operator that is not supported, with its nodes, where it is named first. */
static void print_operator(const struct mdl_reasons *all, size_t at)
{
    const struct mdl_reason *r = &all->list[at];

    for (size_t i = 0; i < at; i++) {
        if (same_operator(&all->list[i], r)) {
            return;
        }
    }
    printf("unsupported ");
    shown_text_print(r->op_type);
    shown_printf("%s", r->domain[0] ? " of " : "");
    shown_text_print(r->domain);
    if (r->version) {
        printf(" as of operator set %lld", r->version);
    }
    for (size_t i = at; i < all->count; i++) {
        if (same_operator(&all->list[i], r)) {
            shown_printf("%s ", i == at ? ": node" : ",");
            shown_text_print(all->list[i].node);
        }
    }
    putchar('\n');
}

/* Operators first, each once. @with: of a size that was made up; "": of none */
static void print_reasons(const struct mdl_reasons *all, const char *with)
{
    for (size_t i = 0; i < all->count; i++) {
        if (all->list[i].kind == MDL_REASON_OPERATOR) {
            print_operator(all, i);
        }
    }
    for (size_t i = 0; i < all->count; i++) {
        if (all->list[i].kind != MDL_REASON_OPERATOR) {
            shown_printf("%-12s%s", "refused", with);
            shown_text_print(all->list[i].text);
            putchar('\n');
        }
    }
    if (all->total > all->count) {
        shown_printf("%-12sand %zu more\n", "", all->total - all->count);
    }
}

static void print_costs(const struct mdl_inspection *in)
{
    const struct mdl_model *m = in->model;
    size_t integers = mdl_integer_ops(m);

    shown_printf(
        "%-12s%.1f million multiply-adds, %.1f MB of weights, %.1f MB of memory, %zu unit%s%s%s\n",
        "a frame", m->macs / 1e6, (double)m->weight_bytes / 1e6, (double)m->arena_bytes / 1e6,
        m->unit_count, base_plural(m->unit_count), in->example ? ", with " : "",
        in->example ? in->example : "");
    shown_printf("%-12s", "integers");
    if (integers) {
        printf("%zu of %zu operators\n", integers, m->op_count);
    } else {
        puts("none; pipectl quantize can put it on integers once it is loaded");
    }
}

/* @draft: of the sidecar; NULL: there is one, which stays. @writes: the draft will be written, so
 * nobody needs to be told how. */
static void print_text(const struct mdl_inspection *in, const char *file, const char *sidecar,
                       const char *draft, bool writes)
{
    char with[80] = "";

    shown_printf("%-12s", "file");
    shown_text_print(file);
    shown_printf("\n%-12sIR %lld, operator set %lld, by ", "format", (long long)in->ir_version,
                 (long long)in->opset);
    shown_text_print(in->producer[0] ? in->producer : "an unnamed producer");
    shown_text_print(in->producer_version[0] ? " " : "");
    shown_text_print(in->producer_version);
    shown_printf("\n%-12s%zu, with %zu weights\n", "nodes", in->node_count, in->weight_count);
    print_ios("inputs", in->inputs, in->input_count);
    print_ios("outputs", in->outputs, in->output_count);
    if (in->example) {
        snprintf(with, sizeof(with), "with the example size %.40s: ", in->sizes);
    }
    print_reasons(&in->reasons, with);
    if (in->model) {
        print_costs(in);
    }
    shown_printf("%-12s%s", "sidecar", !draft || writes ? "" : "none; would be ");
    shown_text_print(sidecar);
    putchar('\n');
    if (in->guess.picture) {
        shown_printf("%-12s%s\n", "guessed", in->guess.why);
    }
    if (in->needs) {
        shown_printf("%-12s%s\n", "no output", in->needs);
    }
    if (draft) {
        shown_printf("%-12s%s\n%s", "draft", draft,
                     writes ? "" : "            --write-sidecar writes it\n");
    }
    for (size_t i = 0; in->model && mdl_note(in->model, i); i++) {
        shown_printf("%-12s", "warning");
        shown_text_print(mdl_note(in->model, i)->text);
        putchar('\n');
    }
    if (!in->model) {
        shown_printf("%-12sno: ", "served");
        shown_text_print(in->why);
        putchar('\n');
    } else {
        shown_printf("%-12syes%s\n", "served", in->example ? ", with its open sizes settled" : "");
    }
}

/* A draft is not made with an output that would be refused when the model is loaded. */
static void check_draft(struct mdl_inspection *in, const char *file)
{
    char why[MDL_ERROR_MAX];
    int r;

    if (!in->model || !in->output) {
        return;
    }
    r = mdl_inspection_describe(in, file, why);
    if (r == 0 && dmn_output_fits(in->model) < 0) {
        r = -EINVAL;
        snprintf(why, sizeof(why), "%s", piped_last_error());
    }
    if (r < 0) {
        in->output = NULL;
        in->needs = mdl_pool_printf(in->pool, "its outputs are not what they look like: %s", why);
    }
}

/* Writes @text; a sidecar that is there stays, unless @force. Return: an exit code. */
static int write_sidecar(const char *text, const char *path, bool exists, bool force)
{
    struct atomic_file f = {.folder = AT_FDCWD, .path = path, .mode = 0644};
    base_autofree char *line = NULL;
    int r;

    if (exists && !force) {
        shown_say("piped", "%s is there; --force replaces it", path);
        return DMN_EXIT_FAILED;
    }
    r = !text || asprintf(&line, "%s\n", text) < 0 ? -ENOMEM
                                                   : atomic_file_write(&f, line, strlen(line));
    if (r < 0) {
        shown_say("piped", "cannot write %s: %s", path, strerror(-r));
        return DMN_EXIT_FAILED;
    }
    shown_say("piped", "wrote %s; check what is guessed in it", path);
    return DMN_EXIT_OK;
}

/* Nothing is guessed that the sidecar states. */
static void keep_unstated(struct mdl_inspection *in, const char *file)
{
    struct mdl_sidecar side;
    char why[MDL_ERROR_MAX];

    if (mdl_sidecar_read(file, in->pool, why, &side) == 0) {
        in->guess.picture &= !side.preproc.given;
        in->needs = side.output ? NULL : in->needs;
    }
}

int dmn_inspect(const struct dmn_args *args)
{
    base_cleanup(mdl_inspection_deinit) struct mdl_inspection in = {.pool = NULL};
    const char *shapes = mdl_shapes_suffix(args->inspect);
    base_autofree char *file =
        strndup(args->inspect, shapes ? (size_t)(shapes - 1 - args->inspect) : SIZE_MAX / 2);
    base_autofree char *sidecar = file ? mdl_sidecar_find(file) : NULL;
    struct mdl_load_options options = {.const_eval = krn_const_eval, .shapes = shapes};
    bool exists = sidecar && !base_is_missing(sidecar);
    bool shows_draft = !exists || (args->write_sidecar && args->force);
    json_auto_t *sidecar_json = NULL;
    base_autofree char *draft = NULL;
    int status;

    if (!sidecar || mdl_inspect(file, &options, &in) < 0) {
        shown_say("piped", "%s", in.why[0] ? in.why : "out of memory");
        return DMN_EXIT_FAILED;
    }
    if (in.model &&
        (dmn_load_check(in.model, in.why) < 0 || dmn_output_check(in.model, file, in.why) < 0)) {
        in.model = mdl_free(in.model);
        mdl_inspection_blame(&in);
    }
    check_draft(&in, file);
    sidecar_json = sidecar_draft(&in);
    draft = json_text(sidecar_json, JSON_INDENT(4) | JSON_REAL_PRECISION(7));
    if (args->json) {
        json_auto_t *j = inspection_json(&in, file, sidecar, exists, sidecar_json);

        json_text_print(j, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(7));
        putchar('\n');
    } else if (in.read) {
        if (!shows_draft) {
            keep_unstated(&in, file);
        }
        print_text(&in, file, sidecar, shows_draft ? draft : NULL, args->write_sidecar);
    } else {
        shown_say("piped", "%s", in.why);
    }
    status = in.model ? DMN_EXIT_OK : DMN_EXIT_FAILED;
    fflush(stdout); /* what follows goes to stderr, and into the same log */
    if (args->write_sidecar && in.read) {
        int wrote = write_sidecar(draft, sidecar, exists, args->force);

        status = wrote ? wrote : status;
    }
    return status;
}
