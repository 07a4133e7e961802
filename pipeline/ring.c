/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/ring.h"

int pl_ring_init(struct pl_ring *r, size_t capacity)
{
    const uint32_t first = UINT32_MAX - 7;
    size_t slots = 1;

    if (capacity == 0 || capacity > (1u << 30)) {
        return -EINVAL;
    }
    while (slots < capacity) {
        slots *= 2;
    }
    r->slots = calloc(slots, sizeof(r->slots[0]));
    if (r->slots == NULL) {
        return -ENOMEM;
    }
    r->mask = (uint32_t)slots - 1;
    atomic_init(&r->tail, first);
    atomic_init(&r->head, first);
    atomic_init(&r->closed, false);
    r->head_seen = first;
    r->tail_seen = first;
    return 0;
}

void pl_ring_deinit(struct pl_ring *r)
{
    free(r->slots);
    r->slots = NULL;
}
