/* SPDX-License-Identifier: Apache-2.0 */

#include "tuner/oneboard/solution.h"
#include "base/base.h"

void tun_path_prepend(const struct tun_space *s, const struct tun_path_stage *stage,
                      struct tun_path *to)
{
    memmove(to->stages + 1, to->stages, to->count++ * sizeof(*to->stages));
    to->stages[0] = *stage;
    to->bottleneck_ns =
        base_max(to->bottleneck_ns, tun_option_ns(s, stage->from, stage->to, &stage->option));
}

/* Teams of one EP within @cores that reach the highest rate, none slower than @slowest_ns. */
static double pick_teams(const struct tun_space *s, const double *team_ns, size_t ep, size_t cores,
                         double slowest_ns, uint16_t *ret_count)
{
    double best[PL_CPU_MAX + 1] = {0};
    uint16_t width[PL_CPU_MAX + 1] = {0};
    size_t left;

    for (size_t t = 0; t < s->team_len; t++) {
        size_t w = s->team_width[t];
        double before[PL_CPU_MAX + 1];

        if (s->team_ep[t] != ep || w > cores || team_ns[t] > slowest_ns) {
            continue;
        }
        memcpy(before, best, sizeof(best));
        tun_knapsack(s, best, cores, w, 1 / team_ns[t]);
        for (size_t c = w; c <= cores; c++) {
            width[c] = best[c] > before[c] ? (uint16_t)w : width[c];
        }
    }
    if (s->options.teams != TUN_TEAMS_ANY) {
        if (width[cores] > 0) {
            ret_count[width[cores]] = (uint16_t)(cores / width[cores]);
        }
        return best[cores];
    }
    for (left = cores; width[left] > 0; left -= width[left]) {
        ret_count[width[left]]++;
    }
    return best[cores];
}

static int add_groups(struct pl_stage_plan *stage, size_t ep, const uint16_t *count, size_t batch)
{
    for (uint16_t w = PL_CPU_MAX; w > 0; w--) {
        if (count[w] == 0) {
            continue;
        }
        if (stage->group_count == TUN_GROUP_MAX) {
            return TUN_E_GROUPS;
        }
        stage->groups[stage->group_count++] =
            (struct pl_group){.ep = (uint16_t)ep,
                              .width = w,
                              .count = count[w],
                              .more = (uint16_t)((1u << batch) - 1)};
    }
    return 0;
}

static int write_single(const struct tun_space *s, const struct tun_path_stage *from,
                        struct pl_stage_plan *to)
{
    const double *team_ns = tun_space_teams(s, 0, tun_segment(s, from->from, from->to));
    size_t dims = s->dim_count - 1;

    for (size_t t = 0; t < s->team_len; t++) {
        size_t dim = (size_t)s->dim_of[s->team_ep[t]];
        size_t row = dim < dims ? s->team_steps[t] * s->row_stride[dim] : 0;

        if (team_ns[t] == from->option.slowest_ns && row == from->option.row &&
            (dim < dims ? 0u : s->team_steps[t]) == from->option.last) {
            to->groups[to->group_count++] =
                (struct pl_group){.ep = s->team_ep[t], .width = s->team_width[t], .count = 1};
            return 0;
        }
    }
    return -ENOTRECOVERABLE;
}

static int write_stage(const struct tun_space *s, const struct tun_path_stage *from,
                       struct pl_stage_plan *to)
{
    size_t batch = from->option.batch;
    const double *team_ns = tun_space_teams(s, batch, tun_segment(s, from->from, from->to));
    size_t dims = s->dim_count - 1;

    for (size_t d = 0; d < s->dim_count; d++) {
        size_t steps = d < dims ? s->row_steps[from->option.row * dims + d] : from->option.last;
        uint16_t best_count[PL_CPU_MAX + 1];
        double best = -1;
        size_t best_ep = 0;

        for (size_t k = 0; k < s->p->ep_count && steps > 0; k++) {
            uint16_t count[PL_CPU_MAX + 1] = {0};
            double rate;

            if (s->dim_of[k] != (int)d) {
                continue;
            }
            rate = pick_teams(s, team_ns, k, tun_space_cores(s, k, steps), from->option.slowest_ns,
                              count);
            if (s->options.teams != TUN_TEAMS_ONE_EP) {
                if (add_groups(to, k, count, batch) != 0) {
                    return TUN_E_GROUPS;
                }
            } else if (rate > best) {
                best = rate;
                best_ep = k;
                memcpy(best_count, count, sizeof(count));
            }
        }
        if (best >= 0 && add_groups(to, best_ep, best_count, batch) != 0) {
            return TUN_E_GROUPS;
        }
    }
    return 0;
}

/* Groups in the order of EPs, so that equal stages are written alike. */
static void sort_groups(struct pl_stage_plan *stage)
{
    for (size_t a = 1; a < stage->group_count; a++) {
        for (size_t b = a; b > 0 && stage->groups[b].ep < stage->groups[b - 1].ep; b--) {
            struct pl_group swap = stage->groups[b];

            stage->groups[b] = stage->groups[b - 1];
            stage->groups[b - 1] = swap;
        }
    }
}

int tun_path_plan(const struct tun_space *s, const struct tun_path *path, struct pl_plan *ret)
{
    struct pl_plan plan = {.stage_count = path->count};

    for (size_t i = 0; i < path->count; i++) {
        const struct tun_path_stage *from = &path->stages[i];
        struct pl_stage_plan *to = &plan.stages[i];
        int r;

        to->first_unit = (uint16_t)s->atom_first[from->from];
        to->last_unit = (uint16_t)(s->atom_first[from->to] - 1);
        r = s->p->bounds.one_ep_stages ? write_single(s, from, to) : write_stage(s, from, to);
        if (r != 0) {
            return r;
        }
        sort_groups(to);
    }
    if (pl_plan_teams(&plan) > PL_TEAM_MAX) {
        return TUN_E_TEAMS;
    }
    *ret = plan;
    return 0;
}

bool tun_space_relax(struct tun_space_options *o, int outcome)
{
    if (outcome == TUN_E_GROUPS && o->teams < TUN_TEAMS_ONE_EP) {
        o->teams++;
    } else if (outcome == TUN_E_TEAMS && o->min_width < PL_CPU_MAX) {
        o->min_width = base_max(2 * o->min_width, (size_t)2);
    } else {
        return false;
    }
    return true;
}
