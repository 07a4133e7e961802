/* SPDX-License-Identifier: Apache-2.0 */
/* What several decoders do: rows of numbers, activations, boxes, non-maximum suppression. */
#include <math.h>

#include "base/base.h"
#include "ipc/decode/decoder.h"
#include "ipc/wire.h"

#define GROW_LEAST ((size_t)64)

int decode_bad(const struct decode_tensor *t, const char *why, ...)
{
    char text[200], shape[120] = "";
    va_list args;

    va_start(args, why);
    vsnprintf(text, sizeof(text), why, args);
    va_end(args);
    for (uint32_t i = 0; i < t->t.rank; i++) {
        base_append(shape, sizeof(shape), "%s%u", i ? ", " : "", t->t.dim[i]);
    }
    return ipc_client_error(-EINVAL, "output %s [%s] %s", t->name, shape, text);
}

int decode_labels_fit(const struct piped_decoder *d, const struct decode_tensor *t, size_t classes,
                      const char *others)
{
    size_t labels = json_array_size(d->labels);
    const char *help = d->set.kind == OUTPUT_YOLO
                           ? "\"objectness\", \"keypoints\" or \"layout\" may help"
                       : d->set.kind != OUTPUT_BOXES && d->set.background
                           ? "give one for each class, first the background's; \"layout\" may help"
                           : "give one for each class, from class 0";

    return labels == 0 || labels == classes ? 0
                                            : decode_bad(t, "has %zu classes%s and %zu labels; %s",
                                                         classes, others, labels, help);
}

const struct decode_tensor *decode_one(const struct piped_decoder *d, unsigned role, size_t k)
{
    return k < d->role_count[role] ? &d->tensor[d->role[role][k]] : NULL;
}

int decode_need(struct piped_decoder *d, unsigned role, size_t count)
{
    size_t *have = &d->role_count[role];

    for (size_t i = 0; d->set.name_count[role] == 0 && i < d->tensor_count; i++) {
        if (!d->tensor[i].taken && *have < base_min(count, (size_t)OUTPUT_NAMES_MAX)) {
            d->tensor[i].taken = true;
            d->role[role][(*have)++] = i;
        }
    }
    if (*have != count) {
        return ipc_client_error(-EINVAL,
                                "key 'tensors': \"%s\" needs %zu outputs of the model and gets %zu",
                                output_role_words[role], count, *have);
    }
    return 0;
}

int decode_scratch(struct piped_decoder *d, size_t bytes)
{
    d->scratch = calloc(1, bytes);
    return d->scratch ? 0 : ipc_client_error(-ENOMEM, "out of memory");
}

bool decode_grow(struct piped_decoder *d, void *list, size_t *size, size_t count, size_t bytes)
{
    if (base_room_for(list, bytes, base_max(count, GROW_LEAST), size)) {
        return true;
    }
    d->failed = ipc_client_error(-ENOMEM, "out of memory");
    return false;
}

void decode_add_box(struct piped_decoder *d, const struct decode_box *b)
{
    if (isfinite(b->x1) && isfinite(b->y1) && isfinite(b->x2) && isfinite(b->y2) &&
        decode_grow(d, &d->boxes, &d->box_size, d->box_count + 1, sizeof(*d->boxes))) {
        d->boxes[d->box_count++] = *b;
    }
}

double decode_x(const struct piped_decoder *d, double u)
{
    return d->x.src0 + (u - d->x.dst0) * d->x.src / d->x.dst;
}

double decode_y(const struct piped_decoder *d, double v)
{
    return d->y.src0 + (v - d->y.dst0) * d->y.src / d->y.dst;
}

double decode_clipped(double v, double most)
{
    return v < 0 ? 0 : v > most ? most : v;
}

/* Corners of objects are in the picture; other points may be outside. */
void decode_add_point(struct piped_decoder *d, double u, double v, double score)
{
    double x = decode_x(d, u), y = decode_y(d, v);

    if (d->set.kind == OUTPUT_DBNET) {
        x = decode_clipped(x, d->width);
        y = decode_clipped(y, d->height);
    }
    if (decode_grow(d, &d->points, &d->point_size, d->point_count + 1, sizeof(*d->points))) {
        d->points[d->point_count++] =
            (struct piped_point){.x = (float)x, .y = (float)y, .score = (float)score};
    }
}

