/* SPDX-License-Identifier: Apache-2.0 */
#include "base/output_keys.h"

#include <math.h>

#include "base/near_word.h"

/* Reads one value. Return: true; false with @why. */
struct output_key;
typedef bool output_read_fn(const struct output_key *k, const json_t *v,
                            struct output_settings *ret, char why[OUTPUT_WHY_BYTES]);

struct output_key {
    const char *name;
    unsigned kinds; /* bits 1 << enum output_kind that have the key */
    output_read_fn *read;
    size_t at; /* of its member in struct output_settings */
    double low, high;
    const char *const *words;
};

static const char *const output_layout_words[] = {"auto", "rows", "channels", NULL};
static const char *const output_objectness_words[] = {"none", "product", "root", NULL};
static const char *const output_unit_words[] = {"pixels", "relative", NULL};
static const char *const output_head_words[] = {"decoded", "yolox", "yolov5", "yolov3", NULL};
static const char *const output_coding_words[] = {"none", "priors", "grid", NULL};
static const char *const output_blank_words[] = {"first", "last", NULL};
static const char *const output_column_words[] = {"x1", "y1",    "x2",    "y2",   "cx", "cy", "w",
                                                  "h",  "score", "class", "skip", "x",  "y",  NULL};

static bool output_read_word(const struct output_key *k, const json_t *v,
                             struct output_settings *ret, char why[OUTPUT_WHY_BYTES])
{
    int which = output_word(k->words, json_string_value(v), why);

    if (which >= 0) {
        *(unsigned *)((char *)ret + k->at) = (unsigned)which;
    }
    return which >= 0;
}

static bool output_read_number(const struct output_key *k, const json_t *v,
                               struct output_settings *ret, char why[OUTPUT_WHY_BYTES])
{
    double d = json_number_value(v);

    if (!json_is_number(v) || !(d >= k->low && d <= k->high)) {
        snprintf(why, OUTPUT_WHY_BYTES, "must be a number from %g to %g", k->low, k->high);
        return false;
    }
    *(double *)((char *)ret + k->at) = d;
    return true;
}

static bool output_read_count(const struct output_key *k, const json_t *v,
                              struct output_settings *ret, char why[OUTPUT_WHY_BYTES])
{
    json_int_t d = json_integer_value(v);

    if (!json_is_integer(v) || !((double)d >= k->low && (double)d <= k->high)) {
        snprintf(why, OUTPUT_WHY_BYTES, "must be a whole number from %.0f to %.0f", k->low,
                 k->high);
        return false;
    }
    *(size_t *)((char *)ret + k->at) = (size_t)d;
    return true;
}

static bool output_read_flag(const struct output_key *k, const json_t *v,
                             struct output_settings *ret, char why[OUTPUT_WHY_BYTES])
{
    if (!json_is_boolean(v)) {
        snprintf(why, OUTPUT_WHY_BYTES, "must be true or false");
        return false;
    }
    *(bool *)((char *)ret + k->at) = json_is_true(v);
    return true;
}

static bool output_read_variances(const struct output_key *k, const json_t *v,
                                  struct output_settings *ret, char why[OUTPUT_WHY_BYTES])
{
    for (size_t i = 0; i < 2; i++) {
        double d = json_number_value(json_array_get(v, i));

        if (json_array_size(v) != 2 || !(d >= k->low && d <= k->high)) {
            snprintf(why, OUTPUT_WHY_BYTES,
                     "must be two numbers from %g to %g: of the centre and of the size", k->low,
                     k->high);
            return false;
        }
        ret->variances[i] = d;
    }
    return true;
}

static bool output_read_strides(const struct output_key *k, const json_t *v,
                                struct output_settings *ret, char why[OUTPUT_WHY_BYTES])
{
    size_t n = json_array_size(v);

