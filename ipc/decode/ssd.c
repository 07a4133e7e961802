/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensors of boxes and of scores, with a row for each candidate; also of objectness and keypoints.
 *
 * coding none: boxes as they are. priors (SSD, Liu et al. 2016, equation 2; RetinaFace): with the
 * prior (px, py, pw, ph) and the variances v,
 *
 *     cx = px + t0 v0 pw    w = pw exp(t2 v1)    keypoint x = px + t v0 pw
 *
 * where px = (g + 1/2) s for column g and stride s, and pw is the anchor. grid (YuNet): with t in
 * cells from the cell's upper left corner,
 *
 *     cx = (g + t0) s       w = exp(t2) s        keypoint x = (g + t) s
 *
 * The rows are those of the levels one after another; in a level by row, column and anchor. A
 * row's class is the one of the highest score; class 0 is the background, if there is one.
 */
#include <math.h>

#include "base/base.h"
#include "ipc/decode/decoder.h"

/* The tensors of a role with a row for each candidate, one after another. */
struct rows {
    const struct decode_tensor *tensor[OUTPUT_NAMES_MAX];
    struct decode_view view[OUTPUT_NAMES_MAX];
    size_t count, total;
};

struct ssd {
    struct rows of[OUTPUT_AS_KEYPOINTS + 1];
    float (*prior)[4]; /* cx, cy, w, h of each row, unless coding is none */
    size_t count;
    double *scores; /* of a row; then the priors, in one block with the struct */
};

static int take_rows(const struct piped_decoder *d, unsigned role, size_t expect, struct rows *ret)
{
    for (size_t k = 0; k < d->role_count[role]; k++) {
        const struct decode_tensor *t = decode_one(d, role, k);
        struct decode_view *v = &ret->view[k];
        int rc = decode_view_of(d, t, 1, expect, v);

        if (rc < 0) {
            return rc;
        }
        if (role != OUTPUT_AS_SCORES && v->fields != expect) {
            return decode_bad(t, "is to be \"%s\" and has %zu numbers a row, not %zu",
                              output_role_words[role], v->fields, expect);
        }
        if (k > 0 && v->fields != ret->view[0].fields) {
            return decode_bad(t, "has another number of columns than the one before");
        }
        ret->tensor[k] = t;
        ret->total += v->cells;
        ret->count++;
    }
    return 0;
}

/* Priors of coding priors; cells of coding grid, as corner and stride. */
static int make_priors(struct piped_decoder *d, struct ssd *s)
{
    bool grid = d->set.coding == OUTPUT_GRID;
    size_t total = 0, at = 0, columns;

    for (size_t l = 0; l < d->set.level_count; l++) {
        total += decode_grid_size(d, l, &columns) * (grid ? 1 : d->set.anchor_count[l]);
    }
    if (total != s->count) {
        return decode_bad(s->of[0].tensor[0],
                          "and those after it have %zu boxes; %s make %zu for an input of %u x %u",
                          s->count, grid ? "\"strides\"" : "\"strides\" and \"anchors\"", total,
                          d->in_width, d->in_height);
    }
    for (size_t l = 0; l < d->set.level_count; l++) {
        size_t cells = decode_grid_size(d, l, &columns);
        float stride = (float)d->set.stride[l], middle = grid ? 0 : 0.5f;

        for (size_t i = 0; i < cells; i++) {
            for (size_t a = 0; a < (grid ? 1 : d->set.anchor_count[l]); a++) {
                float *p = s->prior[at++];

                p[0] = ((float)(i % columns) + middle) * stride;
                p[1] = ((float)(i / columns) + middle) * stride;
                p[2] = grid ? stride : d->set.anchor[l][a][0];
                p[3] = grid ? stride : d->set.anchor[l][a][1];
            }
        }
    }
    return 0;
}

