/* SPDX-License-Identifier: Apache-2.0 */
/** daemon/inspect.h - what `piped --inspect` shows, as JSON; for inspect.c and tests */
#pragma once

#include <jansson.h>

#include "model/inspection.h"

/** dmn_inspection_json() - @sidecar: path of the sidecar; @has_sidecar: it exists. Return: new
 * reference, or NULL. */
json_t *dmn_inspection_json(const struct mdl_inspection *in, const char *file, const char *sidecar,
                            bool has_sidecar);
/** dmn_sidecar_draft() - a draft of the sidecar: open shapes, and preprocessing as it was guessed.
 * Return: new reference, or NULL. */
json_t *dmn_sidecar_draft(const struct mdl_inspection *in);
