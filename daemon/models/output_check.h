/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/models/output_check.h - does the sidecar's key `output` fit the model?
 *
 * Clients decode, not the daemon. But a sidecar that no client can decode by is refused when its
 * model is loaded, by the same code that clients use.
 */
#pragma once

#include <stddef.h>

#include "model/model.h"

/** dmn_output_fits() - Return: 0: m->output fits, or is NULL; else as piped_decoder_new(), with
 * piped_last_error(). */
int dmn_output_fits(const struct mdl_model *m);
/** dmn_output_check() - @path: of the model's file, for the message. Threads: any; allocates.
 * Return: 0: it fits, or the sidecar has no such key; -EINVAL or -ENOMEM, with @ret_error. */
int dmn_output_check(const struct mdl_model *m, const char *path, char *ret_error,
                     size_t error_bytes);
