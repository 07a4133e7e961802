/* SPDX-License-Identifier: Apache-2.0 */
/**
 * output_keys.h - the keys of a sidecar's `output`, which says how a model's outputs are decoded
 *
 * model/ checks the sidecar by it and ipc/decode reads it by it, so both refuse the same values in
 * the same words. docs/outputs.md explains the keys.
 */
#pragma once

#include <jansson.h>

#include "base/base.h"

#define OUTPUT_TEXT_MAX ((size_t)1 << 20) /* bytes of a description as JSON */
#define OUTPUT_LEVELS_MAX 16u
#define OUTPUT_ANCHORS_MAX 32u /* of a level */
#define OUTPUT_COLUMNS_MAX 16u
#define OUTPUT_NAMES_MAX 16u /* tensors of a role */
#define OUTPUT_ALPHABET_MAX 100000u
#define OUTPUT_CLASSES_MAX 1000000u /* of a model whose sidecar does not call it a classifier */
#define OUTPUT_WHY_BYTES 256u

/* X(ID, word): the kinds of decoders. ipc/decode/ has decode_WORD of each. */
#define OUTPUT_KINDS(X)                                                                            \
    X(CLASSES, classes)                                                                            \
    X(YOLO, yolo)                                                                                  \
    X(SSD, ssd)                                                                                    \
    X(BOXES, boxes)                                                                                \
    X(DBNET, dbnet)                                                                                \
    X(CTC, ctc)                                                                                    \
    X(KEYPOINTS, keypoints)                                                                        \
    X(MASK, mask)
#define OUTPUT_KIND_ID(ID, word) OUTPUT_##ID,
enum output_kind { OUTPUT_KINDS(OUTPUT_KIND_ID) OUTPUT_KIND_COUNT };
enum output_layout { OUTPUT_LAYOUT_AUTO, OUTPUT_ROWS, OUTPUT_CHANNELS };
/* OUTPUT_UNSAID has no word: softmax, unless the scores are probabilities already. */
enum output_activation { OUTPUT_NONE, OUTPUT_SIGMOID, OUTPUT_SOFTMAX, OUTPUT_UNSAID };
enum output_objectness { OUTPUT_NO_OBJECTNESS, OUTPUT_PRODUCT, OUTPUT_ROOT };
enum output_unit { OUTPUT_PIXELS, OUTPUT_RELATIVE };
enum output_head { OUTPUT_DECODED, OUTPUT_YOLOX, OUTPUT_YOLOV5, OUTPUT_YOLOV3 };
enum output_coding { OUTPUT_PLAIN, OUTPUT_PRIORS, OUTPUT_GRID };
enum output_blank { OUTPUT_FIRST, OUTPUT_LAST };
enum output_column {
    OUTPUT_X1,
    OUTPUT_Y1,
    OUTPUT_X2,
    OUTPUT_Y2,
    OUTPUT_CX,
    OUTPUT_CY,
    OUTPUT_W,
    OUTPUT_H,
    OUTPUT_SCORE,
    OUTPUT_CLASS,
    OUTPUT_SKIP,
    OUTPUT_X,
    OUTPUT_Y,
    OUTPUT_COLUMN_KINDS
};
enum output_role {
    OUTPUT_AS_BOXES, /* also the only tensor of the kinds that read one */
    OUTPUT_AS_SCORES,
    OUTPUT_AS_OBJECTNESS,
    OUTPUT_AS_KEYPOINTS,
    OUTPUT_AS_CLASSES,
    OUTPUT_AS_COUNT,
    OUTPUT_AS_INDICES,
    OUTPUT_ROLE_COUNT
};

/* What the keys say; strings are borrowed from the JSON. */
struct output_settings {
    unsigned kind, layout, activation, objectness, unit, head, coding, blank;
    double score, iou, threshold, unclip, variances[2];
    size_t most, least, keypoints, keypoint_numbers;
    bool across, background, space;
    size_t level_count, anchor_levels, anchor_count[OUTPUT_LEVELS_MAX];
    size_t stride[OUTPUT_LEVELS_MAX];
    float anchor[OUTPUT_LEVELS_MAX][OUTPUT_ANCHORS_MAX][2]; /* width, height in pixels */
    size_t column_count;
    unsigned column[OUTPUT_COLUMNS_MAX];
    size_t name_count[OUTPUT_ROLE_COUNT];
    const char *name[OUTPUT_ROLE_COUNT][OUTPUT_NAMES_MAX];
    const json_t *alphabet;    /* a list of strings; NULL: none */
    const char *alphabet_file; /* only in a sidecar */
};

/* The words of an enum, in its order, then NULL. */
extern const char *const output_kind_words[];
extern const char *const output_activation_words[];
extern const char *const output_role_words[];

/* Return: the index of @text; -1, with the list in @why: none. */
int output_word(const char *const *words, const char *text, char why[OUTPUT_WHY_BYTES]);

/* Return: a bit for each kind of column. */
unsigned output_columns(const struct output_settings *s);

/**
 * output_settings_read() - reads the object of the key `output`
 *
 * @ret_key: the key that is wrong, borrowed from @object or static     @why: what is wrong with it
 *
 * Threads: any; allocates nothing. Return: true; false with @ret_key and @why.
 */
bool output_settings_read(const json_t *object, struct output_settings *ret, const char **ret_key,
                          char why[OUTPUT_WHY_BYTES]);

/* ---- output_keys_check.c, for output_keys.c ---- */

/* Each role of "tensors" must be read. Return: true; false with @why. */
bool output_check_roles(const struct output_settings *s, char why[OUTPUT_WHY_BYTES]);

/* Keys that need each other. Return: NULL; else why not, with *ret_key. */
const char *output_check(const struct output_settings *s, const char **ret_key);
