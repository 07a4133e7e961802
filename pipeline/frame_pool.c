/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <sys/mman.h>

#include "base/base.h"
#include "pipeline/frame_pool.h"

#define PAGE_BYTES ((size_t)4096)
#define HUGE_BYTES ((size_t)2 << 20)
/* Below this, a huge page would also cover frames that are never in flight. */
#define HUGE_FROM_BYTES ((size_t)4 << 20)
#define ARENA_MAX_BYTES ((size_t)1 << 40)

static int map_arenas(struct pl_frame_pool *p, size_t arena_bytes)
{
    size_t align = arena_bytes >= HUGE_FROM_BYTES ? HUGE_BYTES : PAGE_BYTES;
    size_t bytes;
    uint8_t *first;

    if (arena_bytes > ARENA_MAX_BYTES) {
        return -EINVAL;
    }
    p->stride = base_align_up(base_max(arena_bytes, (size_t)1), PAGE_BYTES);
    if (!base_mul(p->stride, p->count, &bytes) || !base_add(bytes, align, &bytes)) {
        return -ENOMEM;
    }
    p->map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                  -1, 0);
    if (p->map == MAP_FAILED) {
        p->map = NULL;
        return -ENOMEM;
    }
    p->map_bytes = bytes;
    if (align == HUGE_BYTES) {
        /* only a hint: kernels without huge pages work, too */
        (void)madvise(p->map, bytes, MADV_HUGEPAGE);
    }
    first = (uint8_t *)base_align_up((uintptr_t)p->map, align);
    for (size_t i = 0; i < p->count; i++) {
        p->privates[i].mem.arena = first + i * p->stride;
    }
    return 0;
}

int pl_frame_pool_init(struct pl_frame_pool *p, size_t count, size_t arena_bytes)
{
    int r;

    memset(p, 0, sizeof(*p));
    if (count == 0 || count > UINT16_MAX) {
        return -EINVAL;
    }
    p->count = count;
    p->frames = calloc(count, sizeof(p->frames[0]));
    p->privates = calloc(count, sizeof(p->privates[0]));
    p->free_frames = calloc(count, sizeof(p->free_frames[0]));
    if (p->frames == NULL || p->privates == NULL || p->free_frames == NULL) {
        pl_frame_pool_deinit(p);
        return -ENOMEM;
    }
    r = map_arenas(p, arena_bytes);
    if (r < 0) {
        pl_frame_pool_deinit(p);
        return r;
    }
    for (size_t i = 0; i < count; i++) {
        p->frames[i].private = &p->privates[i];
        p->free_frames[count - 1 - i] = &p->frames[i];
    }
    p->free_count = p->least_free = count;
    return 0;
}

void pl_frame_pool_deinit(struct pl_frame_pool *p)
{
    if (p->map != NULL) {
        munmap(p->map, p->map_bytes);
    }
    free(p->frames);
    free(p->privates);
    free(p->free_frames);
    memset(p, 0, sizeof(*p));
}

struct pl_frame *pl_frame_pool_get(struct pl_frame_pool *p)
{
    struct pl_frame_private *private;
    struct pl_frame *f;

    if (p->free_count == 0) {
        return NULL;
    }
    f = p->free_frames[--p->free_count];
    p->least_free = base_min(p->least_free, p->free_count);
    private = f->private;
    memset(f, 0, sizeof(*f));
    f->private = private;
    private->place = PL_PLACE_CALLER;
    return f;
}

void pl_frame_pool_put(struct pl_frame_pool *p, struct pl_frame *f)
{
    assert(f->private->place == PL_PLACE_CALLER);
    f->private->place = PL_PLACE_POOL;
    p->free_frames[p->free_count++] = f;
}

/* ---- finished frames ---- */

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
