/* SPDX-License-Identifier: Apache-2.0 */
/** apps/show/decoded_json.h - what a decoder found, as JSON (docs/outputs.md) */
#pragma once

#include <jansson.h>

#include "ipc/decode/piped_decode.h"

/** shw_json() - adds decoded, width, height, objects, text and mask to @report. Threads: any. */
void shw_json(json_t *report, const struct piped_decoded *r);
/** shw_json_bytes() - Return: memory that what shw_json() adds may take, with its text. */
size_t shw_json_bytes(const struct piped_decoded *r);
/** shw_top() - the best @most classes of a frame's output area as [{class, label, score,
 * probability}]. @d: may be NULL. Threads: the decoder's. Return: new reference; NULL: the model
 * is not a classifier, or a score is NaN or infinite. */
json_t *shw_top(struct piped_decoder *d, const void *output, size_t most);
