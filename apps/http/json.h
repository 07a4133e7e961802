/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/http/json.h - infer requests in JSON, without a tree of all numbers
 *
 * A JSON library takes some fifty bytes for each number. So the arrays at inputs[I].data are cut
 * out first: what is left is short, and is read by the library with a number in place of each
 * array; the arrays are read straight into a tensor later. Nothing is recursive.
 *
 * What a key means is decided by the library alone, and no other value than an array or null passes
 * at inputs[I].data. So a number there is an index that was put there, not one that a client wrote.
 *
 * Pure. Threads: any.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEB_ARRAYS_MAX 64u /* inputs of one request with data in JSON */
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
    json_t *rest; /* owned: data is the index into arrays, or null */
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
/** web_split_array() - the array that was cut out. @data: the value in its place, of rest; may be
 * NULL. Return: NULL: it is not the index of an array. */
const struct web_span *web_split_array(const struct web_split *s, const json_t *data);

/**
 * web_read_array() - reads an array of JSON, flat or nested as its shape, into a tensor
 *
 * @dtype: enum piped_dtype, not PIPED_F16. @dims: @rank of them. @to: room for their product.
 * Return: 0; -1 with a reason.
 */
int web_read_array(struct web_span span, uint32_t dtype, const uint32_t *dims, uint32_t rank,
                   void *to, char ret_why[WEB_WHY_BYTES]);