    for (size_t i = 0; i < n && n <= OUTPUT_LEVELS_MAX; i++) {
        json_int_t d = json_integer_value(json_array_get(v, i));

        if (!((double)d >= k->low && (double)d <= k->high)) {
            n = 0;
            break;
        }
        ret->stride[i] = (size_t)d;
    }
    ret->level_count = n;
    if (n == 0 || n > OUTPUT_LEVELS_MAX) {
        snprintf(why, OUTPUT_WHY_BYTES,
                 "must be 1 to %u whole numbers from %.0f to %.0f: pixels from cell to cell",
                 OUTPUT_LEVELS_MAX, k->low, k->high);
        return false;
    }
    return true;
}

/* [[[w, h], ...], ...]: those of each level */
static bool output_read_anchors(const struct output_key *k, const json_t *v,
                                struct output_settings *ret, char why[OUTPUT_WHY_BYTES])
{
    size_t levels = json_array_size(v);
    bool good = levels > 0 && levels <= OUTPUT_LEVELS_MAX;

    for (size_t l = 0; good && l < levels; l++) {
        const json_t *level = json_array_get(v, l);
        size_t n = json_array_size(level);

        good = n > 0 && n <= OUTPUT_ANCHORS_MAX;
        for (size_t a = 0; good && a < n; a++) {
            for (size_t i = 0; good && i < 2; i++) {
                double d = json_number_value(json_array_get(json_array_get(level, a), i));

                good =
                    json_array_size(json_array_get(level, a)) == 2 && d >= k->low && d <= k->high;
                ret->anchor[l][a][i] = good ? (float)d : 0;
            }
        }
        ret->anchor_count[l] = n;
    }
    ret->anchor_levels = levels;
    if (!good) {
        snprintf(why, OUTPUT_WHY_BYTES,
                 "must be a list for each stride (at most %u), of 1 to %u pairs [width, height] in "
                 "pixels, from %g to %g",
                 OUTPUT_LEVELS_MAX, OUTPUT_ANCHORS_MAX, k->low, k->high);
    }
    return good;
}

static bool output_read_columns(const struct output_key *k, const json_t *v,
                                struct output_settings *ret, char why[OUTPUT_WHY_BYTES])
{
    size_t n = json_array_size(v);
    unsigned seen = 0;

    if (n == 0 || n > OUTPUT_COLUMNS_MAX) {
        snprintf(why, OUTPUT_WHY_BYTES, "must be a list of 1 to %u words", OUTPUT_COLUMNS_MAX);
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        int which = output_word(k->words, json_string_value(json_array_get(v, i)), why);

        if (which < 0) {
            return false;
        }
        if (which != OUTPUT_SKIP && seen & 1u << which) {
            snprintf(why, OUTPUT_WHY_BYTES, "names \"%s\" twice", k->words[which]);
            return false;
        }
        seen |= 1u << which;
        ret->column[i] = (unsigned)which;
    }
    ret->column_count = n;
    return true;
}

static bool output_read_role(int role, const json_t *v, struct output_settings *ret,
                             char why[OUTPUT_WHY_BYTES])
{
    size_t n = json_is_string(v) ? 1 : json_array_size(v);

    for (size_t i = 0; i < n && n <= OUTPUT_NAMES_MAX; i++) {
        ret->name[role][i] = json_string_value(json_is_string(v) ? v : json_array_get(v, i));
        n = ret->name[role][i] ? n : 0;
    }
    ret->name_count[role] = n;
    if (n == 0 || n > OUTPUT_NAMES_MAX) {
        snprintf(why, OUTPUT_WHY_BYTES,
                 "\"%s\" must be the name of an output of the model, or a list of at most %u",
                 output_role_words[role], OUTPUT_NAMES_MAX);
        return false;
    }
    return true;
}

static bool output_read_tensors(const struct output_key *k, const json_t *v,
                                struct output_settings *ret, char why[OUTPUT_WHY_BYTES])
{
    const char *name;
    json_t *value;

    if (!json_is_object(v)) {
        snprintf(why, OUTPUT_WHY_BYTES, "must be an object: what an output is, and its name");
        return false;
    }
    json_object_foreach((json_t *)(uintptr_t)v, name, value)
    {
        int role = output_word(k->words, name, why);

        if (role < 0 || !output_read_role(role, value, ret, why)) {
            return false;
        }
    }
    return true;
}

