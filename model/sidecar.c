/* SPDX-License-Identifier: Apache-2.0 */
#include "model/sidecar.h"

#include <math.h>

#include "base/json_text.h"
#include "base/near_word.h"
#include "base/path_below.h"
#include "base/picture_fit.h"
#include "base/shown_text.h"
#include "model/common/file.h"
#include "model/common/private.h"
#include "model/sidecar_output.h"

#define SIZE_MAX_PIXELS 16384

struct reader {
    const char *name; /* of the sidecar, for messages */
    int dir_fd;
    struct mdl_pool *pool;
    char *error;
    struct mdl_sidecar *out;
    double scale;
    bool labels_seen, pad_is_mean;
};

static int key_fail(struct reader *rd, const char *key, const char *why)
{
    return mdl_fail(rd->error, -EBADMSG, "%.200s: key '%.60s': %s", rd->name, key, why);
}

/* A number for all channels, or a list of 1 to 4. */
static int read_channels(struct reader *rd, const char *key, const json_t *v, float out[4])
{
    size_t count = json_is_array(v) ? json_array_size(v) : 1;

    if (count < 1 || count > 4) {
        return key_fail(rd, key, "must be a number or a list of 1 to 4 numbers");
    }
    for (size_t i = 0; i < 4; i++) {
        const json_t *n = json_is_array(v) ? json_array_get(v, base_min(i, count - 1)) : v;
        double d = json_number_value(n);

        if (!json_is_number(n) || !isfinite(d) || fabs(d) > 1e6) {
            return key_fail(rd, key, "must be numbers from -1e6 to 1e6");
        }
        out[i] = (float)d;
    }
    return 0;
}

static int read_mean(struct reader *rd, const char *key, const json_t *v)
{
    return read_channels(rd, key, v, rd->out->preproc.mean);
}

static int read_std(struct reader *rd, const char *key, const json_t *v)
{
    int r = read_channels(rd, key, v, rd->out->preproc.std);

    for (size_t i = 0; r == 0 && i < 4; i++) {
        if (!(rd->out->preproc.std[i] > 1e-12f)) {
            return key_fail(rd, key, "must be above 1e-12");
        }
    }
    return r;
}

static int read_scale(struct reader *rd, const char *key, const json_t *v)
{
    double d = json_number_value(v);

    if (!json_is_number(v) || !(d > 1e-12) || !(d < 1e12)) {
        return key_fail(rd, key, "must be a number above 1e-12 and below 1e12");
    }
    rd->scale = d;
    return 0;
}

static int read_word(struct reader *rd, const char *key, const json_t *v, const char *const *words,
                     size_t *ret)
{
    char why[96] = "must be one of:";

    for (size_t i = 0; words[i]; i++) {
        if (json_is_string(v) && strcmp(json_string_value(v), words[i]) == 0) {
            *ret = i;
            return 0;
        }
        base_append(why, sizeof(why), " \"%s\"", words[i]);
    }
    return key_fail(rd, key, why);
}

static int read_colour(struct reader *rd, const char *key, const json_t *v)
{
    static const char *const words[] = {"rgb", "bgr", NULL};
    size_t which = 0;
    int r = read_word(rd, key, v, words, &which);

    rd->out->preproc.bgr = which == 1;
    return r;
}

static int read_layout(struct reader *rd, const char *key, const json_t *v)
{
    static const char *const words[] = {"nchw", "nhwc", NULL};
    size_t which = 0;
    int r = read_word(rd, key, v, words, &which);

    rd->out->preproc.nhwc = which == 1;
    rd->out->layout_given = true;
    return r;
}

static int read_fit(struct reader *rd, const char *key, const json_t *v)
{
    size_t which = PICTURE_STRETCH;
    int r = read_word(rd, key, v, picture_fit_words, &which);

    rd->out->preproc.fit = which;
    return r;
}

/* The bars of a letterbox: a colour, or what becomes 0. */
static int read_pad(struct reader *rd, const char *key, const json_t *v)
{
    int r = 0;

    rd->out->preproc.pad_given = json_array_size(v) > 1 ? json_array_size(v) : 0;
    if (json_is_string(v) && strcmp(json_string_value(v), "mean") == 0) {
        rd->pad_is_mean = true;
        return 0;
    }
    r = json_is_number(v) || json_is_array(v) ? read_channels(rd, key, v, rd->out->preproc.pad)
                                              : -EBADMSG;
    for (size_t i = 0; r == 0 && i < 4; i++) {
        r = rd->out->preproc.pad[i] >= 0 && rd->out->preproc.pad[i] <= 255 ? 0 : -EBADMSG;
    }
    return r == 0 ? 0
                  : key_fail(rd, key, "must be \"mean\", or 1 to 4 pixel values, each 0 to 255");
}

