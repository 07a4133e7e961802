/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/lib/library_room.h"

#include <errno.h>
#include <sys/mman.h>

int krn_library_room(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED) {
        return -ENOMEM;
    }
    munmap(p, bytes);
    return 0;
}
