/* SPDX-License-Identifier: Apache-2.0 */
#include "model/hash.h"

#include <stdio.h>
#include <string.h>

#include "base.h"

/* RFC 7693, 2.6 and 2.7 */
static const uint64_t iv[8] = {0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b,
                               0xa54ff53a5f1d36f1, 0x510e527fade682d1, 0x9b05688c2b3e6c1f,
                               0x1f83d9abfb41bd6b, 0x5be0cd19137e2179};
static const uint8_t sigma[10][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
    {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
    {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
    {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
    {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
};

#define ROTR(x, n) ((x) >> (n) | (x) << (64 - (n)))
#define MIX(a, b, c, d, x, y)                                                                      \
    do {                                                                                           \
        v[a] += v[b] + (x);                                                                        \
        v[d] = ROTR(v[d] ^ v[a], 32);                                                              \
        v[c] += v[d];                                                                              \
        v[b] = ROTR(v[b] ^ v[c], 24);                                                              \
        v[a] += v[b] + (y);                                                                        \
        v[d] = ROTR(v[d] ^ v[a], 16);                                                              \
        v[c] += v[d];                                                                              \
        v[b] = ROTR(v[b] ^ v[c], 63);                                                              \
    } while (0)
/* The round number must be a constant, so that sigma folds away: 1 GB/s against 0.4. */
#define ROUND(r)                                                                                   \
    do {                                                                                           \
        MIX(0, 4, 8, 12, m[sigma[r][0]], m[sigma[r][1]]);                                          \
        MIX(1, 5, 9, 13, m[sigma[r][2]], m[sigma[r][3]]);                                          \
        MIX(2, 6, 10, 14, m[sigma[r][4]], m[sigma[r][5]]);                                         \
        MIX(3, 7, 11, 15, m[sigma[r][6]], m[sigma[r][7]]);                                         \
        MIX(0, 5, 10, 15, m[sigma[r][8]], m[sigma[r][9]]);                                         \
        MIX(1, 6, 11, 12, m[sigma[r][10]], m[sigma[r][11]]);                                       \
        MIX(2, 7, 8, 13, m[sigma[r][12]], m[sigma[r][13]]);                                        \
        MIX(3, 4, 9, 14, m[sigma[r][14]], m[sigma[r][15]]);                                        \
    } while (0)

static void compress(struct mdl_hash *s, const unsigned char *block, bool last)
{
    uint64_t v[16], m[16];

    memcpy(m, block, sizeof(m)); /* little-endian words */
    for (int i = 0; i < 8; i++) {
        v[i] = s->h[i];
        v[i + 8] = iv[i];
    }
    v[12] ^= s->total;
    v[14] ^= last ? UINT64_MAX : 0;
    v[15] ^= last && s->last_node ? UINT64_MAX : 0;
    ROUND(0);
    ROUND(1);
    ROUND(2);
    ROUND(3);
    ROUND(4);
    ROUND(5);
    ROUND(6);
    ROUND(7);
    ROUND(8);
    ROUND(9);
    ROUND(0);
    ROUND(1);
    for (int i = 0; i < 8; i++) {
        s->h[i] ^= v[i] ^ v[i + 8];
    }
}

void mdl_hash_init(struct mdl_hash *s)
{
    *s = (struct mdl_hash){.total = 0};
    memcpy(s->h, iv, sizeof(iv));
    s->h[0] ^= 0x01010000 ^ MDL_HASH_BYTES; /* fanout 1, depth 1, no key */
}

void mdl_hash_init_node(struct mdl_hash *s, uint64_t offset, unsigned depth, bool last)
{
    *s = (struct mdl_hash){.last_node = last};
    memcpy(s->h, iv, sizeof(iv));
    s->h[0] ^= (uint64_t)MDL_HASH_LEAF_BYTES << 32 | 0x02000000 | MDL_HASH_BYTES;
    s->h[1] ^= offset;
    s->h[2] ^= (uint64_t)MDL_HASH_BYTES << 8 | depth;
}

void mdl_hash_update(struct mdl_hash *s, const void *data, size_t bytes)
{
    const unsigned char *p = data;

    while (bytes > 0) {
        size_t n;

        /* The last block is compressed by the end, so a full one waits for a byte behind it. */
        if (s->used == sizeof(s->block)) {
            s->total += sizeof(s->block);
            compress(s, s->block, false);
            s->used = 0;
        }
        while (s->used == 0 && bytes > sizeof(s->block)) {
            s->total += sizeof(s->block);
            compress(s, p, false);
            p += sizeof(s->block);
            bytes -= sizeof(s->block);
        }
        n = base_min(bytes, sizeof(s->block) - s->used);
        memcpy(s->block + s->used, p, n);
        s->used += n;
        p += n;
        bytes -= n;
    }
}

void mdl_hash_end(struct mdl_hash *s, unsigned char ret[MDL_HASH_BYTES])
{
    s->total += s->used;
    memset(s->block + s->used, 0, sizeof(s->block) - s->used);
    compress(s, s->block, true);
    memcpy(ret, s->h, MDL_HASH_BYTES);
}

void mdl_hash_hex(struct mdl_hash *s, char ret[65])
{
    unsigned char out[MDL_HASH_BYTES];

    mdl_hash_end(s, out);
    for (size_t i = 0; i < sizeof(out); i++) {
        snprintf(ret + 2 * i, 3, "%02x", out[i]);
    }
}
