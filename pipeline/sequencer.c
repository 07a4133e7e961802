/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>

#include "base/base.h"
#include "pipeline/sequencer.h"

int pl_sequencer_init(struct pl_sequencer *s, size_t frames)
{
    size_t slots = 1;

    if (frames == 0 || frames > SIZE_MAX / 2 / sizeof(s->slots[0])) {
        return -EINVAL;
    }
    while (slots < frames) {
        slots *= 2;
    }
    s->slots = calloc(slots, sizeof(s->slots[0]));
    if (s->slots == NULL) {
        return -ENOMEM;
    }
    s->mask = slots - 1;
    s->next = 0;
    return 0;
}

void pl_sequencer_deinit(struct pl_sequencer *s)
{
    free(s->slots);
    s->slots = NULL;
}

void pl_sequencer_put(struct pl_sequencer *s, uint64_t seq, struct pl_frame *f)
{
    assert(seq - s->next <= s->mask && s->slots[seq & s->mask] == NULL);
    s->slots[seq & s->mask] = f;
}

struct pl_frame *pl_sequencer_take(struct pl_sequencer *s)
{
    struct pl_frame **slot = &s->slots[s->next & s->mask];
    struct pl_frame *f = *slot;

    if (f != NULL) {
        *slot = NULL;
        s->next++;
    }
    return f;
}
