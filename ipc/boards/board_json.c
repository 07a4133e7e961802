/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/boards/board_json.h"

#include <math.h>

#include "base/json_text.h"

/* ---- out ---- */

/* An integer of 4 or 8 bytes. */
static uint64_t load(const uint8_t *at, size_t bytes)
{
    uint32_t small;
    uint64_t n;

    if (bytes == sizeof(n)) {
        memcpy(&n, at, sizeof(n));
        return n;
    }
    memcpy(&small, at, sizeof(small));
    return small;
}

static json_t *put_value(const struct brd_field *f, const uint8_t *of);

json_t *brd_put(const struct brd_object *o, const void *of)
{
    json_auto_t *j = o->field->key ? json_object() : put_value(o->field, of);

    for (size_t i = 0; j && o->field->key && i < o->count; i++) {
        const struct brd_field *f = &o->field[i];

        if ((!f->only_if || *((const bool *)of + f->only_if)) &&
            json_object_set_new(j, f->key, put_value(f, of)) < 0) {
            return NULL;
        }
    }
    return base_take(j);
}

static json_t *put_list(const struct brd_field *f, const uint8_t *of)
{
    size_t count = f->count_bytes ? load(of + f->count_at, f->count_bytes) : (size_t)f->most;
    const uint8_t *items = f->owned ? *(const uint8_t *const *)(of + f->at) : of + f->at;
    json_auto_t *j = json_array();

    for (size_t i = 0; j && i < count; i++) {
        if (json_array_append_new(j, brd_put(f->item, items + i * f->bytes)) < 0) {
            return NULL;
        }
    }
    return base_take(j);
}

static json_t *put_value(const struct brd_field *f, const uint8_t *of)
{
    const uint8_t *at = of + f->at;

    switch (f->kind) {
    case BRD_WORD:
        return json_string(f->words[load(at, f->bytes)]);
    case BRD_STRUCT:
        return brd_put(f->item, at);
    case BRD_COUNT:
        return json_integer((json_int_t)load(at, f->bytes));
    case BRD_NUMBER:
    case BRD_TIME:
        return json_real(*(const double *)at);
    case BRD_FLAG:
        return json_boolean(*(const bool *)at);
    case BRD_LIST:
        return put_list(f, of);
    default:
        return json_text_path((const char *)at);
    }
}

/* ---- in ---- */

static void store(uint64_t n, uint8_t *at, size_t bytes)
{
    uint32_t small = (uint32_t)n;

    memcpy(at, bytes == sizeof(n) ? (const void *)&n : &small, bytes);
}

bool brd_is_print(const char *text)
{
    return strlen(text) == BRD_FINGERPRINT_BYTES - 1 &&
           strspn(text, "0123456789abcdef") == BRD_FINGERPRINT_BYTES - 1;
}

static bool get_text(const struct brd_field *f, const json_t *v, char *ret)
{
    const char *text = json_string_value(v);
    size_t n = json_string_length(v);

    if (!text || n >= f->bytes || strlen(text) != n) {
        return false;
    }
    memcpy(ret, text, n + 1);
    return f->kind == BRD_TEXT || (f->may_lack && !*text) ||
           (f->kind == BRD_SHOWN   ? brd_is_shown(text)
            : f->kind == BRD_PRINT ? brd_is_print(text)
                                   : n == 64 && strspn(text, "0123456789abcdef") == 64);
}

static bool get_word(const struct brd_field *f, const json_t *v, uint8_t *ret)
{
    const char *text = json_string_value(v);

    for (size_t i = 0; text && i <= (size_t)f->most; i++) {
        if (strcmp(f->words[i], text) == 0) {
            store(i, ret, f->bytes);
            return true;
        }
    }
    return false;
}

static bool get_count(const struct brd_field *f, const json_t *v, uint8_t *ret)
{
    json_int_t n = json_integer_value(v);

    store((uint64_t)n, ret, f->bytes);
    return json_is_integer(v) && n >= (json_int_t)f->least && n <= (json_int_t)f->most;
}

static bool get_number(const struct brd_field *f, const json_t *v, double *ret)
{
    double x = json_number_value(v);
    bool good = json_is_number(v) && isfinite(x) && x >= 0 && x <= f->most;

    *ret = good ? x : 0;
    return good || f->kind == BRD_TIME;
}

/* Item @i, of which there are those before it. */
static bool get_item(const struct brd_object *o, const json_t *v, uint8_t *items, size_t i,
                     size_t bytes)
{
    return brd_get(o, v, items + i * bytes) && (!o->is_valid || o->is_valid(items, i));
}

static bool get_items(const struct brd_field *f, const json_t *list, uint8_t *ret)
{
    uint8_t *items = ret + f->at;

    if (!json_is_array(list) || json_array_size(list) > (size_t)f->most) {
        return false;
    }
    if (f->owned && json_array_size(list) > 0) {
        items = calloc(json_array_size(list), f->bytes);
        memcpy(ret + f->at, &items, sizeof(items));
    }
    json_text_each(list, i, v) {
        if (items && f->count_bytes) {
            store(i + 1, ret + f->count_at, f->count_bytes);
        }
        if (!items || !get_item(f->item, v, items, i, f->bytes)) {
            return false;
        }
    }
    return true;
}

static bool get_value(const struct brd_field *f, const json_t *v, uint8_t *ret)
{
    uint8_t *at = ret + f->at;

    switch (f->kind) {
    case BRD_WORD:
        return get_word(f, v, at);
    case BRD_STRUCT:
        return json_is_object(v) && get_item(f->item, v, at, 0, f->bytes);
    case BRD_COUNT:
        return get_count(f, v, at);
    case BRD_NUMBER:
    case BRD_TIME:
        return get_number(f, v, (double *)at);
    case BRD_FLAG:
        *(bool *)at = json_is_true(v);
        return true;
    case BRD_LIST:
        return get_items(f, v, ret);
    default:
        return get_text(f, v, (char *)at);
    }
}

bool brd_get(const struct brd_object *o, const json_t *j, void *ret)
{
    for (size_t i = 0; i < o->count; i++) {
        const struct brd_field *f = &o->field[i];
        const json_t *v = f->key ? json_object_get(j, f->key) : j;

        if (v ? !get_value(f, v, ret) : !f->may_lack && f->kind < BRD_NUMBER) {
            return false;
        }
        if (v && f->only_if) {
            *((bool *)ret + f->only_if) = true;
        }
    }
    return true;
}