static bool output_read_alphabet(const struct output_key *k, const json_t *v,
                                 struct output_settings *ret, char why[OUTPUT_WHY_BYTES])
{
    size_t n = json_array_size(v);

    for (size_t i = 0; i < n && n <= OUTPUT_ALPHABET_MAX; i++) {
        n = json_is_string(json_array_get(v, i)) ? n : 0;
    }
    if (n == 0 || n > OUTPUT_ALPHABET_MAX) {
        snprintf(why, OUTPUT_WHY_BYTES, "must be a list of 1 to %u strings", OUTPUT_ALPHABET_MAX);
        return false;
    }
    ret->alphabet = v;
    return true;
}

static bool output_read_alphabet_file(const struct output_key *k, const json_t *v,
                                      struct output_settings *ret, char why[OUTPUT_WHY_BYTES])
{
    ret->alphabet_file = json_string_value(v);
    if (!ret->alphabet_file) {
        snprintf(why, OUTPUT_WHY_BYTES, "must be the name of a file below the model's folder");
    }
    return ret->alphabet_file != NULL;
}

/* clang-format off */
#define OUTPUT_IN(kind) (1u << OUTPUT_##kind)
#define OUTPUT_FOUND (OUTPUT_IN(YOLO) | OUTPUT_IN(SSD))
#define OUTPUT_AT(member) offsetof(struct output_settings, member)
static const struct output_key output_keys[] = {
    {"decode", ~0u, output_read_word, OUTPUT_AT(kind), 0, 0, output_kind_words},
    {"tensors", ~0u, output_read_tensors, 0, 0, 0, output_role_words},
    {"score", ~(OUTPUT_IN(CTC) | OUTPUT_IN(MASK)), output_read_number, OUTPUT_AT(score), 0, 1,
     NULL},
    {"most", ~(OUTPUT_IN(CTC) | OUTPUT_IN(KEYPOINTS) | OUTPUT_IN(MASK)), output_read_count,
     OUTPUT_AT(most), 1, 10000, NULL},
    {"activation", ~(OUTPUT_IN(BOXES)), output_read_word, OUTPUT_AT(activation), 0, 0,
     output_activation_words},
    {"layout", ~(OUTPUT_IN(CLASSES) | OUTPUT_IN(BOXES) | OUTPUT_IN(DBNET)), output_read_word,
     OUTPUT_AT(layout), 0, 0, output_layout_words},
    {"iou", OUTPUT_FOUND, output_read_number, OUTPUT_AT(iou), 0, 1, NULL},
    {"across", OUTPUT_FOUND, output_read_flag, OUTPUT_AT(across), 0, 0, NULL},
    {"objectness", OUTPUT_FOUND, output_read_word, OUTPUT_AT(objectness), 0, 0,
     output_objectness_words},
    {"strides", OUTPUT_FOUND, output_read_strides, 0, 1, 4096, NULL},
    {"anchors", OUTPUT_FOUND, output_read_anchors, 0, 1e-3, 1e5, NULL},
    {"head", OUTPUT_IN(YOLO), output_read_word, OUTPUT_AT(head), 0, 0, output_head_words},
    {"keypoints", OUTPUT_FOUND, output_read_count, OUTPUT_AT(keypoints), 0, 1000, NULL},
    {"keypoint_numbers", OUTPUT_IN(YOLO), output_read_count, OUTPUT_AT(keypoint_numbers), 2, 3,
     NULL},
    {"coding", OUTPUT_IN(SSD), output_read_word, OUTPUT_AT(coding), 0, 0, output_coding_words},
    {"variances", OUTPUT_IN(SSD), output_read_variances, 0, 1e-6, 1e3, NULL},
    {"background", OUTPUT_IN(SSD) | OUTPUT_IN(MASK), output_read_flag, OUTPUT_AT(background), 0, 0,
     NULL},
    {"columns", OUTPUT_FOUND | OUTPUT_IN(BOXES) | OUTPUT_IN(KEYPOINTS), output_read_columns, 0, 0,
     0, output_column_words},
    {"unit", OUTPUT_FOUND | OUTPUT_IN(BOXES) | OUTPUT_IN(KEYPOINTS), output_read_word,
     OUTPUT_AT(unit), 0, 0, output_unit_words},
    {"threshold", OUTPUT_IN(DBNET) | OUTPUT_IN(MASK), output_read_number, OUTPUT_AT(threshold), 0,
     1, NULL},
    {"unclip", OUTPUT_IN(DBNET), output_read_number, OUTPUT_AT(unclip), 0, 10, NULL},
    {"least", OUTPUT_IN(DBNET), output_read_count, OUTPUT_AT(least), 0, 10000, NULL},
    {"alphabet", OUTPUT_IN(CTC), output_read_alphabet, 0, 0, 0, NULL},
    {"alphabet_file", OUTPUT_IN(CTC), output_read_alphabet_file, 0, 0, 0, NULL},
    {"space", OUTPUT_IN(CTC), output_read_flag, OUTPUT_AT(space), 0, 0, NULL},
    {"blank", OUTPUT_IN(CTC), output_read_word, OUTPUT_AT(blank), 0, 0, output_blank_words},
    {0}};
