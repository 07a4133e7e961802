/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/models/loading_file.h - a model's file as a load reads it: whole or a segment of it, and
 * on integers if there is a calibration
 *
 * The calibration is a file that the configuration names, or calibration-NAME.v2.json in the state
 * folder, which "pipectl quantize" writes.
 */
#pragma once

#include "daemon/config/state_put.h"
#include "daemon/models/loading.h"

struct dmn_models;

/**
 * dmn_load_file() - calls mdl_load() for @l->path with the right calibration
 *
 * It uses the first of these: @l->ranges, if given; none, with @l->as_is; the file @l->calibration,
 * whose errors fail the load (@l->bad_calibration); the saved calibration, whose errors only go to
 * l->choose.note, and then the model is not quantised. Sets @l->ranges to what was used.
 * Threads: the load's; blocks. Return: as mdl_load() and mdl_segment(), with l->error.
 */
int dmn_load_file(struct dmn_load *l, struct mdl_load_options *options);
/** dmn_quantised_keep() - saves @c as the calibration of model @name; NULL: removes the saved one.
 * @kept: must be given; its error is -ENOENT without a state folder. Threads: the loop thread; does
 * not block. */
void dmn_quantised_keep(const struct dmn_models *models, const char *name,
                        const struct mdl_calibration *c, struct dmn_state_kept kept);
