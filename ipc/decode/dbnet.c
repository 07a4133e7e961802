/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text boxes from a map of probabilities: DBNet (Liao et al. 2020, section 3.5), with the steps of
 * PaddleOCR.
 *
 * The map is cut at "threshold". Each region of neighbours (also diagonal ones) becomes the
 * rectangle of the least area around its pixels. Its score is the mean of the map over the pixels
 * whose centres are inside. The network shrank text areas, so each side moves outwards by
 *
 *     D = A unclip / L        of the rectangle's area A and perimeter L
 *
 * A rectangle of which a side is below "least" pixels of the map before, or least + 2 after that,
 * is dropped.
 */
#include <math.h>

#include "base/base.h"
#include "ipc/decode/decoder.h"

#define ON_SIDE 1e-6 /* a centre on a side counts, however it is rounded */

struct point {
    double x, y;
};

/* Centre, unit vector along the first side, and half of both sides. */
struct rectangle {
    double x, y, ux, uy, half[2];
};

/* All in one block. */
struct dbnet {
    size_t width, height;
    uint8_t *seen;               /* [height][width]: above the threshold and not visited yet */
    uint32_t *queue;             /* [height * width] */
    uint32_t *from, *to;         /* [height]: columns of a region's row; from > to: none */
    struct point *points, *hull; /* 4 of a row; one more */
};

static int check(struct piped_decoder *d)
{
    const struct decode_tensor *t = d->only;
    size_t w = t->rank > 1 ? t->dim[t->rank - 1] : 0, h = t->rank > 1 ? t->dim[t->rank - 2] : 0;
    size_t points = 8 * h + 8;
    struct dbnet *b;
    int rc;

    if (w * h != t->count || t->count > UINT32_MAX / 8) {
        return decode_bad(t, "must be one map: [1, 1, height, width]");
    }
    rc = decode_scratch(d, sizeof(*b) + points * sizeof(struct point) +
                               (2 * h + w * h) * sizeof(uint32_t) + w * h);
    if (rc < 0) {
        return rc;
    }
    b = d->scratch;
    b->width = w;
    b->height = h;
    b->points = (struct point *)(void *)(b + 1);
    b->hull = b->points + 4 * h;
    b->from = (uint32_t *)(void *)(b->points + points);
    b->to = b->from + h;
    b->queue = b->to + h;
    b->seen = (uint8_t *)(void *)(b->queue + w * h);
    return 0;
}

/* Visits the region of @start. Return: its first and last row. */
static void visit(struct dbnet *b, uint32_t start, size_t *ret_first, size_t *ret_last)
{
    size_t have = 1, w = b->width;

    *ret_first = *ret_last = start / w;
    b->queue[0] = start;
    b->seen[start] = 0;
    for (size_t i = 0; i < have; i++) {
        size_t x = b->queue[i] % w, y = b->queue[i] / w;

        *ret_last = base_max(*ret_last, y);
        *ret_first = base_min(*ret_first, y);
        b->from[y] = base_min(b->from[y], (uint32_t)x);
        b->to[y] = base_max(b->to[y], (uint32_t)x);
        for (size_t ny = y ? y - 1 : 0; ny <= y + 1 && ny < b->height; ny++) {
            for (size_t nx = x ? x - 1 : 0; nx <= x + 1 && nx < w; nx++) {
                if (b->seen[ny * w + nx]) {
                    b->seen[ny * w + nx] = 0;
                    b->queue[have++] = (uint32_t)(ny * w + nx);
                }
            }
        }
    }
}

static double turn(const struct point *a, const struct point *b, const struct point *c)
{
    return (b->x - a->x) * (c->y - a->y) - (b->y - a->y) * (c->x - a->x);
}

/* The region's hull, of the corners of its outermost pixels, from the top: down its left side, up
 * its right side. Return: its points. */
static size_t hull_of(struct dbnet *b, size_t first, size_t last)
{
    size_t n = 0, count = 0;

    for (size_t y = first; y <= last; y++) {
        b->points[n++] = (struct point){b->from[y], (double)y};
        b->points[n++] = (struct point){b->from[y], (double)y + 1};
    }
    for (size_t y = last + 1; y-- > first;) {
        b->points[n++] = (struct point){b->to[y] + 1.0, (double)y + 1};
        b->points[n++] = (struct point){b->to[y] + 1.0, (double)y};
    }
    /* it goes round once, so one pass that drops right turns suffices: each side is a chain by y */
    for (size_t i = 0; i < n; i++) {
        while (count >= 2 && turn(&b->hull[count - 2], &b->hull[count - 1], &b->points[i]) >= 0) {
            count--;
        }
        b->hull[count++] = b->points[i];
    }
    return count;
}

/* The rectangle of least area has a side along one of the hull's (Freeman and Shapira 1975). */
static struct rectangle least_rectangle(const struct point *hull, size_t n)
{
    struct rectangle best = {0};
    double least = INFINITY;

    for (size_t i = 0; i < n; i++) {
        const struct point *p = &hull[i], *q = &hull[(i + 1) % n];
        double length = hypot(q->x - p->x, q->y - p->y);
        double ux = (q->x - p->x) / length, uy = (q->y - p->y) / length;
        double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};

