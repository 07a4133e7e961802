/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/common/pool.h - bump allocator for many small objects with one lifetime
 *
 * A graph and the compiler's temporaries are thousands of small arrays with one lifetime. The pool
 * allocates from growing blocks and frees all of them at once. Its cap on total bytes stops a
 * hostile file from growing the process: every count that a file claims reaches mdl_pool_alloc().
 * Invariant: used bytes of all blocks <= cap; a failed allocation changes nothing.
 */
#pragma once

#include "base/base.h"

struct mdl_pool;

/**
 * mdl_pool_new() - makes an empty pool
 * @cap_bytes: limit of all allocations together; 0: MDL_POOL_CAP_BYTES
 * @ret_pool: owned by the caller, mdl_pool_free()
 * Threads: any one at a time. Return: 0 or -ENOMEM.
 */
#define MDL_POOL_CAP_BYTES ((size_t)4 << 30)
int mdl_pool_new(size_t cap_bytes, struct mdl_pool **ret_pool);

/** mdl_pool_allow() - raises the cap by @bytes, at most to SIZE_MAX. */
void mdl_pool_allow(struct mdl_pool *pool, size_t bytes);

/** mdl_pool_free() - frees the pool and all its allocations. Accepts NULL. Return: NULL. */
struct mdl_pool *mdl_pool_free(struct mdl_pool *pool);

/**
 * mdl_pool_alloc() - allocates @count elements of @size bytes, zeroed, aligned to 16 bytes (64 from
 * 4 KiB on)
 * Return: memory owned by the pool, never NULL for count == 0; NULL if count * size overflows, past
 * the cap, or without memory. Allocations of 64 KiB and more, alignment included, get a block of
 * their own.
 */
void *mdl_pool_alloc(struct mdl_pool *pool, size_t count, size_t size);

/** mdl_pool_grow() - makes room in an array of the pool for element @count, the next one, by twice
 * as many; what it was stays in the pool, which costs at most as much again. @array: of elements of
 * @size bytes. Return: false without memory. */
bool mdl_pool_grow(struct mdl_pool *pool, void **array, size_t *cap, size_t count, size_t size);

/** mdl_pool_strdup() - copies @s. mdl_pool_strndup() - copies @n bytes at @s and appends a NUL (if
 * the bytes contain a NUL, the string ends there). mdl_pool_memdup() - copies @n raw bytes.
 * Return: memory owned by the pool, or NULL as above. */
char *mdl_pool_strdup(struct mdl_pool *pool, const char *s);
char *mdl_pool_strndup(struct mdl_pool *pool, const void *s, size_t n);
void *mdl_pool_memdup(struct mdl_pool *pool, const void *p, size_t n);

/** mdl_pool_printf() - Return: a formatted string owned by the pool, or NULL as above. */
char *mdl_pool_printf(struct mdl_pool *pool, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** mdl_pool_is_full() - Return: the cap has refused an allocation; where that ends a load, the file
 * asked for too much, and memory is not short. */
bool mdl_pool_is_full(const struct mdl_pool *pool, size_t *ret_cap_bytes);
/** mdl_pool_used() - Return: bytes allocated so far, rounding included. */
size_t mdl_pool_used(const struct mdl_pool *pool);

static inline void mdl_pool_freep(struct mdl_pool **p)
{
    *p = mdl_pool_free(*p);
}
#define mdl_autopool base_cleanup(mdl_pool_freep)
