/* SPDX-License-Identifier: Apache-2.0 */
#include "model/sidecar_output.h"

#include "base/json_text.h"
#include "base/output_keys.h"
#include "base/picture_fit.h"
#include "base/tensor_name.h"
#include "model/common/file.h"
#include "model/common/private.h"

json_t *mdl_alphabet_lines(const char *text, size_t bytes)
{
    json_t *list = json_array();

    for (size_t at = json_text_mark(text, bytes); list && at < bytes;) {
        const char *end = memchr(text + at, '\n', bytes - at);
        size_t n = end ? (size_t)(end - text) - at : bytes - at;
        json_t *line = json_stringn(text + at, n > 0 && text[at + n - 1] == '\r' ? n - 1 : n);

        if (!line || json_array_size(list) == OUTPUT_ALPHABET_MAX ||
            json_array_append_new(list, line) < 0) {
            json_decref(list);
            return NULL;
        }
        at += n + 1;
    }
    return list;
}

/* Puts the file's lines in place of its name. */
static int read_alphabet(json_t *object, const char *file, const char *name, int dir_fd,
                         char *error, struct mdl_data_file *ret)
{
    base_autofree char *text = NULL;
    char why[MDL_ERROR_MAX];
    json_t *list;
    int r;

    if (dir_fd == -1) {
        return mdl_fail(error, -EBADMSG,
                        "%.200s: key 'output': key 'alphabet_file': there is no folder", name);
    }
    r = mdl_file_text_beneath(dir_fd, file, OUTPUT_TEXT_MAX, why, ret, &text);
    if (r < 0) {
        return mdl_fail(error, r, "%.150s: key 'output': key 'alphabet_file': %.250s", name, why);
    }
    list = mdl_alphabet_lines(text, ret->bytes);
    if (!list || json_array_size(list) == 0) {
        json_decref(list);
        return mdl_fail(
            error, -EBADMSG,
            "%.150s: key 'output': key 'alphabet_file': %.200s must be 1 to %u lines of UTF-8 text",
            name, file, OUTPUT_ALPHABET_MAX);
    }
    json_object_del(object, "alphabet_file");
    return json_object_set_new(object, "alphabet", list) < 0 ? -ENOMEM : 0;
}

/* Return: @j as text in @pool; NULL: out of memory. */
static char *text_in(const json_t *j, struct mdl_pool *pool, size_t *ret_bytes)
{
    struct json_text t = {0};
    char *copy = NULL;

    if (json_dump_callback(j, json_text_append, &t, JSON_COMPACT) == 0 && !t.failed) {
        copy = mdl_pool_strndup(pool, t.data, t.used);
    }
    *ret_bytes = t.used;
    free(t.data);
    return copy;
}

int mdl_sidecar_output(const json_t *value, const char *name, int dir_fd, struct mdl_pool *pool,
                       char error[MDL_ERROR_MAX], char **ret, struct mdl_data_file *ret_alphabet)
{
    struct mdl_data_file alphabet = {.path = NULL};
    json_auto_t *object = NULL;
    struct output_settings s;
    char why[OUTPUT_WHY_BYTES];
    const char *key;
    size_t bytes;
    int r = 0;

    if (!output_settings_read(value, &s, &key, why)) {
        bool whole = strcmp(key, "output") == 0;

        return mdl_fail(error, -EBADMSG, "%.200s: key 'output': %s%.60s%s%s", name,
                        whole ? "" : "key '", whole ? "" : key, whole ? "" : "': ", why);
    }
    object = json_copy((json_t *)(uintptr_t)value);
    if (!object) {
        return mdl_fail(error, -ENOMEM, "%.200s: out of memory", name);
    }
    if (s.alphabet_file) {
        r = read_alphabet(object, s.alphabet_file, name, dir_fd, error, &alphabet);
        alphabet.path = r < 0 ? NULL : mdl_pool_strdup(pool, s.alphabet_file);
    }
    if (r == 0) {
        *ret = text_in(object, pool, &bytes);
        *ret_alphabet = alphabet;
        r = *ret && (alphabet.path || !s.alphabet_file)
                ? 0
                : mdl_fail(error, -ENOMEM, "%.200s: out of memory", name);
    }
    return r;
}

