/* SPDX-License-Identifier: Apache-2.0 */
/* libFuzzer's mutations for fuzz_conversation.c: half of them take, add, double or exchange whole
 * actions, so that what follows keeps its meaning. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/base.h"

#define ACTION 6u
#define BYTES_MAX (96u * ACTION)

size_t LLVMFuzzerMutate(uint8_t *data, size_t bytes, size_t cap);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t cap, unsigned seed);

static void fresh(uint64_t *state, uint8_t *action)
{
    uint64_t bits = base_splitmix64(state);

    memcpy(action, &bits, ACTION);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t cap, unsigned seed)
{
    uint64_t state = seed;
    size_t count = bytes / ACTION, most = base_min(cap, (size_t)BYTES_MAX) / ACTION, at, other;

    if (count == 0 || most == 0 || base_splitmix64(&state) % 2) {
        return LLVMFuzzerMutate(data, bytes, base_min(cap, (size_t)BYTES_MAX));
    }
    count = base_min(count, most);
    at = base_splitmix64(&state) % count;
    other = base_splitmix64(&state) % count;
    switch (base_splitmix64(&state) % 5) {
    case 0: /* take one out */
        memmove(data + at * ACTION, data + (at + 1) * ACTION, (count - at - 1) * ACTION);
        return (count > 1 ? count - 1 : 1) * ACTION;
    case 1: /* another one */
        fresh(&state, data + at * ACTION);
        return count * ACTION;
    case 2: { /* exchange two */
        uint8_t one[ACTION];

        memcpy(one, data + at * ACTION, ACTION);
        memmove(data + at * ACTION, data + other * ACTION, ACTION);
        memcpy(data + other * ACTION, one, ACTION);
        return count * ACTION;
    }
    default: /* one more: new, or the same as another */
        if (count == most) {
            return count * ACTION;
        }
        memmove(data + (at + 1) * ACTION, data + at * ACTION, (count - at) * ACTION);
        if (base_splitmix64(&state) % 2) {
            fresh(&state, data + at * ACTION);
        } else {
            memmove(data + at * ACTION, data + (other < at ? other : other + 1) * ACTION, ACTION);
        }
        return (count + 1) * ACTION;
    }
}
