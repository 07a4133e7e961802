/* SPDX-License-Identifier: Apache-2.0 */
/* A map of a problem whose neighbouring units are joined. */

#include "base/base.h"
#include "tuner/boards/map.h"

static int join(const struct tun_problem *p, const size_t *first, size_t count,
                struct tun_problem *ret)
{
    struct tun_problem j;
    int r = tun_problem_init(&j, count, p->eps, p->ep_count);

    if (r < 0) {
        return r;
    }
    for (size_t i = 0; i < count; i++) {
        j.units[i] = p->units[first[i]];
        for (size_t u = first[i] + 1; u < first[i + 1]; u++) {
            j.units[i].weight_bytes += p->units[u].weight_bytes;
            j.units[i].arena_bytes = base_max(j.units[i].arena_bytes, p->units[u].arena_bytes);
        }
        for (size_t k = 0; k < p->ep_count; k++) {
            for (size_t w = 1; w <= p->eps[k].cores; w++) {
                struct tun_cell *to = tun_cell_at(&j.costs, k, w, i);

                to->ns = 0;
                to->source = TUN_MEASURED;
                for (size_t u = first[i]; u < first[i + 1]; u++) {
                    to->ns += tun_cell_at(&p->costs, k, w, u)->ns;
                }
            }
        }
    }
    j.handoff_ns = p->handoff_ns;
    j.handoff_ns_per_byte = p->handoff_ns_per_byte;
    j.objective = p->objective;
    j.bounds = p->bounds;
    j.boards = p->boards;
    *ret = j;
    return 0;
}

int tun_joined_init(const struct tun_problem *p, const struct tun_space_options *o,
                    bool link_energy, struct tun_joined *ret, struct tun_map *ret_map)
{
    size_t max = p->unit_count, count;
    int r;

    memset(ret_map, 0, sizeof(*ret_map));
    do {
        *ret = (struct tun_joined){.coarse = max < p->unit_count};
        ret->first = calloc(p->unit_count + 1, sizeof(*ret->first));
        if (!ret->first) {
            return -ENOMEM;
        }
        count = tun_cut(p, max, ret->first);
        r = join(p, ret->first, count, &ret->p);
        r = r == 0 ? tun_map_init(&ret->p, o, link_energy, ret_map, &max) : r;
        if (r == 0) {
            r = tun_nodes_make(ret_map);
        } else {
            memset(ret_map, 0, sizeof(*ret_map));
        }
        if (r != 0) {
            tun_joined_deinit(ret, ret_map);
        }
    } while (r == TUN_E_ATOMS);
    return r;
}

void tun_joined_deinit(struct tun_joined *j, struct tun_map *m)
{
    tun_map_deinit(m);
    tun_problem_deinit(&j->p);
    free(j->first);
    *j = (struct tun_joined){0};
}

void tun_joined_back(const struct tun_joined *j, struct pl_plan *plan)
{
    for (size_t s = 0; s < plan->stage_count; s++) {
        plan->stages[s].first_unit = j->first[plan->stages[s].first_unit];
        plan->stages[s].last_unit = (uint16_t)(j->first[plan->stages[s].last_unit + 1] - 1);
    }
}
