/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/search/encoding.h - mappings of units onto places, as lists of genes
 *
 * A mapping says of each unit which place runs it. The hierarchical DSE's two encodings (its
 * section 4, figure 2), with places and positions counted from 0:
 *
 *     NE    one gene a unit: its place                       [0,0,1,1,2,3,3,3]
 *     SPE   one gene a place: how many units lie before it   [0,2,4,5]
 *
 * are one mapping of 8 units onto 4 places: in SPE place i runs the units from its gene to the
 * next place's. The first gene is 0; equal genes leave a place without units. Places come in a
 * fixed order.
 *
 * Staged (its figure 3): K = ceil(log2 N) stages, stage k = 1.. uses the first 2^k places, the
 * last one all N. The genes have their full number in every stage; SPE's genes of places that are
 * not used yet are the number of units, NE's genes stay below the places that are used.
 *
 * Pure; any thread; no allocation. Only files of tuner/ and tests include it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tuner/search/search_table.h"

/** tun_encoding_genes() - how many a mapping has. */
size_t tun_encoding_genes(enum tun_encoding encoding, size_t units, size_t places);
/** tun_encoding_bounds() - of each gene while only the first @used places are used. */
void tun_encoding_bounds(enum tun_encoding encoding, size_t units, size_t places, size_t used,
                         uint16_t *ret_least, uint16_t *ret_most);
/** tun_encoding_decode() - @genes: SPE's in rising order. @ret_places: [units]. */
void tun_encoding_decode(enum tun_encoding encoding, const uint16_t *genes, size_t units,
                         size_t places, uint16_t *ret_places);
/** tun_encoding_space() - how many lists of genes: places^units, or the binomial
 * C(units + places - 1, places - 1); infinite where no double holds it. */
double tun_encoding_space(enum tun_encoding encoding, size_t units, size_t places);

/** tun_stages_of() - K; 1 for one place. */
size_t tun_stages_of(size_t places);
/** tun_stage_places() - places that stage @stage uses, 1..K. */
size_t tun_stage_places(size_t places, size_t stage);
