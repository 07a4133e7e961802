/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/models/quantised.h - models served on integers
 *
 * The calibration is a file that the configuration names, or calibration-NAME.v1.json in the state
 * folder, which "pipectl quantize" writes.
 */
#pragma once

#include "model/quant/calibration.h"

/** dmn_quantised_keep() - saves @c as the calibration of model @name; NULL: removes the saved one.
 * @state_dir: NULL: there is none. Blocks on the file. Return: 0; -ENOENT: no state folder;
 * -errno. */
int dmn_quantised_keep(const char *state_dir, const char *name, const struct mdl_calibration *c);
