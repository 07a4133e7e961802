/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/tuner/boards_brute.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "tests/unit/tuner/brute.h"

#define NEAR 1e-12

struct state {
    const struct tun_problem *p;
    struct brute *ret;
    double within_ns; /* second run: THROUGHPUT's bound with slack */
    bool second, front;
};

/* The highest rate of any teams on one board for these units, and the least slowest team. */
static void best_teams(const struct tun_problem *p, size_t board, size_t first, size_t last,
                       size_t ep, size_t width, size_t left, double rate, double slowest,
                       double best[2])
{
    while (ep < p->ep_count && (p->eps[ep].board != board || width > p->eps[ep].cores)) {
        ep++;
        width = 1;
        left = ep < p->ep_count ? p->eps[ep].cores : 0;
    }
    if (ep == p->ep_count) {
        if (rate > best[0] * (1 + NEAR)) {
            best[0] = rate;
            best[1] = slowest;
        } else if (rate >= best[0] * (1 - NEAR)) {
            best[1] = base_min(best[1], slowest);
        }
        return;
    }
    for (size_t count = 0; count * width <= left; count++) {
        double ns = tun_team_ns(p, first, last, ep, width);

        best_teams(p, board, first, last, ep, width + 1, left - count * width,
                   rate + (double)count / ns, count ? base_max(slowest, ns) : slowest, best);
    }
}

/* Each board once, and all it can in a shared stage. */
static bool in_space(const struct tun_problem *p, const struct pl_plan *plan)
{
    uint32_t before = 0, used = 0;

    for (size_t s = 0; s < plan->stage_count; s++) {
        const struct pl_stage_plan *stage = &plan->stages[s];
        uint32_t mask = tun_board_mask(p, stage);
        bool same = mask == before && (mask & (mask - 1)) == 0;

        if (!same && (used & mask)) {
            return false;
        }
        used |= mask;
        before = mask;
        for (size_t b = 0; b < p->boards.count && (mask & (mask - 1)); b++) {
            double best[2] = {0, INFINITY}, rate = 0, slowest = 0;

            if (!(mask >> b & 1)) {
                continue;
            }
            for (size_t g = 0; g < stage->group_count; g++) {
                if (p->eps[stage->groups[g].ep].board == b) {
                    double ns = tun_team_ns(p, stage->first_unit, stage->last_unit,
                                            stage->groups[g].ep, stage->groups[g].width);

                    rate += stage->groups[g].count / ns;
                    slowest = base_max(slowest, ns);
                }
            }
            best_teams(p, b, stage->first_unit, stage->last_unit, 0, 1, p->eps[0].cores, 0, 0,
                       best);
            if (rate < best[0] * (1 - NEAR) || slowest > best[1] * (1 + NEAR)) {
                return false;
            }
        }
    }
    return true;
}

static bool keeps_energy(const struct tun_problem *p, const struct tun_outcome *o)
{
    for (size_t b = 0; b < p->boards.count; b++) {
        double most = p->boards.boards[b].energy_max_nj;

        if (most > 0 && o->board_energy_nj[b] > most) {
            return false;
        }
    }
    return true;
}

static void add_front(struct brute *r, const double x[3])
{
    size_t kept = 0;

    for (size_t i = 0; i < r->front_count; i++) {
        const double *y = r->front[i];

        if (y[0] <= x[0] * (1 + NEAR) && y[1] <= x[1] * (1 + NEAR) && y[2] <= x[2] * (1 + NEAR)) {
            return;
        }
    }
    for (size_t i = 0; i < r->front_count; i++) {
        const double *y = r->front[i];

        if (y[0] < x[0] * (1 - NEAR) || y[1] < x[1] * (1 - NEAR) || y[2] < x[2] * (1 - NEAR)) {
            memmove(r->front[kept++], y, sizeof(r->front[0]));
        }
    }
    r->front_count = kept;
    if (kept < BRUTE_FRONT_MAX) {
        memcpy(r->front[r->front_count++], x, sizeof(r->front[0]));
    }
}

static void judge(void *arg, const struct pl_plan *plan)
{
    struct state *b = arg;
    const struct tun_bounds *bounds = &b->p->bounds;
    struct brute *r = b->ret;
    struct tun_outcome o;

    if (!tun_fits(b->p, plan) || tun_eval(b->p, plan, &o) != 0 || !keeps_energy(b->p, &o)) {
        return;
    }
    if (!b->second) {
        r->full_ns = base_min(r->full_ns, o.bottleneck_ns);
    }
    if (!in_space(b->p, plan)) {
        return;
    }
    if (!b->second) {
        r->plan_count++;
        r->fits = true;
        r->least_period_ns = base_min(r->least_period_ns, o.bottleneck_ns);
        if (b->front && (bounds->period_max_ns <= 0 || o.bottleneck_ns <= bounds->period_max_ns)) {
            add_front(r, (double[]){o.bottleneck_ns, o.most_memory_bytes, o.most_energy_nj});
        }
    }
    if ((bounds->period_max_ns > 0 && o.bottleneck_ns > bounds->period_max_ns) ||
        (bounds->latency_max_ns > 0 && o.latency_ns > bounds->latency_max_ns)) {
        return;
    }
    r->possible = true;
    r->least_bound_ns = base_min(r->least_bound_ns, o.bottleneck_ns);
    if (b->second && o.bottleneck_ns <= b->within_ns) {
        r->latency_ns = base_min(r->latency_ns, o.latency_ns);
        r->energy_nj = base_min(r->energy_nj, o.energy_nj);
    }
}

