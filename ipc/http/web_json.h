/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/http/web_json.h - infer requests in JSON, without a tree of all numbers
 *
 * A JSON library takes some fifty bytes for each number. So the arrays at inputs[I].data are cut
 * out first: what is left is short, and is read by the library with a number in place of each
 * array; the arrays are read straight into a tensor later. Nothing is recursive.
 *
 * Pure. Threads: any.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEB_ARRAYS_MAX 64u        /* inputs of one request with data in JSON */
#define WEB_DEPTH_MAX 32u         /* nesting */
#define WEB_REST_MAX (256u << 10) /* bytes of JSON without the arrays */

struct web_span {
    const char *text; /* borrowed from the body; begins with '[', ends with ']' */
    size_t bytes;
};

struct web_split {
    json_t *rest; /* owned: data is the index into arrays */
    struct web_span arrays[WEB_ARRAYS_MAX];
    size_t count;
};

/** web_split() - @text: a NUL follows its @bytes; borrowed as long as the result. Return: 0; a
 * status of HTTP, with a reason. */
unsigned web_split(const char *text, size_t bytes, struct web_split *ret, char *ret_why,
                   size_t why_bytes);
void web_split_free(struct web_split *s);

/**
 * web_read_array() - reads an array of JSON, flat or nested as its shape, into a tensor
 *
 * @dtype: enum piped_dtype, not PIPED_F16. @dims: @rank of them. @to: room for their product.
 * Return: 0; -1 with a reason.
 */
int web_read_array(struct web_span span, uint32_t dtype, const uint32_t *dims, uint32_t rank,
                   void *to, char *ret_why, size_t why_bytes);
