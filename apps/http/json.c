/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/http/json.h"

#include <math.h>

#include "base/base.h"
#include "ipc/piped.h"

/* Where the cutting is. */
struct cut {
    const char *text;
    size_t bytes, at;
    size_t depth; /* of brackets that are open */
    char *rest;   /* owned */
    size_t rest_bytes;
};

/* Return: where the string that begins at @at ends, behind its quote; 0: nowhere. */
static size_t string_end(const char *text, size_t bytes, size_t at)
{
    for (at++; at < bytes; at++) {
        if (text[at] == '\\') {
            at++;
        } else if (text[at] == '"') {
            return at + 1;
        }
    }
    return 0;
}

/* Return: where the array that begins at @at ends; 0: nowhere, or it is nested too deep. */
static size_t array_end(const char *text, size_t bytes, size_t at)
{
    size_t depth = 0;

    while (at < bytes) {
        if (text[at] == '"') {
            at = string_end(text, bytes, at);
            if (at == 0) {
                return 0;
            }
            continue;
        }
        if (text[at] == '[' && ++depth > WEB_DEPTH_MAX) {
            return 0;
        }
        if (text[at] == ']' && --depth == 0) {
            return at + 1;
        }
        at++;
    }
    return 0;
}

static bool keep(struct cut *c, const char *bytes, size_t count)
{
    if (count > WEB_REST_MAX - c->rest_bytes) {
        return false;
    }
    memcpy(c->rest + c->rest_bytes, bytes, count);
    c->rest_bytes += count;
    return true;
}

static bool is_blank(char x)
{
    return x == ' ' || x == '\t' || x == '\r' || x == '\n';
}

/* Whether the array that begins here is cut out: it is neither empty nor one of objects. */
static bool at_values(const struct cut *c)
{
    size_t at = c->at + 1;

    while (at < c->bytes && is_blank(c->text[at])) {
        at++;
    }
    return c->text[c->at] == '[' && at < c->bytes && c->text[at] != '{' && c->text[at] != ']';
}

/* Return: where the array of values, the string or the one character here ends; 0: wrong. */
static size_t end_of_one(struct cut *c, bool values)
{
    char x = c->text[c->at];

    if (x == '"') {
        return string_end(c->text, c->bytes, c->at);
    }
    if (values) {
        return array_end(c->text, c->bytes, c->at);
    }
    if ((x == '{' || x == '[') && ++c->depth > WEB_DEPTH_MAX) {
        return 0;
    }
    c->depth -= (x == '}' || x == ']') && c->depth > 0;
    return c->at + 1;
}

static unsigned fail(unsigned status, const char *why, char ret_why[WEB_WHY_BYTES])
{
    snprintf(ret_why, WEB_WHY_BYTES, "%s", why);
    return status;
}

static unsigned cut_arrays(struct cut *c, struct web_split *s, char ret_why[WEB_WHY_BYTES])
{
    while (c->at < c->bytes) {
        struct web_span one = {.text = c->text + c->at};
        bool values = at_values(c), fits;
        size_t end = end_of_one(c, values);
        char index[16];

        if (end == 0) {
            return fail(400,
                        "the body is not a JSON object: a string or an array does not end, or it "
                        "is nested too deep",
                        ret_why);
        }
        one.bytes = end - c->at;
        if (values && s->count == WEB_ARRAYS_MAX) {
            return fail(400, "the JSON has too many arrays", ret_why);
        }
        if (values) {
            snprintf(index, sizeof(index), "[%zu]", s->count);
            s->arrays[s->count++] = one;
            fits = keep(c, index, strlen(index));
        } else {
            fits = keep(c, one.text, one.bytes);
        }
        if (!fits) {
            return fail(413, "the JSON beside the arrays of data is larger than 256 KiB", ret_why);
        }
        c->at = end;
    }
    return 0;
}

unsigned web_split_cut(const char *text, size_t bytes, struct web_split *ret,
                       char ret_why[WEB_WHY_BYTES])
{
    struct cut c = {.text = text, .bytes = bytes};
    unsigned status;

    *ret = (struct web_split){0};
    c.rest = malloc(WEB_REST_MAX);
    if (!c.rest) {
        return fail(500, "out of memory", ret_why);
    }
    status = cut_arrays(&c, ret, ret_why);
    if (status) {
        free(c.rest);
        return status;
    }
    ret->text = c.rest;
    ret->text_bytes = c.rest_bytes;
    return 0;
}

unsigned web_split_read(struct web_split *s, char ret_why[WEB_WHY_BYTES])
{
    json_error_t error;

    s->rest = json_loadb(s->text, s->text_bytes, JSON_REJECT_DUPLICATES, &error);
    free(base_take(s->text));
    if (json_is_object(s->rest)) {
        return 0;
    }
    snprintf(ret_why, WEB_WHY_BYTES, "the body is not a JSON object: %s",
             s->rest ? "another value" : error.text);
    return 400;
}

void web_split_free(struct web_split *s)
{
    free(base_take(s->text));
    json_decref(base_take(s->rest));
}

const struct web_span *web_split_array(const struct web_split *s, const json_t *value)
{
    static const struct web_span empty = {"[]", 2};
    const json_t *index = json_array_get(value, 0);

    if (json_is_array(value) && !index) {
        return &empty;
    }
    return json_array_size(value) == 1 && json_is_integer(index)
               ? &s->arrays[json_integer_value(index)]
               : NULL;
}

/* ---- numbers ---- */

