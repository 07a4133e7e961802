/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NMS with a vector of kept boxes at a time. The candidates of an image and class are sorted once;
 * kept boxes lie side by side, each coordinate in an array of its own. Every step is rounded as in
 * the reference, so the rows are the same.
 */
#include <math.h>

#include "base/base.h"
#include "kernels/common/parallel.h"
#include "kernels/common/planned.h"
#include "kernels/common/vec_arith.h"
#include "kernels/primitive.h"
#include "kernels/table.h"

enum { Y1, X1, Y2, X2, AREA, COLUMNS };

#define DIGIT_BITS 8u
#define DIGITS 4u /* of a key */

/* Position and score of a candidate: less is better. */
struct candidate {
    uint32_t key, box;
};

struct job {
    const struct krn_call *call;
    const struct mdl_tensor *boxes, *scores, *y;
    float iou, score; /* thresholds */
    bool score_given, centre;
    size_t count, classes, each, pairs, parts; /* each: rows of y for one image and class */
    size_t column;                             /* elements of one */
    uint32_t *rows;                            /* of each pair */
};

/* What one member of the team works with. */
struct room {
    struct candidate *list, *other;
    float *kept; /* [COLUMNS][column] */
};

static size_t lines(size_t bytes)
{
    return base_align_up(bytes, BASE_CACHE_LINE_BYTES);
}

static void sizes_of(const struct mdl_model *m, const struct mdl_op *op, struct job *j)
{
    const struct mdl_tensor *scores = &m->tensors[op->in[1]];

    j->boxes = &m->tensors[op->in[0]];
    j->scores = scores;
    j->y = &m->tensors[op->out[0]];
    j->count = j->boxes->dim[1];
    j->classes = scores->dim[1];
    j->pairs = scores->dim[0] * j->classes;
    j->each = op->attr.nms.each;
    j->column = base_align_up(base_min(j->count, j->each), (size_t)KRN_VL);
}

static size_t room_bytes(const struct job *j)
{
    return lines(2 * j->count * sizeof(struct candidate)) +
           lines(COLUMNS * j->column * sizeof(float));
}

static struct room room_of(const struct job *j, size_t part)
{
    uint8_t *at =
        (uint8_t *)j->call->scratch + lines(j->pairs * sizeof(*j->rows)) + part * room_bytes(j);
    struct room r = {.list = (struct candidate *)at};

    r.other = r.list + j->count;
    r.kept = (float *)(at + lines(2 * j->count * sizeof(struct candidate)));
    return r;
}

/* Orders floats that are no NaN as integers, the largest first; 0 and -0 are equal. */
static uint32_t key_of(float score)
{
    float v = score + 0.0f;
    uint32_t bits;

    memcpy(&bits, &v, sizeof(bits));
    return bits & 0x80000000u ? bits : ~bits & 0x7fffffffu;
}

static size_t candidates(const struct job *j, size_t pair, struct candidate *list)
{
    const float *score = (const float *)j->call->in[1] +
                         (ptrdiff_t)(pair / j->classes) * j->scores->stride[0] +
                         (ptrdiff_t)(pair % j->classes) * j->scores->stride[1];
    size_t n = 0;

    for (size_t i = 0; i < j->count; i++, score += j->scores->stride[2]) {
        if (!isnan(*score) && (!j->score_given || *score > j->score)) {
            list[n++] = (struct candidate){key_of(*score), (uint32_t)i};
        }
    }
    return n;
}

static size_t digit(const struct candidate *c, unsigned d)
{
    return c->key >> d * DIGIT_BITS & ((1u << DIGIT_BITS) - 1u);
}

/* Sorts the @n candidates of the list: the best first, the earlier box of equals. */
static void sort(struct room *r, size_t n)
{
    uint32_t at[DIGITS][1u << DIGIT_BITS] = {{0}};

    for (size_t i = 0; i < n; i++) {
        for (unsigned d = 0; d < DIGITS; d++) {
            at[d][digit(&r->list[i], d)]++;
        }
    }
    for (unsigned d = 0; d < DIGITS && n > 1; d++) {
        struct candidate *from = r->list;
        uint32_t before = 0;

        if (at[d][digit(&from[0], d)] == n) {
            continue; /* the digit is the same for all */
        }
        for (size_t k = 0; k < base_array_count(at[d]); k++) {
            uint32_t here = at[d][k];

            at[d][k] = before;
            before += here;
        }
        for (size_t i = 0; i < n; i++) {
            r->other[at[d][digit(&from[i], d)]++] = from[i];
        }
        r->list = r->other;
        r->other = from;
    }
}

static void box_at(const struct job *j, size_t image, size_t box, float ret[COLUMNS])
{
    const float *v = (const float *)j->call->in[0] + (ptrdiff_t)image * j->boxes->stride[0] +
                     (ptrdiff_t)box * j->boxes->stride[1];
    const ptrdiff_t s = j->boxes->stride[2];

    if (j->centre) {
        float w = v[2 * s] / 2, h = v[3 * s] / 2;

        ret[Y1] = v[s] - h;
        ret[X1] = v[0] - w;
        ret[Y2] = v[s] + h;
        ret[X2] = v[0] + w;
    } else {
        ret[Y1] = fminf(v[0], v[2 * s]);
        ret[X1] = fminf(v[s], v[3 * s]);
        ret[Y2] = fmaxf(v[0], v[2 * s]);
        ret[X2] = fmaxf(v[s], v[3 * s]);
    }
    ret[AREA] = (ret[Y2] - ret[Y1]) * (ret[X2] - ret[X1]);
}

