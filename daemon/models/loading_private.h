/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/models/loading_private.h - the steps of a load; only for loading.c, quantised.c and
 * segment_load.c */
#pragma once

#include "daemon/models/loading.h"

/* quantised.c */
/**
 * dmn_quantised_load() - calls mdl_load() for @l->path with the right calibration
 *
 * It uses the first of these: @l->ranges, if given; none, with @l->as_is; the file @l->calibration,
 * whose errors fail the load (@l->bad_calibration); the saved calibration, whose errors only go to
 * l->choose.note, and then the model is not quantised. Sets @l->ranges to what was used.
 * Threads: the load's; blocks. Return: as mdl_load(), with l->error.
 */
int dmn_quantised_load(struct dmn_load *l, struct mdl_load_options *options);

/* segment_load.c */
/**
 * dmn_segment_load() - calls mdl_load() for @l->path, and cuts out the segment that @l->name means
 *
 * The limits hold for the segment alone, since the weights of other units are only mapped. A file
 * with a leaf list beside it (base/leaves/leaves.h) may lack leaves that the segment does not
 * need.
 * Threads: the load's; blocks. Return: as mdl_load() and mdl_segment(), with l->error.
 */
int dmn_segment_load(struct dmn_load *l, const struct mdl_load_options *options);