/* clang-format on */

static struct output_settings output_defaults(unsigned kind)
{
    struct output_settings s = {.kind = kind,
                                .score = 0.25,
                                .iou = 0.45,
                                .threshold = 0.5,
                                .unclip = 1.5,
                                .variances = {0.1, 0.2},
                                .most = 100,
                                .least = 3,
                                .keypoint_numbers = 3,
                                .background = true};

    if (kind == OUTPUT_CLASSES) {
        s.score = 0;
        s.most = 5;
        s.activation = OUTPUT_UNSAID;
    } else if (kind == OUTPUT_DBNET) {
        s.score = 0.6;
        s.threshold = 0.3;
        s.most = 1000;
    }
    return s;
}

static const struct output_key *output_find(const char *name, unsigned kind,
                                            char why[OUTPUT_WHY_BYTES])
{
    struct near_word n = {.given = name};
    char hint[NEAR_WORD_HINT_BYTES];

    for (const struct output_key *k = output_keys; k->name; k++) {
        if (strcmp(k->name, name) == 0 && k->kinds & 1u << kind) {
            return k;
        }
        if (strcmp(k->name, name) == 0) {
            snprintf(why, OUTPUT_WHY_BYTES, "is not for \"decode\": \"%s\"",
                     output_kind_words[kind]);
            return NULL;
        }
        near_word_try(&n, k->name);
    }
    snprintf(why, OUTPUT_WHY_BYTES, "unknown key%s", near_word_hint(&n, hint));
    return NULL;
}

bool output_settings_read(const json_t *object, struct output_settings *ret, const char **ret_key,
                          char why[OUTPUT_WHY_BYTES])
{
    const json_t *decode = json_object_get(object, "decode");
    const char *name, *text;
    json_t *value;

    *ret_key = "output";
    if (!json_is_object(object)) {
        snprintf(why, OUTPUT_WHY_BYTES, "must be an object");
        return false;
    }
    *ret_key = "decode";
    if (!output_read_word(&output_keys[0], decode, ret, why)) {
        return false;
    }
    *ret = output_defaults(ret->kind);
    json_object_foreach((json_t *)(uintptr_t)object, name, value)
    {
        const struct output_key *k = output_find(name, ret->kind, why);

        *ret_key = name;
        if (!k || !k->read(k, value, ret, why)) {
            return false;
        }
    }
    *ret_key = "tensors";
    if (!output_check_roles(ret, why)) {
        return false;
    }
    text = output_check(ret, ret_key);
    snprintf(why, OUTPUT_WHY_BYTES, "%s", text ? text : "");
    return !text;
}
