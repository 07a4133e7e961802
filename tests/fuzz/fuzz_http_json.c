/* SPDX-License-Identifier: Apache-2.0 */
/* Infer requests in JSON: what piped-http cuts out of them, and what it leaves, are what jansson
 * reads in the whole text. Any bytes are tried as a text, and then as choices by which a text is
 * made: keys that matter and others, letters escaped, at every depth, twice, with any value. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "apps/http/json.h"
#include "ipc/piped.h"
#include "tests/fuzz/replay.h"

#define VALUES_MAX 4096u
#define TEXT_MAX 16384u

size_t fuzz_seed(size_t index, unsigned char *data, size_t cap)
{
    static const char *const texts[] = {
        "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[2],\"d\\u0061ta\":7}]}",
        "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[2],\"d\\u0061ta\":[1,2.5]}]"
        "}",
        "{\"\\u0069nputs\" : [ {\"data\" :\t[[1,-2e3],[true]],\"data\":3} , {\"data\":null} ]}",
        "{\"id\":null,\"inputs\":[{\"data\":[0]},{\"data\":[1]}],\"parameters\":{\"inputs\":[{"
        "\"data\":9}]}}",
        "{\"inputs\":[{\"data\":[1,\"]\",{\"data\":[2]}],\"\\ud800\":1}],\"inputs\":[{\"\\u0000\":["
        "]}]}",
        "{\"inputs\":[[{\"data\":[1]}],{\"data\":99999999999999999999},{\"DATA\":[1e999]}]} x",
        "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ!$%&/()=?",
    };

    return fuzz_seed_text(texts, sizeof(texts) / sizeof(texts[0]), index, data, cap);
}

/* ---- the oracle ---- */

/* What stands for @value in the whole text: the array that was cut out there, or the value with all
 * arrays in it put back. Return: new; NULL: jansson does not read one of them. */
static json_t *put_back(const struct web_split *s, json_t *value, size_t *indices)
{
    const struct web_span *span = web_split_array(s, value);
    json_t *whole, *member, *part;
    const char *key;
    size_t i;

    if (span && json_array_size(value) > 0) {
        MUST(span == &s->arrays[*indices]); /* each is used once, in order */
        ++*indices;
        return json_loadb(span->text, span->bytes, JSON_REJECT_DUPLICATES, NULL);
    }
    if (!json_is_array(value) && !json_is_object(value)) {
        return json_incref(value);
    }
    whole = json_is_array(value) ? json_array() : json_object();
    json_array_foreach(value, i, member)
    {
        part = put_back(s, member, indices);
        if (!whole) {
            json_decref(part);
        } else if (!part || json_array_append_new(whole, part) < 0) {
            json_decref(whole);
            whole = NULL;
        }
    }
    json_object_foreach(value, key, member)
    {
        part = put_back(s, member, indices);
        if (!whole) {
            json_decref(part);
        } else if (!part || json_object_set_new_nocheck(whole, key, part) < 0) {
            json_decref(whole);
            whole = NULL;
        }
    }
    return whole;
}

/* Something is wrong with it that jansson does not mind. */
static bool has_reason(const json_t *whole, const char *why)
{
    return !json_is_object(whole) || strstr(why, "too many arrays") ||
           strstr(why, "nested too deep");
}

static void read_arrays(const struct web_split *s)
{
    static uint8_t to[VALUES_MAX * 8];
    static const uint32_t dims[][2] = {{2, 1}, {1, 2}, {64, 64}, {0, 3}, {1, 1}};
    static const uint32_t types[] = {PIPED_F32, PIPED_I32, PIPED_I64, PIPED_U8, PIPED_BOOL};
    char why[WEB_WHY_BYTES];

    for (size_t i = 0; i < s->count; i++) {
        for (size_t k = 0; k < 5; k++) {
            web_read_array(s->arrays[i], types[k], dims[k], 1 + k % 2, to, why);
        }
    }
}

static void check_text(const char *text, size_t bytes)
{
    json_t *whole = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, NULL);
    struct web_split s;
    char why[WEB_WHY_BYTES] = "";
    unsigned status = web_split_cut(text, bytes, &s, why);
    json_t *again;
    size_t indices = 0;

    status = status ? status : web_split_read(&s, why);
    if (status) {
        web_split_free(&s);
        MUST(*why && (status == 400 || status == 413));
        MUST(status == 413 || !whole || has_reason(whole, why));
        json_decref(whole);
        return;
    }
    MUST(json_is_object(s.rest) && s.count <= WEB_ARRAYS_MAX);
    read_arrays(&s);
    again = put_back(&s, s.rest, &indices);
    MUST(indices == s.count);
    MUST((again == NULL) == (whole == NULL));
    MUST(!whole || json_equal(whole, again));
    json_decref(again);
    json_decref(whole);
    web_split_free(&s);
}

