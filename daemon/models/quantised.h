/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/models/quantised.h - models served on integers
 *
 * The calibration is a file that the configuration names, or calibration-NAME.v2.json in the state
 * folder, which "pipectl quantize" writes.
 */
#pragma once

#include "daemon/config/state_file.h"
#include "model/quant/calibration.h"

struct dmn_models;

/** dmn_quantised_keep() - saves @c as the calibration of model @name; NULL: removes the saved one.
 * @kept: must be given; its error is -ENOENT without a state folder. Threads: the loop thread; does
 * not block. */
void dmn_quantised_keep(const struct dmn_models *models, const char *name,
                        const struct mdl_calibration *c, struct dmn_state_kept kept);
