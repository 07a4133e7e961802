/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/hash.h - BLAKE2b with 256 bits (RFC 7693), unkeyed
 *
 * It covers every byte of the model file and is about four times as fast as plain SHA-256 in
 * portable C: 100 MB in about a tenth of a second. It is the key of learned costs, not a proof of
 * origin.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct mdl_hash {
    uint64_t h[8];
    uint64_t total; /* bytes so far */
    unsigned char block[128];
    size_t used;
};

void mdl_hash_init(struct mdl_hash *s);
void mdl_hash_update(struct mdl_hash *s, const void *data, size_t bytes);
/** mdl_hash_hex() - ends the hash. @ret: 64 hex digits and NUL. */
void mdl_hash_hex(struct mdl_hash *s, char ret[65]);
