/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A heap for LD_PRELOAD that returns odd addresses: never more aligned than was asked for.
 *
 * glibc's malloc() promises multiples of 16 and often returns better ones, in an order that hides
 * code that counts on 32 or 64. Here malloc() returns 16, 32 or 48 past a multiple of 64 in turns
 * that have no pattern, and memalign() returns an odd multiple of what it is asked for.
 * odd_heap_set() fixes the turn, for a test that goes over all of them.
 *
 * The block of glibc starts before the returned address; a head just in front of the address knows
 * where. Any thread.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define PERIOD 64u
#define PAGE 4096u

struct head {
    void *raw; /* owned: what glibc returned */
    size_t bytes;
};

static atomic_uint turn;
static atomic_uint fixed; /* 0: the turns change */

void *__libc_malloc(size_t bytes);
void __libc_free(void *p);

EXPORT void odd_heap_set(unsigned offset);
EXPORT void *malloc(size_t bytes);
EXPORT void *calloc(size_t count, size_t size);
EXPORT void *realloc(void *p, size_t bytes);
EXPORT void *reallocarray(void *p, size_t count, size_t size);
EXPORT void free(void *p);
EXPORT void *memalign(size_t align, size_t bytes);
EXPORT void *aligned_alloc(size_t align, size_t bytes);
EXPORT int posix_memalign(void **ret, size_t align, size_t bytes);
EXPORT void *valloc(size_t bytes);
EXPORT void *pvalloc(size_t bytes);
EXPORT size_t malloc_usable_size(void *p);

/* All blocks from now on are @offset past a multiple of 64: 16, 32 or 48; 0: any of them. */
void odd_heap_set(unsigned offset)
{
    atomic_store_explicit(&fixed, offset, memory_order_relaxed);
}

static unsigned next_offset(void)
{
    unsigned offset = atomic_load_explicit(&fixed, memory_order_relaxed), x;

    if (offset) {
        return offset;
    }
    x = atomic_fetch_add_explicit(&turn, 1, memory_order_relaxed) * 0x9e3779b1u;
    return 16 + 16 * ((x >> 24) % 3);
}

/* A block whose address is @offset past a multiple of @period; @offset is at most @period. */
static void *block(size_t bytes, size_t period, size_t offset)
{
    size_t total;
    unsigned char *raw, *p;

    if (__builtin_add_overflow(bytes, sizeof(struct head) + 2 * period, &total) ||
        !(raw = __libc_malloc(total))) {
        errno = ENOMEM;
        return NULL;
    }
    p = raw + sizeof(struct head);
    p += -(uintptr_t)p % period + offset;
    memcpy(p - sizeof(struct head), &(struct head){raw, bytes}, sizeof(struct head));
    return p;
}

static struct head head_of(const void *p)
{
    struct head head;

    memcpy(&head, (const unsigned char *)p - sizeof(head), sizeof(head));
    return head;
}

void *malloc(size_t bytes)
{
    return block(bytes, PERIOD, next_offset());
}

void free(void *p)
{
    if (p) {
        __libc_free(head_of(p).raw);
    }
}

void *calloc(size_t count, size_t size)
{
    size_t bytes;
    void *p;

    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    p = malloc(bytes);
    if (p) {
        /* behind the compiler's back, which makes calloc() of malloc() and memset() */
        __asm__ volatile("" : "+r"(p));
        memset(p, 0, bytes);
    }
    return p;
}

void *realloc(void *p, size_t bytes)
{
    void *other;

    if (p && bytes == 0) {
        free(p);
        return NULL;
    }
    other = malloc(bytes);
    if (other && p) {
        size_t old = head_of(p).bytes;

        memcpy(other, p, old < bytes ? old : bytes);
        free(p);
    }
    return other;
}

void *reallocarray(void *p, size_t count, size_t size)
{
    size_t bytes;

    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(p, bytes);
}

void *memalign(size_t align, size_t bytes)
{
    if (align <= 16) {
        return malloc(bytes);
    }
    if (align & (align - 1) || align > SIZE_MAX / 8) {
        errno = EINVAL;
        return NULL;
    }
    return block(bytes, 2 * align, align);
}

void *aligned_alloc(size_t align, size_t bytes)
{
    return memalign(align, bytes);
}

int posix_memalign(void **ret, size_t align, size_t bytes)
{
    int saved = errno;
    void *p;

    if (align < sizeof(void *) || align & (align - 1)) {
        return EINVAL;
    }
    p = memalign(align, bytes);
    errno = saved;
    if (!p) {
        return ENOMEM;
    }
    *ret = p;
    return 0;
}

void *valloc(size_t bytes)
{
    return memalign(PAGE, bytes);
}

void *pvalloc(size_t bytes)
{
    return memalign(PAGE, (bytes + PAGE - 1) & ~(size_t)(PAGE - 1));
}

size_t malloc_usable_size(void *p)
{
    return p ? head_of(p).bytes : 0;
}
