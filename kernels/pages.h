/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/pages.h - memory for packed weights: in huge pages where the kernel has them, near the
 * cores that read it; for kernels/ only
 *
 * Packed weights are read from end to end for every frame, and the translation of small pages
 * costs. So the rows of a net lie side by side in one mapping that begins at a huge page's border
 * (a store); what is packed later gets a mapping of its own. Pages that are given back leave a
 * store at once, its addresses with it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct krn_store {
    uint8_t *at; /* owned mapping, or NULL */
    size_t bytes, used;
};

/** krn_store_init() - room for @bytes, of which none take memory yet. Where it cannot be had, or
 * @bytes are few, the store stays empty. krn_store_deinit() - a zeroed one is fine. */
void krn_store_init(struct krn_store *s, size_t bytes);
void krn_store_deinit(struct krn_store *s);

struct krn_pages {
    void *at; /* owned */
    size_t bytes;
    size_t mapped; /* 0: from the heap */
    uint8_t *slot; /* where it lies in a store, else NULL */
    size_t slot_bytes;
};

/** krn_store_reserve() - a place for @bytes in @s; @ret: what krn_pages_new() then takes first. Not
 * done where there is no room. Threads: one at a time. */
void krn_store_reserve(struct krn_store *s, size_t bytes, struct krn_pages *ret);

/**
 * krn_store_near() - krn_pages_near() for what lies in @s between two addresses
 * Both are rounded to huge pages, since a border inside one would break it up: what follows has to
 * be asked for later. Threads: as there. Return: as there.
 */
int krn_store_near(const struct krn_store *s, const uint8_t *from, const uint8_t *end,
                   uint64_t nodes);

/**
 * krn_pages_new() - @bytes, 64-byte aligned, at its reserved place if @p has one
 * @nodes: as krn_pages_near(). Threads: any, also others of the same store. Return: 0, -ENOMEM.
 */
int krn_pages_new(size_t bytes, uint64_t nodes, struct krn_pages *p);
/** krn_pages_free() - a zeroed one is fine; of a store, its whole pages go back to the system. */
void krn_pages_free(struct krn_pages *p);

/**
 * krn_pages_near() - asks for the memory to be on NUMA nodes, a bit each: on that one if there is
 * one, page by page in turns on several; 0 asks for nothing. What is there already is moved. The
 * system puts it elsewhere where a node is full. Memory from the heap stays where it is, that of a
 * store where krn_store_near() said.
 * Threads: any, also while others read. Return: 0; -errno where the kernel does not do it (no such
 * node, no NUMA, not allowed), which harms nothing.
 */
int krn_pages_near(const struct krn_pages *p, uint64_t nodes);
