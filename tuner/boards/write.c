/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a label: which boards run which units is known, how each of them does is asked of
 * the planner of one board. */

#include "base/base.h"
#include "tuner/boards/pass.h"
#include "tuner/oneboard/oneboard.h"
#include "tuner/oneboard/solution.h"

#define NEAR (1 + 2e-12) /* bounds that the figures of the tables just keep */

/* Units from..to-1 on one board of a kind as a problem of their own. */
static int cut_out(const struct tun_kind *k, size_t from, size_t to, struct tun_problem *ret)
{
    uint16_t eps[PL_EP_MAX];
    int r;

    for (size_t e = 0; e < k->p.ep_count; e++) {
        eps[e] = (uint16_t)e;
    }
    r = tun_problem_part(&k->p, eps, k->p.ep_count, from, to - 1, ret);
    if (r < 0) {
        return r;
    }
    for (size_t e = 0; e < k->p.ep_count && from > 0; e++) {
        for (size_t w = 1; w <= k->p.eps[e].cores; w++) {
            tun_cell_at(&ret->costs, e, w, 0)->ns +=
                k->p.handoff_ns_per_byte * k->p.units[from].in_bytes;
        }
    }
    ret->units[0].in_bytes = 0;
    ret->bounds = (struct tun_bounds){.one_ep_stages = k->p.bounds.one_ep_stages};
    return 0;
}

static int fastest(const struct tun_kind *k, const struct tun_problem *p, struct pl_plan *ret)
{
    base_autofree struct tun_path *path = malloc(sizeof(*path));
    struct tun_space s;
    int r = path ? tun_space_init(p, &k->space.options, &s) : -ENOMEM;

    if (r < 0) {
        return r;
    }
    r = tun_least_period(&s, path);
    r = r == 0 ? tun_path_plan(&s, path, ret) : r;
    tun_space_deinit(&s);
    return r;
}

static int one_board(const struct tun_pass *p, const struct tun_kind *k, const struct tun_label *l,
                     size_t to, struct pl_plan *ret)
{
    base_autofree struct tun_solution *found = calloc(1, sizeof(*found));
    struct tun_problem sub;
    const struct tun_inner *inner = &p->inner[k - p->m->kinds];
    int r = found ? cut_out(k, l->from, to, &sub) : -ENOMEM;

    if (r < 0) {
        return r;
    }
    if (inner->n == 0) {
        r = fastest(k, &sub, ret);
    } else {
        sub.objective = inner->want == TUN_WANT_LATENCY ? TUN_LATENCY : TUN_POWER;
        sub.bounds.period_max_ns = isfinite(l->bound_ns) ? l->bound_ns * NEAR : 1e300;
        if (inner->want == TUN_WANT_BOTH) {
            sub.bounds.latency_max_ns = l->point.latency_ns * NEAR;
        }
        r = tun_oneboard_solve(&sub, &k->space.options, found);
        *ret = found->plan;
    }
    tun_problem_deinit(&sub);
    return r == TUN_E_IMPOSSIBLE ? -ENOTRECOVERABLE : r;
}

/* Adds stages of one board's plan, which counts units from @first. */
static int append(const struct tun_map *m, size_t board, size_t first, const struct pl_plan *from,
                  struct pl_plan *to)
{
    if (to->stage_count + from->stage_count > PL_STAGE_MAX) {
        return TUN_E_TEAMS;
    }
    for (size_t i = 0; i < from->stage_count; i++) {
        struct pl_stage_plan stage = from->stages[i];

        stage.first_unit = (uint16_t)(stage.first_unit + first);
        stage.last_unit = (uint16_t)(stage.last_unit + first);
        for (size_t g = 0; g < stage.group_count; g++) {
            stage.groups[g].ep = m->eps_of[board][stage.groups[g].ep];
        }
        to->stages[to->stage_count++] = stage;
    }
    return 0;
}

static int several_boards(struct tun_map *m, uint32_t set, size_t from, size_t to,
                          struct pl_plan *plan)
{
    struct pl_stage_plan stage = {.first_unit = (uint16_t)from, .last_unit = (uint16_t)(to - 1)};

    if (plan->stage_count == PL_STAGE_MAX) {
        return TUN_E_TEAMS;
    }
    for (size_t b = 0; b < m->p->boards.count; b++) {
        struct pl_stage_plan one;
        int r;

        if (!(set >> b & 1)) {
            continue;
        }
        r = tun_full_teams(tun_map_kind(m, b), from, to, &one);
        if (r != 0) {
            return r;
        }
        if (stage.group_count + one.group_count > (int)PL_GROUP_MAX) {
            return TUN_E_GROUPS;
        }
        for (size_t g = 0; g < one.group_count; g++) {
            one.groups[g].ep = m->eps_of[b][one.groups[g].ep];
            stage.groups[stage.group_count++] = one.groups[g];
        }
    }
    plan->stages[plan->stage_count++] = stage;
    return 0;
}

int tun_pass_plan(struct tun_pass *p, const struct tun_label *l, struct pl_plan *ret)
{
    struct tun_map *m = p->m;
    const struct tun_label *chain[TUN_BOARD_MAX];
    base_autofree struct pl_plan *plan = calloc(2, sizeof(*plan));
    size_t count = 0;

    if (!plan) {
        return -ENOMEM;
    }
    for (;;) {
        chain[count++] = l;
        if (l->node == 0) {
            break;
        }
        l = &p->labels[l->node * m->n + l->from].list[l->label];
    }
    while (count-- > 0) {
        const struct tun_label *at = chain[count];
        uint32_t set = m->edges[at->edge].set;
        size_t to = count > 0 ? chain[count - 1]->from : m->n, board;
        int r;

        if (tun_single(set)) {
            board = (size_t)__builtin_ctz(set);
            r = one_board(p, tun_map_kind(m, board), at, to, &plan[1]);
            r = r == 0 ? append(m, board, at->from, &plan[1], plan) : r;
        } else {
            r = several_boards(m, set, at->from, to, plan);
        }
        if (r != 0) {
            return r;
        }
    }
    if (pl_plan_teams(plan) > PL_TEAM_MAX) {
        return TUN_E_TEAMS;
    }
    *ret = *plan;
    return 0;
}
