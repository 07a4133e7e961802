/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/boards/spread_front.h"

#include "base/base.h"
#include "daemon/boards/route_fill.h"
#include "tuner/boards/boards_front.h"

#define GAP_BYTES 4.0 /* the least that a border has */

static bool has_gaps(const struct tun_problem *p)
{
    for (size_t a = 0; a < p->boards.count; a++) {
        for (size_t b = 0; b < p->boards.count; b++) {
            if (p->boards.links[a][b].ns >= DMN_LINK_GAP_NS) {
                return true;
            }
        }
    }
    return false;
}

/* Leaves out plans over links that are not there. */
static void drop_gaps(struct dmn_spread_front *f)
{
    size_t kept = 0;

    for (size_t i = 0; i < f->count; i++) {
        if (!dmn_spread_crosses_gap(&f->t.p, &f->solution[i].plan)) {
            f->solution[kept++] = f->solution[i];
        }
    }
    f->count = kept;
}

static int solve(size_t max, struct dmn_spread_front *f)
{
    struct tun_problem p = f->t.p; /* borrows */
    int r;

    if (p.bounds.period_max_ns <= 0 && has_gaps(&p)) {
        p.bounds.period_max_ns = DMN_LINK_GAP_NS_PER_BYTE * GAP_BYTES;
    }
    f->solution = calloc(max, sizeof(*f->solution));
    r = f->solution ? tun_boards_front(&p, max, f->solution, &f->count, &f->exact) : -ENOMEM;
    if (r == 0) {
        drop_gaps(f);
    }
    return r < 0 ? r : r > 0 || f->count == 0 ? -ENOENT : 0;
}

int dmn_spread_front(const struct dmn_spread_query *q, size_t max, struct dmn_spread_front *ret)
{
    struct dmn_spread_inputs in = dmn_spread_query_inputs(q);
    struct dmn_spread_front f = DMN_SPREAD_FRONT_NULL;
    int r = dmn_spread_table_init(&in, &f.t);

    if (!r) {
        r = f.t.p.boards.count > 1 ? solve(max, &f) : -ENODATA;
    }
    if (r) {
        dmn_spread_front_deinit(&f);
        return r;
    }
    *ret = f;
    return 0;
}

void dmn_spread_front_deinit(struct dmn_spread_front *f)
{
    dmn_spread_table_deinit(&f->t);
    free(f->solution);
    *f = DMN_SPREAD_FRONT_NULL;
}

int dmn_spread_front_texts(const struct dmn_spread_front *f, size_t i,
                           const struct brd_link_report_all *r, char *ret_plan, char *ret_route)
{
    base_autofree struct pl_ep_set *eps = calloc(1, sizeof(*eps));
    base_autofree struct brd_hop *hop = calloc(BRD_HOPS_MAX, sizeof(*hop));
    const struct pl_plan *plan = &f->solution[i].plan;
    size_t count = 0;

    if (!eps || !hop) {
        return -ENOMEM;
    }
    tun_eps(&f->t.p, eps);
    if (pl_plan_format(plan, eps, ret_plan, PL_PLAN_TEXT_MAX) != 0) {
        ret_plan[0] = '\0';
    }
    if (dmn_plan_hops(&f->t, plan, hop, &count) != 0) {
        count = 0;
    }
    dmn_hops_text(hop, count, r, ret_route);
    return 0;
}
