/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/http/json.h - infer requests in JSON, without a tree of all numbers
 *
 * A JSON library takes some fifty bytes for each number. So arrays are cut out first, but for empty
 * ones and those of objects: what is left is short, and is read by the library with [INDEX] in
 * place of each array; the arrays are read straight into a tensor later. Nothing is recursive.
 *
 * Any array of a number that a client wrote is cut out, too. So [INDEX] in what is left is always
 * one that was put there.
 *
 * Pure. Threads: any.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEB_ARRAYS_MAX 256u /* of one request: shapes and data */
#define WEB_WHY_BYTES 256u
#define WEB_DEPTH_MAX 32u         /* nesting */
#define WEB_REST_MAX (256u << 10) /* bytes of JSON without the arrays */
#define WEB_TREE_FACTOR 96u       /* "{}," takes most: a table of eight places */

struct web_span {
    const char *text; /* borrowed from the body; begins with '[', ends with ']' */
    size_t bytes;
};

struct web_split {
    char *text; /* owned: of the rest, until it is read */
    size_t text_bytes;
    json_t *rest; /* owned: [INDEX] stands for one of the arrays */
    struct web_span arrays[WEB_ARRAYS_MAX];
    size_t count;
};

/** web_split_cut() - @text: a NUL follows its @bytes; borrowed as long as the result. Return: 0; a
 * status of HTTP, with a reason. */
unsigned web_split_cut(const char *text, size_t bytes, struct web_split *ret,
                       char ret_why[WEB_WHY_BYTES]);
/** web_split_read() - reads the rest, which takes up to WEB_TREE_FACTOR times its text. Return: as
 * web_split_cut(). */
unsigned web_split_read(struct web_split *s, char ret_why[WEB_WHY_BYTES]);
void web_split_free(struct web_split *s);
/** web_split_array() - the array that stood at @value, of rest; may be NULL. Return: NULL: no array
 * of values, but perhaps one of objects. */
const struct web_span *web_split_array(const struct web_split *s, const json_t *value);

/**
 * web_read_array() - reads an array of JSON, flat or nested as its shape, into a tensor
 *
 * @dtype: enum piped_dtype, not PIPED_F16. @dims: @rank of them. @to: room for their product.
 * Return: 0; -1 with a reason.
 */
int web_read_array(struct web_span span, uint32_t dtype, const uint32_t *dims, uint32_t rank,
                   void *to, char ret_why[WEB_WHY_BYTES]);
