/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/http/web_picture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/http/web_control.h"

#define CLASSES_MAX 1000000u

bool web_picture_read(const struct web_request *q, struct ctl_image *ret, struct web_reply *r)
{
    struct ctl_image img = {.data = q->body, .data_bytes = q->bytes};
    double most = q->listener->web->o.image_mpixels * 1e6;
    char why[512];
    int rc;

    img.kind = q->body_kind == WEB_BODY_JPEG ? CTL_IMAGE_JPEG : CTL_IMAGE_PNG;
    rc = q->bytes == 0                   ? -1
         : q->body_kind == WEB_BODY_JPEG ? ctl_jpeg_size(&img, why, sizeof(why))
                                         : ctl_png_size(&img, why, sizeof(why));
    if (rc < 0) {
        web_fail(r, 400, "the body is not a whole %s picture: %s",
                 q->body_kind == WEB_BODY_JPEG ? "JPEG" : "PNG", q->bytes ? why : "it is empty");
        return false;
    }
    if ((double)img.width * img.height > most) {
        web_fail(r, 413, "the picture has %ux%u pixels; --image-mpixels allows %g megapixels",
                 img.width, img.height, most / 1e6);
        return false;
    }
    img.bytes = (size_t)img.width * img.height * img.channels;
    *ret = img;
    return true;
}

bool web_picture_decode(const struct ctl_image *img, struct piped_frame *f, struct web_reply *r)
{
    char why[512];
    int rc = img->kind == CTL_IMAGE_JPEG ? ctl_jpeg_decode(img, f->input, why, sizeof(why))
                                         : ctl_png_decode(img, f->input, why, sizeof(why));

    if (rc < 0) {
        web_fail(r, 400, "the picture cannot be decoded: %s", why);
        return false;
    }
    f->width = img->width;
    f->height = img->height;
    return true;
}

/* Return: the number of classes if the tensor is a vector of f32, or 0. */
static size_t class_count(const struct piped_tensor *t)
{
    size_t large = 0, count = 1;

    for (uint32_t i = 0; i < t->rank; i++) {
        large += t->dim[i] > 1;
        count *= t->dim[i];
    }
    return large == 1 && count <= CLASSES_MAX && t->dtype == PIPED_F32 ? count : 0;
}

static json_t *labels_of(struct web_control *c, const char *model, json_t **ret_models)
{
    char why[WEB_WHY_BYTES];
    json_t *m;
    size_t i;

    if (web_ask(c, WEB_MODELS, ret_models, why) < 0) {
        return NULL;
    }
    json_array_foreach(json_object_get(*ret_models, "models"), i, m)
    {
        const char *name = json_string_value(json_object_get(m, "name"));

        if (name && strcmp(name, model) == 0) {
            return json_object_get(m, "labels");
        }
    }
    return NULL;
}

/* Scores are as the model gives them; probabilities are those, or by softmax if they are none. */
static bool are_probabilities(const float *v, size_t count)
{
    double total = 0;

    for (size_t i = 0; i < count; i++) {
        if (!(v[i] >= 0 && v[i] <= 1)) {
            return false;
        }
        total += (double)v[i];
    }
    return fabs(total - 1) < 1e-3;
}

/* The best class that is not taken yet; SIZE_MAX: none. */
static size_t best_of(const float *v, size_t count, const bool *taken)
{
    size_t best = SIZE_MAX;

    for (size_t i = 0; i < count; i++) {
        if (!taken[i] && !isnan(v[i]) && (best == SIZE_MAX || v[i] > v[best])) {
            best = i;
        }
    }
    return best;
}

json_t *web_picture_top(struct web_control *c, const char *model, const struct piped_tensor *t,
                        const void *outputs, size_t wanted)
{
    const float *v = (const float *)(const void *)((const uint8_t *)outputs + t->offset);
    size_t count = class_count(t);
    base_autofree bool *taken = calloc(count ? count : 1, sizeof(*taken));
    bool already = are_probabilities(v, count);
    json_t *models = NULL, *labels, *top;
    double sum = 0, highest;

    if (count == 0 || !taken) {
        return NULL;
    }
    top = json_array();
    labels = labels_of(c, model, &models);
    for (size_t k = 0; k < base_min(wanted, count); k++) {
        size_t best = best_of(v, count, taken);
        double score = best == SIZE_MAX ? NAN : (double)v[best], p;

        if (!isfinite(score)) {
            break;
        }
        highest = k == 0 ? score : highest;
        for (size_t i = 0; k == 0 && i < count; i++) {
            sum += isnan(v[i]) ? 0 : exp((double)v[i] - highest);
        }
        p = already ? score : exp(score - highest) / sum;
        json_array_append_new(top,
                              json_pack("{s:I, s:s?, s:f, s:f}", "class", (json_int_t)best, "label",
                                        json_string_value(json_array_get(labels, best)), "score",
                                        score, "probability", p));
        taken[best] = true;
    }
    json_decref(models);
    return top;
}
