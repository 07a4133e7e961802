/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The class of each pixel: scores [C][H][W] (layout rows: [H][W][C]), of which the highest counts
 * after the activation; or class numbers [H][W], as ArgMax makes them. One map of scores has two
 * classes: above "threshold" 1, else 0.
 *
 * An object is a class that is somewhere: the box around all of it, its area, and the mean score of
 * its pixels (1 for class numbers). Class 0 is no object if it is the background. Elements outside
 * the picture (letterbox) are of no class.
 */
#include <math.h>

#include "base/base.h"
#include "ipc/decode/decoder.h"

#define NONE 255u

struct mask {
    size_t count, height, width, class_step, pixel_step;
    bool numbers; /* the tensor holds class numbers */
    size_t pixels[NONE], left[NONE], top[NONE], right[NONE], bottom[NONE];
    double score[NONE], *values; /* owned with the struct: count of them */
};

static int check(struct piped_decoder *d)
{
    const struct decode_tensor *t = d->only;
    bool rows = d->set.layout == OUTPUT_ROWS;
    struct mask m = {0}, *all;
    int rc;

    if (t->rank != 2 && t->rank != 3) {
        return decode_bad(t, "must be [1, classes, height, width] or [1, height, width]");
    }
    m.count = t->rank == 2 ? 1 : t->dim[rows ? 2 : 0];
    m.height = t->dim[t->rank == 3 && !rows];
    m.width = t->dim[t->rank == 3 && !rows ? 2 : 1];
    m.class_step = rows ? 1 : m.height * m.width;
    m.pixel_step = rows ? m.count : 1;
    m.numbers = m.count == 1 && t->t.dtype != PIPED_F32 && t->t.dtype != PIPED_F16;
    if (m.count > NONE || t->count > UINT32_MAX) {
        return decode_bad(t, "has more than %u classes", NONE);
    }
    rc = m.numbers ? 0 : decode_labels_fit(d, t, base_max(m.count, (size_t)2), "");
    if (rc < 0) {
        return rc;
    }
    d->mask_classes = malloc(m.height * m.width);
    rc = d->mask_classes ? decode_scratch(d, sizeof(m) + m.count * sizeof(double)) : -ENOMEM;
    if (rc < 0) {
        return ipc_client_error(rc, "out of memory");
    }
    all = d->scratch;
    *all = m;
    all->values = (double *)(void *)(all + 1);
    d->classes = m.count;
    return 0;
}

/* Return: the class of the pixel at @from, NONE if it has none; *@ret_score. */
static size_t class_at(const struct piped_decoder *d, struct mask *m, const float *from,
                       double *ret_score)
{
    size_t best;

    if (m->numbers) {
        *ret_score = 1;
        return *from >= 0 && *from < NONE ? (size_t)*from : NONE;
    }
    for (size_t k = 0; k < m->count; k++) {
        m->values[k] = (double)from[k * m->class_step];
    }
    decode_activated(d, m->values, m->count);
    best = base_min(decode_best(m->values, 0, m->count), (size_t)NONE);
    *ret_score = best == NONE ? 0 : m->values[best];
    if (m->count == 1 && best == 0) {
        best = *ret_score > d->set.threshold;
        *ret_score = best ? *ret_score : 1 - *ret_score;
    }
    return best;
}

static void count_pixel(struct mask *m, size_t class, double score, size_t x, size_t y)
{
    bool first = m->pixels[class]++ == 0;

    m->left[class] = first ? x : base_min(m->left[class], x);
    m->right[class] = first ? x : base_max(m->right[class], x);
    m->top[class] = first ? y : m->top[class];
    m->bottom[class] = y;
    m->score[class] += isfinite(score) ? score : 0;
}

static void set_mask(struct piped_decoder *d, const struct mask *m)
{
    double x = decode_x(d, 0), y = decode_y(d, 0);

    d->mask = (struct piped_mask){.classes = d->mask_classes,
                                  .columns = (uint32_t)m->width,
                                  .rows = (uint32_t)m->height,
                                  .x = (float)x,
                                  .y = (float)y,
                                  .width = (float)(decode_x(d, d->in_width) - x),
                                  .height = (float)(decode_y(d, d->in_height) - y)};
    d->result.mask = &d->mask;
}

static void run(struct piped_decoder *d)
{
    const float *values = d->only->values;
    struct mask *m = d->scratch;
    double sx = (double)d->in_width / (double)m->width;
    double sy = (double)d->in_height / (double)m->height;

    memset(m->pixels, 0, sizeof(m->pixels));
    memset(m->score, 0, sizeof(m->score));
    for (size_t y = 0; y < m->height; y++) {
        double py = decode_y(d, ((double)y + 0.5) * sy);

        for (size_t x = 0; x < m->width; x++) {
            double px = decode_x(d, ((double)x + 0.5) * sx), score;
            size_t at = y * m->width + x, class = NONE;

            if (px >= 0 && px < d->width && py >= 0 && py < d->height) {
                class = class_at(d, m, values + at * m->pixel_step, &score);
            }
            d->mask_classes[at] = (uint8_t) class;
            if (class != NONE) {
                count_pixel(m, class, score, x, y);
            }
        }
    }
    for (size_t k = d->set.background; k < NONE; k++) {
        struct decode_box b = {.number = (int32_t)k,
                               .order = k,
                               .x1 = (double)m->left[k] * sx,
                               .y1 = (double)m->top[k] * sy,
                               .x2 = (double)(m->right[k] + 1) * sx,
                               .y2 = (double)(m->bottom[k] + 1) * sy,
                               .area = (double)m->pixels[k] * sx * sy};

        if (m->pixels[k]) {
            b.score = m->score[k] / (double)m->pixels[k];
            decode_add_box(d, &b);
        }
    }
    decode_sort(d, d->box_count);
    set_mask(d, m);
}

const struct decode_kind decode_mask = {check, run, .one = true};
