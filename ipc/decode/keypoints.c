/* SPDX-License-Identifier: Apache-2.0 */
/*
 * K points of one object: rows of "columns" (x, y, and perhaps score), or a heat map for each.
 *
 * In a map the point is the centre of the highest element, moved by a quarter of an element towards
 * the higher neighbour, in each direction, as is usual for human poses (Newell et al. 2016). Its
 * score is the highest value. The object's score is the mean of the points' that reach "score", and
 * its box goes round these; no such point: no object.
 */
#include <math.h>

#include "base/base.h"
#include "ipc/decode/decoder.h"

static int check(struct piped_decoder *d)
{
    const struct decode_tensor *t = d->only;

    if (d->set.column_count) {
        return t->count % d->set.column_count == 0
                   ? 0
                   : decode_bad(t, "is not made of rows of %zu numbers", d->set.column_count);
    }
    return t->rank == 3 ? 0
                        : decode_bad(t, "must be a map for each point: [1, points, height, width]; "
                                        "or give \"columns\"");
}

/* The strides of maps. */
struct maps {
    size_t count, height, width, map_step, row_step, column_step;
};

static struct maps maps_of(const struct piped_decoder *d, const struct decode_tensor *t)
{
    const size_t *n = t->dim;

    return d->set.layout == OUTPUT_ROWS ? (struct maps){n[2], n[0], n[1], 1, n[1] * n[2], n[2]}
                                        : (struct maps){n[0], n[1], n[2], n[1] * n[2], n[2], 1};
}

/* A quarter towards the higher neighbour; none at the edge. */
static double quarter(const float *at, size_t i, size_t count, size_t step)
{
    double a, b;

    if (i == 0 || i + 1 >= count) {
        return 0;
    }
    a = (double)at[(i - 1) * step];
    b = (double)at[(i + 1) * step];
    return b > a ? 0.25 : b < a ? -0.25 : 0;
}

static void point_of_map(const struct maps *m, const float *map, double *ret_x, double *ret_y,
                         double *ret_score)
{
    size_t bx = 0, by = 0;
    double best = NAN;

    for (size_t y = 0; y < m->height; y++) {
        for (size_t x = 0; x < m->width; x++) {
            double v = (double)map[y * m->row_step + x * m->column_step];

            if (!isnan(v) && !(v <= best)) {
                best = v;
                bx = x;
                by = y;
            }
        }
    }
    *ret_x = (double)bx + 0.5 + quarter(map + by * m->row_step, bx, m->width, m->column_step);
    *ret_y = (double)by + 0.5 + quarter(map + bx * m->column_step, by, m->height, m->row_step);
    *ret_score = best;
}

static void add(struct piped_decoder *d, double u, double v, double score, struct decode_box *b)
{
    score = decode_probability(d, score);
    if (!isfinite(u) || !isfinite(v) || !isfinite(score)) {
        u = v = score = 0;
    }
    decode_add_point(d, u, v, score);
    b->point_count++;
    if (decode_scored(d, score) && score > 0) {
        decode_reach(b, u, v);
        b->score += score;
        b->order++;
    }
}

static void add_rows(struct piped_decoder *d, const struct decode_tensor *t, struct decode_box *b)
{
    for (size_t i = 0; i < t->count / d->set.column_count; i++) {
        double of[OUTPUT_COLUMN_KINDS] = {[OUTPUT_SCORE] = 1};

        for (size_t k = 0; k < d->set.column_count; k++) {
            of[d->set.column[k]] = (double)t->values[i * d->set.column_count + k];
        }
        add(d, of[OUTPUT_X] * decode_unit(d, d->in_width),
            of[OUTPUT_Y] * decode_unit(d, d->in_height), of[OUTPUT_SCORE], b);
    }
}

static void run(struct piped_decoder *d)
{
    const struct decode_tensor *t = d->only;
    struct decode_box b = {.number = -1, DECODE_NOWHERE};

    if (d->set.column_count) {
        add_rows(d, t, &b);
    } else {
        struct maps m = maps_of(d, t);

        for (size_t k = 0; k < m.count; k++) {
            double x, y, score;

            point_of_map(&m, t->values + k * m.map_step, &x, &y, &score);
            add(d, x * d->in_width / (double)m.width, y * d->in_height / (double)m.height, score,
                &b);
        }
    }
    if (b.order > 0) {
        b.score /= (double)b.order; /* how many were counted */
        decode_add_box(d, &b);
    }
}

const struct decode_kind decode_keypoints = {check, run, .one = true};
