/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of a box, an objectness (if any), a score for each class, and keypoints (if any).
 *
 * With g the column or row of the cell, s the stride and (A, B) the anchor in pixels:
 *
 *     yolox      cx = (t + g) s                     w = exp(t) s
 *     yolov5     cx = (2 sigmoid(t) - 1/2 + g) s    w = (2 sigmoid(t))^2 A
 *     yolov3     cx = (sigmoid(t) + g) s            w = exp(t) A
 *
 * and scores of yolov5 and yolov3 go through sigmoid. A row's class is the one of the highest
 * score; its score is that, times objectness, or the root of that product.
 */
#include <math.h>

#include "base/base.h"
#include "ipc/decode/decoder.h"

static size_t before_classes(const struct piped_decoder *d)
{
    return d->set.objectness == OUTPUT_NO_OBJECTNESS ? 4 : 5;
}

/* Without strides all rows are one level, of one anchor. */
static size_t levels_of(const struct piped_decoder *d)
{
    return base_max(d->set.level_count, (size_t)1);
}

static size_t level_anchors(const struct piped_decoder *d, size_t level)
{
    return d->set.anchor_levels ? d->set.anchor_count[level] : 1;
}

static int check_fields(struct piped_decoder *d, const struct decode_tensor *t, size_t fields)
{
    size_t points = d->set.keypoints * d->set.keypoint_numbers, first = before_classes(d);
    char others[80];

    if (fields < first + points + (first == 4)) {
        return decode_bad(t, "has %zu numbers a box, at least %zu are needed; \"layout\" may help",
                          fields, first + points + (first == 4));
    }
    if (d->classes && d->classes != fields - first - points) {
        return decode_bad(t, "has another number of classes than the first level");
    }
    d->classes = fields - first - points;
    snprintf(others, sizeof(others), " (%zu numbers a box, %zu of others)", fields, first + points);
    return decode_labels_fit(d, t, d->classes, others);
}

static size_t expected(const struct piped_decoder *d)
{
    size_t labels = json_array_size(d->labels);

    return labels ? before_classes(d) + labels + d->set.keypoints * d->set.keypoint_numbers : 0;
}

/* A tensor a level, or one with all levels one after another (anchors: one a cell). */
static int check(struct piped_decoder *d)
{
    size_t levels = levels_of(d), cells = 0, columns;
    struct decode_view v;
    bool one = d->role_count[0] == 1 || (d->role_count[0] == 0 && d->tensor_count < levels);
    int rc = decode_need(d, OUTPUT_AS_BOXES, one ? 1 : levels);

    for (size_t l = 0; rc == 0 && l < levels; l++) {
        const struct decode_tensor *t = decode_one(d, OUTPUT_AS_BOXES, one ? 0 : l);

        cells += d->set.level_count ? decode_grid_size(d, l, &columns) : 0;
        if (one && l + 1 < levels) {
            continue;
        }
        rc = decode_view_of(d, t, level_anchors(d, l), expected(d), &v);
        rc = rc < 0 ? rc : check_fields(d, t, v.fields);
        if (rc == 0 && d->set.level_count &&
            (v.cells != cells || v.anchors != level_anchors(d, l))) {
            rc = decode_bad(t, "has %zu cells of %zu; the strides make %zu of %zu", v.cells,
                            v.anchors, cells, level_anchors(d, l));
        }
        cells = one ? cells : 0;
    }
    return rc < 0 ? rc : decode_scratch(d, (d->classes + 1) * sizeof(double));
}

/* Where a row of a raw head is. */
struct cell {
    double column, row, stride, width, height;
};

static void box_of(const struct piped_decoder *d, const double t[4], const struct cell *c,
                   struct decode_box *ret)
{
    double n[4];

    if (d->set.head == OUTPUT_YOLOV5) {
        for (size_t i = 0; i < 2; i++) {
            double size = 2 * decode_sigmoid(t[2 + i]);

            n[i] = (2 * decode_sigmoid(t[i]) - 0.5 + (i ? c->row : c->column)) * c->stride;
            n[2 + i] = size * size * (i ? c->height : c->width);
        }
    } else {
        bool yolox = d->set.head == OUTPUT_YOLOX;

        n[0] = ((yolox ? t[0] : decode_sigmoid(t[0])) + c->column) * c->stride;
        n[1] = ((yolox ? t[1] : decode_sigmoid(t[1])) + c->row) * c->stride;
        n[2] = exp(t[2]) * (yolox ? c->stride : c->width);
        n[3] = exp(t[3]) * (yolox ? c->stride : c->height);
    }
    decode_corners(d, n, NULL, 4, ret);
}

