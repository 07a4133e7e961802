/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/common/pages.h - memory for packed weights: in huge pages if the kernel has them, near
 * the cores that read it; for kernels/ only
 *
 * Every frame reads the packed weights from end to end, and small pages cost TLB misses. So the
 * weights of a net lie side by side in one mapping that is aligned to a huge page (a store).
 * Weights packed later get a mapping of their own. Freed pages leave a store at once, together with
 * their addresses.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct krn_store {
    uint8_t *at; /* owned mapping, or NULL */
    size_t bytes, used;
};

/** krn_store_init() - reserves addresses for @bytes and, behind them, for @maybe that may never be
 * written, without memory yet. No huge page covers some of both. If that fails, or there are few
 * bytes, the store stays empty. krn_store_deinit() - accepts a zeroed store. */
void krn_store_init(struct krn_store *s, size_t bytes, size_t maybe);
void krn_store_deinit(struct krn_store *s);

struct krn_pages {
    void *at; /* owned */
    size_t bytes;
    size_t mapped; /* bytes mapped; 0: heap memory */
    uint8_t *slot; /* its place in a store, or NULL */
    size_t slot_bytes;
};

/** krn_store_reserve() - reserves a place for @bytes in @s, which krn_pages_new() on @ret then
 * uses. Does nothing if @s has no room. Threads: one at a time. */
void krn_store_reserve(struct krn_store *s, size_t bytes, struct krn_pages *ret);

/**
 * krn_store_near() - as krn_pages_near(), for a range of addresses in @s
 * Both ends are rounded to huge pages, since a boundary inside a huge page would split it. So call
 * it for lower addresses first. Threads, return: as krn_pages_near().
 */
int krn_store_near(const struct krn_store *s, const uint8_t *from, const uint8_t *end,
                   uint64_t nodes);

/**
 * krn_pages_new() - allocates @bytes, 64-byte aligned, at the reserved place if @p has one
 * @nodes: as krn_pages_near(). Threads: any, also several in one store. Return: 0, -ENOMEM.
 */
int krn_pages_new(size_t bytes, uint64_t nodes, struct krn_pages *p);
/** krn_pages_free() - accepts a zeroed one. In a store, whole pages go back to the system. */
void krn_pages_free(struct krn_pages *p);

/**
 * krn_pages_near() - asks the system to place the memory on NUMA nodes, one bit each. Several nodes
 * take pages in turn; 0 asks for nothing. Existing pages are moved: to several nodes in turn pieces
 * of a huge page, or of 64 KB where there is less. If a node is full, the system uses another. Heap
 * memory is not moved; memory in a store stays where krn_store_near() put it. Threads: any, also
 * while others read. Return: 0; -errno if the kernel refuses (no such node, no NUMA, not
 * permitted), which is harmless.
 */
int krn_pages_near(const struct krn_pages *p, uint64_t nodes);
