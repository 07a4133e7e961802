/* SPDX-License-Identifier: Apache-2.0 */
/** tests/unit/daemon/spread_rig.h - a head and boards that a test describes in a few words */
#pragma once

#include <stdio.h>
#include <string.h>

#include "daemon/boards/spread_query.h"
#include "tests/harness.h"

#define RIG_CONTENT "net-12345678"

/* Units of like size on a head with one EP "big"; borders shrink from @border bytes on. */
static inline void rig_here(struct tun_problem *p, size_t units, size_t cores, double unit_ns,
                            double border)
{
    struct tun_ep ep = {
        .name = "big", .cores = (uint16_t)cores, .speed = 1, .bandwidth = 1, .watts = 1};

    if (tun_problem_init(p, units, &ep, 1) != 0) {
        abort();
    }
    for (size_t u = 0; u < units; u++) {
        p->units[u] = (struct tun_unit){.weight = unit_ns,
                                        .in_bytes = u ? border / (double)(1 + u % 3) : 0,
                                        .weight_bytes = 1e6,
                                        .arena_bytes = 1e5};
        for (size_t w = 1; w <= cores; w++) {
            *tun_cell_at(&p->costs, 0, w, u) =
                (struct tun_cell){unit_ns * (1 + 0.3 * (double)(u % 4)) * (0.1 + 0.9 / (double)w),
                                  0.05, TUN_MEASURED};
        }
    }
    p->handoff_ns = 5000;
    p->boards.input_bytes = border;
    p->boards.output_bytes = 4000;
}

static inline struct brd_way *rig_way(struct brd_state *from, const struct brd_state *to)
{
    for (size_t i = 0; i < from->way_count; i++) {
        if (strcmp(from->way[i].print, to->print) == 0) {
            return &from->way[i];
        }
    }
    memcpy(from->way[from->way_count].print, to->print, sizeof(to->print));
    return &from->way[from->way_count++];
}

static inline void rig_link(struct brd_state *a, struct brd_state *b, bool up, double ns,
                            double ns_per_byte)
{
    struct brd_way way = {.up = up, .measured = ns > 0, .ns = ns, .ns_per_byte = ns_per_byte};

    memcpy(way.print, b->print, sizeof(way.print));
    *rig_way(a, b) = way;
    memcpy(way.print, a->print, sizeof(way.print));
    *rig_way(b, a) = way;
}

/* The head and @count boards "b1", "b2" ... with one EP "big" each, all linked by 1 Gbit/s. */
static inline void rig_report(struct brd_link_report_all *r, size_t count, size_t cores)
{
    memset(r, 0, sizeof(*r));
    r->board_count = count;
    for (size_t i = 0; i <= count; i++) {
        struct brd_state *s = i ? &r->board[i - 1] : &r->self;

        snprintf(s->print, sizeof(s->print), "%016zx", i + 1);
        snprintf(s->name, sizeof(s->name), i ? "b%zu" : "head", i);
        s->up = s->known = true;
        s->ep_count = 1;
        snprintf(s->ep[0].name, sizeof(s->ep[0].name), "big");
        s->ep[0].cores = (uint32_t)cores;
        s->ep[0].speed = 1;
        for (size_t k = 0; k < i; k++) {
            rig_link(s, k ? &r->board[k - 1] : &r->self, true, 2e5, 8);
        }
    }
}

static inline void rig_past(struct dmn_spread_past *past, const char *print, const char *ep,
                            size_t width, size_t units, size_t first, size_t last, double ns)
{
    struct brd_link_report_all *r = calloc(1, sizeof(*r));
    struct brd_costs *c = calloc(1, sizeof(*c));

    snprintf(c->content, sizeof(c->content), RIG_CONTENT);
    c->first_unit = (uint32_t)first;
    c->unit_count = (uint32_t)(last - first + 1);
    c->row_count = 1;
    c->row[0] =
        (struct brd_cost_row){0, (uint32_t)width, c->unit_count, calloc(units, sizeof(double))};
    for (size_t u = 0; u < c->unit_count; u++) {
        c->row[0].ns[u] = ns * (1 + 0.3 * (double)((first + u) % 4));
    }
    snprintf(r->self.print, sizeof(r->self.print), "%s", print);
    snprintf(r->self.ep[0].name, sizeof(r->self.ep[0].name), "%s", ep);
    r->self.ep_count = 1;
    r->self.costs = c;
    r->self.costs_count = 1;
    dmn_past_learn(past, RIG_CONTENT, r, 1);
    brd_report_all_deinit(r);
    free(r);
}
