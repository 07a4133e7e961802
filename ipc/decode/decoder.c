/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/decode/decoder.h"

#include "base/tensor_name.h"

#define KIND(ID, word) &decode_##word,
static const struct decode_kind *const kinds[] = {OUTPUT_KINDS(KIND)};

/* ---- a new decoder ---- */

/* Return: 0; -EINVAL: its type or size is impossible; -ENOMEM. */
static int take_tensor(const struct piped_tensor *from, struct decode_tensor *t)
{
    size_t each = ipc_dtype_bytes(from->dtype), batch;

    t->t = *from;
    t->t.name = tensor_name(from->name ? from->name : "", t->name);
    if (!each || from->rank > IPC_RANK_MAX || from->bytes > SIZE_MAX / 8) {
        return ipc_client_error(-EINVAL, "output %s is of a type that is not known", t->name);
    }
    t->count = 1;
    batch = from->rank >= 3 && from->dim[0] == 1;
    for (size_t i = 0; i < from->rank; i++) {
        if (!base_mul(t->count, from->dim[i], &t->count)) {
            return decode_bad(t, "is too large");
        }
        if (i >= batch) {
            t->dim[t->rank++] = from->dim[i];
        }
    }
    if (t->count != from->bytes / each || t->count == 0) {
        return decode_bad(t, "has %llu bytes", (unsigned long long)from->bytes);
    }
    if (from->dtype != PIPED_F32) {
        t->copy = calloc(t->count, sizeof(float));
        return t->copy ? 0 : ipc_client_error(-ENOMEM, "out of memory");
    }
    return 0;
}

static int find_tensor(const struct piped_decoder *d, const char *name, size_t *ret)
{
    for (size_t i = 0; i < d->tensor_count; i++) {
        if (tensor_same(d->tensor[i].name, name)) {
            *ret = i;
            return 0;
        }
    }
    return ipc_client_error(-EINVAL, "key 'tensors': the model has no output %.60s; it has %s%s",
                            name, d->tensor_count ? d->tensor[0].name : "none",
                            d->tensor_count > 1 ? " and others" : "");
}

static int find_roles(struct piped_decoder *d)
{
    int rc = 0;

    for (size_t r = 0; r < OUTPUT_ROLE_COUNT; r++) {
        for (size_t k = 0; rc == 0 && k < d->set.name_count[r]; k++) {
            struct decode_tensor *t;

            rc = find_tensor(d, d->set.name[r][k], &d->role[r][k]);
            t = &d->tensor[d->role[r][k]];
            if (rc == 0 && t->taken) {
                rc = ipc_client_error(-EINVAL,
                                      "key 'tensors': output %s is named twice; each part needs "
                                      "an output of its own",
                                      t->name);
            }
            t->taken = true;
        }
        d->role_count[r] = d->set.name_count[r];
    }
    return rc;
}

static int read_description(struct piped_decoder *d, const char *description)
{
    const char *key = "", *fit;
    char why[OUTPUT_WHY_BYTES];
    json_error_t at;
    json_int_t w, h;
    int which;

    d->json = json_loads(description, JSON_REJECT_DUPLICATES, &at);
    if (!d->json) {
        return ipc_client_error(-EINVAL, "the description of the outputs: %s", at.text);
    }
    if (!output_settings_read(json_object_get(d->json, "output"), &d->set, &key, why)) {
        return ipc_client_error(-EINVAL, "key 'output': key '%.60s': %s", key, why);
    }
    if (d->set.alphabet_file) {
        return ipc_client_error(-EINVAL, "key 'alphabet_file': only a sidecar has files");
    }
    d->kind = kinds[d->set.kind];
    w = json_integer_value(json_object_get(d->json, "width"));
    h = json_integer_value(json_object_get(d->json, "height"));
    fit = json_string_value(json_object_get(d->json, "fit"));
    which = fit ? output_word(picture_fit_words, fit, why) : 0;
    if (which < 0 || w < 0 || h < 0 || w > INT32_MAX || h > INT32_MAX) {
        return ipc_client_error(-EINVAL, "the description's width, height or fit is impossible");
    }
    d->fit = (enum picture_fit)which;
    d->in_width = (uint32_t)w;
    d->in_height = (uint32_t)h;
    d->labels = json_object_get(d->json, "labels");
    if ((w == 0 || h == 0) && d->set.kind != OUTPUT_CLASSES && d->set.kind != OUTPUT_CTC) {
        return ipc_client_error(-EINVAL,
                                "\"decode\": \"%s\" needs a model whose input is a picture",
                                output_kind_words[d->set.kind]);
    }
    return 0;
}