/* Width and height of input 0, if it may be a picture. */
static void add_size(const struct mdl_model *m, json_t *object)
{
    const struct mdl_tensor *t = m->input_count ? &m->tensors[m->inputs[0].tensor] : NULL;
    size_t first = t && t->rank > 3 ? t->rank - 3 : 0;

    if (t && (t->rank == 3 || t->rank == 4)) {
        size_t h = t->dim[first + (m->preproc.nhwc ? 0 : 1)];
        size_t w = t->dim[first + (m->preproc.nhwc ? 1 : 2)];

        json_object_set_new(object, "width", json_integer((json_int_t)w));
        json_object_set_new(object, "height", json_integer((json_int_t)h));
    }
}

/* Return: how many dimensions are not 1. */
static size_t extents(const struct mdl_tensor *t)
{
    size_t count = 0;

    for (size_t i = 0; i < t->rank; i++) {
        count += t->dim[i] != 1;
    }
    return count;
}

bool mdl_has_classes(const struct mdl_model *m)
{
    const struct mdl_tensor *scores = m->output_count ? &m->tensors[m->outputs[0].tensor] : NULL;
    size_t count = scores ? mdl_elements(scores) : 0;

    if (count < 2 || count > OUTPUT_CLASSES_MAX || scores->dtype != MDL_F32 ||
        extents(scores) != 1 || m->outputs[0].rows_output) {
        return false;
    }
    for (size_t o = 1; o < m->output_count; o++) {
        const struct mdl_tensor *t = &m->tensors[m->outputs[o].tensor];

        if (mdl_elements(t) == 0) {
            return false;
        }
        for (size_t i = 0; extents(t) > 1 && i < t->rank; i++) {
            if (t->dim[i] == count) {
                return false;
            }
        }
    }
    return true;
}

/* Return: the output that the decoder `classes` reads; NULL: another decoder. @ret_said: whether
 * somebody says what it still needs. */
static const char *class_scores(const struct mdl_model *m, const json_t *output, bool *ret_said)
{
    struct output_settings s;
    char why[OUTPUT_WHY_BYTES];
    const char *key;

    if (!output_settings_read(output, &s, &key, why) || s.kind != OUTPUT_CLASSES) {
        return NULL;
    }
    *ret_said = s.activation != OUTPUT_UNSAID;
    return s.name_count[OUTPUT_AS_BOXES] ? s.name[OUTPUT_AS_BOXES][0]
           : m->output_count             ? m->outputs[0].name
                                         : NULL;
}

/* Return: the @i-th output that has no role by its name; NULL: there is none. */
static const char *unnamed(const struct mdl_model *m, const struct output_settings *s, size_t i)
{
    for (size_t o = 0; o < m->output_count; o++) {
        bool named = false;

        for (unsigned r = 0; r < OUTPUT_ROLE_COUNT; r++) {
            for (size_t k = 0; k < s->name_count[r]; k++) {
                named |= tensor_same(s->name[r][k], m->outputs[o].name);
            }
        }
        if (!named && i-- == 0) {
            return m->outputs[o].name;
        }
    }
    return NULL;
}

/* Return: the @i-th output that @s activates as a whole; NULL: there are no more. Rows of yolo have
 * other numbers beside their scores. */
static const char *activated(const struct mdl_model *m, const struct output_settings *s, size_t i)
{
    unsigned role = s->kind == OUTPUT_SSD ? OUTPUT_AS_SCORES : OUTPUT_AS_BOXES;
    size_t levels = s->kind == OUTPUT_SSD ? s->name_count[OUTPUT_AS_BOXES] : 0;

    if (s->kind == OUTPUT_YOLO || s->name_count[role]) {
        return i < s->name_count[role] && s->kind != OUTPUT_YOLO ? s->name[role][i] : NULL;
    }
    return i < base_max(levels, (size_t)1)
               ? unnamed(m, s, i + (s->kind == OUTPUT_SSD && levels == 0))
               : NULL;
}

