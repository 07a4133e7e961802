/* SPDX-License-Identifier: Apache-2.0 */

#include "base/base.h"
#include "base/json_text.h"
#include "base/tensor_name.h"
#include "daemon/inspect.h"
#include "model/declared.h"

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
    static const char *const fits[] = {
        [PICTURE_STRETCH] = "stretch", [PICTURE_CROP] = "crop", [PICTURE_LETTERBOX] = "letterbox"};
    json_t *pad = g->pad < 0 ? json_string("mean") : json_integer(g->pad);
    json_t *j = json_pack("{s:f, s:o, s:o, s:s*, s:s, s:s, s:O*}", "scale", g->scale, "mean",
                          channels(g->mean), "std", channels(g->std), "colour",
                          g->channels <= 1 ? NULL
                          : g->bgr         ? "bgr"
                                           : "rgb",
                          "layout", g->nhwc ? "nhwc" : "nchw", "fit", fits[g->fit], "pad",
                          g->fit == PICTURE_LETTERBOX ? pad : NULL);

    json_decref(pad);
    return j;
}

static json_t *labels_json(const struct mdl_inspection *in)
{
    json_t *list = json_array();

    for (size_t i = 0; i < in->label_count; i++) {
        json_array_append_new(list, json_string(in->labels[i]));
    }
    return list;
}

json_t *dmn_sidecar_draft(const struct mdl_inspection *in)
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
                     in->label_count > 0 ? labels_json(in) : NULL, "output",
                     in->output ? json_loads(in->output, 0, NULL) : NULL);
}

json_t *dmn_inspection_json(const struct mdl_inspection *in, const char *file, const char *sidecar,
                            bool has_sidecar)
{
    json_t *j = json_pack("{s:o, s:b, s:o}", "file", json_text_path(file), "can_be_served",
                          in->model != NULL, "why", json_text_shown(in->why));

    if (!j || !in->read) {
        return j;
    }
    json_object_update_new(
        j, json_pack(
               "{s:I, s:I, s:o*, s:o*, s:I, s:I, s:o, s:o, s:o, s:I, s:s?, s:o, s:o, "
               "s:{s:o, s:b, s:b, s:s?, s:o}}",
               "ir_version", (json_int_t)in->ir_version, "opset", (json_int_t)in->opset, "producer",
               json_string(in->producer), "producer_version", json_string(in->producer_version),
               "nodes", (json_int_t)in->node_count, "weights", (json_int_t)in->weight_count,
               "inputs", ios_json(in->inputs, in->input_count), "outputs",
               ios_json(in->outputs, in->output_count), "reasons", reasons_json(&in->reasons),
               "reason_count", (json_int_t)in->reasons.total, "example", in->example, "compiled",
               costs_json(in->model), "warnings", warnings_json(in->model), "sidecar", "path",
               json_text_path(sidecar), "exists", has_sidecar, "shown_by_graph", in->guess.shown,
               "needs", in->needs, "draft", dmn_sidecar_draft(in)));
    return j;
}
