/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/quantised.h - models that are served on integers: by a file that the configuration names,
 * or by what "pipectl quantize" left in the state folder, calibration-NAME.v1.json
 */
#pragma once

#include "daemon/models.h"

/**
 * dmn_quantised_load() - mdl_load() for @l->path by the calibration that is meant
 * That is: @l->ranges where they are given; nothing with @l->as_is; the file @l->calibration, whose
 * fault is the load's (@l->bad_calibration); else what was kept, whose fault is noted in
 * l->choose.note: the model is then as its file is. @l->ranges are what was taken.
 * Threads: the load's; blocks. Return: as mdl_load() with l->error.
 */
int dmn_quantised_load(struct dmn_load *l, struct mdl_load_options *options);

/** dmn_quantised_keep() - @c is for model @name from now on; NULL: nothing is. Blocks on the file.
 * Return: 0, -ENOENT (there is no state folder), -errno. */
int dmn_quantised_keep(const struct dmn_daemon *d, const char *name,
                       const struct mdl_calibration *c);
