/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/show/number.h - numbers of models as text: the shortest that reads back as the same f32
 *
 * Every program that prints what a model answered uses it, so that one answer has one text.
 *
 * Threads: any.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#define SHW_NUMBER_BYTES 20u

/** shw_number_text() - @ret: SHW_NUMBER_BYTES. Return: its length without the NUL. */
size_t shw_number_text(float v, char *ret);
/** shw_number() - the same as a value of JSON, for json_dumps() with JSON_REAL_PRECISION(9) to
 * (15); null for what JSON has no form for. @v: of a model, or computed of such. */
json_t *shw_number(double v);
