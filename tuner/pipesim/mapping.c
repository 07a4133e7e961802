/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/pipesim/mapping.h"

#include "base/base.h"
#include "tuner/eval_boards.h"

struct sums {
    double ep_ns[PL_EP_MAX];
    double link_ns[TUN_BOARD_MAX], memory[TUN_BOARD_MAX], energy[TUN_BOARD_MAX];
};

/* @other: the board at the other end of the border in front of @unit. */
static double hop_ns(const struct tun_problem *p, size_t from, size_t to, size_t unit)
{
    const struct tun_link *link = &p->boards.links[from][to];

    return from == to ? 0 : link->ns + link->ns_per_byte * tun_border_bytes(p, unit);
}

/* Units first..last on one board; those next to it are on other boards, or there are none. */
static void add_segment(const struct tun_problem *p, const uint16_t *places, size_t first,
                        size_t last, struct sums *s)
{
    size_t board = p->eps[places[first]].board;
    size_t before = first > 0 ? p->eps[places[first - 1]].board : p->boards.head;
    size_t after = last + 1 < p->unit_count ? p->eps[places[last + 1]].board : p->boards.head;

    s->link_ns[board] += hop_ns(p, before, board, first) + hop_ns(p, board, after, last + 1);
    s->memory[board] += tun_segment_memory(p, board, first, last);
}

static void add_run(const struct tun_problem *p, const uint16_t *places, size_t first, size_t last,
                    struct sums *s)
{
    const struct tun_ep *ep = &p->eps[places[first]];
    double ns = tun_team_ns(p, first, last, places[first], ep->cores);

    s->ep_ns[places[first]] += ns;
    s->energy[ep->board] += ns * ep->cores * tun_ep_watts(ep);
}

void psim_mapping(const struct tun_problem *p, const uint16_t *places, struct psim_mapped *ret)
{
    struct sums s = {0};
    size_t run = 0, segment = 0;

    *ret = (struct psim_mapped){0};
    for (size_t u = 1; u <= p->unit_count; u++) {
        if (u == p->unit_count || places[u] != places[u - 1]) {
            add_run(p, places, run, u - 1, &s);
            run = u;
        }
        if (u == p->unit_count || p->eps[places[u]].board != p->eps[places[u - 1]].board) {
            add_segment(p, places, segment, u - 1, &s);
            segment = u;
        }
    }
    for (size_t k = 0; k < p->ep_count; k++) {
        ret->bottleneck_ns = base_max(ret->bottleneck_ns, s.ep_ns[k] + s.link_ns[p->eps[k].board]);
    }
    for (size_t b = 0; b < base_max(p->boards.count, (size_t)1); b++) {
        s.energy[b] += p->boards.boards[b].link_watts * s.link_ns[b];
        ret->most_memory_bytes = base_max(ret->most_memory_bytes, s.memory[b]);
        ret->most_energy_nj = base_max(ret->most_energy_nj, s.energy[b]);
    }
}
