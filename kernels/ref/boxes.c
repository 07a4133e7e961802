/* SPDX-License-Identifier: Apache-2.0 */
/* Non-maximum suppression. */
#include <math.h>

#include "base/base.h"
#include "kernels/common/parallel.h"
#include "kernels/common/planned.h"
#include "kernels/ref/ref.h"
#include "kernels/table.h"

/*
 * NMS  greedy suppression of boxes that overlap a better one, for each image and class.
 * in: boxes [B][N][4] f32, scores [B][C][N] f32 [, iou_threshold, score_threshold: one f32 each]
 * out: I64 rows (image, class, box), [rows][3], and how many are valid; the rest is 0.
 *
 * In each (image, class), boxes are taken from the best score down, the earlier one of equals. A
 * box is dropped if its intersection over union with one that was kept is above the threshold. A
 * box is no candidate if its score is NaN, or not above score_threshold where that is given. Boxes
 * are (y1, x1, y2, x2), any two opposite corners, or (x, y, width, height) with attr.nms.centre.
 * Every step is rounded to f32, as ONNX Runtime does.      Source: ONNX NonMaxSuppression-11.
 */
struct box {
    float y1, x1, y2, x2;
};

struct job {
    const struct krn_call *c;
    float iou;   /* threshold */
    float score; /* threshold, or -infinity with score_given false */
    bool score_given;
    size_t boxes, classes, each; /* each: rows of the output for one image and class */
    size_t pairs, parts;
};

static struct box box_at(const struct job *j, size_t image, size_t i)
{
    const struct mdl_tensor *t = ref_in(j->c, 0);
    ptrdiff_t at = (ptrdiff_t)image * t->stride[0] + (ptrdiff_t)i * t->stride[1];
    float v[4];

    for (ptrdiff_t k = 0; k < 4; k++) {
        v[k] = ref_f32(j->c->in[0], at + k * t->stride[2]);
    }
    if (j->c->op->attr.nms.centre) {
        float w = v[2] / 2, h = v[3] / 2;

        return (struct box){v[1] - h, v[0] - w, v[1] + h, v[0] + w};
    }
    return (struct box){fminf(v[0], v[2]), fminf(v[1], v[3]), fmaxf(v[0], v[2]), fmaxf(v[1], v[3])};
}

static bool overlaps(const struct job *j, const struct box *a, const struct box *b)
{
    float h = fminf(a->y2, b->y2) - fmaxf(a->y1, b->y1);
    float w = fminf(a->x2, b->x2) - fmaxf(a->x1, b->x1);
    float area_a, area_b, both;

    if (!(h > 0) || !(w > 0)) {
        return false;
    }
    both = h * w;
    area_a = (a->y2 - a->y1) * (a->x2 - a->x1);
    area_b = (b->y2 - b->y1) * (b->x2 - b->x1);
    if (!(area_a > 0) || !(area_b > 0)) {
        return false;
    }
    return both / (area_a + area_b - both) > j->iou;
}

static float score_at(const struct job *j, size_t pair, size_t i)
{
    const struct mdl_tensor *t = ref_in(j->c, 1);

    return ref_f32(j->c->in[1], (ptrdiff_t)(pair / j->classes) * t->stride[0] +
                                    (ptrdiff_t)(pair % j->classes) * t->stride[1] +
                                    (ptrdiff_t)i * t->stride[2]);
}

/* Return: whether box @a comes before box @b. */
static bool better(const struct job *j, size_t pair, uint32_t a, uint32_t b)
{
    float sa = score_at(j, pair, a), sb = score_at(j, pair, b);

    return sa > sb || (sa == sb && a < b);
}

/* Puts box @k at or below slot @i of a heap with the best box at its root. */
static void sift(const struct job *j, size_t pair, uint32_t *heap, size_t i, size_t n, uint32_t k)
{
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        child += child + 1 < n && better(j, pair, heap[child + 1], heap[child]);
        if (!better(j, pair, heap[child], k)) {
            break;
        }
        heap[i] = heap[child];
    }
    heap[i] = k;
}

static void put_row(const struct job *j, size_t row, int64_t image, int64_t class, int64_t box)
{
    const struct mdl_tensor *y = ref_out(j->c, 0);
    ptrdiff_t at = (ptrdiff_t)row * y->stride[0];

    ref_set_i64(j->c->out[0], MDL_I64, at, image);
    ref_set_i64(j->c->out[0], MDL_I64, at + y->stride[1], class);
    ref_set_i64(j->c->out[0], MDL_I64, at + 2 * y->stride[1], box);
}

static int64_t row_item(const struct job *j, size_t row, ptrdiff_t k)
{
    const struct mdl_tensor *y = ref_out(j->c, 0);

    return ref_i64(j->c->out[0], MDL_I64, (ptrdiff_t)row * y->stride[0] + k * y->stride[1]);
}

