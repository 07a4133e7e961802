/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/decode/decoder.h - the inside of a decoder
 *
 * piped_decoder_new() reads the settings, finds the tensors of each role and lets the kind check
 * them (decode_kind.check). piped_decode() turns the tensors into floats and lets the kind run;
 * what it makes is in coordinates of the model's input until decode_finish() takes it back to the
 * picture. So nothing that an output holds can fail, but for memory.
 */
#pragma once

#include <math.h>
#include <stdbool.h>

#include "base/output_keys.h"
#include "base/picture_fit.h"
#include "ipc/client/client.h"
#include "ipc/decode/piped_decode.h"

#define DECODE_TENSORS_MAX 64u /* of a model's outputs */

/* An output, and its elements as floats while a frame is decoded. */
struct decode_tensor {
    struct piped_tensor t;
    char name[IPC_NAME_BYTES];
    size_t count;        /* elements */
    float *copy;         /* owned: room for count floats; NULL: the output holds floats */
    const float *values; /* while decoding */
    size_t rank, dim[8]; /* without the batch: the first of three dimensions or more, if it is 1 */
    uint64_t valid;      /* rows that are valid, of this frame */
    bool taken;          /* it has a role */
};

/* An object before it goes back to the picture: corners in coordinates of the input. */
struct decode_box {
    double x1, y1, x2, y2, score, area;
    int32_t number;
    uint32_t point_first, point_count;
    size_t order; /* of equal scores the lowest goes first */
};

/* N rows of numbers, of which each row is a candidate: those of a cell and an anchor. */
struct decode_view {
    size_t cells, anchors, fields;
    size_t cell_step, anchor_step, field_step;
};

struct decode_kind;

struct piped_decoder {
    struct output_settings set;
    const struct decode_kind *kind;
    char *description; /* owned: what it was made of */
    json_t *json;      /* owned: the settings' strings and the labels */
    json_t *labels;    /* of json; NULL: none */
    enum picture_fit fit;
    uint32_t in_width, in_height; /* of the model's input; 0: it is not a picture */
    struct decode_tensor tensor[DECODE_TENSORS_MAX];
    size_t tensor_count;
    const struct decode_tensor *only; /* of a kind that takes one */
    /* of each role: indices of its tensors */
    size_t role[OUTPUT_ROLE_COUNT][OUTPUT_NAMES_MAX], role_count[OUTPUT_ROLE_COUNT];
    size_t classes; /* columns of scores, or classes of a mask */
    /* of the frame being decoded */
    struct picture_axis x, y;
    uint32_t width, height; /* of the picture */
    /* all owned: grown as needed, reused */
    struct decode_box *boxes;
    size_t box_count, box_size;
    struct piped_point *points;
    size_t point_count, point_size;
    struct piped_object *objects;
    size_t object_size;
    struct piped_class *best;
    size_t best_size;
    char *text;
    size_t text_bytes, text_size;
    void *scratch; /* of the kind: allocated by its check */
    struct piped_mask mask;
    uint8_t *mask_classes;
    int failed; /* why there is no result, with piped_last_error(): -ENOMEM, -EDOM; or 0 */
    struct piped_decoded result;
};

/* A decoder: its file has its equations. */
struct decode_kind {
    /* Looks at the tensors; allocates scratch. Return: 0; else with piped_last_error(). */
    int (*check)(struct piped_decoder *d);
    void (*run)(struct piped_decoder *d);
    bool one; /* of the role boxes it takes one tensor, which is d->only */
};
#define DECODE_KIND(ID, word) extern const struct decode_kind decode_##word;
OUTPUT_KINDS(DECODE_KIND)

/* common.c */

/** decode_take() - the outputs of a frame as floats. @output, @rows: as of piped_decode(). */
void decode_take(struct piped_decoder *d, const void *output, const uint64_t *rows);
/** decode_label() - Return: the name of class @number, or NULL. */
const char *decode_label(const struct piped_decoder *d, int32_t number);
/** decode_one() - the tensor @k of @role. Return: NULL: there is none. */
const struct decode_tensor *decode_one(const struct piped_decoder *d, unsigned role, size_t k);
/** decode_need() - the @count tensors of @role are those named, or the next ones of the model that
 * have no role. Return: 0; -EINVAL: there are fewer, or others are named. */
int decode_need(struct piped_decoder *d, unsigned role, size_t count);
/** decode_labels_fit() - compares the @classes of @t with the labels. @others: what else a row has,
 * or "". Return: 0, also without labels; -EINVAL: there are more or fewer. */
int decode_labels_fit(const struct piped_decoder *d, const struct decode_tensor *t, size_t classes,
                      const char *others);