static int read_size(struct reader *rd, const char *key, const json_t *v)
{
    size_t size[2];

    for (size_t i = 0; i < 2; i++) {
        const json_t *n = json_array_get(v, i);
        json_int_t d = json_integer_value(n);

        if (json_array_size(v) != 2 || !json_is_integer(n) || d < 1 || d > SIZE_MAX_PIXELS) {
            return key_fail(rd, key, "must be [height, width], each 1 to 16384");
        }
        size[i] = (size_t)d;
    }
    rd->out->height = size[0];
    rd->out->width = size[1];
    return 0;
}

/* ---- labels ---- */

static int labels_start(struct reader *rd, const char *key, size_t count)
{
    if (rd->labels_seen) {
        return key_fail(rd, key, "labels are given twice");
    }
    rd->labels_seen = true;
    if (count > MDL_LABELS_MAX) {
        return key_fail(rd, key, "there are more than 100000 labels");
    }
    rd->out->labels = mdl_pool_alloc(rd->pool, count, sizeof(*rd->out->labels));
    return rd->out->labels ? 0 : mdl_fail(rd->error, -ENOMEM, "%.200s: out of memory", rd->name);
}

static int label_add(struct reader *rd, const char *key, const char *s, size_t n)
{
    uint32_t unused;
    char *copy;

    for (size_t i = 0; i < n;) {
        size_t length = shown_decode(s + i, n - i, &unused);

        if (length == 0 || s[i] == '\0') {
            return key_fail(rd, key, "a label is not UTF-8 text, or has a NUL byte");
        }
        i += length;
    }
    if (n > MDL_LABEL_BYTES_MAX) {
        return key_fail(rd, key, "a label is longer than 256 bytes");
    }
    copy = mdl_pool_strndup(rd->pool, s, n);
    if (!copy) {
        return mdl_fail(rd->error, -ENOMEM, "%.200s: out of memory", rd->name);
    }
    for (char *c = copy; (c = strpbrk(c, "\t\r\n"));) { /* it is one line */
        *c = ' ';
    }
    shown_clean(copy, "");
    rd->out->labels[rd->out->label_count++] = copy;
    return 0;
}

static int read_labels(struct reader *rd, const char *key, const json_t *v)
{
    int r;

    if (!json_is_array(v)) {
        return key_fail(
            rd, key,
            "must be a list of strings; the name of a file with one each line is labels_file");
    }
    r = labels_start(rd, key, json_array_size(v));
    for (size_t i = 0; r == 0 && i < json_array_size(v); i++) {
        const json_t *s = json_array_get(v, i);

        r = json_is_string(s) ? label_add(rd, key, json_string_value(s), json_string_length(s))
                              : key_fail(rd, key, "must be a list of strings");
    }
    return r;
}

/* One label a line; the end of line may be CR LF, the last one may be missing. A byte order mark
 * may come first. */
static int parse_label_lines(struct reader *rd, const char *key, const char *text, size_t bytes)
{
    size_t mark = json_text_mark(text, bytes);
    size_t lines = bytes > mark && text[bytes - 1] != '\n';
    int r;

    for (size_t i = mark; i < bytes; i++) {
        lines += text[i] == '\n';
    }
    r = labels_start(rd, key, lines);
    for (size_t at = mark; r == 0 && at < bytes;) {
        const char *end = memchr(text + at, '\n', bytes - at);
        size_t n = end ? (size_t)(end - text) - at : bytes - at;

        r = label_add(rd, key, text + at, n > 0 && text[at + n - 1] == '\r' ? n - 1 : n);
        at += n + 1;
    }
    return r;
}