/* The row's class and score. */
static void score_of(const struct piped_decoder *d, const float *values,
                     const struct decode_view *v, size_t cell, size_t anchor,
                     struct decode_box *ret)
{
    size_t first = before_classes(d);
    double *s = d->scratch, object = 1;
    bool sigmoid = d->set.head >= OUTPUT_YOLOV5 && d->set.activation == OUTPUT_NONE;

    for (size_t k = 0; k < d->classes; k++) {
        s[k] = decode_field(values, v, cell, anchor, first + k);
        s[k] = sigmoid ? decode_sigmoid(s[k]) : s[k];
    }
    decode_activated(d, s, d->classes);
    if (first == 5) {
        object = decode_field(values, v, cell, anchor, 4);
        object = sigmoid ? decode_sigmoid(object) : decode_probability(d, object);
    }
    decode_class(d, s, 0, object, ret);
}

static void add_row(struct piped_decoder *d, const float *values, const struct decode_view *v,
                    size_t cell, size_t anchor, const struct cell *c)
{
    struct decode_box b = {.order = d->box_count};
    double t[4];

    score_of(d, values, v, cell, anchor, &b);
    if (!decode_scored(d, b.score)) {
        return;
    }
    for (size_t i = 0; i < 4; i++) {
        t[i] = decode_field(values, v, cell, anchor, i);
    }
    if (d->set.level_count) {
        box_of(d, t, c, &b);
    } else {
        decode_corners(d, t, d->set.column_count ? d->set.column : NULL, 4, &b);
    }
    b.point_first = (uint32_t)cell; /* until the points are added */
    decode_add_box(d, &b);
}

/* Return: the view of the last level. */
static struct decode_view add_rows(struct piped_decoder *d)
{
    struct decode_view v = {0};
    size_t before = 0;

    for (size_t l = 0; l < levels_of(d); l++) {
        bool one = d->role_count[0] == 1;
        const struct decode_tensor *t = decode_one(d, OUTPUT_AS_BOXES, one ? 0 : l);
        size_t columns = 1, cells;

        (void)decode_view_of(d, t, level_anchors(d, l), expected(d), &v);
        cells = d->set.level_count ? decode_grid_size(d, l, &columns) : v.cells;
        for (size_t i = 0; i < cells; i++) {
            for (size_t a = 0; a < v.anchors; a++) {
                struct cell c = {.column = (double)(i % columns),
                                 .row = (double)(i / columns),
                                 .stride = (double)d->set.stride[l],
                                 .width = (double)d->set.anchor[l][a][0],
                                 .height = (double)d->set.anchor[l][a][1]};

                add_row(d, t->values, &v, before + i, a, &c);
            }
        }
        before += one ? cells : 0;
    }
    return v;
}

static void add_points(struct piped_decoder *d, const struct decode_view *v)
{
    const float *values = decode_one(d, OUTPUT_AS_BOXES, 0)->values;
    size_t each = d->set.keypoint_numbers, first = before_classes(d) + d->classes;

    for (size_t i = 0; i < d->box_count; i++) {
        size_t cell = d->boxes[i].point_first;

        d->boxes[i].point_first = (uint32_t)d->point_count;
        d->boxes[i].point_count = (uint32_t)d->set.keypoints;
        for (size_t k = 0; k < d->set.keypoints; k++) {
            size_t at = first + k * each;

            decode_add_point(d, decode_field(values, v, cell, 0, at) * decode_unit(d, d->in_width),
                             decode_field(values, v, cell, 0, at + 1) *
                                 decode_unit(d, d->in_height),
                             each == 3 ? decode_field(values, v, cell, 0, at + 2) : 1);
        }
    }
}

static void run(struct piped_decoder *d)
{
    const struct decode_view v = add_rows(d);

    decode_nms(d);
    add_points(d, &v);
}

const struct decode_kind decode_yolo = {check, run};
