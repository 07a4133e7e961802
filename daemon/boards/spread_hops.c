/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/boards/spread_hops.h"

#include "base/base.h"
#include "ipc/boards/route_window.h"
#include "tuner/eval_boards.h"
#include "tuner/solve/solve.h"

#define SHARE_MOST 1000.0
#define SHARE_LEAST 0.02  /* of the largest: less is not worth a board, and would round badly */
#define SHARES_ALIKE 0.05 /* of the frames of a hop */

/* ---- a plan as hops ---- */

static int add_boards(const struct dmn_spread_table *t, uint32_t mask, const double *share,
                      struct brd_hop *hop)
{
    double most = 0;

    for (size_t b = 0; b < t->p.boards.count; b++) {
        most = base_max(most, mask >> b & 1 ? share[b] : 0);
    }
    for (size_t b = 0; b < t->p.boards.count; b++) {
        if (mask >> b & 1 && share[b] >= SHARE_LEAST * most) {
            if (hop->board_count == BRD_SHARE_MAX) {
                return -ENOSPC;
            }
            memcpy(hop->board[hop->board_count].print, t->print[b], BRD_FINGERPRINT_BYTES);
            hop->board[hop->board_count++].share = (uint32_t)round(SHARE_MOST * share[b] / most);
        }
    }
    return 0;
}

int dmn_plan_hops(const struct dmn_spread_table *t, const struct pl_plan *plan, struct brd_hop *ret,
                  size_t *ret_count)
{
    base_autofree double(*shares)[TUN_BOARD_MAX] = calloc(PL_STAGE_MAX, sizeof(*shares));
    uint32_t before = 0, all = 0;
    size_t count = 0;

    if (!shares) {
        return -ENOMEM;
    }
    if (t->p.boards.count > 1 && tun_eval_shares(&t->p, plan, shares) != 0) {
        return -EINVAL;
    }
    for (size_t s = 0; s < plan->stage_count; s++) {
        const struct pl_stage_plan *stage = &plan->stages[s];
        uint32_t mask = tun_board_mask(&t->p, stage);
        bool shared = (mask & (mask - 1)) != 0;

        all |= mask;
        if (mask == before && !shared) {
            ret[count - 1].last_unit = stage->last_unit;
            continue;
        }
        before = mask;
        if (count == BRD_HOPS_MAX) {
            return -ENOSPC;
        }
        ret[count] =
            (struct brd_hop){.first_unit = stage->first_unit, .last_unit = stage->last_unit};
        if (t->p.boards.count > 1 && add_boards(t, mask, shares[s], &ret[count]) != 0) {
            return -ENOSPC;
        }
        count++;
    }
    *ret_count = all == 1 ? 0 : count;
    return 0;
}

static bool hop_same(const struct brd_hop *a, const struct brd_hop *b)
{
    double sum_a = 0, sum_b = 0;

    if (a->first_unit != b->first_unit || a->last_unit != b->last_unit ||
        a->board_count != b->board_count) {
        return false;
    }
    for (size_t i = 0; i < a->board_count; i++) {
        sum_a += a->board[i].share;
        sum_b += b->board[i].share;
    }
    for (size_t i = 0; i < a->board_count; i++) {
        double change = a->board[i].share / sum_a - b->board[i].share / sum_b;

        if (strcmp(a->board[i].print, b->board[i].print) != 0 || fabs(change) > SHARES_ALIKE) {
            return false;
        }
    }
    return true;
}

bool dmn_hops_same(const struct brd_hop *a, size_t a_count, const struct brd_hop *b, size_t b_count)
{
    for (size_t i = 0; i < a_count && a_count == b_count; i++) {
        if (!hop_same(&a[i], &b[i])) {
            return false;
        }
    }
    return a_count == b_count;
}

static bool has_segment(const struct brd_hop *a, size_t count, const struct brd_hop *hop,
                        const char *print)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < a[i].board_count; k++) {
            if (a[i].first_unit == hop->first_unit && a[i].last_unit == hop->last_unit &&
                strcmp(a[i].board[k].print, print) == 0) {
                return true;
            }
        }
    }
    return false;
}

bool dmn_hops_load(const struct brd_hop *a, size_t a_count, const struct brd_hop *b, size_t b_count)
{
    for (size_t i = 0; i < b_count; i++) {
        for (size_t k = 0; k < b[i].board_count; k++) {
            if (!has_segment(a, a_count, &b[i], b[i].board[k].print)) {
                return true;
            }
        }
    }
    return false;
}

/* ---- hops as a plan ---- */