int mdl_note_activation(struct mdl_model *m, const struct mdl_graph *g, const char *output)
{
    json_auto_t *j = output ? json_loads(output, 0, NULL) : NULL;
    struct output_settings s;
    char why[OUTPUT_WHY_BYTES];
    const char *key, *name, *text;

    if (!j || !output_settings_read(j, &s, &key, why) ||
        (s.activation != OUTPUT_SOFTMAX && s.activation != OUTPUT_SIGMOID)) {
        return 0;
    }
    for (size_t i = 0; (name = activated(m, &s, i)); i++) {
        if (mdl_ends_in_probabilities(g, name)) {
            text = mdl_pool_printf(m->private->pool,
                                   "the sidecar applies %s to output %s, of which the graph has "
                                   "made probabilities already; leave out \"activation\" in its "
                                   "key output",
                                   output_activation_words[s.activation], name);
            if (text) {
                mdl_add_note(m, "activation", text);
            }
            return text ? 0 : -ENOMEM;
        }
    }
    return 0;
}

/* The object of the key `output`: the sidecar's, or that of a classifier. New reference, or NULL */
static json_t *settings_of(const struct mdl_model *m, const struct mdl_graph *g, const char *output)
{
    json_t *j = output ? json_loads(output, 0, NULL) : json_pack("{s:s}", "decode", "classes");
    bool said = false;
    const char *scores = class_scores(m, j, &said);

    if (scores && !said && g && mdl_ends_in_probabilities(g, scores)) {
        json_object_set_new(j, "activation", json_string("none"));
    }
    return j;
}

int mdl_note_labels(struct mdl_model *m, const char *output)
{
    json_auto_t *j = output || mdl_has_classes(m) ? settings_of(m, NULL, output) : NULL;
    bool said;
    const char *name = j ? class_scores(m, j, &said) : NULL, *text;

    for (size_t i = 0; name && m->label_count && i < m->output_count; i++) {
        const struct mdl_tensor *t = &m->tensors[m->outputs[i].tensor];
        size_t classes = mdl_elements(t), labels = m->label_count;

        if (strcmp(m->outputs[i].name, name) != 0 || extents(t) != 1 || m->outputs[i].rows_output ||
            classes == labels) {
            continue;
        }
        text = mdl_pool_printf(m->private->pool,
                               "the sidecar has %zu labels, and output %s has %zu classes; give a "
                               "label for each class, from class 0%s",
                               labels, name, classes,
                               classes == labels + 1 ? ", which may be a background" : "");
        if (!text) {
            return -ENOMEM;
        }
        mdl_add_note(m, "labels", text);
    }
    return 0;
}

int mdl_describe_output(struct mdl_model *m, const struct mdl_graph *g, const char *output,
                        char error[MDL_ERROR_MAX])
{
    json_auto_t *whole = NULL;
    size_t bytes;

    if (!output && !mdl_has_classes(m)) {
        return 0;
    }
    whole = json_pack("{s:o?, s:s}", "output", settings_of(m, g, output), "fit",
                      picture_fit_words[m->preproc.fit]);
    if (!whole) {
        return -ENOMEM;
    }
    add_size(m, whole);
    if (m->label_count) {
        json_object_set_new(whole, "labels",
                            json_text_list((const char *const *)m->labels, m->label_count));
    }
    m->output = text_in(whole, m->private->pool, &bytes);
    if (m->output && bytes > OUTPUT_TEXT_MAX) {
        json_object_del(whole, "labels");
        m->output = text_in(whole, m->private->pool, &bytes);
    }
    if (m->output && bytes > OUTPUT_TEXT_MAX) {
        return mdl_fail(error, -E2BIG, "the sidecar's key 'output' has %zu bytes, at most %zu fit",
                        bytes, OUTPUT_TEXT_MAX);
    }
    return m->output ? 0 : -ENOMEM;
}
