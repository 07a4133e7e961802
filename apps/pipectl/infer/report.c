/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl infer: answers as JSON, text and raw files; what is doubtful about their model. */
#include <math.h>

#include "apps/pipectl/infer/infer.h"
#include "apps/show/decoded.h"

/* ---- outputs whose length depends on the picture (piped_rows()) ---- */

/* The valid rows of an output, along one dim; all of it where the length is fixed. */
struct part {
    const struct piped_tensor *tensor;
    const void *data;
    uint32_t dim;
    bool counted;      /* the length depends on the picture */
    size_t rows, most; /* valid, and with the others */
    size_t inner;      /* elements of a row in one place */
    size_t count;      /* valid elements */
};

static struct part part_of(const struct piped_stream *s, const struct piped_frame *f,
                           uint32_t output)
{
    struct part p = {.tensor = &piped_stream_info(s)->outputs[output], .data = f->output};

    p.rows = (size_t)piped_rows(s, f, output, &p.dim);
    p.counted = p.dim != UINT32_MAX;
    p.dim = p.counted ? p.dim : 0;
    p.inner = 1;
    for (uint32_t i = p.dim + 1; i < p.tensor->rank; i++) {
        p.inner *= p.tensor->dim[i];
    }
    p.most = p.tensor->rank ? p.tensor->dim[p.dim] : 1;
    p.count = p.most ? ctl_tensor_count(p.tensor) / p.most * p.rows : 0;
    return p;
}

static double part_value(const struct part *p, size_t i)
{
    size_t before = i / p->inner / p->rows, row = i / p->inner % p->rows;

    return ctl_tensor_value(p->tensor, p->data, (before * p->most + row) * p->inner + i % p->inner);
}

static json_t *part_shape(const struct part *p)
{
    json_t *shape = json_array();

    for (uint32_t i = 0; i < p->tensor->rank; i++) {
        size_t n = i == p->dim ? p->rows : p->tensor->dim[i];

        json_array_append_new(shape, json_integer((json_int_t)n));
    }
    return shape;
}

/* A number as JSON has it: none for infinity and NaN. */
static json_t *number(double v)
{
    return !isfinite(v)                      ? json_null()
           : v == floor(v) && fabs(v) < 1e15 ? json_integer((json_int_t)v)
                                             : shw_number(v);
}

static json_t *part_rows(const struct part *p)
{
    size_t each = p->rows ? p->count / p->rows : 0;
    json_t *rows = json_array();

    for (size_t r = 0; r < p->rows; r++) {
        json_t *row = json_array();

        for (size_t i = 0; i < each; i++) {
            size_t at = (i / p->inner * p->rows + r) * p->inner + i % p->inner;

            json_array_append_new(row, number(part_value(p, at)));
        }
        json_array_append_new(rows, row);
    }
    return rows;
}

static void print_rows(const json_t *output)
{
    const json_t *rows = json_object_get(output, "rows");

    if (!rows) {
        return;
    }
    shown_printf("  %s: %zu of at most %.0f rows\n",
                 json_string_value(json_object_get(output, "name")), json_array_size(rows),
                 ctl_real(output, "most"));
    json_text_each(rows, i, row) {
        printf("   ");
        json_text_each(row, k, v) {
            if (json_is_number(v)) {
                printf(" %.5g", json_number_value(v));
            } else {
                printf(" -");
            }
        }
        printf("\n");
    }
}

/* ---- answers ---- */

/* Keeps all outputs as f32, one after another; of those with a count, the valid rows. */
static void keep_outputs(struct infer_item *item, const struct piped_stream *s,
                         const struct piped_frame *f)
{
    uint32_t outputs = piped_stream_info(s)->output_count;
    size_t count = 0, at = 0;

    for (uint32_t o = 0; o < outputs; o++) {
        count += part_of(s, f, o).count;
    }
    item->outputs = calloc(count ? count : 1, sizeof(float));
    for (uint32_t o = 0; item->outputs && o < outputs; o++) {
        struct part p = part_of(s, f, o);

        for (size_t i = 0; i < p.count; i++) {
            item->outputs[at++] = (float)part_value(&p, i);
        }
    }
    item->output_count = item->outputs ? count : 0;
}

