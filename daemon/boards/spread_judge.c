/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/boards/spread_judge.h"

#include "base/base.h"
#include "ipc/boards/route_window.h"
#include "tuner/eval_boards.h"
#include "tuner/solve/solve.h"

/* ---- hops as a plan ---- */

/* Units first..last on the EPs of one board. @ret_eps: which these are. */
static int part_of(const struct tun_problem *p, size_t board, const struct brd_hop *hop,
                   struct tun_problem *ret, uint16_t ret_eps[PL_EP_MAX])
{
    size_t units = hop->last_unit - hop->first_unit + 1, count = 0;
    struct tun_ep eps[PL_EP_MAX];
    int error;

    for (size_t k = 0; k < p->ep_count; k++) {
        if (p->eps[k].board == board) {
            eps[count] = p->eps[k];
            eps[count].board = 0;
            ret_eps[count++] = (uint16_t)k;
        }
    }
    error = tun_problem_init(ret, units, eps, count);
    if (error) {
        return error;
    }
    memcpy(ret->units, p->units + hop->first_unit, units * sizeof(*ret->units));
    ret->handoff_ns = p->handoff_ns;
    ret->handoff_ns_per_byte = p->handoff_ns_per_byte;
    for (size_t k = 0; k < count; k++) {
        for (size_t w = 1; w <= eps[k].cores; w++) {
            memcpy(tun_cell_at(&ret->costs, k, w, 0),
                   tun_cell_at(&p->costs, ret_eps[k], w, hop->first_unit),
                   units * sizeof(struct tun_cell));
        }
    }
    return 0;
}

/* Adds the stages of a board's part to @plan; a shared hop has one stage, which all join. */
static int add_part(const struct tun_problem *p, size_t board, const struct brd_hop *hop,
                    bool first, struct pl_plan *plan)
{
    base_autofree struct tun_solution *best = calloc(1, sizeof(*best));
    struct tun_problem part;
    uint16_t eps[PL_EP_MAX];
    int r = best ? part_of(p, board, hop, &part, eps) : -ENOMEM;

    if (r) {
        return r;
    }
    part.bounds.stages_max = hop->board_count > 1 ? 1 : 0;
    r = tun_solve(&part, best);
    tun_problem_deinit(&part);
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

static size_t board_of(const struct dmn_spread_table *t, const char *print)
{
    size_t b = 0;

    while (b < t->p.boards.count && strcmp(t->print[b], print) != 0) {
        b++;
    }
    return b;
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
            double ideal = best[s][board_of(t, hop[h].board[b].print)];

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
            size_t board = board_of(t, hop[h].board[b].print);
            int r =
                board < t->p.boards.count ? add_part(&t->p, board, &hop[h], b == 0, ret) : -EINVAL;

            if (r) {
                return r;
            }
        }
    }
    return next == t->p.unit_count ? lateness(t, hop, count, ret, late) : -EINVAL;
}

/* ---- what a plan does ---- */

/* Frames that keep a board busy with a hop, as ipc/boards/route_window.h counts them: twice
 * pl_depth(). */
static double room(const struct tun_problem *p, const struct pl_plan *plan, size_t board,
                   size_t first_stage, size_t last_stage)
{
    double stages = 0, teams = 0;
    bool dealt = false;

    for (size_t s = first_stage; s <= last_stage; s++) {
        const struct pl_stage_plan *stage = &plan->stages[s];
        double before = teams;

        stages += tun_board_mask(p, stage) >> board & 1;
        for (size_t g = 0; g < stage->group_count; g++) {
            teams += p->eps[stage->groups[g].ep].board == board ? stage->groups[g].count : 0;
        }
        dealt |= teams - before > 1;
    }
    return BRD_WINDOW_TIMES * (stages + teams + dealt);
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
    return f;
}

void dmn_spread_limit(const struct tun_problem *p, const struct pl_plan *plan,
                      const struct tun_outcome *o, const struct dmn_figures *f,
                      char ret[TUN_ERROR_MAX])
{
    tun_limit_text(p, plan, o, ret);
    if (f->bottleneck_ns > o->bottleneck_ns) {
        snprintf(ret, TUN_ERROR_MAX, "the way of a frame, %.4g ms", o->latency_ns / 1e6);
    }
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

int dmn_spread_judge_hops(const struct dmn_spread_table *t, const struct brd_hop *hop, size_t count,
                          struct dmn_judged *ret)
{
    base_autofree struct pl_plan *plan = calloc(1, sizeof(*plan));
    base_autofree struct tun_outcome *o = calloc(1, sizeof(*o));
    double late[PL_STAGE_MAX];
    int r = plan && o ? plan_of(t, hop, count, plan, late) : -ENOMEM;

    memset(ret, 0, sizeof(*ret));
    if (r || tun_eval(&t->p, plan, o) != 0) {
        return r ? r : -EINVAL;
    }
    ret->figures = dmn_spread_figures(&t->p, plan, o);
    dmn_spread_limit(&t->p, plan, o, &ret->figures, ret->limit);
    for (size_t s = 0; s < plan->stage_count; s++) {
        if (o->stage_ns[s] * late[s] > ret->figures.bottleneck_ns) {
            ret->figures.bottleneck_ns = o->stage_ns[s] * late[s];
            snprintf(ret->limit, sizeof(ret->limit), "the boards' shares of units %u-%u",
                     plan->stages[s].first_unit, plan->stages[s].last_unit);
        }
    }
    hop_times(plan, o, hop, count, ret->hop_ns);
    return 0;
}

int dmn_spread_judge(const struct dmn_spread_table *t, const struct brd_hop *hop, size_t count,
                     struct dmn_figures *ret)
{
    base_autofree struct dmn_judged *judged = calloc(1, sizeof(*judged));
    int r = judged ? dmn_spread_judge_hops(t, hop, count, judged) : -ENOMEM;

    *ret = judged ? judged->figures : (struct dmn_figures){0};
    return r;
}