/* ---- texts ---- */

struct tape {
    const uint8_t *at, *end;
    uint32_t spin; /* goes on where the bytes end */
    char text[TEXT_MAX];
    size_t used;
};

static unsigned pick(struct tape *t, unsigned count)
{
    t->spin = t->spin * 1103515245u + 12345u;
    return ((t->at < t->end ? *t->at++ : 0) + (t->spin >> 16)) % count;
}

static void put(struct tape *t, const char *text)
{
    size_t n = strlen(text);

    if (n < sizeof(t->text) - t->used) {
        memcpy(t->text + t->used, text, n);
        t->used += n;
    }
}

static void put_blank(struct tape *t)
{
    static const char *const blanks[] = {"", "", "", " ", "\t\r\n", "  "};

    put(t, blanks[pick(t, 6)]);
}

/* A string, some of whose letters are escaped. */
static void put_string(struct tape *t, const char *text)
{
    bool escapes = pick(t, 2);

    put(t, "\"");
    for (; *text; text++) {
        char piece[8] = {*text};

        if (escapes && pick(t, 2)) {
            snprintf(piece, sizeof(piece), pick(t, 2) ? "\\u%04x" : "\\u%04X", *text);
        }
        put(t, piece);
    }
    put(t, "\"");
}

static void put_key(struct tape *t)
{
    static const char *const keys[] = {"inputs",  "data",  "data", "inputs",
                                       "name",    "shape", "id",   "parameters",
                                       "outputs", "Data",  "dat",  "datax"};
    static const char *const odd[] = {
        "\"d\\u0061ta\\u0000\"", "\"\\ud83d\\ude00\"", "\"\\ud800\"", "\"\"",
        "\"data\\/\"",           "\"\\\"data\"",       "\"d\\ata\"",  "data"};

    if (pick(t, 30) == 0) {
        put(t, odd[pick(t, 8)]);
    } else {
        put_string(t, keys[pick(t, 12)]);
    }
    put_blank(t);
    put(t, ":");
    put_blank(t);
}

static void put_value(struct tape *t, unsigned depth);

static void put_members(struct tape *t, unsigned depth, bool object)
{
    unsigned count = pick(t, 4);

    put(t, object ? "{" : "[");
    for (unsigned i = 0; i < count; i++) {
        put(t, i ? "," : "");
        put_blank(t);
        if (object) {
            put_key(t);
        }
        put_value(t, depth + 1);
        put_blank(t);
    }
    put(t, pick(t, 200) == 0 ? "" : object ? "}" : "]");
}

static void put_value(struct tape *t, unsigned depth)
{
    static const char *const plain[] = {"0",
                                        "7",
                                        "-1",
                                        "1",
                                        "64",
                                        "1e5",
                                        "2.5",
                                        "null",
                                        "false",
                                        "true",
                                        "\"\"",
                                        "[0,1]",
                                        "18446744073709551616",
                                        "1e999",
                                        "-0",
                                        "nul",
                                        "01",
                                        "[",
                                        "\"]\"",
                                        "\"\\"};
    static const char *const arrays[] = {"[]",           "[1, 0]", "[[1],[0]]",
                                         "[-7,\t1.5e3]", "[[[]]]", "[true]"};
    unsigned kind = depth > 6 ? 0 : pick(t, 3);

    if (depth == 3 && pick(t, 2)) {
        put(t, arrays[pick(t, 6)]);
    } else if (kind == 0) {
        put(t, plain[pick(t, depth > 6 || pick(t, 30) ? 12 : 20)]);
    } else {
        put_members(t, depth, kind == 1);
    }
}

/* {"inputs": [{..}, ..], ..}: what reaches the cutter, with something else at times. */
static void put_request(struct tape *t)
{
    unsigned count = pick(t, 4);

    put(t, "{");
    if (pick(t, 3) == 0) {
        put_key(t);
        put_value(t, 1);
        put(t, ",");
    }
    put_string(t, "inputs");
    put(t, ":[");
    for (unsigned i = 0; i < count; i++) {
        put(t, i ? "," : "");
        put_members(t, 2, pick(t, 8) != 0);
    }
    put(t, "]");
    if (pick(t, 3) == 0) {
        put(t, ",");
        put_key(t);
        put_value(t, 1);
    }
    put(t, "}");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct tape t;
    char *text = malloc(size + 1); /* the NUL that web_split() asks for */

    MUST(text);
    memcpy(text, data, size);
    text[size] = '\0';
    check_text(text, size);
    free(text);
    for (uint32_t i = 0; i < 4; i++) {
        t.at = data;
        t.end = data + size;
        t.spin = i * 2654435761u + (uint32_t)size;
        t.used = 0;
        put_request(&t);
        t.text[t.used] = '\0';
        check_text(t.text, t.used);
    }
    return 0;
}
