/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl infer: answers as JSON, text and raw files. A score is the model's output, unchanged; a
 * probability is computed from the scores. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/pipectl/infer.h"
#include "ipc/show/decoded_json.h"
#include "ipc/show/number.h"
#include "json_text.h"
#include "shown_text.h"

#define CLASSES_MAX 1000000u

/* Return: the number of classes if the tensor is a vector (all dimensions but one are 1), or 0. */
static size_t class_count(const struct piped_tensor *t)
{
    size_t big = 0;

    for (uint32_t i = 0; i < t->rank; i++) {
        big += t->dim[i] > 1;
    }
    return big == 1 && ctl_tensor_count(t) <= CLASSES_MAX ? ctl_tensor_count(t) : 0;
}

static json_t *top_of(const struct infer *in, struct infer_item *item, const struct piped_tensor *t,
                      const void *data)
{
    size_t classes = class_count(t), wanted = base_min(in->top, classes);
    json_t *top = json_array();
    base_autofree double *values = calloc(classes ? classes : 1, sizeof(double));
    double highest = -INFINITY, sum = 0, total = 0;
    bool probabilities = true;

    if (!values) {
        return top;
    }
    for (size_t i = 0; i < classes; i++) {
        values[i] = ctl_tensor_value(t, data, i);
        highest = fmax(highest, values[i]);
        probabilities &= values[i] >= 0 && values[i] <= 1;
        total += values[i];
    }
    probabilities &= fabs(total - 1) < 1e-3;
    for (size_t i = 0; i < classes; i++) {
        sum += exp(values[i] - highest);
    }
    for (size_t k = 0; k < wanted; k++) {
        const char *label;
        size_t best = SIZE_MAX;
        double p;

        for (size_t i = 0; i < classes; i++) {
            if (!isnan(values[i]) && (best == SIZE_MAX || values[i] > values[best])) {
                best = i;
            }
        }
        if (best == SIZE_MAX) {
            break;
        }
        item->best = k == 0 ? (int)best : item->best;
        label = json_string_value(json_array_get(in->labels, best));
        p = probabilities ? values[best] : exp(values[best] - highest) / sum;
        json_array_append_new(top, json_pack("{s:i, s:s?, s:o, s:o}", "class", (int)best, "label",
                                             label, "score", shw_number(values[best]),
                                             "probability", shw_number(p)));
        values[best] = NAN;
    }
    return top;
}

/* Keeps all outputs as f32, one after another; of those with a count, the valid rows. */
static void keep_outputs(struct infer_item *item, const struct piped_stream *s,
                         const struct piped_frame *f)
{
    uint32_t outputs = piped_stream_info(s)->output_count;
    size_t count = 0, at = 0;

    for (uint32_t o = 0; o < outputs; o++) {
        count += infer_part_of(s, f, o).count;
    }
    item->outputs = calloc(count ? count : 1, sizeof(float));
    for (uint32_t o = 0; item->outputs && o < outputs; o++) {
        struct infer_part p = infer_part_of(s, f, o);

        for (size_t i = 0; i < p.count; i++) {
            item->outputs[at++] = (float)infer_part_value(&p, i);
        }
    }
    item->output_count = item->outputs ? count : 0;
}