        for (size_t k = 0; length > 0 && k < n; k++) {
            double along = hull[k].x * ux + hull[k].y * uy;
            double across = hull[k].y * ux - hull[k].x * uy;

            low[0] = fmin(low[0], along);
            high[0] = fmax(high[0], along);
            low[1] = fmin(low[1], across);
            high[1] = fmax(high[1], across);
        }
        if (length > 0 && (high[0] - low[0]) * (high[1] - low[1]) < least) {
            double along = (low[0] + high[0]) / 2, across = (low[1] + high[1]) / 2;

            least = (high[0] - low[0]) * (high[1] - low[1]);
            best = (struct rectangle){.x = along * ux - across * uy,
                                      .y = along * uy + across * ux,
                                      .ux = ux,
                                      .uy = uy,
                                      .half = {(high[0] - low[0]) / 2, (high[1] - low[1]) / 2}};
        }
    }
    return best;
}

/* Mean of the map over the pixels whose centres are in @r. */
static double mean_in(const struct piped_decoder *d, const struct dbnet *b, const float *map,
                      const struct rectangle *r)
{
    double rx = fabs(r->ux) * r->half[0] + fabs(r->uy) * r->half[1];
    double ry = fabs(r->uy) * r->half[0] + fabs(r->ux) * r->half[1];
    size_t x1 = (size_t)fmax(0, floor(r->x - rx)), y1 = (size_t)fmax(0, floor(r->y - ry));
    double sum = 0, count = 0;

    for (size_t y = y1; y < b->height && (double)y < r->y + ry; y++) {
        for (size_t x = x1; x < b->width && (double)x < r->x + rx; x++) {
            double dx = (double)x + 0.5 - r->x, dy = (double)y + 0.5 - r->y;

            if (fabs(dx * r->ux + dy * r->uy) <= r->half[0] + ON_SIDE &&
                fabs(dy * r->ux - dx * r->uy) <= r->half[1] + ON_SIDE &&
                !isnan(map[y * b->width + x])) {
                sum += decode_probability(d, (double)map[y * b->width + x]);
                count++;
            }
        }
    }
    return count > 0 ? sum / count : 0;
}

/* Four corners, clockwise from the one that is nearest to the upper left. */
static void corners_of(const struct rectangle *r, struct point ret[4])
{
    static const double signs[4][2] = {{-1, -1}, {1, -1}, {1, 1}, {-1, 1}};
    struct point p[4];
    size_t start = 0;

    for (size_t i = 0; i < 4; i++) {
        double a = signs[i][0] * r->half[0], c = signs[i][1] * r->half[1];

        p[i] = (struct point){r->x + a * r->ux - c * r->uy, r->y + a * r->uy + c * r->ux};
        start = p[i].x + p[i].y < p[start].x + p[start].y - 1e-9 ? i : start;
    }
    for (size_t i = 0; i < 4; i++) {
        ret[i] = p[(start + i) % 4];
    }
}

static void add(struct piped_decoder *d, const struct dbnet *b, const struct rectangle *r,
                double score)
{
    double sx = (double)d->in_width / (double)b->width;
    double sy = (double)d->in_height / (double)b->height;
    struct decode_box o = {.score = score,
                           .number = -1,
                           DECODE_NOWHERE,
                           .point_first = (uint32_t)d->point_count,
                           .point_count = 4,
                           .order = d->box_count};
    struct point p[4];

    corners_of(r, p);
    for (size_t i = 0; i < 4; i++) {
        decode_add_point(d, p[i].x * sx, p[i].y * sy, score);
        decode_reach(&o, p[i].x * sx, p[i].y * sy);
    }
    decode_add_box(d, &o);
}

static void take_region(struct piped_decoder *d, struct dbnet *b, const float *map, uint32_t start)
{
    size_t first, last;
    struct rectangle r;
    double score, least = (double)d->set.least / 2, out;

    visit(b, start, &first, &last);
    r = least_rectangle(b->hull, hull_of(b, first, last));
    for (size_t y = first; y <= last; y++) {
        b->from[y] = UINT32_MAX;
        b->to[y] = 0;
    }
    if (fmin(r.half[0], r.half[1]) < least) {
        return;
    }
    score = mean_in(d, b, map, &r);
    if (!decode_scored(d, score)) {
        return;
    }
    out = r.half[0] * r.half[1] / (r.half[0] + r.half[1]) * d->set.unclip;
    r.half[0] += out;
    r.half[1] += out;
    if (fmin(r.half[0], r.half[1]) >= least + 1) {
        add(d, b, &r, score);
    }
}

static int by_place(const void *a, const void *b)
{
    const struct decode_box *x = a, *y = b;

    return x->y1 != y->y1   ? (x->y1 < y->y1 ? -1 : 1)
           : x->x1 != y->x1 ? (x->x1 < y->x1 ? -1 : 1)
                            : (x->order < y->order ? -1 : x->order > y->order);
}

static void run(struct piped_decoder *d)
{
    const float *map = d->only->values;
    struct dbnet *b = d->scratch;

    for (size_t y = 0; y < b->height; y++) {
        b->from[y] = UINT32_MAX;
        b->to[y] = 0;
    }
    for (size_t i = 0; i < b->width * b->height; i++) {
        b->seen[i] = decode_probability(d, (double)map[i]) > d->set.threshold;
    }
    for (size_t i = 0; i < b->width * b->height; i++) {
        if (b->seen[i]) {
            take_region(d, b, map, (uint32_t)i);
        }
    }
    decode_sort(d, d->set.most);
    if (d->box_count) {
        qsort(d->boxes, d->box_count, sizeof(*d->boxes), by_place);
    }
}

const struct decode_kind decode_dbnet = {check, run, .one = true};
