/* SPDX-License-Identifier: Apache-2.0 */
/**
 * base/leaves/hash.h - unkeyed BLAKE2b-256 (RFC 7693) from libsodium; files are hashed as a tree
 *
 * The hash covers every byte of the model file. It is the key of learned costs, not a proof of
 * origin.
 */
#pragma once

#include <sodium.h>
#include <stddef.h>

#define MDL_HASH_BYTES 32u
#define MDL_HASH_LEAF_BYTES ((size_t)1 << 20)

struct mdl_hash {
    crypto_generichash_state state;
};

void mdl_hash_init(struct mdl_hash *s);
void mdl_hash_update(struct mdl_hash *s, const void *data, size_t bytes);
/** mdl_hash_end() - writes the hash to @ret. */
void mdl_hash_end(struct mdl_hash *s, unsigned char ret[MDL_HASH_BYTES]);
/** mdl_hash_hex() - the same as text. @ret: 64 hex digits and NUL. */
void mdl_hash_hex(struct mdl_hash *s, char ret[65]);

/**
 * mdl_hash_file() - hashes the first @bytes of a file: the hash of the size (8 bytes,
 * little-endian) followed by the hashes of its 1 MiB leaves, in order (Python: hashlib.blake2b with
 * digest_size=32)
 * @threads: threads that share the leaves, the caller's included; 0: 1
 * Blocks on the file; allocates. Return: 0, -errno of a read, -EBADMSG (the file is shorter than
 * @bytes), -ENOMEM, -ECANCELED (mdl_stopped()).
 */
int mdl_hash_file(int fd, size_t bytes, size_t threads, char ret_hex[65]);
