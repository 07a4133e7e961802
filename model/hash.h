/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/hash.h - BLAKE2b with 256 bits (RFC 7693), unkeyed; of files in its tree mode
 *
 * It covers every byte of the model file. It is the key of learned costs, not a proof of origin.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MDL_HASH_BYTES 32u
#define MDL_HASH_BLOCK_BYTES 128u
#define MDL_HASH_LEAF_BYTES ((size_t)1 << 20)

struct mdl_hash {
    uint64_t h[8];
    uint64_t total; /* bytes so far */
    unsigned char block[MDL_HASH_BLOCK_BYTES];
    size_t used;
    bool last_node; /* of its level of a tree */
};

void mdl_hash_init(struct mdl_hash *s);
/** mdl_hash_init_node() - of node @offset at @depth (0: leaves) of a tree of depth 2, unlimited
 * fanout and leaves of MDL_HASH_LEAF_BYTES. Source: the BLAKE2 specification, 2.10. */
void mdl_hash_init_node(struct mdl_hash *s, uint64_t offset, unsigned depth, bool last);
void mdl_hash_update(struct mdl_hash *s, const void *data, size_t bytes);
/** mdl_hash_hex() - ends the hash. @ret: 64 hex digits and NUL. */
void mdl_hash_hex(struct mdl_hash *s, char ret[65]);
/** mdl_hash_end() - the same as bytes. */
void mdl_hash_end(struct mdl_hash *s, unsigned char ret[MDL_HASH_BYTES]);

/**
 * mdl_hash_file() - the first @bytes of a file: leaves of 1 MiB, then one node over their hashes,
 * in order, all with 32 bytes (Python: hashlib.blake2b with fanout=0, depth=2, leaf_size=2**20,
 * inner_size=32)
 * @threads: that share the leaves, this one among them; 0 is 1
 * Blocks on the file; allocates. Return: 0, -errno of a read, -EBADMSG (the file is shorter),
 * -ENOMEM.
 */
int mdl_hash_file(int fd, size_t bytes, size_t threads, char ret_hex[65]);
