/* SPDX-License-Identifier: Apache-2.0 */
/** ipc/show/fold_segments.h - segments that this board computes, under their models */
#pragma once

#include <jansson.h>

/** shw_segment_of() - Return: the model of the list @models that this board computes @m for, as a
 * segment of its route over boards; borrowed; NULL: it is a model of its own. Pure. */
json_t *shw_segment_of(const json_t *m, const json_t *models);
/** shw_fold_segments() - takes each such segment out of @models, of a reply of Status, and adds it
 * to `segments` of its model's route. */
void shw_fold_segments(json_t *models);
