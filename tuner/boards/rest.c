/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/boards/rest.h"

#include "base/base.h"
#include "tuner/boards/board_nodes.h"

/* The first unit from which one segment on these boards comes as far as @end. A longer segment is
 * not always slower in front: the bytes across its border differ. So every unit is tried. */
static size_t begin_of(struct tun_map *m, uint32_t set, size_t end, double period_ns,
                       uint16_t *const *reach)
{
    for (size_t from = 0; from < end; from++) {
        double rate = 0;

        if (tun_single(set)) {
            if (reach[m->kind_of[__builtin_ctz(set)]][from] >= end) {
                return from;
            }
            continue;
        }
        for (size_t b = 0; b < m->p->boards.count; b++) {
            if (set >> b & 1) {
                rate += tun_full_rate(tun_map_kind(m, b), from, end);
            }
        }
        if (rate * period_ns >= 1) {
            return from;
        }
    }
    return end;
}

void tun_rest(struct tun_map *m, double period_ns, uint16_t *const *reach, uint16_t *ret)
{
    uint32_t all = tun_nodes_present(m);

    ret[0] = (uint16_t)m->n;
    for (uint32_t set = 1; set <= all; set++) {
        if ((set & ~all) || tun_nodes_canonical(m, set) != set) {
            continue;
        }
        ret[set] = (uint16_t)m->n;
        for (uint32_t one = set; one; one = (one - 1) & set) {
            size_t end, from;

            if (!tun_nodes_in_order(m, set, one) ||
                (!tun_single(one) && m->p->bounds.one_ep_stages)) {
                continue;
            }
            end = ret[tun_nodes_canonical(m, set & ~one)];
            from = end > 0 ? begin_of(m, one, end, period_ns, reach) : 0;
            ret[set] = (uint16_t)base_min((size_t)ret[set], from);
        }
    }
}
