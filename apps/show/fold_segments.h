/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/show/fold_segments.h - segments of routes over boards, which no list shows as models
 *
 * The daemon says of a segment that piped-link loaded which model it is of, and for which board.
 * One that a user loaded, as NAME#FIRST-LAST, is a model of its own.
 */
#pragma once

#include "base/json_text.h"

#define SHW_SEGMENT_BYTES 192u

/** shw_is_segment() - Return: the model @m, of a reply of Status or Models, is such a segment. */
bool shw_is_segment(const json_t *m);
/** shw_fold_segments() - takes them out of @owner's `models`: those of this board's own routes into
 * `segments` of their model's `route`, the others, and those without a route, into `segments` of
 * @owner, a status or a reply of Models. */
void shw_fold_segments(json_t *owner);
/** shw_segment_text() - "det, units 10-18 for board head". @m: one of @owner's `segments`. */
void shw_segment_text(const json_t *m, char ret[SHW_SEGMENT_BYTES]);
