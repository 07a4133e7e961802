/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a sidecar's `output`, and what it may say together. */

#include "base/base.h"
#include "base/near_word.h"
#include "base/output_keys.h"

#define WORD(ID, word) #word,
const char *const output_kind_words[] = {OUTPUT_KINDS(WORD) NULL};
const char *const output_activation_words[] = {"none", "sigmoid", "softmax", NULL};
const char *const output_role_words[] = {"boxes",   "scores", "objectness", "keypoints",
                                         "classes", "count",  "indices",    NULL};

int output_word(const char *const *words, const char *text, char why[OUTPUT_WHY_BYTES])
{
    struct near_word n = {.given = text ? text : ""};
    char hint[NEAR_WORD_HINT_BYTES];

    snprintf(why, OUTPUT_WHY_BYTES, "must be one of:");
    for (int i = 0; words[i]; i++) {
        if (text && strcmp(text, words[i]) == 0) {
            return i;
        }
        near_word_try(&n, words[i]);
        base_append(why, OUTPUT_WHY_BYTES, " \"%s\"", words[i]);
    }
    if (text) {
        base_append(why, OUTPUT_WHY_BYTES, ", not \"%.30s\"%s", text, near_word_hint(&n, hint));
    }
    return -1;
}

unsigned output_columns(const struct output_settings *s)
{
    unsigned seen = 0;

    for (size_t i = 0; i < s->column_count; i++) {
        seen |= 1u << s->column[i];
    }
    return seen;
}

static bool output_is_box(unsigned seen)
{
    unsigned x = seen & (1u << OUTPUT_X1 | 1u << OUTPUT_X2 | 1u << OUTPUT_CX | 1u << OUTPUT_W);
    unsigned y = seen & (1u << OUTPUT_Y1 | 1u << OUTPUT_Y2 | 1u << OUTPUT_CY | 1u << OUTPUT_H);

    return (x == (1u << OUTPUT_X1 | 1u << OUTPUT_X2) || x == (1u << OUTPUT_X1 | 1u << OUTPUT_W) ||
            x == (1u << OUTPUT_CX | 1u << OUTPUT_W)) &&
           (y == (1u << OUTPUT_Y1 | 1u << OUTPUT_Y2) || y == (1u << OUTPUT_Y1 | 1u << OUTPUT_H) ||
            y == (1u << OUTPUT_CY | 1u << OUTPUT_H));
}

/* Columns that the kind can read. Return: NULL, or why not. */
static const char *output_check_columns(const struct output_settings *s)
{
    unsigned seen = output_columns(s);

    if (s->column_count == 0) {
        return NULL;
    }
    if (s->kind == OUTPUT_KEYPOINTS) {
        return seen == (1u << OUTPUT_X | 1u << OUTPUT_Y) ||
                       seen == (1u << OUTPUT_X | 1u << OUTPUT_Y | 1u << OUTPUT_SCORE)
                   ? NULL
                   : "needs \"x\" and \"y\", and may have \"score\"";
    }
    if (!output_is_box(seen) || seen & (1u << OUTPUT_X | 1u << OUTPUT_Y)) {
        return "must say a box: x1 and x2, x1 and w, or cx and w; and the same for y";
    }
    return s->kind != OUTPUT_BOXES && s->column_count != 4 ? "needs the four numbers of a box"
                                                           : NULL;
}

/* Return: a bit for each role that is read. */
static unsigned output_roles(const struct output_settings *s)
{
    unsigned roles = 1u << OUTPUT_AS_BOXES;

    if (s->kind == OUTPUT_SSD) {
        roles |= 1u << OUTPUT_AS_SCORES;
        roles |= s->objectness != OUTPUT_NO_OBJECTNESS ? 1u << OUTPUT_AS_OBJECTNESS : 0;
        roles |= s->keypoints ? 1u << OUTPUT_AS_KEYPOINTS : 0;
    } else if (s->kind == OUTPUT_BOXES) {
        roles |= 1u << OUTPUT_AS_SCORES | 1u << OUTPUT_AS_INDICES;
        roles |=
            s->name_count[OUTPUT_AS_INDICES] ? 0 : 1u << OUTPUT_AS_CLASSES | 1u << OUTPUT_AS_COUNT;
    }
    return roles;
}

bool output_check_roles(const struct output_settings *s, char why[OUTPUT_WHY_BYTES])
{
    unsigned roles = output_roles(s), r = 0;

    while (r < OUTPUT_ROLE_COUNT && (roles & 1u << r || s->name_count[r] == 0)) {
        r++;
    }
    if (r == OUTPUT_ROLE_COUNT) {
        return true;
    }
    snprintf(why, OUTPUT_WHY_BYTES,
             "\"decode\": \"%s\" with these keys does not read \"%s\"; it reads:",
             output_kind_words[s->kind], output_role_words[r]);
    for (r = 0; r < OUTPUT_ROLE_COUNT; r++) {
        if (roles & 1u << r) {
            base_append(why, OUTPUT_WHY_BYTES, " \"%s\"", output_role_words[r]);
        }
    }
    return false;
}

const char *output_check(const struct output_settings *s, const char **ret_key)
{
    bool levels = s->kind == OUTPUT_YOLO ? s->head != OUTPUT_DECODED : s->coding != OUTPUT_PLAIN;
    bool anchors = s->kind == OUTPUT_YOLO ? s->head >= OUTPUT_YOLOV5 : s->coding == OUTPUT_PRIORS;
    const char *which = s->kind == OUTPUT_YOLO ? "this needs \"head\"" : "this needs \"coding\"";

    *ret_key = "columns";
    if (output_check_columns(s)) {
        return output_check_columns(s);
    }
    if (s->kind == OUTPUT_CTC) {
        *ret_key = "alphabet";
        return !s->alphabet == !s->alphabet_file
                   ? "give one of \"alphabet\" and \"alphabet_file\": the characters in their order"
                   : NULL;
    }
    if (s->kind != OUTPUT_YOLO && s->kind != OUTPUT_SSD) {
        return NULL;
    }
    if (levels && s->column_count) {
        return "boxes that are made from cells have columns of their own; leave it out";
    }
    *ret_key = "strides";
    if (levels != (s->level_count > 0)) {
        return levels ? "is missing: pixels from cell to cell, as in [8, 16, 32]" : which;
    }
    *ret_key = "anchors";
    if (anchors != (s->anchor_levels > 0)) {
        return anchors ? "is missing: sizes of the anchors of each stride" : which;
    }
    if (anchors && s->anchor_levels != s->level_count) {
        return "must have a list for each of \"strides\"";
    }
    *ret_key = "keypoints";
    return s->kind == OUTPUT_YOLO && levels && s->keypoints
               ? "are read from decoded boxes only; leave out \"head\""
               : NULL;
}
