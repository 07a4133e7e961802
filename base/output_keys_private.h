/* SPDX-License-Identifier: Apache-2.0 */
/** output_keys_private.h - keys of `output` that need each other; only for output_keys*.c */
#pragma once

#include "base/output_keys.h"

/* Each role of "tensors" must be read. Return: true; false with @why. */
bool output_check_roles(const struct output_settings *s, char why[OUTPUT_WHY_BYTES]);

/* Keys that need each other. Return: NULL; else why not, with *ret_key. */
const char *output_check(const struct output_settings *s, const char **ret_key);