struct reader {
    const char *at, *end;
    uint32_t dtype, rank, depth, leaf_depth; /* leaf_depth: of the first value; 0: none yet */
    const uint32_t *dims;
    size_t count, done;
    size_t begun[WEB_DEPTH_MAX + 1]; /* values before the array at this depth */
    uint8_t *to;
};

/* Return: behind the digits at @s; NULL: there are none. */
static const char *digits_end(const char *s)
{
    const char *end = s;

    while (*end >= '0' && *end <= '9') {
        end++;
    }
    return end > s ? end : NULL;
}

/* Return: where a number as JSON writes it ends; NULL: it is none. @ret_whole: it is an integer. */
static const char *number_end(const char *s, bool *ret_whole)
{
    const char *digits = s + (*s == '-');

    s = digits_end(digits);
    if (!s || (*digits == '0' && s > digits + 1)) {
        return NULL;
    }
    *ret_whole = *s != '.' && *s != 'e' && *s != 'E';
    if (*s == '.' && !(s = digits_end(s + 1))) {
        return NULL;
    }
    if (*s == 'e' || *s == 'E') {
        s++;
        s = digits_end(s + (*s == '+' || *s == '-'));
    }
    return s;
}

static bool put_integer(struct reader *r, long long v)
{
    static const struct {
        long long least, most;
        size_t bytes;
    } types[] = {
        [PIPED_I32] = {INT32_MIN, INT32_MAX, 4},
        [PIPED_I64] = {INT64_MIN, INT64_MAX, 8},
        [PIPED_U8] = {0, UINT8_MAX, 1},
        [PIPED_I8] = {INT8_MIN, INT8_MAX, 1},
        [PIPED_BOOL] = {0, 1, 1},
    };

    if (v < types[r->dtype].least || v > types[r->dtype].most) {
        return false;
    }
    memcpy(r->to + r->done * types[r->dtype].bytes, &v, types[r->dtype].bytes); /* little-endian */
    return true;
}

static bool put_value(struct reader *r)
{
    bool whole = false;
    const char *end;

    if (r->dtype == PIPED_BOOL && strncmp(r->at, "true", 4) == 0) {
        r->at += 4;
        return put_integer(r, 1);
    }
    if (r->dtype == PIPED_BOOL && strncmp(r->at, "false", 5) == 0) {
        r->at += 5;
        return put_integer(r, 0);
    }
    end = number_end(r->at, &whole);
    if (!end) {
        return false;
    }
    if (r->dtype == PIPED_F32) {
        float f = strtof(r->at, NULL);

        memcpy(r->to + r->done * sizeof(f), &f, sizeof(f));
        r->at = end;
        return isfinite(f);
    }
    errno = 0;
    return whole && put_integer(r, strtoll(r->at, NULL, 10)) && errno == 0 && (r->at = end);
}

static void skip_blanks(struct reader *r)
{
    while (r->at < r->end && is_blank(*r->at)) {
        r->at++;
    }
}

/* How many values belong into an array at this depth. */
static size_t belong(const struct reader *r, uint32_t depth)
{
    size_t n = 1;

    for (uint32_t i = depth - 1; i < r->rank; i++) {
        n *= r->dims[i];
    }
    return n;
}

static const char *take_value(struct reader *r)
{
    if (r->leaf_depth == 0) {
        r->leaf_depth = r->depth;
    }
    if (r->depth != r->leaf_depth || (r->depth != 1 && r->depth != r->rank)) {
        return "its nesting is not that of the shape";
    }
    if (r->done == r->count) {
        return "it has more values than the shape";
    }
    if (!put_value(r)) {
        return "a value is not of the datatype, or out of its range";
    }
    r->done++;
    return NULL;
}

static const char *close_array(struct reader *r)
{
    size_t has = r->done - r->begun[r->depth];

    /* A flat array is checked as a whole, and holds no other. */
    if (r->leaf_depth == 1 ? r->depth > 1 : has != belong(r, r->depth)) {
        return "its nesting is not that of the shape";
    }
    r->depth--;
    r->at++;
    return NULL;
}

static const char *read_all(struct reader *r)
{
    bool value_next = true, first = true; /* a value is due; none came yet in this array */
    const char *why = NULL;

    do {
        skip_blanks(r);
        if (*r->at == '[' && value_next) {
            if (++r->depth > base_max(r->rank, 1u)) {
                return "its nesting is not that of the shape";
            }
            r->begun[r->depth] = r->done;
            r->at++;
            first = true;
        } else if (*r->at == ']' && (!value_next || first)) {
            why = close_array(r);
            value_next = first = false;
        } else if (*r->at == ',' && !value_next) {
            r->at++;
            value_next = true;
            first = false;
        } else if (value_next) {
            why = take_value(r);
            value_next = first = false;
        } else {
            return "it is not an array of JSON";
        }
    } while (!why && r->depth > 0);
    return why;
}

int web_read_array(struct web_span span, uint32_t dtype, const uint32_t *dims, uint32_t rank,
                   void *to, char ret_why[WEB_WHY_BYTES])
{
    struct reader r = {.at = span.text,
                       .end = span.text + span.bytes,
                       .dtype = dtype,
                       .rank = rank,
                       .dims = dims,
                       .to = to};
    const char *why;

    r.count = belong(&r, 1);
    why = read_all(&r);
    if (why) {
        snprintf(ret_why, WEB_WHY_BYTES, "%s (value %zu)", why, r.done);
        return -1;
    }
    if (r.done != r.count) {
        snprintf(ret_why, WEB_WHY_BYTES, "it has %zu values, the shape %zu", r.done, r.count);
        return -1;
    }
    return 0;
}