static int read_labels_file(struct reader *rd, const char *key, const json_t *v)
{
    struct mdl_data_file *file = &rd->out->files[MDL_SIDE_LABELS];
    base_autofree char *text = NULL;
    char why[MDL_ERROR_MAX] = "out of memory";
    int r;

    if (!json_is_string(v) || rd->dir_fd == -1) {
        return key_fail(rd, key, "must be the name of a file below the model's folder");
    }
    r = mdl_file_text_beneath(rd->dir_fd, json_string_value(v), PATH_SIDECAR_BYTES_MAX, why, file,
                              &text);
    if (r == 0 && !(file->path = mdl_pool_strdup(rd->pool, json_string_value(v)))) {
        r = -ENOMEM;
    }
    return r == 0 ? parse_label_lines(rd, key, text, file->bytes)
                  : mdl_fail(rd->error, r, "%.150s: key '%s': %.250s", rd->name, key, why);
}

static int read_shapes(struct reader *rd, const char *key, const json_t *v)
{
    char why[MDL_ERROR_MAX];
    int r = mdl_shapes_read(v, rd->pool, why, &rd->out->shapes);

    return r == -EBADMSG ? key_fail(rd, key, why)
           : r < 0       ? mdl_fail(rd->error, r, "%.200s: out of memory", rd->name)
                         : 0;
}

static int read_output(struct reader *rd, const char *key, const json_t *v)
{
    return mdl_sidecar_output(v, rd->name, rd->dir_fd, rd->pool, rd->error, &rd->out->output,
                              &rd->out->files[MDL_SIDE_ALPHABET]);
}

static int read_comment(struct reader *rd, const char *key, const json_t *v)
{
    return json_is_string(v) ? 0 : key_fail(rd, key, "must be a string");
}

/* ---- the whole ---- */

struct key {
    const char *name;
    int (*read)(struct reader *rd, const char *key, const json_t *v);
};

static int unknown_key(struct reader *rd, const char *name, const struct key *keys)
{
    struct near_word n = {.given = name};
    char hint[NEAR_WORD_HINT_BYTES], why[NEAR_WORD_HINT_BYTES + 16];

    for (const struct key *k = keys; k->name; k++) {
        near_word_try(&n, k->name);
    }
    snprintf(why, sizeof(why), "unknown key%s", near_word_hint(&n, hint));
    return key_fail(rd, name, why);
}

