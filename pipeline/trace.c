/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/trace.h"

/* ---- a ring ---- */

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

/* ---- a trace ---- */

int pl_trace_new(size_t ring_bytes, size_t limit_bytes, struct pl_trace **ret)
{
    struct pl_trace *t;

    if (ring_bytes < PL_TRACE_RING_BYTES_MIN || ring_bytes > PL_TRACE_RING_BYTES_MAX ||
        (ring_bytes & (ring_bytes - 1)) != 0) {
        return -EINVAL;
    }
    t = calloc(1, sizeof(*t));
    if (t == NULL) {
        return -ENOMEM;
    }
    t->ring_bytes = ring_bytes;
    t->limit_bytes = limit_bytes;
    *ret = t;
    return 0;
}

static void free_entry(struct pl_trace *t, struct pl_trace_entry *e)
{
    t->lost += pl_trace_lost(&e->ring);
    t->bytes -= t->ring_bytes;
    pl_trace_ring_deinit(&e->ring);
    free(e);
}

struct pl_trace *pl_trace_free(struct pl_trace *t)
{
    while (t != NULL && t->entries != NULL) {
        struct pl_trace_entry *e = t->entries;

        t->entries = e->next;
        free_entry(t, e);
    }
    free(t);
    return NULL;
}

void pl_trace_trim(struct pl_trace *t)
{
    for (struct pl_trace_entry **at = &t->entries; *at != NULL;) {
        struct pl_trace_entry *e = *at;

        if (e->ended && e->announced && pl_trace_waiting(&e->ring) == 0) {
            *at = e->next;
            free_entry(t, e);
        } else {
            at = &e->next;
        }
    }
}

uint64_t pl_trace_lost_all(const struct pl_trace *t)
{
    uint64_t lost = t->lost;

    for (const struct pl_trace_entry *e = t->entries; e != NULL; e = e->next) {
        lost += pl_trace_lost(&e->ring);
    }
    return lost;
}

struct pl_trace_entry *pl_trace_add(struct pl_trace *t, const struct pl_trace_team *team)
{
    struct pl_trace_entry *e = NULL;

    if (t->bytes + t->ring_bytes <= t->limit_bytes) {
        size_t bytes = base_align_up(sizeof(*e), BASE_CACHE_LINE_BYTES);

        e = aligned_alloc(BASE_CACHE_LINE_BYTES, bytes);
    }
    if (e == NULL || pl_trace_ring_init(&e->ring, t->ring_bytes) != 0) {
        free(e);
        t->untraced++;
        return NULL;
    }
    e->ended = e->announced = false;
    e->team = *team;
    e->team.track = ++t->tracks;
    e->next = t->entries;
    t->entries = e;
    t->bytes += t->ring_bytes;
    t->most_bytes = base_max(t->most_bytes, t->bytes);
    return e;
}
