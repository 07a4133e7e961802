/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/trace_ring.h"

int pl_trace_ring_init(struct pl_trace_ring *r, size_t bytes)
{
    uint32_t start;

    if (bytes < PL_TRACE_RING_BYTES_MIN || bytes > PL_TRACE_RING_BYTES_MAX ||
        (bytes & (bytes - 1)) != 0) {
        return -EINVAL;
    }
    memset(r, 0, sizeof(*r));
    r->words = aligned_alloc(BASE_CACHE_LINE_BYTES, bytes);
    if (r->words == NULL) {
        return -ENOMEM;
    }
    memset(r->words, 0, bytes);
    r->mask = (uint32_t)(bytes / sizeof(uint32_t)) - 1;
    /* just before the indices wrap, so that every long run crosses it */
    start = 0u - 256u;
    atomic_store_explicit(&r->tail, start, memory_order_relaxed);
    atomic_store_explicit(&r->head, start, memory_order_relaxed);
    r->head_seen = start;
    return 0;
}

void pl_trace_ring_deinit(struct pl_trace_ring *r)
{
    free(r->words);
    r->words = NULL;
}

static void copy_out(const struct pl_trace_ring *r, uint32_t from, uint32_t *to, uint32_t count)
{
    uint32_t first = from & r->mask, before_wrap = base_min(count, r->mask + 1 - first);

    memcpy(to, r->words + first, before_wrap * sizeof(uint32_t));
    memcpy(to + before_wrap, r->words, (count - before_wrap) * sizeof(uint32_t));
}

size_t pl_trace_read(struct pl_trace_ring *r, uint32_t *to, size_t room)
{
    uint32_t head = atomic_load_explicit(&r->head, memory_order_relaxed), at = head;
    uint32_t tail = atomic_load_explicit(&r->tail, memory_order_acquire);

    while (at != tail) {
        uint32_t words = trace_words_of(r->words[at & r->mask]);

        if (words > room - (at - head)) {
            break;
        }
        at += words;
    }
    copy_out(r, head, to, at - head);
    atomic_store_explicit(&r->head, at, memory_order_release);
    return at - head;
}
