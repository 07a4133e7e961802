/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Boxes that the model has already chosen (non-maximum suppression in the graph, or none needed).
 *
 * Either rows of "columns", with score and class in them or in tensors of their own; or, with
 * "indices", the result of the operator NonMaxSuppression: rows of batch, class and box, for boxes
 * [1][M][4] and scores [1][C][M].
 */
#include <math.h>

#include "base/base.h"
#include "ipc/decode/decoder.h"

/* The columns if none are given: a box, or a box, a score and a class. */
static void usual_columns(struct piped_decoder *d, size_t fields)
{
    static const unsigned usual[] = {OUTPUT_X1, OUTPUT_Y1,    OUTPUT_X2,
                                     OUTPUT_Y2, OUTPUT_SCORE, OUTPUT_CLASS};

    if (d->set.column_count == 0 && (fields == 4 || fields == 6)) {
        memcpy(d->set.column, usual, fields * sizeof(*usual));
        d->set.column_count = fields;
    }
}

static size_t last_dim(const struct decode_tensor *t)
{
    return t->rank ? t->dim[t->rank - 1] : 1;
}

static int check_indices(const struct piped_decoder *d, size_t rows)
{
    const struct decode_tensor *s = decode_one(d, OUTPUT_AS_SCORES, 0);
    const struct decode_tensor *i = decode_one(d, OUTPUT_AS_INDICES, 0);

    if (last_dim(i) != 3) {
        return decode_bad(i, "is to be \"indices\": it needs rows of batch, class and box");
    }
    return s && last_dim(s) == rows ? decode_labels_fit(d, s, s->count / rows, "")
           : s ? decode_bad(s, "is to be \"scores\": its last dimension must be the %zu boxes",
                            rows)
               : ipc_client_error(-EINVAL, "key 'tensors': \"indices\" needs \"scores\" too");
}

static int check_side(const struct piped_decoder *d, unsigned role, size_t rows)
{
    const struct decode_tensor *t = decode_one(d, role, 0);

    return !t || t->count == rows
               ? 0
               : decode_bad(t, "is to be \"%s\": it needs a number for each of %zu boxes",
                            output_role_words[role], rows);
}

static int check(struct piped_decoder *d)
{
    const struct decode_tensor *t = d->only, *count = decode_one(d, OUTPUT_AS_COUNT, 0);
    size_t fields = last_dim(t), rows = t->count / fields;
    int rc;

    for (unsigned r = 0; r < OUTPUT_ROLE_COUNT; r++) {
        if (d->role_count[r] > 1) {
            return ipc_client_error(-EINVAL, "key 'tensors': \"%s\" must be one output",
                                    output_role_words[r]);
        }
    }
    usual_columns(d, fields);
    if (d->set.column_count != fields) {
        return decode_bad(t, "has rows of %zu numbers, and \"columns\" has %zu words", fields,
                          d->set.column_count);
    }
    if (d->role_count[OUTPUT_AS_INDICES]) {
        return check_indices(d, rows);
    }
    if (!(output_columns(&d->set) & 1u << OUTPUT_SCORE) && !d->role_count[OUTPUT_AS_SCORES]) {
        return decode_bad(t, "has no score; name a \"score\" in \"columns\", or an output "
                             "\"scores\" in \"tensors\"");
    }
    if (count && count->count != 1) {
        return decode_bad(count, "is to be \"count\": it needs one number");
    }
    rc = check_side(d, OUTPUT_AS_SCORES, rows);
    return rc < 0 ? rc : check_side(d, OUTPUT_AS_CLASSES, rows);
}

/* Return: the number of a class; -1: none that fits. */
static int32_t class_of(double v)
{
    return v >= 0 && v < 1e9 ? (int32_t)v : -1;
}

static void add(struct piped_decoder *d, struct decode_box *b)
{
    b->order = d->box_count;
    if (decode_scored(d, b->score)) {
        decode_add_box(d, b);
    }
}

static struct decode_box box_of(const struct piped_decoder *d, size_t row)
{
    const struct decode_tensor *t = d->only;
    struct decode_box b = {.number = -1};
    double n[OUTPUT_COLUMNS_MAX];

    for (size_t i = 0; i < d->set.column_count; i++) {
        n[i] = (double)t->values[row * d->set.column_count + i];
        b.score = d->set.column[i] == OUTPUT_SCORE ? n[i] : b.score;
        b.number = d->set.column[i] == OUTPUT_CLASS ? class_of(n[i]) : b.number;
    }
    decode_corners(d, n, d->set.column, d->set.column_count, &b);
    return b;
}

/* Boxes whose corners are in the other order, as NonMaxSuppression allows. */
static void straighten(struct decode_box *b)
{
    double x = fmin(b->x1, b->x2), y = fmin(b->y1, b->y2);

    b->x2 = fmax(b->x1, b->x2);
    b->y2 = fmax(b->y1, b->y2);
    b->x1 = x;
    b->y1 = y;
}

static void run_indices(struct piped_decoder *d)
{
    const struct decode_tensor *index = decode_one(d, OUTPUT_AS_INDICES, 0);
    const struct decode_tensor *s = decode_one(d, OUTPUT_AS_SCORES, 0);
    size_t boxes = last_dim(s), classes = s->count / boxes;
    size_t rows = base_min(index->count / 3, (size_t)base_min(index->valid, (uint64_t)SIZE_MAX));

    for (size_t i = 0; i < rows; i++) {
        const float *at = index->values + 3 * i;
        struct decode_box b;

        if (at[0] == 0 && at[1] >= 0 && (double)at[1] < (double)classes && at[2] >= 0 &&
            (double)at[2] < (double)boxes) {
            b = box_of(d, (size_t)at[2]);
            b.number = (int32_t)at[1];
            b.score = (double)s->values[(size_t)at[1] * boxes + (size_t)at[2]];
            straighten(&b);
            add(d, &b);
        }
    }
}

static void run(struct piped_decoder *d)
{
    const struct decode_tensor *t = d->only;
    const struct decode_tensor *s = decode_one(d, OUTPUT_AS_SCORES, 0);
    const struct decode_tensor *c = decode_one(d, OUTPUT_AS_CLASSES, 0);
    const struct decode_tensor *count = decode_one(d, OUTPUT_AS_COUNT, 0);
    size_t rows = t->count / d->set.column_count;

    if (d->role_count[OUTPUT_AS_INDICES]) {
        run_indices(d);
        decode_sort(d, d->set.most);
        return;
    }
    rows = t->valid < rows ? (size_t)t->valid : rows;
    if (count) {
        double n = (double)count->values[0];

        rows = n >= 0 && n < (double)rows ? (size_t)n : n >= 0 ? rows : 0;
    }
    for (size_t i = 0; i < rows; i++) {
        struct decode_box b = box_of(d, i);

        b.score = s ? (double)s->values[i] : b.score;
        b.number = c ? class_of((double)c->values[i]) : b.number;
        add(d, &b);
    }
    decode_sort(d, d->set.most);
}

const struct decode_kind decode_boxes = {check, run, .one = true};
