/* SPDX-License-Identifier: Apache-2.0 */
#include "model/common/pool.h"

#define POOL_BLOCK_BYTES ((size_t)64 << 10)
#define POOL_ALIGN 16u
#define POOL_ALIGN_LARGE 64u
#define POOL_LARGE_BYTES 4096u

struct pool_block {
    struct pool_block *next;
    unsigned char *data; /* owned; from calloc(), so that large untouched parts cost no RAM */
    size_t bytes, used;
};

struct mdl_pool {
    struct pool_block *blocks; /* owned; the first is the one being filled */
    size_t cap, used;
    bool full; /* the cap refused an allocation */
};

int mdl_pool_new(size_t cap_bytes, struct mdl_pool **ret_pool)
{
    struct mdl_pool *pool = calloc(1, sizeof(*pool));

    if (!pool) {
        return -ENOMEM;
    }
    pool->cap = cap_bytes ? cap_bytes : MDL_POOL_CAP_BYTES;
    *ret_pool = pool;
    return 0;
}

void mdl_pool_allow(struct mdl_pool *pool, size_t bytes)
{
    if (!base_add(pool->cap, bytes, &pool->cap)) {
        pool->cap = SIZE_MAX;
    }
}

struct mdl_pool *mdl_pool_free(struct mdl_pool *pool)
{
    if (!pool) {
        return NULL;
    }
    while (pool->blocks) {
        struct pool_block *b = pool->blocks;

        pool->blocks = b->next;
        free(b->data);
        free(b);
    }
    free(pool);
    return NULL;
}

static struct pool_block *block_new(size_t bytes)
{
    struct pool_block *b = calloc(1, sizeof(*b));

    if (!b) {
        return NULL;
    }
    b->data = calloc(1, bytes);
    if (!b->data) {
        free(b);
        return NULL;
    }
    b->bytes = bytes;
    return b;
}

/* Offset of the next free byte of @b whose address is a multiple of @align. */
static size_t aligned_offset(const struct pool_block *b, size_t align)
{
    uintptr_t at = (uintptr_t)b->data + b->used;

    return b->used + (size_t)(-at & (align - 1));
}

static void *take_piece(struct pool_block *b, size_t bytes, size_t align)
{
    size_t at = aligned_offset(b, align);

    if (at > b->bytes || b->bytes - at < bytes) {
        return NULL;
    }
    b->used = at + bytes;
    return b->data + at;
}

void *mdl_pool_alloc(struct mdl_pool *pool, size_t count, size_t size)
{
    size_t bytes, align, total, room;
    struct pool_block *b;
    void *p;

    if (!base_mul(count, size, &bytes) || bytes > SIZE_MAX / 2) {
        return NULL;
    }
    bytes = base_align_up(bytes ? bytes : 1, POOL_ALIGN);
    if (!base_add(pool->used, bytes, &total) || total > pool->cap) {
        pool->full = true;
        return NULL;
    }
    align = bytes >= POOL_LARGE_BYTES ? POOL_ALIGN_LARGE : POOL_ALIGN;
    p = pool->blocks ? take_piece(pool->blocks, bytes, align) : NULL;
    if (!p) {
        bool large;

        /* calloc() aligns only to 16 bytes, so the size check includes the bytes that alignment may
         * skip. */
        if (!base_add(bytes, align - 1, &room)) {
            return NULL;
        }
        large = room > POOL_BLOCK_BYTES;
        b = block_new(large ? room : POOL_BLOCK_BYTES);
        if (!b) {
            return NULL;
        }
        p = take_piece(b, bytes, align);
        if (large && pool->blocks) {
            /* after the block being filled, so that its rest stays usable */
            b->next = pool->blocks->next;
            pool->blocks->next = b;
        } else {
            b->next = pool->blocks;
            pool->blocks = b;
        }
    }
    pool->used = total;
    return p;
}

bool mdl_pool_grow(struct mdl_pool *pool, void **array, size_t *cap, size_t count, size_t size)
{
    size_t more = *cap ? 2 * *cap : 16;
    void *grown;

    if (count < *cap) {
        return true;
    }
    grown = mdl_pool_alloc(pool, more, size);
    if (!grown) {
        return false;
    }
    if (count) {
        memcpy(grown, *array, count * size);
    }
    *array = grown;
    *cap = more;
    return true;
}

char *mdl_pool_strdup(struct mdl_pool *pool, const char *s)
{
    return mdl_pool_strndup(pool, s, strlen(s));
}

char *mdl_pool_strndup(struct mdl_pool *pool, const void *s, size_t n)
{
    char *copy = n < SIZE_MAX ? mdl_pool_alloc(pool, n + 1, 1) : NULL;

    if (copy && n) {
        memcpy(copy, s, n);
    }
    return copy;
}

void *mdl_pool_memdup(struct mdl_pool *pool, const void *p, size_t n)
{
    void *copy = mdl_pool_alloc(pool, n, 1);

    if (copy && n) {
        memcpy(copy, p, n);
    }
    return copy;
}

char *mdl_pool_printf(struct mdl_pool *pool, const char *format, ...)
{
    va_list args, again;
    int n;
    char *s = NULL;

    va_start(args, format);
    va_copy(again, args);
    n = vsnprintf(NULL, 0, format, args);
    if (n >= 0) {
        s = mdl_pool_alloc(pool, (size_t)n + 1, 1);
    }
    if (s) {
        vsnprintf(s, (size_t)n + 1, format, again);
    }
    va_end(again);
    va_end(args);
    return s;
}

bool mdl_pool_is_full(const struct mdl_pool *pool, size_t *ret_cap_bytes)
{
    *ret_cap_bytes = pool->cap;
    return pool->full;
}

size_t mdl_pool_used(const struct mdl_pool *pool)
{
    return pool->used;
}
