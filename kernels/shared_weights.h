/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/shared_weights.h - packed weights that several nets have in common; for kernels/ only
 *
 * One file loaded at several sizes, segments that overlap, and the old and the new net of a reload
 * pack many weights alike. Such weights are in memory once, until the last net releases them.
 *
 * What a primitive packs may depend on the sizes of its tensors, and no primitive says whether it
 * does. So an operator's weights are packed, and shared only if they are equal, byte by byte, to
 * what another net has packed for the operator of that name in the same file by the same primitive.
 * Nothing writes to packed weights after that. A library's object that packs for itself
 * (prepare() without pack()) is not shared.
 *
 * All nets of the process share one list. A lock guards it and the counts, never held while weights
 * are packed or compared.
 */
#pragma once

#include "kernels/common/pages.h"
#include "kernels/primitive.h"

struct krn_shared;

/* Where a net's weights lie. It stays as long as any net uses a weight in it. */
struct krn_shelf {
    struct krn_store store;
    size_t refs;
};

/** krn_shelf_new() - Return: an empty one, owned by the caller until krn_shelf_unref(); NULL: out
 * of memory. */
struct krn_shelf *krn_shelf_new(void);
/** krn_shelf_unref() - accepts NULL. */
void krn_shelf_unref(struct krn_shelf *shelf);

/* What to pack, for an operator of a net; all borrowed for the call. */
struct krn_packing {
    const struct krn_primitive *primitive; /* it has pack() */
    struct krn_shelf *shelf;               /* of the net */
    const struct mdl_model *m;
    size_t op, bytes;
    uint64_t nodes; /* as krn_pages_near() */
};

/** krn_shared_may_know() - Return: whether another net has weights packed that may be equal.
 * Threads: any. */
bool krn_shared_may_know(const struct krn_packing *p);

/**
 * krn_shared_pack() - packs the weights of an operator, or finds them packed alike
 * @packed: empty, maybe with a reserved place. It then points to the weights, and owns them if
 * *@ret_shared is NULL.
 * @ret_shared: for krn_shared_drop(); NULL: other nets cannot use these weights
 * Threads: any. Return: 0, -ENOMEM.
 */
int krn_shared_pack(const struct krn_packing *p, struct krn_pages *packed,
                    struct krn_shared **ret_shared);
/* Where weights lie; borrowed from whoever asked as long as it uses them. */
struct krn_lying {
    const struct krn_pages *pages;
    const struct krn_store *store; /* if the pages have a place in one */
    bool elsewhere;                /* they were last asked to be on other nodes */
};

/** krn_shared_place() - notes that the weights are to be on @nodes, as krn_pages_near(); the caller
 * moves them. Of several users the last one decides. Threads: any. */
void krn_shared_place(struct krn_shared *s, uint64_t nodes, struct krn_lying *ret);
/** krn_shared_drop() - frees the weights if nobody else uses them. @shelf, @packed: as they were
 * given to krn_shared_pack(); @packed is empty then. */
void krn_shared_drop(struct krn_shared *s, const struct krn_shelf *shelf, struct krn_pages *packed);
/** krn_shared_users() - Return: how many primitives of nets use the weights. Threads: any. */
size_t krn_shared_users(const struct krn_shared *s);