static bool matrix_has_rows(const struct piped_decoder *d, const struct decode_tensor *t,
                            size_t expect)
{
    if (d->set.layout != OUTPUT_LAYOUT_AUTO) {
        return d->set.layout == OUTPUT_ROWS;
    }
    return expect && t->dim[1] == expect   ? true
           : expect && t->dim[0] == expect ? false
                                           : t->dim[1] <= t->dim[0];
}

int decode_view_of(const struct piped_decoder *d, const struct decode_tensor *t, size_t anchors,
                   size_t expect, struct decode_view *ret)
{
    const size_t *n = t->dim;
    bool rows = d->set.layout == OUTPUT_ROWS;

    if (t->rank == 1) {
        *ret = (struct decode_view){1, 1, n[0], n[0], 0, 1};
    } else if (t->rank == 2 && matrix_has_rows(d, t, expect)) {
        *ret = (struct decode_view){n[0], 1, n[1], n[1], 0, 1};
    } else if (t->rank == 2) {
        *ret = (struct decode_view){n[1], 1, n[0], 1, 0, n[1]};
    } else if (t->rank == 3 && rows) {
        *ret = (struct decode_view){n[0] * n[1], anchors, n[2] / anchors, n[2], n[2] / anchors, 1};
    } else if (t->rank == 3) {
        size_t f = n[0] / anchors, cells = n[1] * n[2];

        *ret = (struct decode_view){cells, anchors, f, 1, f * cells, cells};
    } else if (t->rank == 4 && d->set.layout != OUTPUT_CHANNELS) {
        *ret = (struct decode_view){n[1] * n[2], n[0], n[3], n[3], n[1] * n[2] * n[3], 1};
    } else if (t->rank == 4) {
        size_t cells = n[2] * n[3];

        *ret = (struct decode_view){cells, n[0], n[1], 1, n[1] * cells, cells};
    } else {
        return decode_bad(t, "has too many dimensions");
    }
    if (t->rank > 2 &&
        (ret->anchors != anchors || ret->cells * ret->anchors * ret->fields != t->count)) {
        return decode_bad(t, "does not have %zu anchors a cell", anchors);
    }
    return 0;
}

size_t decode_grid_size(const struct piped_decoder *d, size_t level, size_t *ret_columns)
{
    size_t s = d->set.stride[level];

    *ret_columns = (d->in_width + s - 1) / s;
    return *ret_columns * ((d->in_height + s - 1) / s);
}

double decode_sigmoid(double v)
{
    return 1 / (1 + exp(-v));
}

void decode_class(const struct piped_decoder *d, const double *scores, size_t first, double object,
                  struct decode_box *ret)
{
    size_t best = decode_best(scores, first, d->classes);

    ret->number = !d->classes ? -1 : best == SIZE_MAX ? 0 : (int32_t)best;
    ret->score = object * (!d->classes ? 1 : best == SIZE_MAX ? NAN : scores[best]);
    if (d->set.objectness == OUTPUT_ROOT) {
        ret->score = sqrt(ret->score);
    }
}

void decode_reach(struct decode_box *b, double u, double v)
{
    b->x1 = fmin(b->x1, u);
    b->y1 = fmin(b->y1, v);
    b->x2 = fmax(b->x2, u);
    b->y2 = fmax(b->y2, v);
}

static bool are_probabilities(const double *values, size_t count)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++) {
        if (!(values[i] >= 0 && values[i] <= 1)) {
            return false;
        }
        sum += values[i];
    }
    return fabs(sum - 1) < 1e-3;
}

void decode_activated(const struct piped_decoder *d, double *values, size_t count)
{
    double highest = -INFINITY, sum = 0;
    bool unsaid = d->set.activation == OUTPUT_UNSAID;

    for (size_t i = 0; i < count; i++) {
        values[i] = decode_probability(d, values[i]);
    }
    if (d->set.activation != OUTPUT_SOFTMAX && !(unsaid && !are_probabilities(values, count))) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        highest = fmax(highest, values[i]);
    }
    for (size_t i = 0; i < count; i++) {
        values[i] = exp(values[i] - highest);
        sum += values[i];
    }
    for (size_t i = 0; i < count; i++) {
        values[i] /= sum;
    }
}

