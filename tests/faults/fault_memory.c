/* SPDX-License-Identifier: Apache-2.0 */
/* The allocator's replaced calls. Under a sanitizer the real ones are the sanitizer's. */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "tests/faults/faults.h"

#pragma GCC visibility push(default)

#define EARLY_BYTES 65536

/* dlsym() allocates: until the real functions are known, memory comes from here and is kept. */
static _Alignas(64) unsigned char early[EARLY_BYTES];
static size_t early_used;

static void *(*real_malloc)(size_t);
static void *(*real_calloc)(size_t, size_t);
static void *(*real_realloc)(void *, size_t);
static void *(*real_aligned)(size_t, size_t);
static int (*real_memalign)(void **, size_t, size_t);
static void (*real_free)(void *);

static bool is_early(const void *p)
{
    return (const unsigned char *)p >= early && (const unsigned char *)p < early + EARLY_BYTES;
}

static void *take_early(size_t bytes)
{
    void *p = early + early_used;

    early_used += (bytes + 63) / 64 * 64;
    if (early_used > EARLY_BYTES) {
        abort();
    }
    return p;
}

/* Return: whether the real functions are known. */
static bool found(void)
{
    static bool looking;

    if (real_free) {
        return true;
    }
    if (looking) {
        return false;
    }
    looking = true;
    *(void **)&real_malloc = dlsym(RTLD_NEXT, "malloc");
    *(void **)&real_calloc = dlsym(RTLD_NEXT, "calloc");
    *(void **)&real_realloc = dlsym(RTLD_NEXT, "realloc");
    *(void **)&real_aligned = dlsym(RTLD_NEXT, "aligned_alloc");
    *(void **)&real_memalign = dlsym(RTLD_NEXT, "posix_memalign");
    *(void **)&real_free = dlsym(RTLD_NEXT, "free");
    return true;
}

static bool fails(const void *caller)
{
    return fault_now(FAULT_MALLOC, caller) != FAULT_HOW_NOT;
}

void *malloc(size_t n)
{
    return !found() ? take_early(n) : fails(FAULT_CALLER) ? NULL : real_malloc(n);
}

void *calloc(size_t count, size_t size)
{
    return !found()              ? take_early(count * size)
           : fails(FAULT_CALLER) ? NULL
                                 : real_calloc(count, size);
}

void *realloc(void *p, size_t n)
{
    if (is_early(p)) {
        void *moved = malloc(n); /* what lies behind the old block is in the same array */

        return moved ? memcpy(moved, p, n < 64 ? n : 64) : NULL;
    }
    return !found() ? take_early(n) : fails(FAULT_CALLER) ? NULL : real_realloc(p, n);
}

void *aligned_alloc(size_t alignment, size_t n)
{
    return !found() ? take_early(n) : fails(FAULT_CALLER) ? NULL : real_aligned(alignment, n);
}

int posix_memalign(void **ret, size_t alignment, size_t n)
{
    return found() && !fails(FAULT_CALLER) ? real_memalign(ret, alignment, n) : ENOMEM;
}

void free(void *p)
{
    if (p && !is_early(p) && found()) {
        real_free(p);
    }
}