static json_t *file_json(const struct infer *in, const struct infer_item *item)
{
    return json_text_path(in->files[item->file].name);
}

static json_t *output_report(const struct infer *in, const struct piped_stream *s,
                             const struct piped_frame *f, uint32_t o)
{
    struct part p = part_of(s, f, o);
    json_t *j = json_pack("{s:s, s:o, s:o}", "name", p.tensor->name, "shape", part_shape(&p),
                          "file", in->o.raw ? json_text_path(in->o.raw) : json_null());

    if (p.counted) {
        json_object_set_new(j, "most", json_integer((json_int_t)p.most));
        json_object_set_new(j, "rows", part_rows(&p));
    }
    return j;
}

/* Decoded while the frame's picture is still there to draw on. */
static void decode(struct infer *in, struct infer_item *item, const struct piped_stream *s,
                   const struct piped_frame *f)
{
    const struct piped_decoded *r;

    if (!in->decoder) {
        return;
    }
    if (piped_decode_frame(in->decoder, s, f, &r) < 0) {
        item->error = strdup(piped_last_error());
        return;
    }
    shw_json(item->report, r);
    item->drawn = in->o.draw ? infer_draw(in, r, item, f) : CTL_DONE;
}

void infer_take_answer(struct infer *in, struct infer_item *item, const struct piped_frame *f,
                       const struct piped_stream *s)
{
    const struct piped_stream_info *info = piped_stream_info(s);
    json_t *outputs, *top;

    item->done = true;
    if (f->status != PIPED_OK) {
        if (asprintf(&item->error, "%s: %s", piped_status_name(f->status), f->text) < 0) {
            item->error = NULL;
        }
        return;
    }
    infer_find_decoder(in, s); /* a reload may have changed the model */
    outputs = json_array();
    for (uint32_t o = 0; o < info->output_count; o++) {
        json_array_append_new(outputs, output_report(in, s, f, o));
    }
    top = shw_top(in->decoder, f->output, in->o.top);
    if (json_array_size(top) > 0) {
        item->best = (int)ctl_real(json_array_get(top, 0), "class");
    }
    item->report = json_pack("{s:o, s:o, s:o, s:f, s:f, s:I, s:I}", "file", file_json(in, item),
                             "top", top ? top : json_array(), "outputs", outputs, "latency_ms",
                             (double)(f->answered_ns - f->submitted_ns) / 1e6, "service_ms",
                             (double)f->service_ns / 1e6, "frame", (json_int_t)item->frame, "epoch",
                             (json_int_t)f->epoch);
    decode(in, item, s, f);
    if (in->raw) {
        keep_outputs(item, s, f);
    }
}

static void print_item(const struct infer *in, const struct infer_item *item)
{
    shown_text_print(in->files[item->file].name);
    if (item->frame > 0) {
        printf(" [%zu]", item->frame);
    }
    if (in->item_count != 1) { /* most of the latency of one is its wait for those before it */
        printf("  (computed in %.2f ms, answered after %.2f)\n",
               ctl_real(item->report, "service_ms"), ctl_real(item->report, "latency_ms"));
    } else {
        printf("  (%.2f ms)\n", ctl_real(item->report, "latency_ms"));
    }
    if (json_array_size(json_object_get(item->report, "top")) == 0 &&
        json_object_get(item->report, "decoded")) {
        infer_print_decoded(item->report);
        return;
    }
    json_text_each(json_object_get(item->report, "top"), i, t) {
        const char *label = json_string_value(json_object_get(t, "label"));

        shown_printf("  %5.1f %%  %s%s%.0f  (%s)\n", 100 * ctl_real(t, "probability"),
                     label ? label : "", label ? ", class " : "class ", ctl_real(t, "class"),
                     ctl_known(t, "score", "%.5g").text);
    }
    json_text_each(json_object_get(item->report, "outputs"), i, t) {
        print_rows(t);
    }
}