/* Adds the stages of a board's part to @plan; a shared hop has one stage, which all join. */
static int add_part(const struct tun_problem *p, size_t board, const struct brd_hop *hop,
                    bool first, struct pl_plan *plan)
{
    base_autofree struct tun_solution *best = calloc(1, sizeof(*best));
    base_cleanup(tun_problem_deinit) struct tun_problem part = TUN_PROBLEM_NULL;
    uint16_t eps[PL_EP_MAX];
    int r = best ? dmn_spread_part(p, board, hop->first_unit, hop->last_unit, &part, eps) : -ENOMEM;

    if (r) {
        return r;
    }
    part.bounds.stages_max = hop->board_count > 1 ? 1 : 0;
    r = tun_solve(&part, best);
    for (size_t s = 0; r == 0 && s < best->plan.stage_count; s++) {
        const struct pl_stage_plan *from = &best->plan.stages[s];
        struct pl_stage_plan *to = &plan->stages[plan->stage_count - !first];

        if (first && plan->stage_count == PL_STAGE_MAX) {
            return -EINVAL;
        }
        if (first) {
            *to =
                (struct pl_stage_plan){.first_unit = (uint16_t)(from->first_unit + hop->first_unit),
                                       .last_unit = (uint16_t)(from->last_unit + hop->first_unit)};
            plan->stage_count++;
        }
        for (size_t g = 0; g < from->group_count; g++) {
            if (to->group_count == PL_GROUP_MAX) {
                return -EINVAL;
            }
            to->groups[to->group_count] = from->groups[g];
            to->groups[to->group_count++].ep = eps[from->groups[g].ep];
        }
    }
    return r < 0 ? r : r > 0 ? -EINVAL : 0;
}

/* By how much the slowest board of each stage is slower than with the best shares. Whole copies are
 * not: the head sends each frame to the board that will finish it first (apps/link: ledger.h). */
static int lateness(const struct dmn_spread_table *t, const struct brd_hop *hop, size_t count,
                    const struct pl_plan *plan, double late[PL_STAGE_MAX])
{
    base_autofree double(*best)[TUN_BOARD_MAX] = calloc(PL_STAGE_MAX, sizeof(*best));
    size_t h = 0;

    if (!best) {
        return -ENOMEM;
    }
    if (t->p.boards.count < 2 || tun_eval_shares(&t->p, plan, best) != 0) {
        return -EINVAL;
    }
    for (size_t s = 0; s < plan->stage_count; s++) {
        double sum = 0;

        late[s] = 1;
        h += plan->stages[s].first_unit > hop[h].last_unit && h + 1 < count;
        for (size_t b = 0; b < hop[h].board_count; b++) {
            sum += hop[h].board[b].share;
        }
        for (size_t b = 0; b < hop[h].board_count && count > 1; b++) {
            double ideal = best[s][dmn_spread_board(t, hop[h].board[b].print)];

            late[s] = base_max(late[s], hop[h].board[b].share / sum / ideal);
        }
    }
    return 0;
}

/* The best plan with just these hops. */
static int plan_of(const struct dmn_spread_table *t, const struct brd_hop *hop, size_t count,
                   struct pl_plan *ret, double late[PL_STAGE_MAX])
{
    size_t next = 0;

    ret->stage_count = 0;
    for (size_t h = 0; h < count; h++) {
        if (hop[h].first_unit != next || hop[h].last_unit < next ||
            hop[h].last_unit >= t->p.unit_count || hop[h].board_count == 0) {
            return -EINVAL;
        }
        next = (size_t)hop[h].last_unit + 1;
        for (size_t b = 0; b < hop[h].board_count; b++) {
            size_t board = dmn_spread_board(t, hop[h].board[b].print);
            int r =
                board < t->p.boards.count ? add_part(&t->p, board, &hop[h], b == 0, ret) : -EINVAL;

            if (r) {
                return r;
            }
        }
    }
    return next == t->p.unit_count ? lateness(t, hop, count, ret, late) : -EINVAL;
}

int dmn_hops_plan(const struct dmn_spread_table *t, const struct brd_hop *hop, size_t count,
                  struct pl_plan *ret)
{
    double late[PL_STAGE_MAX];

    return plan_of(t, hop, count, ret, late);
}

/* ---- what a plan does ---- */

/* Frames that keep a board busy with a hop, as ipc/boards/route_window.h counts them: twice
 * pl_depth(). */
