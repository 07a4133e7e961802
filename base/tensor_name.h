/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tensor_name.h - what an input or output is called wherever clients meet it
 *
 * The protocol has 63 bytes for a name. A longer one keeps its beginning, and ends in '~' and a
 * hash of the whole (FNV-1a, 32 bits, as 8 hex digits). So it depends on nothing but the name in
 * the file, and names that differ only later stay different. Who looks a name up takes both, by
 * tensor_same(). Nothing here allocates or keeps state.
 */
#pragma once

#include <stdbool.h>

#define TENSOR_NAME_BYTES 64u

/** tensor_name() - Return: @ret, with @full, UTF-8, if that fits; else with the name for it. */
const char *tensor_name(const char *full, char ret[TENSOR_NAME_BYTES]);

/** tensor_same() - Return: @a and @b, each as in the file or as for clients, name one tensor. */
bool tensor_same(const char *a, const char *b);
