/* SPDX-License-Identifier: Apache-2.0 */
#include "model/quant/calibration.h"

#include <jansson.h>
#include <math.h>

#include "base/base.h"
#include "base/json_text.h"
#include "model/common/file.h"
#include "model/common/private.h"

#define FILE_BYTES_MAX ((size_t)16 << 20)
#define NAMES_MAX 100000u

static void free_channels(struct mdl_channels *c)
{
    free(c->name);
    free(c->low);
    free(c->high);
    free(c->mean);
    free(c->power);
}

struct mdl_calibration *mdl_calibration_free(struct mdl_calibration *c)
{
    if (!c) {
        return NULL;
    }
    for (size_t i = 0; i < c->range_count; i++) {
        free(c->ranges[i].name);
    }
    for (size_t i = 0; i < c->keep_count; i++) {
        free(c->keep[i]);
    }
    for (size_t i = 0; i < c->channels_count; i++) {
        free_channels(&c->channels[i]);
    }
    free(c->ranges);
    free(c->channels);
    free(c->keep);
    free(c);
    return NULL;
}

static void calibration_freep(struct mdl_calibration **c)
{
    *c = mdl_calibration_free(*c);
}

/* Ranges and channels begin with their name. */
static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort_channels(struct mdl_calibration *c)
{
    size_t kept = 0;

    if (c->channels_count) {
        qsort(c->channels, c->channels_count, sizeof(*c->channels), by_name);
    }
    for (size_t i = 0; i < c->channels_count; i++) {
        if (kept && strcmp(c->channels[kept - 1].name, c->channels[i].name) == 0) {
            free_channels(&c->channels[i]);
        } else {
            c->channels[kept++] = c->channels[i];
        }
    }
    c->channels_count = kept;
}

void mdl_calibration_sort(struct mdl_calibration *c)
{
    size_t kept = 0;

    if (c->range_count) {
        qsort(c->ranges, c->range_count, sizeof(*c->ranges), by_name);
    }
    for (size_t i = 0; i < c->range_count; i++) {
        struct mdl_range *last = kept ? &c->ranges[kept - 1] : NULL, *r = &c->ranges[i];

        if (last && strcmp(last->name, r->name) == 0) {
            last->low = base_min(last->low, r->low);
            last->high = base_max(last->high, r->high);
            free(r->name);
        } else {
            c->ranges[kept++] = *r;
        }
    }
    c->range_count = kept;
    sort_channels(c);
}

const struct mdl_range *mdl_calibration_find(const struct mdl_calibration *c, const char *name)
{
    struct mdl_range key = {.name = (char *)(uintptr_t)name};

    return c->range_count ? bsearch(&key, c->ranges, c->range_count, sizeof(key), by_name) : NULL;
}

const struct mdl_channels *mdl_calibration_channels(const struct mdl_calibration *c,
                                                    const char *name)
{
    struct mdl_channels key = {.name = (char *)(uintptr_t)name};

    return c->channels_count ? bsearch(&key, c->channels, c->channels_count, sizeof(key), by_name)
                             : NULL;
}

