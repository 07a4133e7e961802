/* SPDX-License-Identifier: Apache-2.0 */
/** apps/show/decoded.h - what a model answered, and what a decoder found in it, as JSON
 * (docs/outputs.md) and drawn */
#pragma once

#include "base/json_text.h"
#include "ipc/decode/piped_decode.h"

/* Numbers of models have the shortest text that reads back as the same f32. Every program that
 * prints what a model answered uses these, so that one answer has one text. Threads: any. */
#define SHW_NUMBER_BYTES 20u

/** shw_number_text() - @ret: SHW_NUMBER_BYTES. Return: its length without the NUL. */
size_t shw_number_text(float v, char *ret);
/** shw_number() - the same as a value of JSON, for json_dumps() with JSON_REAL_PRECISION(9) to
 * (15); null for what JSON has no form for. @v: of a model, or computed of such. */
json_t *shw_number(double v);

/** shw_json() - adds decoded, width, height, objects, text and mask to @report. Threads: any. */
void shw_json(json_t *report, const struct piped_decoded *r);
/** shw_json_bytes() - Return: memory that what shw_json() adds may take, with its text. */
size_t shw_json_bytes(const struct piped_decoded *r);
/** shw_top() - the best @most classes of a frame's output area as [{class, label, score,
 * probability}]. @d: may be NULL. Threads: the decoder's. Return: new reference; NULL: the model
 * is not a classifier, or a score is NaN or infinite. */
json_t *shw_top(struct piped_decoder *d, const void *output, size_t most);

struct canvas;

/** shw_draw() - draws boxes, labels, points, masks and texts on the picture that the result is of,
 * which may have been scaled since. Threads: any. */
void shw_draw(struct canvas *c, const struct piped_decoded *r);