void decode_corners(const struct piped_decoder *d, const double *numbers, const unsigned *columns,
                    size_t count, struct decode_box *ret)
{
    static const unsigned usual[] = {OUTPUT_CX, OUTPUT_CY, OUTPUT_W, OUTPUT_H};
    double of[OUTPUT_COLUMN_KINDS] = {0};
    unsigned seen = 0;

    for (size_t i = 0; i < count; i++) {
        unsigned c = columns ? columns[i] : usual[i];

        of[c] = numbers[i];
        seen |= 1u << c;
    }
    ret->x1 = seen & 1u << OUTPUT_X1 ? of[OUTPUT_X1] : of[OUTPUT_CX] - of[OUTPUT_W] / 2;
    ret->y1 = seen & 1u << OUTPUT_Y1 ? of[OUTPUT_Y1] : of[OUTPUT_CY] - of[OUTPUT_H] / 2;
    ret->x2 = seen & 1u << OUTPUT_X2 ? of[OUTPUT_X2] : ret->x1 + of[OUTPUT_W];
    ret->y2 = seen & 1u << OUTPUT_Y2 ? of[OUTPUT_Y2] : ret->y1 + of[OUTPUT_H];
    ret->x1 *= decode_unit(d, d->in_width);
    ret->x2 *= decode_unit(d, d->in_width);
    ret->y1 *= decode_unit(d, d->in_height);
    ret->y2 *= decode_unit(d, d->in_height);
}

static int by_score(const void *a, const void *b)
{
    const struct decode_box *x = a, *y = b;

    if (x->score != y->score) {
        return x->score < y->score ? 1 : -1;
    }
    return x->order < y->order ? -1 : x->order > y->order;
}

void decode_sort(struct piped_decoder *d, size_t most)
{
    if (d->box_count) {
        qsort(d->boxes, d->box_count, sizeof(*d->boxes), by_score);
    }
    d->box_count = base_min(d->box_count, most);
}

static double overlap(const struct decode_box *a, const struct decode_box *b)
{
    double w = fmin(a->x2, b->x2) - fmax(a->x1, b->x1), h = fmin(a->y2, b->y2) - fmax(a->y1, b->y1);
    double both = w > 0 && h > 0 ? w * h : 0;
    double sum = (a->x2 - a->x1) * (a->y2 - a->y1) + (b->x2 - b->x1) * (b->y2 - b->y1) - both;

    return both > 0 ? both / sum : 0;
}

void decode_nms(struct piped_decoder *d)
{
    size_t kept = 0;

    decode_sort(d, d->box_count);
    for (size_t i = 0; i < d->box_count && kept < d->set.most; i++) {
        const struct decode_box *b = &d->boxes[i];
        bool keep = true;

        for (size_t k = 0; keep && k < kept; k++) {
            keep = (!d->set.across && d->boxes[k].number != b->number) ||
                   !(overlap(&d->boxes[k], b) > d->set.iou);
        }
        if (keep) {
            d->boxes[kept++] = *b;
        }
    }
    d->box_count = kept;
}

const char *decode_label(const struct piped_decoder *d, int32_t number)
{
    return number < 0 ? NULL : json_string_value(json_array_get(d->labels, (size_t)number));
}

/* Elements as floats: what is none already is copied. */
static void take_values(struct decode_tensor *t, const uint8_t *from)
{
    t->values = t->copy;
    switch (t->t.dtype) {
    case PIPED_F32:
        t->values = (const float *)(const void *)from;
        break;
    case PIPED_F16:
        ipc_f16_decode(from, t->count, t->copy);
        break;
    case PIPED_I64:
        for (size_t i = 0; i < t->count; i++) {
            int64_t v;

            memcpy(&v, from + 8 * i, 8);
            t->copy[i] = (float)v;
        }
        break;
    case PIPED_I32:
        for (size_t i = 0; i < t->count; i++) {
            int32_t v;

            memcpy(&v, from + 4 * i, 4);
            t->copy[i] = (float)v;
        }
        break;
    default:
        for (size_t i = 0; i < t->count; i++) {
            t->copy[i] = t->t.dtype == PIPED_I8 ? (float)(int8_t)from[i] : (float)from[i];
        }
    }
}

void decode_take(struct piped_decoder *d, const void *output, const uint64_t *rows)
{
    for (size_t i = 0; i < d->tensor_count; i++) {
        struct decode_tensor *t = &d->tensor[i];

        take_values(t, (const uint8_t *)output + t->t.offset);
        t->valid = rows ? rows[i] : UINT64_MAX;
    }
}