int decode_bad(const struct decode_tensor *t, const char *why, ...)
    __attribute__((format(printf, 2, 3)));
/** decode_scratch() - gives the decoder zeroed scratch of its kind. Return: 0; -ENOMEM. */
int decode_scratch(struct piped_decoder *d, size_t bytes);
/** decode_grow() - makes room for @count elements of @bytes. Return: false: out of memory, and
 * d->failed is set. */
bool decode_grow(struct piped_decoder *d, void *list, size_t *size, size_t count, size_t bytes);
/** decode_scored() - Return: whether @score makes an object: a float can hold it, and it is not
 * below the least. Others must not take part in non-maximum suppression. */
static inline bool decode_scored(const struct piped_decoder *d, double score)
{
    return score >= d->set.score && isfinite((float)score);
}
/** decode_add_box() - adds @b, unless a corner is infinite or NaN. */
void decode_add_box(struct piped_decoder *d, const struct decode_box *b);
void decode_add_point(struct piped_decoder *d, double u, double v, double score);
/** decode_unit() - Return: what a coordinate of key unit is multiplied by along an axis. */
static inline double decode_unit(const struct piped_decoder *d, uint32_t size)
{
    return d->set.unit == OUTPUT_RELATIVE ? size : 1;
}
/** decode_x(), decode_y() - a coordinate of the input as one of the picture. */
double decode_x(const struct piped_decoder *d, double u);
double decode_y(const struct piped_decoder *d, double v);

/**
 * decode_view_of() - the view of a tensor
 *
 * Without the batch: rows [N][F], [H][W][A F] or [A][H][W][F]; channels [F][N], [A F][H][W] or
 * [A][F][H][W]. @expect: numbers of a row, as far as they are known; 0: they are not. With layout
 * auto a matrix has rows of @expect numbers, else the smaller dimension is the numbers; [A F][H][W]
 * has channels, and [A][H][W][F] rows. Return: 0; -EINVAL.
 */
int decode_view_of(const struct piped_decoder *d, const struct decode_tensor *t, size_t anchors,
                   size_t expect, struct decode_view *ret);
static inline double decode_field(const float *values, const struct decode_view *v, size_t cell,
                                  size_t anchor, size_t field)
{
    return (double)values[cell * v->cell_step + anchor * v->anchor_step + field * v->field_step];
}
double decode_sigmoid(double v);
/** decode_probability() - Return: the activation's value of one number: sigmoid, if it is that. */
static inline double decode_probability(const struct piped_decoder *d, double v)
{
    return d->set.activation == OUTPUT_SIGMOID ? decode_sigmoid(v) : v;
}
/** decode_best() - Return: the index of the highest value in [@first, @count), of equal ones the
 * first; SIZE_MAX: all are NaN. */
static inline size_t decode_best(const double *values, size_t first, size_t count)
{
    size_t best = SIZE_MAX;

    for (size_t k = first; k < count; k++) {
        best = !isnan(values[k]) && (best == SIZE_MAX || values[k] > values[best]) ? k : best;
    }
    return best;
}
/** decode_class() - the class of a row, from @first on, and its score: the highest, times @object,
 * or the root of that (key objectness). Without classes: -1, and @object alone. */
void decode_class(const struct piped_decoder *d, const double *scores, size_t first, double object,
                  struct decode_box *ret);
/** decode_reach() - makes a box reach a point; DECODE_NOWHERE is the one that reaches none. */
void decode_reach(struct decode_box *b, double u, double v);
#define DECODE_NOWHERE .x1 = INFINITY, .y1 = INFINITY, .x2 = -INFINITY, .y2 = -INFINITY
/** decode_clipped() - Return: @v in [0, @most]. */
double decode_clipped(double v, double most);
/** decode_activated() - applies the activation to @count values in place. */
void decode_activated(const struct piped_decoder *d, double *values, size_t count);
/** decode_corners() - a box from four numbers. @columns: of enum output_column, @count of them;
 * NULL: cx, cy, w, h. In pixels of the input, unless unit is relative. */
void decode_corners(const struct piped_decoder *d, const double *numbers, const unsigned *columns,
                    size_t count, struct decode_box *ret);
/** decode_sort() - by score, equal ones by order; keeps the first @most. */
void decode_sort(struct piped_decoder *d, size_t most);
/**
 * decode_nms() - non-maximum suppression: greedy, by score
 *
 * A box is dropped if |a & b| / |a | b| > iou with a kept one of the same class (across: of any).
 * At most set.most are kept.
 */
void decode_nms(struct piped_decoder *d);
/** decode_grid_size() - cells of a level: ceil(width / stride), and the same for height. */
size_t decode_grid_size(const struct piped_decoder *d, size_t level, size_t *ret_columns);