bool mdl_calibration_keeps(const struct mdl_calibration *c, const char *name)
{
    for (size_t i = 0; i < c->keep_count; i++) {
        if (strcmp(c->keep[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static int bad(char *error, const char *path, const char *why)
{
    return mdl_fail(error, -EBADMSG, "%.300s is not a calibration: %s", path, why);
}

static int read_ranges(const json_t *all, const char *path, char *error, struct mdl_calibration *c)
{
    const char *name;
    json_t *pair;

    if (!json_is_object(all) || json_object_size(all) > NAMES_MAX) {
        return bad(error, path, "\"ranges\" must be an object");
    }
    c->ranges = calloc(json_object_size(all) + 1, sizeof(*c->ranges));
    if (!c->ranges) {
        return -ENOMEM;
    }
    json_object_foreach((json_t *)(uintptr_t)all, name, pair)
    {
        struct mdl_range *r = &c->ranges[c->range_count];
        double low = json_number_value(json_array_get(pair, 0));
        double high = json_number_value(json_array_get(pair, 1));

        if (json_array_size(pair) != 2 || !json_is_number(json_array_get(pair, 0)) ||
            !json_is_number(json_array_get(pair, 1)) || !(fabs(low) <= 3e38) ||
            !(fabs(high) <= 3e38) || !(low <= high)) {
            return bad(error, path, "a range must be two numbers, the smaller one first");
        }
        r->low = (float)low;
        r->high = (float)high;
        r->name = strdup(name);
        if (!r->name) {
            return -ENOMEM;
        }
        c->range_count++;
    }
    return 0;
}

/* A list of @count finite numbers. Return: NULL: it is not one, or -ENOMEM in *ret_error. */
static float *read_numbers(const json_t *list, size_t count, int *ret_error)
{
    float *of;

    if (!json_is_array(list) || json_array_size(list) != count) {
        return NULL;
    }
    of = calloc(count + 1, sizeof(*of));
    *ret_error = of ? 0 : -ENOMEM;
    for (size_t i = 0; of && i < count; i++) {
        const json_t *v = json_array_get(list, i);
        double number = json_number_value(v);

        if (!json_is_number(v) || !(fabs(number) <= 3e38)) {
            free(of);
            return NULL;
        }
        of[i] = (float)number;
    }
    return of;
}

static bool in_order(const struct mdl_channels *c)
{
    for (size_t i = 0; i < c->count; i++) {
        if (!(c->low[i] <= c->high[i])) {
            return false;
        }
    }
    return true;
}

static int read_channels(const json_t *all, const char *path, char *error,
                         struct mdl_calibration *c)
{
    const char *name;
    json_t *of;

    if (!all) {
        return 0;
    }
    if (!json_is_object(all) || json_object_size(all) > NAMES_MAX) {
        return bad(error, path, "\"channels\" must be an object");
    }
    c->channels = calloc(json_object_size(all) + 1, sizeof(*c->channels));
    if (!c->channels) {
        return -ENOMEM;
    }
    json_object_foreach((json_t *)(uintptr_t)all, name, of)
    {
        struct mdl_channels *to = &c->channels[c->channels_count++];
        int r = 0;

        to->count = json_array_size(json_object_get(of, "low"));
        to->name = strdup(name);
        to->low = read_numbers(json_object_get(of, "low"), to->count, &r);
        to->high = read_numbers(json_object_get(of, "high"), to->count, &r);
        to->mean = read_numbers(json_object_get(of, "mean"), to->count, &r);
        to->power = read_numbers(json_object_get(of, "power"), to->count, &r);
        if (r < 0 || !to->name) {
            return -ENOMEM;
        }
        if (!to->low || !to->high || !to->mean || !to->power || !in_order(to)) {
            return bad(error, path, "channels must have as many lows, not above highs, and means");
        }
    }
    return 0;
}

static int read_keep(const json_t *names, const char *path, char *error, struct mdl_calibration *c)
{
    if (!names) {
        return 0;
    }
    if (!json_is_array(names) || json_array_size(names) > NAMES_MAX) {
        return bad(error, path, "\"keep\" must be a list of names");
    }
    c->keep = calloc(json_array_size(names) + 1, sizeof(*c->keep));
    if (!c->keep) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));

        if (!name) {
            return bad(error, path, "\"keep\" must be a list of names");
        }
        c->keep[i] = strdup(name);
        if (!c->keep[i]) {
            return -ENOMEM;
        }
        c->keep_count++;
    }
    return 0;
}

static int read_root(const json_t *root, const char *path, char *error, struct mdl_calibration *c)
{
    const char *hash = json_string_value(json_object_get(root, "model"));
    const json_t *symmetric = json_object_get(root, "symmetric");
    const json_t *equalised = json_object_get(root, "equalised");
    int r;

    if (!json_is_object(root)) {
        return bad(error, path, "it must be an object");
    }
    if (hash && strlen(hash) >= sizeof(c->hash)) {
        return bad(error, path, "\"model\" is too long");
    }
    if ((symmetric && !json_is_boolean(symmetric)) || (equalised && !json_is_boolean(equalised))) {
        return bad(error, path, "\"symmetric\" and \"equalised\" must be true or false");
    }
    snprintf(c->hash, sizeof(c->hash), "%s", hash ? hash : "");
    c->symmetric = json_is_true(symmetric);
    c->equalised = json_is_true(equalised);
    r = read_ranges(json_object_get(root, "ranges"), path, error, c);
    r = r < 0 ? r : read_channels(json_object_get(root, "channels"), path, error, c);
    r = r < 0 ? r : read_keep(json_object_get(root, "keep"), path, error, c);
    if (r == 0) {
        mdl_calibration_sort(c);
    }
    return r;
}

int mdl_calibration_from_json(const json_t *root, const char *path, char ret_error[MDL_ERROR_MAX],
                              struct mdl_calibration **ret)
{
    base_cleanup(calibration_freep) struct mdl_calibration *c = calloc(1, sizeof(*c));
    int r = c ? read_root(root, path, ret_error, c) : -ENOMEM;

    if (r == 0) {
        *ret = base_take(c);
    }
    return r;
}

int mdl_calibration_read(const char *path, char ret_error[MDL_ERROR_MAX],
                         struct mdl_calibration **ret)
{
    base_autoclose int fd = -1;
    base_autofree char *text = NULL;
    json_error_t where;
    json_t *root;
    size_t bytes;
    int r = mdl_file_open(AT_FDCWD, path, FILE_BYTES_MAX, ret_error, &fd, &bytes);

    r = r < 0 ? r : mdl_file_text(fd, path, bytes, ret_error, &text);
    if (r < 0) {
        return r;
    }
    root = json_text_read(text, bytes, JSON_REJECT_DUPLICATES, &where);
    if (!root) {
        return mdl_fail(ret_error, -EBADMSG, "%.300s:%d: %s", path, where.line, where.text);
    }
    r = mdl_calibration_from_json(root, path, ret_error, ret);
    json_decref(root);
    return r;
}

static json_t *numbers_json(const float *of, size_t count)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++) {
        json_array_append_new(list, json_real((double)of[i]));
    }
    return list;
}