/* With --video a line each, else a list at the end. */
static void keep_report(struct infer *in, json_t *report)
{
    if (in->video_bytes) {
        json_text_print(report, stdout, JSON_COMPACT);
        printf("\n");
    } else {
        json_array_append(in->results, report);
    }
}

int infer_report_item(struct infer *in, struct infer_item *item)
{
    int rc = item->drawn;

    if (item->error || !item->report) {
        const char *why = item->error ? item->error : "out of memory";

        ctl_say("%s: %s", in->files[item->file].name, why);
        in->failed++;
        if (!item->report) {
            item->report = json_pack("{s:o, s:I}", "file", file_json(in, item), "frame",
                                     (json_int_t)item->frame);
        }
        json_object_set_new(item->report, "error", json_text_shown(why));
    } else {
        if (in->expected) {
            size_t index = (size_t)(item - in->items);
            bool right = item->best == in->expected[index];

            in->correct += right;
            json_object_set_new(item->report, "expected", json_integer(in->expected[index]));
            json_object_set_new(item->report, "correct", json_boolean(right));
        }
        if (in->raw && fwrite(item->outputs, sizeof(float), item->output_count, in->raw) !=
                           item->output_count) {
            rc = ctl_fail("%s: %s", in->o.raw, strerror(errno));
        }
        if (!in->ctl->json && !in->expected) {
            print_item(in, item);
        }
    }
    if (in->ctl->json) {
        keep_report(in, item->report);
    }
    json_decref(base_take(item->report));
    free(base_take(item->outputs));
    free(base_take(item->error));
    return shown_end("pipectl", rc);
}

int infer_prepare(struct infer *in)
{
    in->raw = in->o.raw ? fopen(in->o.raw, "we") : NULL;
    if (in->o.raw && !in->raw) {
        return ctl_fail("%s: %s", in->o.raw, strerror(errno));
    }
    if ((in->o.draw || in->o.expect) && in->not_decoded[0]) {
        return ctl_fail("--%s: %s", in->o.draw ? "draw" : "expect", in->not_decoded);
    }
    in->results = json_array();
    return CTL_DONE;
}

int infer_report_next(struct infer *in)
{
    int rc = CTL_DONE;

    while (rc == CTL_DONE && in->reported < in->item_count && in->items[in->reported].done) {
        rc = infer_report_item(in, &in->items[in->reported++]);
    }
    return rc;
}

int infer_finish(struct infer *in)
{
    double accuracy = in->item_count ? (double)in->correct / (double)in->item_count : 0;

    if (in->raw) {
        FILE *raw = base_take(in->raw);

        if (fclose(raw) != 0) {
            return ctl_fail("%s: %s", in->o.raw, strerror(errno));
        }
    }
    if (in->ctl->json && in->expected) {
        ctl_print_new(json_pack("{s:f, s:I, s:I, s:O}", "accuracy", accuracy, "correct",
                                (json_int_t)in->correct, "count", (json_int_t)in->item_count,
                                "results", in->results));
    } else if (in->ctl->json && !in->video_bytes) {
        ctl_print_json(in->results);
    } else if (in->expected) {
        printf("accuracy %.2f %% (%zu of %zu)\n", 100 * accuracy, in->correct, in->item_count);
    }
    return in->failed ? CTL_FAILED : CTL_DONE;
}

static bool is_meant(const struct infer *in, const json_t *model)
{
    return in->o.model ? strcmp(ctl_text(model, "name"), in->o.model) == 0
                       : ctl_is(model, "default");
}

void infer_warn(const struct infer *in)
{
    json_auto_t *models = NULL;

    if (access(in->ctl->control_path, W_OK) == 0) {
        ctl_ask(in->ctl, "Models", json_object(), "models", &models);
    }
    json_text_each(models, i, m) {
        json_text_each(json_object_get(m, "warnings"), k, w) {
            if (is_meant(in, m) && json_is_string(w)) {
                ctl_say("warning: %s: %s", ctl_text(m, "name"), json_string_value(w));
            }
        }
    }
}
