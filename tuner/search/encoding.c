/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/search/encoding.h"

#include <math.h>

#include "base/base.h"

size_t tun_encoding_genes(enum tun_encoding encoding, size_t units, size_t places)
{
    return encoding == TUN_ENCODING_NE ? units : places;
}

void tun_encoding_bounds(enum tun_encoding encoding, size_t units, size_t places, size_t used,
                         uint16_t *ret_least, uint16_t *ret_most)
{
    size_t genes = tun_encoding_genes(encoding, units, places);

    for (size_t g = 0; g < genes; g++) {
        if (encoding == TUN_ENCODING_NE) {
            ret_least[g] = 0;
            ret_most[g] = (uint16_t)(used - 1);
        } else {
            ret_least[g] = (uint16_t)(g < used ? 0 : units);
            ret_most[g] = (uint16_t)(g > 0 ? units : 0);
        }
    }
}

void tun_encoding_decode(enum tun_encoding encoding, const uint16_t *genes, size_t units,
                         size_t places, uint16_t *ret_places)
{
    size_t place = 0;

    if (encoding == TUN_ENCODING_NE) {
        memcpy(ret_places, genes, units * sizeof(*genes));
        return;
    }
    for (size_t u = 0; u < units; u++) {
        while (place + 1 < places && genes[place + 1] <= u) {
            place++;
        }
        ret_places[u] = (uint16_t)place;
    }
}

double tun_encoding_space(enum tun_encoding encoding, size_t units, size_t places)
{
    double size = 1;

    if (encoding == TUN_ENCODING_NE) {
        return pow((double)places, (double)units);
    }
    for (size_t i = 1; i < places; i++) {
        size = size * (double)(units + i) / (double)i;
    }
    return size;
}

size_t tun_stages_of(size_t places)
{
    size_t stages = 1;

    while (((size_t)1 << stages) < places) {
        stages++;
    }
    return stages;
}

size_t tun_stage_places(size_t places, size_t stage)
{
    return base_min((size_t)1 << stage, places);
}
