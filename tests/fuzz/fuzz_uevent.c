/* SPDX-License-Identifier: Apache-2.0 */
/* Datagrams of the kernel, or of somebody who would like to be it: what is accepted names a core
 * that can be, and is complete. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "governor/sysfs.h"
#include "governor/uevent.h"
#include "tests/fuzz/replay.h"

#define MUST(x)                                                                                    \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gov_uevent e;
    int outcome = gov_uevent_parse((const char *)data, size, &e);

    MUST(outcome == 0 || outcome == GOV_UEVENT_E_BAD);
    if (outcome) {
        return 0;
    }
    MUST(size > 0 && data[size - 1] == 0 && size <= GOV_UEVENT_BYTES_MAX);
    MUST(e.cpu >= -1 && e.cpu < (int32_t)GOV_CPU_NUMBER_MAX);
    MUST(memchr(e.action, 0, sizeof(e.action)));
    MUST((e.kind != GOV_UEVENT_CPU_ONLINE && e.kind != GOV_UEVENT_CPU_OFFLINE) || e.cpu >= 0);
    return 0;
}
