/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/link/front_frame.h"

#include "base.h"

size_t front_offset(const struct brd_tensor *t, size_t count, size_t i)
{
    size_t at = 0;

    for (size_t k = 0; k < count; k++) {
        at = base_align_up(at, 64);
        if (k == i) {
            break;
        }
        at += t[k].bytes;
    }
    return at;
}
