/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/hash_lanes.h - four leaves of a file's hash at a time, one in each lane of a vector
 */
#pragma once

#include "model/hash.h"

#define MDL_HASH_LANES 4u

struct mdl_hash_lanes {
    _Alignas(32) uint64_t h[8][MDL_HASH_LANES];
    uint64_t total; /* bytes of each so far */
};

/**
 * mdl_hash_lanes_avx2() - takes in the next @blocks whole blocks of all four
 * @data: that of lane i begins at data + i * stride. @last: the leaves end behind them; none of
 * them is the last of its level. Only where the CPU has AVX2.
 */
void mdl_hash_lanes_avx2(struct mdl_hash_lanes *s, const unsigned char *data, size_t stride,
                         size_t blocks, bool last);