static double room(const struct tun_problem *p, const struct pl_plan *plan, size_t board,
                   size_t first_stage, size_t last_stage)
{
    double stages = 0, teams = 0;
    bool shared = false;

    for (size_t s = first_stage; s <= last_stage; s++) {
        const struct pl_stage_plan *stage = &plan->stages[s];
        double before = teams;

        stages += tun_board_mask(p, stage) >> board & 1;
        for (size_t g = 0; g < stage->group_count; g++) {
            teams += p->eps[stage->groups[g].ep].board == board ? stage->groups[g].count : 0;
        }
        shared |= teams - before > 1;
    }
    return BRD_WINDOW_TIMES * (stages + teams + shared);
}

/* The most frames that a link from one of @from to one of @to holds; both are bits of boards. */
static double on_links(const struct tun_problem *p, uint32_t from, uint32_t to, size_t unit)
{
    double most = 0;

    for (size_t a = 0; a < p->boards.count; a++) {
        for (size_t b = 0; b < p->boards.count; b++) {
            const struct tun_link *link = &p->boards.links[a][b];

            if (a != b && from >> a & 1 && to >> b & 1) {
                most = base_max(
                    most, brd_link_frames(link->ns, link->ns_per_byte, tun_border_bytes(p, unit)));
            }
        }
    }
    return most;
}

double dmn_spread_frames(const struct tun_problem *p, const struct pl_plan *plan)
{
    uint32_t head = 1u << p->boards.head, before = head;
    double frames = 0;

    for (size_t s = 0, last; s < plan->stage_count; s = last + 1) {
        uint32_t mask = tun_board_mask(p, &plan->stages[s]);

        for (last = s; (mask & (mask - 1)) == 0 && last + 1 < plan->stage_count &&
                       tun_board_mask(p, &plan->stages[last + 1]) == mask;
             last++) {
        }
        frames += on_links(p, before, mask, plan->stages[s].first_unit);
        for (size_t b = 0; b < p->boards.count; b++) {
            frames += mask >> b & 1 ? room(p, plan, b, s, last) : 0;
        }
        before = mask;
    }
    return frames + on_links(p, before, head, p->unit_count);
}

struct dmn_figures dmn_spread_figures(const struct tun_problem *p, const struct pl_plan *plan,
                                      const struct tun_outcome *o)
{
    struct dmn_figures f = {true, o->bottleneck_ns, o->latency_ns, o->energy_nj};

    if (p->boards.count > 1) {
        f.bottleneck_ns = base_max(f.bottleneck_ns, o->latency_ns / dmn_spread_frames(p, plan));
        f.possible = !dmn_spread_crosses_gap(p, plan);
    }
    tun_limit_text(p, plan, o, f.limit);
    if (f.bottleneck_ns > o->bottleneck_ns) {
        snprintf(f.limit, sizeof(f.limit), "the way of a frame, %.4g ms", o->latency_ns / 1e6);
    }
    return f;
}

/* The slowest team of each stage, summed over the stages of a hop. */
static void hop_times(const struct pl_plan *plan, const struct tun_outcome *o,
                      const struct brd_hop *hop, size_t count, double *ret)
{
    size_t h = 0;

    for (size_t s = 0; s < plan->stage_count; s++) {
        double slowest = 0;

        h += plan->stages[s].first_unit > hop[h].last_unit && h + 1 < count;
        for (size_t g = 0; g < plan->stages[s].group_count; g++) {
            slowest = base_max(slowest, o->team_ns[s][g]);
        }
        ret[h] += slowest;
    }
}

int dmn_spread_judge(const struct dmn_spread_table *t, const struct brd_hop *hop, size_t count,
                     struct dmn_figures *ret)
{
    base_autofree struct pl_plan *plan = calloc(1, sizeof(*plan));
    base_autofree struct tun_outcome *o = calloc(1, sizeof(*o));
    double late[PL_STAGE_MAX];
    int r = plan && o ? plan_of(t, hop, count, plan, late) : -ENOMEM;

    memset(ret, 0, sizeof(*ret));
    if (r || tun_eval(&t->p, plan, o) != 0) {
        return r ? r : -EINVAL;
    }
    *ret = dmn_spread_figures(&t->p, plan, o);
    for (size_t s = 0; s < plan->stage_count; s++) {
        if (o->stage_ns[s] * late[s] > ret->bottleneck_ns) {
            ret->bottleneck_ns = o->stage_ns[s] * late[s];
            snprintf(ret->limit, sizeof(ret->limit), "the boards' shares of units %u-%u",
                     plan->stages[s].first_unit, plan->stages[s].last_unit);
        }
    }
    hop_times(plan, o, hop, count, ret->hop_ns);
    return 0;
}