void boards_brute(const struct tun_problem *p, bool front, struct brute *ret)
{
    struct state b = {.p = p, .ret = ret, .front = front};

    ret->plan_count = ret->front_count = 0;
    ret->fits = ret->possible = false;
    ret->least_period_ns = ret->least_bound_ns = ret->latency_ns = ret->energy_nj = INFINITY;
    ret->full_ns = INFINITY;
    every_plan(p, judge, &b);
    b.second = true;
    b.within_ns = p->objective == TUN_THROUGHPUT
                      ? ret->least_bound_ns * (1 + p->bounds.slack) * (1 + NEAR)
                      : INFINITY;
    every_plan(p, judge, &b);
}

static double uniform(struct tun_random *r, double low, double high)
{
    return low + (high - low) * tun_random_unit(r);
}

static void random_boards(struct tun_random *r, struct tun_problem *p, size_t count, bool equal)
{
    struct tun_boards *all = &p->boards;
    double link = uniform(r, 0, 3), memory = 0;

    all->count = count;
    all->head = tun_random_below(r, count);
    all->comm = tun_random_below(r, 3) == 0 ? TUN_COMM_ADDED : TUN_COMM_OVERLAPPED;
    all->input_bytes = (double)tun_random_below(r, 300);
    all->output_bytes = (double)tun_random_below(r, 100);
    for (size_t u = 0; u < p->unit_count; u++) {
        memory += p->units[u].weight_bytes;
    }
    for (size_t a = 0; a < count; a++) {
        struct tun_board *b = &all->boards[a];

        snprintf(b->name, sizeof(b->name), "b%zu", a);
        if (a > 0 && equal) {
            char name[PL_BOARD_NAME_MAX];

            memcpy(name, b->name, sizeof(name));
            *b = all->boards[0];
            memcpy(b->name, name, sizeof(name));
        } else {
            b->memory_bytes = tun_random_below(r, 3) ? 0 : memory * uniform(r, 0.4, 1.4);
            b->energy_max_nj = tun_random_below(r, 4) ? 0 : uniform(r, 500, 6000);
            b->frames_held = (double)tun_random_below(r, 4);
            b->port_ns_per_byte = tun_random_below(r, 3) ? 0 : uniform(r, 0, 3);
            b->link_watts = tun_random_below(r, 2) ? 0 : uniform(r, 0, 2);
        }
        for (size_t c = 0; c < count; c++) {
            all->links[a][c] = equal ? (struct tun_link){20, link}
                                     : (struct tun_link){uniform(r, 0, 200), uniform(r, 0, 4)};
        }
    }
}

static void random_costs(struct tun_random *r, struct tun_problem *p, bool equal)
{
    bool whole = tun_random_below(r, 3) == 0;

    for (size_t k = 0; k < p->ep_count; k++) {
        double slow = uniform(r, 1, 4);

        for (size_t w = 1; w <= p->eps[k].cores; w++) {
            for (size_t u = 0; u < p->unit_count; u++) {
                struct tun_cell *c = tun_cell_at(&p->costs, k, w, u);

                c->ns = whole ? 100.0 * (double)(1 + tun_random_below(r, 6))
                              : uniform(r, 100, 1000) * slow / pow((double)w, 0.7);
                c->source = TUN_MEASURED;
                if (equal && k > 0 && w <= p->eps[0].cores) {
                    *c = *tun_cell_at(&p->costs, 0, w, u);
                }
            }
        }
    }
}

void boards_random(struct tun_random *r, struct tun_problem *ret)
{
    size_t count = 2 + tun_random_below(r, 3), eps = 0, cores = 0;
    bool equal = tun_random_below(r, 3) == 0;
    struct tun_ep ep[PL_EP_MAX] = {0};
    double all = 0;

    for (size_t b = 0; b < count; b++) {
        size_t more = equal || count > 3 ? 1 : 1 + tun_random_below(r, 2);

        for (size_t i = 0; i < more && cores + (count - b - 1) < 5; i++) {
            bool two = count < 4 && cores + (count - b) < 5 && !equal && tun_random_below(r, 2);

            snprintf(ep[eps].name, sizeof(ep[eps].name), "b%zu:%c", b, (int)('a' + i));
            ep[eps].cores = two ? 2 : 1;
            ep[eps].speed = ep[eps].bandwidth = 1;
            ep[eps].watts = equal ? 1.5 : uniform(r, 0.1, 5);
            ep[eps].board = (uint16_t)b;
            cores += ep[eps++].cores;
        }
    }
    tun_problem_init(ret, 1 + tun_random_below(r, 5), ep, eps);
    for (size_t u = 0; u < ret->unit_count; u++) {
        ret->units[u].in_bytes = u ? (double)tun_random_below(r, 500) : 0;
        ret->units[u].weight_bytes = (double)tun_random_below(r, 1000);
        ret->units[u].arena_bytes = (double)tun_random_below(r, 200);
    }
    ret->handoff_ns = uniform(r, 0, 100);
    ret->handoff_ns_per_byte = tun_random_below(r, 2) ? uniform(r, 0, 0.5) : 0;
    random_costs(r, ret, equal);
    random_boards(r, ret, count, equal);
    for (size_t u = 0; u < ret->unit_count; u++) {
        all += tun_cell_at(&ret->costs, 0, 1, u)->ns;
    }
    ret->objective = (enum tun_objective)tun_random_below(r, 3);
    if (ret->objective == TUN_POWER || tun_random_below(r, 3) == 0) {
        ret->bounds.period_max_ns = all * uniform(r, 0.2, 1.5);
    }
    if (tun_random_below(r, 4) == 0) {
        ret->bounds.latency_max_ns = all * uniform(r, 0.5, 2);
    }
    ret->bounds.one_ep_stages = tun_random_below(r, 5) == 0;
    ret->bounds.slack = tun_random_below(r, 2) ? uniform(r, 0, 0.3) : 0;
}
