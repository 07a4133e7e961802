/* SPDX-License-Identifier: Apache-2.0 */
/* What the links and ports of a segment take, and what the boards left can run. */
#include "base/base.h"
#include "tuner/boards/pass.h"

double tun_port_ns(const struct tun_map *m, const struct tun_step *s, size_t b, double x)
{
    const struct tun_boards *all = &m->p->boards;
    bool head = b == all->head;
    double in = head && s->from == 0 ? 0 : x * s->in_bytes;
    double out = head && s->last ? 0 : x * s->out_bytes;

    if (head) {
        out += (s->from == 0 ? 1 - x : 1) * all->input_bytes;
        in += (s->last ? 1 - x : 1) * all->output_bytes;
    }
    return all->boards[b].port_ns_per_byte * base_max(in, out);
}

double tun_unshared_ns(const struct tun_map *m, const struct tun_step *s, size_t b)
{
    double ns = 0;

    if (m->p->boards.comm == TUN_COMM_ADDED) {
        return 0;
    }
    if (tun_single(s->before)) {
        ns = tun_slowest_link(m->p, b, s->before, false, s->in_bytes, false, NULL);
    }
    if (s->last) {
        ns = base_max(ns, tun_slowest_link(m->p, b, s->after, true, s->out_bytes, false, NULL));
    }
    return base_max(ns, tun_port_ns(m, s, b, 1));
}

double tun_border_latency(const struct tun_map *m, uint32_t from, uint32_t to, double bytes)
{
    double worst = 0;

    for (size_t b = 0; b < m->p->boards.count; b++) {
        if (to >> b & 1) {
            worst = base_max(worst, tun_slowest_link(m->p, b, from, false, bytes, true, NULL));
        }
    }
    return worst;
}

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
