/* SPDX-License-Identifier: Apache-2.0 */
#include "base/tensor_name.h"

#include "base/base.h"
#include "base/shown_text.h"

const char *tensor_name(const char *full, char ret[TENSOR_NAME_BYTES])
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

bool tensor_same(const char *a, const char *b)
{
    char for_a[TENSOR_NAME_BYTES], for_b[TENSOR_NAME_BYTES];

    return strcmp(tensor_name(a, for_a), tensor_name(b, for_b)) == 0;
}