static int read_keys(struct reader *rd, const json_t *object, const struct key *keys)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)object, name, value)
    {
        const struct key *k = keys;
        int r;

        while (k->name && strcmp(k->name, name) != 0) {
            k++;
        }
        r = k->name ? k->read(rd, name, value) : unknown_key(rd, name, keys);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static int read_preprocess(struct reader *rd, const char *key, const json_t *v)
{
    static const struct key keys[] = {
        {"size", read_size},     {"mean", read_mean},
        {"std", read_std},       {"scale", read_scale},
        {"colour", read_colour}, {"color", read_colour},
        {"layout", read_layout}, {"fit", read_fit},
        {"pad", read_pad},       {NULL, NULL},
    };
    base_autofree char *text = json_dumps(v, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_ENCODE_ANY);

    rd->out->preproc.given = true;
    rd->out->preprocess = text ? mdl_pool_strdup(rd->pool, text) : NULL;
    if (!rd->out->preprocess) {
        return -ENOMEM;
    }
    if (json_object_get(v, "colour") && json_object_get(v, "color")) {
        return key_fail(rd, "color", "is given twice: as colour and as color");
    }
    return json_is_object(v) ? read_keys(rd, v, keys) : key_fail(rd, key, "must be an object");
}

static int read_root(struct reader *rd, const json_t *root)
{
    static const struct key keys[] = {
        {"comment", read_comment},
        {"preprocess", read_preprocess},
        {"shapes", read_shapes},
        {"labels", read_labels},
        {"labels_file", read_labels_file},
        {"output", read_output},
        {NULL, NULL},
    };

    return read_keys(rd, root, keys);
}

static struct mdl_sidecar defaults(void)
{
    return (struct mdl_sidecar){
        .preproc = {.std = {1, 1, 1, 1},
                    .pad = {MDL_PAD_DEFAULT, MDL_PAD_DEFAULT, MDL_PAD_DEFAULT, MDL_PAD_DEFAULT}}};
}

int mdl_sidecar_parse(const char *text, size_t bytes, const char *name, int dir_fd,
                      struct mdl_pool *pool, char ret_error[MDL_ERROR_MAX], struct mdl_sidecar *ret)
{
    struct mdl_sidecar out = defaults();
    struct reader rd = {
        .name = name, .dir_fd = dir_fd, .pool = pool, .error = ret_error, .out = &out, .scale = 1};
    json_error_t at;
    json_auto_t *root = json_text_read(text, bytes, JSON_REJECT_DUPLICATES, &at);
    int r;

    if (!root) {
        return mdl_fail(ret_error, -EBADMSG, "%.200s: line %d: %.150s", name, at.line, at.text);
    }
    if (!json_is_object(root)) {
        return mdl_fail(ret_error, -EBADMSG, "%.200s: not a JSON object", name);
    }
    r = read_root(&rd, root);
    if (r < 0) {
        return r;
    }
    /* (pixel * scale - mean) / std, written with the pixel alone */
    for (size_t i = 0; i < 4; i++) {
        out.preproc.mean[i] = (float)(out.preproc.mean[i] / rd.scale);
        out.preproc.std[i] = (float)(out.preproc.std[i] / rd.scale);
        out.preproc.pad[i] = rd.pad_is_mean ? out.preproc.mean[i] : out.preproc.pad[i];
    }
    out.preproc.known = true;
    *ret = out;
    return 0;
}

int mdl_sidecar_preprocess(const char *text, struct mdl_pool *pool, char ret_error[MDL_ERROR_MAX],
                           struct mdl_preproc *preproc)
{
    base_autofree char *whole = NULL;
    struct mdl_sidecar read;
    bool nhwc = preproc->nhwc;
    int r = asprintf(&whole, "{\"preprocess\": %s}", text) < 0 ? -ENOMEM : 0;

    r = r < 0 ? r
              : mdl_sidecar_parse(whole, strlen(whole), "preprocess", -1, pool, ret_error, &read);
    if (r == 0) {
        *preproc = read.preproc;
        preproc->nhwc = read.layout_given ? read.preproc.nhwc : nhwc;
    }
    return r;
}

/* Return: the bytes of @model_path before its extension. */
static size_t stem_bytes(const char *model_path)
{
    const char *slash = strrchr(model_path, '/');
    const char *base = slash ? slash + 1 : model_path;
    const char *dot = strrchr(base, '.');

    return dot && dot > base ? (size_t)(dot - model_path) : strlen(model_path);
}

static char *beside(const char *model_path)
{
    int stem = (int)stem_bytes(model_path);
    char *path;

    return asprintf(&path, "%.*s" PATH_SIDECAR_ENDING, stem, model_path) < 0 ? NULL : path;
}

char *mdl_sidecar_find(const char *model_path)
{
    base_autofree char *near = beside(model_path), *target = NULL, *far = NULL;

    if (near && base_is_missing(near)) {
        target = realpath(model_path, NULL);
        far = target ? beside(target) : NULL;
        if (far && !base_is_missing(far)) {
            return base_take(far);
        }
    }
    return base_take(near);
}

int mdl_sidecar_read(const char *model_path, struct mdl_pool *pool, char ret_error[MDL_ERROR_MAX],
                     struct mdl_sidecar *ret)
{
    base_autofree char *path = mdl_sidecar_find(model_path);
    const char *slash = path ? strrchr(path, '/') : NULL;
    const char *name = slash ? slash + 1 : path;
    char *dir =
        mdl_pool_strndup(pool, slash ? path : ".", slash > path ? (size_t)(slash - path) : 1);
    base_autoclose int dir_fd = -1, fd = -1;
    base_autofree char *text = NULL;
    size_t bytes;
    int r;

    if (!dir || !name) {
        return mdl_fail(ret_error, -ENOMEM, "out of memory");
    }
    dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir_fd < 0) {
        r = -errno;
        return mdl_fail(ret_error, r, "%.200s: %s", dir, strerror(-r));
    }
    r = mdl_file_open(dir_fd, name, PATH_SIDECAR_BYTES_MAX, ret_error, &fd, &bytes);
    if (r == -ENOENT && base_is_missing(path)) {
        ret_error[0] = '\0';
        *ret = defaults();
        return 0;
    }
    r = r < 0 ? r : mdl_file_text(fd, name, bytes, ret_error, &text);
    r = r < 0 ? r : mdl_sidecar_parse(text, bytes, name, dir_fd, pool, ret_error, ret);
    ret->folder = r == 0 ? dir : NULL;
    return r;
}