static int check(struct piped_decoder *d)
{
    const struct {
        unsigned role;
        bool used;
        size_t expect; /* numbers of a row */
    } roles[] = {
        {OUTPUT_AS_BOXES, true, 4},
        {OUTPUT_AS_SCORES, true, json_array_size(d->labels)},
        {OUTPUT_AS_OBJECTNESS, d->set.objectness != OUTPUT_NO_OBJECTNESS, 1},
        {OUTPUT_AS_KEYPOINTS, d->set.keypoints > 0, 2 * d->set.keypoints},
    };
    struct ssd s = {0}, *all;
    size_t priors, levels = d->role_count[OUTPUT_AS_BOXES] ? d->role_count[OUTPUT_AS_BOXES] : 1;
    int rc = decode_need(d, OUTPUT_AS_BOXES, levels);

    rc = rc < 0 ? rc : decode_need(d, OUTPUT_AS_SCORES, levels); /* before either is looked at */
    for (size_t i = 0; rc == 0 && i < base_array_count(roles); i++) {
        unsigned r = roles[i].role;

        rc = roles[i].used ? decode_need(d, r, levels) : 0;
        rc = rc == 0 && roles[i].used ? take_rows(d, r, roles[i].expect, &s.of[r]) : rc;
    }
    if (rc < 0) {
        return rc;
    }
    s.count = s.of[0].total;
    d->classes = s.of[OUTPUT_AS_SCORES].view[0].fields;
    for (size_t r = 1; r <= OUTPUT_AS_KEYPOINTS; r++) {
        if (s.of[r].count && s.of[r].total != s.count) {
            return decode_bad(s.of[r].tensor[0], "has %zu rows, and there are %zu boxes",
                              s.of[r].total, s.count);
        }
    }
    if (d->set.background && d->classes < 2) {
        return decode_bad(s.of[OUTPUT_AS_SCORES].tensor[0],
                          "has one class, which is the background unless \"background\" is false");
    }
    rc = decode_labels_fit(d, s.of[OUTPUT_AS_SCORES].tensor[0], d->classes, "");
    if (rc < 0) {
        return rc;
    }
    priors = d->set.coding == OUTPUT_PLAIN ? 0 : s.count * sizeof(*s.prior);
    rc = decode_scratch(d, sizeof(s) + (d->classes + 1) * sizeof(double) + priors);
    if (rc < 0) {
        return rc;
    }
    all = d->scratch;
    *all = s;
    all->scores = (double *)(void *)(all + 1);
    all->prior = (float(*)[4])(void *)(all->scores + d->classes + 1);
    return priors ? make_priors(d, all) : 0;
}

/* Number @field of row @row. */
static double at(const struct rows *r, size_t row, size_t field)
{
    size_t k = 0;

    while (row >= r->view[k].cells) {
        row -= r->view[k++].cells;
    }
    return decode_field(r->tensor[k]->values, &r->view[k], row, 0, field);
}

static void score_of(const struct piped_decoder *d, const struct ssd *s, size_t row,
                     struct decode_box *ret)
{
    double object = 1;

    for (size_t k = 0; k < d->classes; k++) {
        s->scores[k] = at(&s->of[OUTPUT_AS_SCORES], row, k);
    }
    decode_activated(d, s->scores, d->classes);
    if (d->set.objectness != OUTPUT_NO_OBJECTNESS) {
        object = decode_probability(d, at(&s->of[OUTPUT_AS_OBJECTNESS], row, 0));
    }
    decode_class(d, s->scores, d->set.background, object, ret);
}

/* Coordinate @t of a row, along axis @i, from its prior or cell on. */
static double placed(const struct piped_decoder *d, const struct ssd *s, size_t row, size_t i,
                     double t)
{
    return (double)s->prior[row][i] + t * (d->set.coding == OUTPUT_GRID ? 1 : d->set.variances[0]) *
                                          (double)s->prior[row][2 + i];
}

static void box_of(const struct piped_decoder *d, const struct ssd *s, size_t row,
                   struct decode_box *ret)
{
    double t[4];

    for (size_t i = 0; i < 4; i++) {
        t[i] = at(&s->of[OUTPUT_AS_BOXES], row, i);
    }
    if (d->set.coding == OUTPUT_PLAIN) {
        static const unsigned corners[] = {OUTPUT_X1, OUTPUT_Y1, OUTPUT_X2, OUTPUT_Y2};

        decode_corners(d, t, d->set.column_count ? d->set.column : corners, 4, ret);
        return;
    }
    for (size_t i = 0; i < 2; i++) {
        t[i] = placed(d, s, row, i, t[i]);
        t[2 + i] = (double)s->prior[row][2 + i] *
                   exp(t[2 + i] * (d->set.coding == OUTPUT_GRID ? 1 : d->set.variances[1]));
    }
    ret->x1 = t[0] - t[2] / 2;
    ret->y1 = t[1] - t[3] / 2;
    ret->x2 = t[0] + t[2] / 2;
    ret->y2 = t[1] + t[3] / 2;
}

static void add_points(struct piped_decoder *d, const struct ssd *s, struct decode_box *b)
{
    const double unit[2] = {decode_unit(d, d->in_width), decode_unit(d, d->in_height)};

    b->point_first = (uint32_t)d->point_count;
    b->point_count = (uint32_t)d->set.keypoints;
    for (size_t k = 0; k < d->set.keypoints; k++) {
        double p[2];

        for (size_t i = 0; i < 2; i++) {
            p[i] = at(&s->of[OUTPUT_AS_KEYPOINTS], b->order, 2 * k + i);
            p[i] = d->set.coding == OUTPUT_PLAIN ? p[i] * unit[i] : placed(d, s, b->order, i, p[i]);
        }
        decode_add_point(d, p[0], p[1], 1);
    }
}

static void run(struct piped_decoder *d)
{
    const struct ssd *s = d->scratch;

    for (size_t row = 0; row < s->count; row++) {
        struct decode_box b = {.order = row};

        score_of(d, s, row, &b);
        if (!decode_scored(d, b.score)) {
            continue;
        }
        box_of(d, s, row, &b);
        decode_add_box(d, &b);
    }
    decode_nms(d);
    for (size_t i = 0; i < d->box_count; i++) {
        add_points(d, s, &d->boxes[i]);
    }
}

const struct decode_kind decode_ssd = {check, run};
