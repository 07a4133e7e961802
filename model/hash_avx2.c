/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "model/hash_lanes.h"

typedef uint64_t lanes __attribute__((vector_size(32)));
typedef unsigned char bytes __attribute__((vector_size(32)));

/* RFC 7693, 2.6 and 2.7 */
static const uint64_t iv[8] = {0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b,
                               0xa54ff53a5f1d36f1, 0x510e527fade682d1, 0x9b05688c2b3e6c1f,
                               0x1f83d9abfb41bd6b, 0x5be0cd19137e2179};

#define ROW(a, b, c, d, e, f, g, h)                                                                \
    a, b, c, d, e, f, g, h, (a) + 8, (b) + 8, (c) + 8, (d) + 8, (e) + 8, (f) + 8, (g) + 8, (h) + 8
/* One result of 16 bytes twice: shuffles stay inside the halves of a vector. */
#define BYTES(...)                                                                                 \
    ((bytes){__VA_ARGS__} |                                                                        \
     (bytes){0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,                        \
             16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16})
#define TWICE(...) __VA_ARGS__, __VA_ARGS__
#define BY_BYTES(x, ...) ((lanes)__builtin_shuffle((bytes)(x), BYTES(TWICE(ROW(__VA_ARGS__)))))
#define ROTR32(x) BY_BYTES(x, 4, 5, 6, 7, 0, 1, 2, 3)
#define ROTR24(x) BY_BYTES(x, 3, 4, 5, 6, 7, 0, 1, 2)
#define ROTR16(x) BY_BYTES(x, 2, 3, 4, 5, 6, 7, 0, 1)
#define ROTR63(x) ((x) >> 63 | ((x) + (x)))

#define MIX(a, b, c, d, x, y)                                                                      \
    do {                                                                                           \
        v[a] += v[b] + m[x];                                                                       \
        v[d] = ROTR32(v[d] ^ v[a]);                                                                \
        v[c] += v[d];                                                                              \
        v[b] = ROTR24(v[b] ^ v[c]);                                                                \
        v[a] += v[b] + m[y];                                                                       \
        v[d] = ROTR16(v[d] ^ v[a]);                                                                \
        v[c] += v[d];                                                                              \
        v[b] = ROTR63(v[b] ^ v[c]);                                                                \
    } while (0)
#define ROUND(s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15)                \
    do {                                                                                           \
        MIX(0, 4, 8, 12, s0, s1);                                                                  \
        MIX(1, 5, 9, 13, s2, s3);                                                                  \
        MIX(2, 6, 10, 14, s4, s5);                                                                 \
        MIX(3, 7, 11, 15, s6, s7);                                                                 \
        MIX(0, 5, 10, 15, s8, s9);                                                                 \
        MIX(1, 6, 11, 12, s10, s11);                                                               \
        MIX(2, 7, 8, 13, s12, s13);                                                                \
        MIX(3, 4, 9, 14, s14, s15);                                                                \
    } while (0)

/* Words 4 w .. 4 w + 3 of a block of each lane, a word of all lanes in each vector. */
static inline void load_words(const unsigned char *data, size_t stride, size_t w, lanes *m)
{
    const lanes even = {0, 4, 2, 6}, odd = {1, 5, 3, 7}, low = {0, 1, 4, 5}, high = {2, 3, 6, 7};
    lanes r[4], a, b, c, d;

    for (size_t i = 0; i < 4; i++) {
        memcpy(&r[i], data + i * stride + w * sizeof(lanes), sizeof(lanes));
    }
    a = __builtin_shuffle(r[0], r[1], even);
    b = __builtin_shuffle(r[0], r[1], odd);
    c = __builtin_shuffle(r[2], r[3], even);
    d = __builtin_shuffle(r[2], r[3], odd);
    m[4 * w] = __builtin_shuffle(a, c, low);
    m[4 * w + 1] = __builtin_shuffle(b, d, low);
    m[4 * w + 2] = __builtin_shuffle(a, c, high);
    m[4 * w + 3] = __builtin_shuffle(b, d, high);
}

static void compress(struct mdl_hash_lanes *s, const unsigned char *data, size_t stride, bool last)
{
    lanes v[16], m[16], h[8];

    for (size_t w = 0; w < 4; w++) {
        load_words(data, stride, w, m);
    }
    memcpy(h, s->h, sizeof(h));
    for (size_t i = 0; i < 8; i++) {
        v[i] = h[i];
        v[i + 8] = (lanes){iv[i], iv[i], iv[i], iv[i]};
    }
    v[12] ^= s->total;
    v[14] ^= last ? UINT64_MAX : 0;
    ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    ROUND(14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3);
    ROUND(11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4);
    ROUND(7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8);
    ROUND(9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13);
    ROUND(2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9);
    ROUND(12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11);
    ROUND(13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10);
    ROUND(6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5);
    ROUND(10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0);
    ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    ROUND(14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3);
    for (size_t i = 0; i < 8; i++) {
        h[i] ^= v[i] ^ v[i + 8];
    }
    memcpy(s->h, h, sizeof(h));
}

void mdl_hash_lanes_avx2(struct mdl_hash_lanes *s, const unsigned char *data, size_t stride,
                         size_t blocks, bool last)
{
    for (size_t i = 0; i < blocks; i++) {
        s->total += MDL_HASH_BLOCK_BYTES;
        compress(s, data + i * MDL_HASH_BLOCK_BYTES, stride, last && i + 1 == blocks);
    }
}
