/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/segment/segment_name.h - names of models and of segments: "resnet", "resnet#17-44"
 *
 * The one place that knows the syntax: NAME, or NAME#FIRST-LAST, with unit numbers in decimal,
 * without sign, blank or leading zero, FIRST at most LAST. NAME is letters, digits, '.', '_' and
 * '-', does not begin with '-', and is not "." or "..", which clients of HTTP take out of a path
 * before they send it. All of it has at most MDL_SEGMENT_NAME_MAX - 1 bytes.
 *
 * Threads: any.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define MDL_SEGMENT_NAME_MAX 64u      /* with the NUL */
#define MDL_SEGMENT_UNIT_MAX 9999999u /* more units than any model has */
#define MDL_SEGMENT_NAME_RULE                                                                      \
    "letters, digits, '.', '_', '-', but not . or .., then #FIRST-LAST for a segment, at most 63"

struct mdl_segment_name {
    char model[MDL_SEGMENT_NAME_MAX]; /* the whole model's */
    bool is_segment;
    size_t first_unit, last_unit; /* of a segment */
};

/** mdl_segment_name_parse() - reads a name. @text: untrusted. Return: true with @ret set; false: it
 * is not a name. */
bool mdl_segment_name_parse(const char *text, struct mdl_segment_name *ret);
