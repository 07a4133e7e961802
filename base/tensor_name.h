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

#include <stdint.h>
#include <stdio.h>

#include "base/shown_text.h"

#define TENSOR_NAME_BYTES 64u

/** tensor_name() - Return: @ret, with @full, UTF-8, if that fits; else with the name for it. */
static inline const char *tensor_name(const char *full, char ret[TENSOR_NAME_BYTES])
{
    size_t kept = shown_fit(full, TENSOR_NAME_BYTES - 1);
    uint32_t h = 0x811c9dc5;

    if (full[kept]) {
        kept = shown_fit(full, TENSOR_NAME_BYTES - 10);
        for (const char *s = full; *s; s++) {
            h = (h ^ (uint8_t)*s) * 0x01000193u;
        }
        snprintf(ret, TENSOR_NAME_BYTES, "%.*s~%08x", (int)kept, full, (unsigned)h);
    } else {
        memcpy(ret, full, kept + 1);
    }
    return ret;
}

/** tensor_same() - Return: @a and @b, each as in the file or as for clients, name one tensor. */
static inline bool tensor_same(const char *a, const char *b)
{
    char for_a[TENSOR_NAME_BYTES], for_b[TENSOR_NAME_BYTES];

    return strcmp(tensor_name(a, for_a), tensor_name(b, for_b)) == 0;
}