json_t *mdl_calibration_json(const struct mdl_calibration *c)
{
    json_t *root = json_object(), *ranges = json_object(), *keep = json_array();
    json_t *channels = json_object();
    int r = 0;

    for (size_t i = 0; i < c->range_count; i++) {
        r |= json_object_set_new(
            ranges, c->ranges[i].name,
            json_pack("[ff]", (double)c->ranges[i].low, (double)c->ranges[i].high));
    }
    for (size_t i = 0; i < c->keep_count; i++) {
        r |= json_array_append_new(keep, json_string(c->keep[i]));
    }
    for (size_t i = 0; i < c->channels_count; i++) {
        const struct mdl_channels *of = &c->channels[i];

        r |= json_object_set_new(
            channels, of->name,
            json_pack("{s:o, s:o, s:o, s:o}", "low", numbers_json(of->low, of->count), "high",
                      numbers_json(of->high, of->count), "mean", numbers_json(of->mean, of->count),
                      "power", numbers_json(of->power, of->count)));
    }
    r |= json_object_set_new(root, "model", json_string(c->hash));
    r |= json_object_set_new(root, "symmetric", json_boolean(c->symmetric));
    r |= json_object_set_new(root, "equalised", json_boolean(c->equalised));
    r |= json_object_set_new(root, "keep", keep);
    r |= json_object_set_new(root, "ranges", ranges);
    r |= json_object_set_new(root, "channels", channels);
    if (r != 0) {
        json_decref(root);
        return NULL;
    }
    return root;
}
