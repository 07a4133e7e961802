/* SPDX-License-Identifier: Apache-2.0 */
#include "base/leaves/hash.h"

#include "base/base.h"

void mdl_hash_init(struct mdl_hash *s)
{
    /* detects vector instructions, once */
    if (sodium_init() < 0) {
        /* the plain code then runs */
    }
    crypto_generichash_init(&s->state, NULL, 0, MDL_HASH_BYTES);
}

void mdl_hash_update(struct mdl_hash *s, const void *data, size_t bytes)
{
    crypto_generichash_update(&s->state, data, bytes);
}

void mdl_hash_end(struct mdl_hash *s, unsigned char ret[MDL_HASH_BYTES])
{
    crypto_generichash_final(&s->state, ret, MDL_HASH_BYTES);
}

void mdl_hash_hex(struct mdl_hash *s, char ret[65])
{
    unsigned char out[MDL_HASH_BYTES];

    mdl_hash_end(s, out);
    sodium_bin2hex(ret, 65, out, sizeof(out));
}