static bool any(vi v)
{
    uint64_t part[sizeof(vi) / sizeof(uint64_t)], all = 0;

    memcpy(part, &v, sizeof(part));
    for (size_t i = 0; i < base_array_count(part); i++) {
        all |= part[i];
    }
    return all;
}

/* Does @box overlap one of the first @n kept ones? A box without an area overlaps nothing, nor does
 * one with a coordinate that is no number. */
static bool is_covered(const struct job *j, const float *kept, size_t n, const float box[COLUMNS])
{
    if (!(box[AREA] > 0)) {
        return false;
    }
    for (size_t k = 0; k < n; k += KRN_VL) {
        const float *c = kept + k;
        vf area = vf_load(c + AREA * j->column);
        vf h = vf_min(vf_load(c + Y2 * j->column), vf_set(box[Y2])) -
               vf_max(vf_load(c + Y1 * j->column), vf_set(box[Y1]));
        vf w = vf_min(vf_load(c + X2 * j->column), vf_set(box[X2])) -
               vf_max(vf_load(c + X1 * j->column), vf_set(box[X1]));
        vf both = h * w;
        vi there = (h > 0.0f) & (w > 0.0f) & (area > 0.0f);

        if (any(there) && any(there & (both / (box[AREA] + area - both) > j->iou))) {
            return true;
        }
    }
    return false;
}

/* Writes the rows of one image and class to its part of the output. */
static void select_pair(const struct job *j, size_t pair, struct room *r)
{
    const size_t image = pair / j->classes, n = candidates(j, pair, r->list);
    int64_t *row = (int64_t *)j->call->out[0] + (ptrdiff_t)(pair * j->each) * j->y->stride[0];
    size_t kept = 0;

    sort(r, n);
    for (size_t i = 0; i < n && kept < j->each; i++) {
        float box[COLUMNS];

        box_at(j, image, r->list[i].box, box);
        if (is_covered(j, r->kept, kept, box)) {
            continue;
        }
        if (kept % KRN_VL == 0) { /* lanes without a box have no area */
            vf_store(r->kept + AREA * j->column + kept, vf_set(0.0f));
        }
        for (size_t c = 0; c < COLUMNS; c++) {
            r->kept[c * j->column + kept] = box[c];
        }
        row[0] = (int64_t)image;
        row[j->y->stride[1]] = (int64_t)(pair % j->classes);
        row[2 * j->y->stride[1]] = r->list[i].box;
        row += j->y->stride[0];
        kept++;
    }
    j->rows[pair] = (uint32_t)kept;
}

static void part_run(void *arg, size_t part)
{
    const struct job *j = arg;
    const struct krn_range range = krn_share(j->pairs, 1, part, j->parts);
    struct room r = room_of(j, part);

    for (size_t pair = range.begin; pair < range.end; pair++) {
        select_pair(j, pair, &r);
    }
}

/* Moves the rows of all pairs together. */
static void pack_rows(const struct job *j)
{
    int64_t *y = j->call->out[0];
    const ptrdiff_t s = j->y->stride[0], k = j->y->stride[1];
    size_t to = 0;

    for (size_t pair = 0; pair < j->pairs; pair++) {
        for (size_t i = 0; i < j->rows[pair]; i++, to++) {
            const int64_t *from = y + (ptrdiff_t)(pair * j->each + i) * s;

            for (ptrdiff_t c = 0; c < 3; c++) {
                y[(ptrdiff_t)to * s + c * k] = from[c * k];
            }
        }
    }
    *(int64_t *)j->call->out[1] = (int64_t)to;
    for (; to < j->y->dim[0]; to++) {
        for (ptrdiff_t c = 0; c < 3; c++) {
            y[(ptrdiff_t)to * s + c * k] = 0;
        }
    }
}

static void run(const struct krn_call *call)
{
    struct job j = {.call = call, .centre = call->op->attr.nms.centre};

    sizes_of(call->model, call->op, &j);
    j.iou = call->op->in[2] == MDL_NONE ? 0 : *(const float *)call->in[2];
    j.score_given = call->op->in[3] != MDL_NONE;
    j.score = j.score_given ? *(const float *)call->in[3] : 0;
    j.parts = base_min(j.pairs, base_max(call->width, (size_t)1));
    j.rows = (uint32_t *)call->scratch;
    krn_parallel(call->pool, j.parts, part_run, &j);
    pack_rows(&j);
}

static size_t scratch_bytes(const struct mdl_model *m, const struct mdl_op *op, size_t width)
{
    struct job j = {0};

    sizes_of(m, op, &j);
    return lines(j.pairs * sizeof(*j.rows)) + base_max(width, (size_t)1) * room_bytes(&j);
}

static bool supports(const struct mdl_model *m, const struct mdl_op *op)
{
    return krn_nms__ref.supports(m, op) && op->attr.nms.each > 0;
}

/* whole: of one image and class */
KRN_ISA_PRIMITIVE(nms_f32, MDL_OP_NMS, KRN_ISA_NEEDS, .whole = true, .supports = supports,
                  .scratch_bytes = scratch_bytes, .run = run);