int piped_decoder_new(const char *description, const struct piped_tensor *outputs,
                      uint32_t output_count, struct piped_decoder **ret)
{
    struct piped_decoder *d;
    int rc = 0;

    if (!description || !*description) {
        return ipc_client_error(
            -ENODATA, "the model's sidecar does not say how to decode its outputs (key "
                      "output); pipectl models inspect FILE --write-sidecar drafts it, or "
                      "says why it cannot; docs/outputs.md says how to write it");
    }
    if (output_count > DECODE_TENSORS_MAX || !(d = calloc(1, sizeof(*d)))) {
        return ipc_client_error(-ENOMEM, "out of memory");
    }
    d->description = strdup(description);
    rc = d->description ? read_description(d, description)
                        : ipc_client_error(-ENOMEM, "out of memory");
    for (; rc == 0 && d->tensor_count < output_count; d->tensor_count++) {
        rc = take_tensor(&outputs[d->tensor_count], &d->tensor[d->tensor_count]);
    }
    rc = rc < 0 ? rc : find_roles(d);
    rc = rc < 0 || !d->kind->one ? rc : decode_need(d, OUTPUT_AS_BOXES, 1);
    d->only = rc < 0 ? NULL : decode_one(d, OUTPUT_AS_BOXES, 0);
    rc = rc < 0 ? rc : d->kind->check(d);
    if (rc < 0) {
        piped_decoder_free(d);
        return rc;
    }
    *ret = d;
    return 0;
}

struct piped_decoder *piped_decoder_free(struct piped_decoder *d)
{
    if (d) {
        for (size_t i = 0; i < DECODE_TENSORS_MAX; i++) {
            free(d->tensor[i].copy);
        }
        free(d->description);
        json_decref(d->json);
        free(d->boxes);
        free(d->points);
        free(d->objects);
        free(d->best);
        free(d->text);
        free(d->scratch);
        free(d->mask_classes);
        free(d);
    }
    return NULL;
}

/* ---- a frame ---- */

/* Of the polygon of its points, which are in the picture: the shoelace formula. */
static double polygon_area(const struct piped_decoder *d, const struct decode_box *b)
{
    const struct piped_point *p = &d->points[b->point_first];
    double twice = 0;

    for (uint32_t i = 0; i < b->point_count; i++) {
        const struct piped_point *a = &p[i], *c = &p[(i + 1) % b->point_count];

        twice += (double)a->x * (double)c->y - (double)c->x * (double)a->y;
    }
    return fabs(twice) / 2;
}

/* Takes a box back to the picture. Return: false: nothing of it is there. */
static bool finish_box(const struct piped_decoder *d, const struct decode_box *b,
                       struct piped_object *ret)
{
    double x1 = decode_clipped(decode_x(d, b->x1), d->width),
           x2 = decode_clipped(decode_x(d, b->x2), d->width);
    double y1 = decode_clipped(decode_y(d, b->y1), d->height),
           y2 = decode_clipped(decode_y(d, b->y2), d->height);
    double scale = ((double)d->x.src / d->x.dst) * ((double)d->y.src / d->y.dst);

    if (!(x2 >= x1 && y2 >= y1)) {
        return false;
    }
    ret->x = (float)x1;
    ret->y = (float)y1;
    ret->width = (float)(x2 - x1);
    ret->height = (float)(y2 - y1);
    ret->area = (float)(d->set.kind == OUTPUT_DBNET ? polygon_area(d, b)
                        : b->area > 0               ? b->area * scale
                                                    : (x2 - x1) * (y2 - y1));
    return d->set.kind == OUTPUT_KEYPOINTS || (ret->width > 0 && ret->height > 0);
}

static void finish(struct piped_decoder *d)
{
    size_t count = 0;

    if (d->failed ||
        !decode_grow(d, &d->objects, &d->object_size, d->box_count, sizeof(*d->objects))) {
        return;
    }
    for (size_t i = 0; i < d->box_count; i++) {
        const struct decode_box *b = &d->boxes[i];
        struct piped_object o = {.score = (float)b->score,
                                 .number = b->number,
                                 .label = decode_label(d, b->number),
                                 .point_first = b->point_first,
                                 .point_count = b->point_count};

        if (isfinite(o.score) && (d->set.kind == OUTPUT_CLASSES || finish_box(d, b, &o))) {
            d->objects[count++] = o;
        }
    }
    d->result.kind = output_kind_words[d->set.kind];
    d->result.width = d->width;
    d->result.height = d->height;
    d->result.objects = d->objects;
    d->result.object_count = count;
    d->result.points = d->points;
    d->result.point_count = d->point_count;
}

int piped_decode(struct piped_decoder *d, const void *output, const uint64_t *rows, uint32_t width,
                 uint32_t height, const struct piped_decoded **ret)
{
    uint32_t in_w = d->in_width ? d->in_width : 1, in_h = d->in_height ? d->in_height : 1;
    bool picture = width > 0 && height > 0;

    if ((width > 0) != (height > 0) || width > INT32_MAX || height > INT32_MAX) {
        return ipc_client_error(-EINVAL, "%u x %u is not the size of a picture", width, height);
    }
    d->width = picture ? width : in_w;
    d->height = picture ? height : in_h;
    picture_fit(d->fit, d->width, d->height, in_w, in_h, &d->x, &d->y);
    d->box_count = d->point_count = d->text_bytes = 0;
    d->failed = 0;
    d->result = (struct piped_decoded){0};
    decode_take(d, output, rows);
    d->kind->run(d);
    finish(d);
    if (d->failed) {
        return d->failed;
    }
    *ret = &d->result;
    return 0;
}