static json_t *output_report(const struct infer *in, const struct piped_stream *s,
                             const struct piped_frame *f, uint32_t o)
{
    struct infer_part p = infer_part_of(s, f, o);
    json_t *j = json_pack("{s:s, s:o, s:s?}", "name", p.tensor->name, "shape", infer_part_shape(&p),
                          "file", in->raw_path);

    if (p.counted) {
        json_object_set_new(j, "most", json_integer((json_int_t)p.most));
        json_object_set_new(j, "rows", infer_part_rows(&p));
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
    if (r->object_count && strcmp(r->kind, "classes") == 0) {
        item->best = r->objects[0].number;
    }
    shw_json(item->report, r);
    item->drawn = in->draw_path ? infer_draw(in, r, item, f) : CTL_DONE;
}

void infer_take_answer(struct infer *in, struct infer_item *item, const struct piped_frame *f,
                       const struct piped_stream *s)
{
    const struct piped_stream_info *info = piped_stream_info(s);
    json_t *outputs;

    item->done = true;
    if (f->status != PIPED_OK) {
        if (asprintf(&item->error, "%s: %s", piped_status_name(f->status), f->text) < 0) {
            item->error = NULL;
        }
        return;
    }
    outputs = json_array();
    for (uint32_t o = 0; o < info->output_count; o++) {
        json_array_append_new(outputs, output_report(in, s, f, o));
    }
    item->report = json_pack(
        "{s:s, s:o, s:o, s:f, s:I, s:I}", "file", in->files[item->file].name, "top",
        info->output_count ? top_of(in, item, &info->outputs[0], f->output) : json_array(),
        "outputs", outputs, "latency_ms", (double)(f->answered_ns - f->submitted_ns) / 1e6, "frame",
        (json_int_t)item->frame, "epoch", (json_int_t)f->epoch);
    decode(in, item, s, f);
    if (in->raw) {
        keep_outputs(item, s, f);
    }
}

static void print_item(const struct infer *in, const struct infer_item *item)
{
    base_autofree char *name = strdup(in->files[item->file].name);
    json_t *t;
    size_t i;

    if (name) {
        shown_clean(name, "");
        printf("%s", name);
    }
    if (item->frame > 0) {
        printf(" [%zu]", item->frame);
    }
    printf("  (%.2f ms)\n", ctl_real(item->report, "latency_ms"));
    if (json_object_get(item->report, "decoded")) {
        infer_print_decoded(item->report);
        return;
    }
    json_array_foreach(json_object_get(item->report, "top"), i, t)
    {
        const char *label = json_string_value(json_object_get(t, "label"));

        printf("  %5.1f %%  %s%s%.0f  (%.5g)\n", 100 * ctl_real(t, "probability"),
               label ? label : "", label ? ", class " : "class ", ctl_real(t, "class"),
               ctl_real(t, "score"));
    }
    json_array_foreach(json_object_get(item->report, "outputs"), i, t)
    {
        infer_print_rows(t);
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
        ctl_say("%s: %s", in->files[item->file].name, item->error ? item->error : "out of memory");
        in->failed++;
        item->report = item->report
                           ? item->report
                           : json_pack("{s:s, s:I, s:s?}", "file", in->files[item->file].name,
                                       "frame", (json_int_t)item->frame, "error", item->error);
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
            ctl_say("%s: %s", in->raw_path, strerror(errno));
            rc = CTL_FAILED;
        }
        if (!in->ctl->json && !in->expected) {
            print_item(in, item);
        }
    }
    if (in->ctl->json) {
        keep_report(in, item->report);
    }
    json_decref(item->report);
    item->report = NULL;
    free(item->outputs);
    item->outputs = NULL;
    free(item->error);
    item->error = NULL;
    return rc;
}

/* Asks for the class names; without a control socket there are only numbers. */
static void find_labels(struct infer *in)
{
    json_t *reply = NULL, *m;
    size_t i;

    if (ctl_call(in->ctl, "Models", json_object(), &reply) != CTL_DONE) {
        return;
    }
    json_array_foreach(json_object_get(reply, "models"), i, m)
    {
        if (!in->labels && (!in->model || strcmp(ctl_text(m, "name"), in->model) == 0)) {
            json_t *labels = json_object_get(m, "labels");

            in->labels = json_is_array(labels) ? json_incref(labels) : NULL;
            if (!in->model) {
                break;
            }
        }
    }
    json_decref(reply);
}

int infer_prepare(struct infer *in)
{
    in->raw = in->raw_path ? fopen(in->raw_path, "we") : NULL;
    if (in->raw_path && !in->raw) {
        ctl_say("%s: %s", in->raw_path, strerror(errno));
        return CTL_FAILED;
    }
    if (in->draw_path && !in->decoder) {
        ctl_say("--draw: the model's sidecar does not say how to decode its outputs (key output)");
        return CTL_FAILED;
    }
    find_labels(in);
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
            ctl_say("%s: %s", in->raw_path, strerror(errno));
            return CTL_FAILED;
        }
    }
    if (in->ctl->json && in->expected) {
        json_t *whole = json_pack("{s:f, s:I, s:I, s:O}", "accuracy", accuracy, "correct",
                                  (json_int_t)in->correct, "count", (json_int_t)in->item_count,
                                  "results", in->results);

        ctl_print_json(whole);
        json_decref(whole);
    } else if (in->ctl->json && !in->video_bytes) {
        ctl_print_json(in->results);
    } else if (in->expected) {
        printf("accuracy %.2f %% (%zu of %zu)\n", 100 * accuracy, in->correct, in->item_count);
    }
    return in->failed ? CTL_FAILED : CTL_DONE;
}
