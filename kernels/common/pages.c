/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/common/pages.h"

#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/base.h"

#define HUGE_PAGE_BYTES ((size_t)2 << 20)
#define DEALT_BYTES ((size_t)64 << 10)       /* of small pages that several nodes take in turn */
#define MAPPED_FROM_BYTES ((size_t)64 << 10) /* smaller ones come from the heap */
#define ALIGN ((size_t)BASE_CACHE_LINE_BYTES)

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* Maps @body bytes, whole pages, at a multiple of @align. Only huge pages that lie inside are used,
 * so it never takes more memory than small pages would. */
static void *map(size_t body, size_t align)
{
    size_t head;
    uint8_t *raw;

    if (body > SIZE_MAX / 2) {
        return NULL;
    }
    raw = mmap(NULL, body + align, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (raw == MAP_FAILED) {
        return NULL;
    }
    head = base_align_up((uintptr_t)raw, align) - (uintptr_t)raw;
    if (head) {
        munmap(raw, head);
    }
    if (head < align) {
        munmap(raw + head + body, align - head);
    }
    if (align >= HUGE_PAGE_BYTES) {
        (void)madvise(raw + head, body, MADV_HUGEPAGE); /* only a hint: small pages work, too */
    }
    return raw + head;
}

void krn_store_init(struct krn_store *s, size_t bytes, size_t maybe)
{
    size_t border = bytes & ~(HUGE_PAGE_BYTES - 1), all;

    *s = (struct krn_store){.at = NULL};
    if (!base_add(bytes, maybe, &all) || all < HUGE_PAGE_BYTES || all > SIZE_MAX / 2) {
        return;
    }
    all = base_align_up(all, page_bytes());
    s->at = map(all, HUGE_PAGE_BYTES);
    s->bytes = s->at ? all : 0;
    if (s->at && border < bytes && maybe > 0) {
        (void)madvise(s->at + border, base_min(HUGE_PAGE_BYTES, all - border), MADV_NOHUGEPAGE);
    }
}

void krn_store_deinit(struct krn_store *s)
{
    if (s->at) {
        munmap(s->at, s->bytes);
    }
    *s = (struct krn_store){.at = NULL};
}

void krn_store_reserve(struct krn_store *s, size_t bytes, struct krn_pages *ret)
{
    if (s->at && bytes > 0 && bytes <= s->bytes - s->used) {
        ret->slot = s->at + s->used;
        ret->slot_bytes = bytes;
        s->used = base_min(base_align_up(s->used + bytes, ALIGN), s->bytes);
    }
}

int krn_pages_new(size_t bytes, uint64_t nodes, struct krn_pages *p)
{
    size_t mapped = 0;
    void *at = p->slot;

    if (!at && bytes < MAPPED_FROM_BYTES) {
        at = aligned_alloc(ALIGN, base_align_up(base_max(bytes, (size_t)1), ALIGN));
    } else if (!at) {
        mapped = bytes < SIZE_MAX / 2 ? base_align_up(bytes, page_bytes()) : bytes;
        at = map(mapped, bytes >= HUGE_PAGE_BYTES ? HUGE_PAGE_BYTES : page_bytes());
    }
    if (!at) {
        return -ENOMEM;
    }
    p->at = at;
    p->bytes = bytes;
    p->mapped = mapped;
    (void)krn_pages_near(p, nodes);
    return 0;
}

void krn_pages_free(struct krn_pages *p)
{
    if (p->mapped) {
        munmap(p->at, p->mapped);
    } else if (p->at && p->slot) {
        uintptr_t page = page_bytes(), first = base_align_up((uintptr_t)p->at, page);
        uintptr_t end = ((uintptr_t)p->at + p->bytes) & ~(page - 1);

        if (end > first) {
            (void)madvise((void *)first, end - first, MADV_DONTNEED);
        }
    } else {
        free(p->at);
    }
    *p = (struct krn_pages){.slot = p->slot, .slot_bytes = p->slot_bytes};
}

static int bind_range(uintptr_t first, uintptr_t end, int policy, uint64_t nodes)
{
    unsigned long mask[] = {nodes, 0}; /* the kernel reads one bit less than maxnode */

    return syscall(SYS_mbind, first, end - first, policy, mask, 8 * sizeof(nodes) + 1,
                   MPOL_MF_MOVE) == 0
               ? 0
               : -errno;
}

/* Pages that exist: MPOL_INTERLEAVE leaves them on any of its nodes, perhaps all on one. */
static int deal(uintptr_t first, uintptr_t end, uint64_t nodes)
{
    bool huge = first % HUGE_PAGE_BYTES == 0 && end - first >= HUGE_PAGE_BYTES;
    uintptr_t step = huge ? HUGE_PAGE_BYTES : DEALT_BYTES;
    uint64_t left = 0;
    int r = 0;

    for (uintptr_t at = first; r == 0 && at < end; at += base_min(step, end - at)) {
        left = left ? left : nodes;
        r = bind_range(at, at + base_min(step, end - at), MPOL_PREFERRED, left & -left);
        left &= left - 1;
    }
    return r;
}

static int near(uintptr_t first, uintptr_t end, uint64_t nodes)
{
    int r;

    if (nodes == 0 || first >= end) {
        return 0;
    }
    if ((nodes & (nodes - 1)) == 0) {
        return bind_range(first, end, MPOL_PREFERRED, nodes);
    }
    r = deal(first, end, nodes);
    return r ? r : bind_range(first, end, MPOL_INTERLEAVE, nodes); /* for pages to come */
}

int krn_store_near(const struct krn_store *s, const uint8_t *from, const uint8_t *end,
                   uint64_t nodes)
{
    const uint8_t *last = s->at + s->bytes;
    uintptr_t first = (uintptr_t)from & ~(HUGE_PAGE_BYTES - 1);
    uintptr_t behind = base_align_up((uintptr_t)end, HUGE_PAGE_BYTES);

    return near(first, base_min(behind, (uintptr_t)last), nodes);
}

int krn_pages_near(const struct krn_pages *p, uint64_t nodes)
{
    return p->mapped ? near((uintptr_t)p->at, (uintptr_t)p->at + p->mapped, nodes) : 0;
}