static size_t candidates(const struct job *j, size_t pair, uint32_t *heap)
{
    size_t n = 0;

    for (size_t i = 0; i < j->boxes; i++) {
        float s = score_at(j, pair, i);

        if (isnan(s) || (j->score_given && !(s > j->score))) {
            continue;
        }
        heap[n++] = (uint32_t)i;
    }
    for (size_t i = n / 2; i-- > 0;) {
        sift(j, pair, heap, i, n, heap[i]);
    }
    return n;
}

/* Writes the rows of one image and class to its part of the output, and -1 after the last. */
static void select_pair(const struct job *j, size_t pair, uint32_t *heap)
{
    size_t image = pair / j->classes, first = pair * j->each, kept = 0;

    for (size_t n = candidates(j, pair, heap); n > 0 && kept < j->each; n--) {
        uint32_t best = heap[0];
        struct box box = box_at(j, image, best), other;
        bool drop = false;

        for (size_t i = 0; i < kept && !drop; i++) {
            other = box_at(j, image, (size_t)row_item(j, first + i, 2));
            drop = overlaps(j, &box, &other);
        }
        if (!drop) {
            put_row(j, first + kept++, (int64_t)image, (int64_t)(pair % j->classes), best);
        }
        sift(j, pair, heap, 0, n - 1, heap[n - 1]);
    }
    if (kept < j->each) {
        put_row(j, first + kept, -1, -1, -1);
    }
}

static void nms_part(void *arg, size_t part)
{
    const struct job *j = arg;
    struct krn_range r = krn_share(j->pairs, 1, part, j->parts);
    uint32_t *heap = (uint32_t *)j->c->scratch + part * j->boxes;

    for (size_t pair = r.begin; pair < r.end; pair++) {
        select_pair(j, pair, heap);
    }
}

/* Moves the rows of all pairs together. */
static void pack_rows(const struct job *j)
{
    size_t rows = 0, all = j->pairs * j->each;

    for (size_t pair = 0; pair < j->pairs; pair++) {
        for (size_t i = pair * j->each; i < (pair + 1) * j->each && row_item(j, i, 0) >= 0; i++) {
            put_row(j, rows++, row_item(j, i, 0), row_item(j, i, 1), row_item(j, i, 2));
        }
    }
    ref_set_i64(j->c->out[1], MDL_I64, 0, (int64_t)rows);
    for (size_t i = rows; i < all; i++) {
        put_row(j, i, 0, 0, 0);
    }
}

static void nms_run(const struct krn_call *c)
{
    struct job j = {.c = c, .boxes = ref_in(c, 0)->dim[1], .classes = ref_in(c, 1)->dim[1]};

    j.pairs = ref_in(c, 1)->dim[0] * j.classes;
    j.each = c->op->attr.nms.each;
    j.iou = c->op->in[2] == MDL_NONE ? 0 : ref_f32(c->in[2], 0);
    j.score_given = c->op->in[3] != MDL_NONE;
    j.score = j.score_given ? ref_f32(c->in[3], 0) : 0;
    j.parts = base_min(j.pairs, c->width ? c->width : 1);
    krn_parallel(c->pool, j.parts, nms_part, &j);
    pack_rows(&j);
}

static size_t nms_scratch_bytes(const struct mdl_model *m, const struct mdl_op *op, size_t width)
{
    return base_max(width, (size_t)1) * m->tensors[op->in[0]].dim[1] * sizeof(uint32_t);
}

static bool is_threshold(const struct mdl_model *m, const struct mdl_op *op, size_t i)
{
    return op->in[i] == MDL_NONE ||
           (ref_in_dtype(m, op, i) == MDL_F32 && mdl_elements(&m->tensors[op->in[i]]) == 1);
}

static bool nms_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *b = &m->tensors[op->in[0]], *s = &m->tensors[op->in[1]];
    const struct mdl_tensor *y = &m->tensors[op->out[0]];

    return b->dtype == MDL_F32 && s->dtype == MDL_F32 && b->rank == 3 && s->rank == 3 &&
           b->dim[2] == 4 && b->dim[0] == s->dim[0] && b->dim[1] == s->dim[2] &&
           b->dim[1] <= UINT32_MAX && y->rank == 2 && y->dtype == MDL_I64 && y->dim[1] == 3 &&
           y->dim[0] == s->dim[0] * s->dim[1] * op->attr.nms.each && ref_plain(op) &&
           is_threshold(m, op, 2) && is_threshold(m, op, 3) && op->out[1] != MDL_NONE;
}

KRN_PRIMITIVE(nms__ref, MDL_OP_NMS, .reference = true, .whole = true, .supports = nms_supports,
              .scratch_bytes = nms_scratch_bytes, .run = nms_run);
