/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/adapt/lost.h"

#include "base/base.h"

double tun_cost_level(const struct tun_problem *p, size_t ep)
{
    double sum = 0;
    size_t count = 0;

    for (size_t u = 0; u < p->unit_count; u++) {
        double ns = tun_cell_at(&p->costs, ep, 1, u)->ns;

        sum += ns > 0 ? log(ns) : 0;
        count += ns > 0;
    }
    return count > 0 ? sum / (double)count : 0;
}

static void see(const struct tun_problem *now, struct tun_lost_pair *ret)
{
    ret->ep_count = now->ep_count;
    for (size_t k = 0; k < now->ep_count; k++) {
        ret->cores[k] = now->eps[k].cores;
        ret->level[k] = tun_cost_level(now, k);
    }
}

static bool alike(const struct tun_lost_pair *a, const struct tun_lost_pair *b)
{
    bool same = a->ep_count == b->ep_count;

    for (size_t k = 0; same && k < a->ep_count; k++) {
        same = a->cores[k] == b->cores[k] && fabs(a->level[k] - b->level[k]) < TUN_LOST_CLEAR;
    }
    return same;
}

/* Return: its index; l->count: none. */
static size_t find(const struct tun_lost *l, const struct tun_lost_pair *now,
                   const struct pl_plan *kept, const struct pl_plan *lost)
{
    size_t i = 0;

    while (i < l->count && !(alike(&l->pairs[i], now) && pl_plan_equal(&l->pairs[i].kept, kept) &&
                             pl_plan_equal(&l->pairs[i].lost, lost))) {
        i++;
    }
    return i;
}

void tun_lost_add(struct tun_lost *l, const struct tun_problem *now, const struct pl_plan *kept,
                  const struct pl_plan *lost)
{
    struct tun_lost_pair pair = {0};

    see(now, &pair);
    if (find(l, &pair, kept, lost) < l->count) {
        return;
    }
    pair.kept = *kept;
    pair.lost = *lost;
    l->pairs[l->at] = pair;
    l->at = (l->at + 1) % TUN_LOST_MAX;
    l->count = base_min(l->count + 1, (size_t)TUN_LOST_MAX);
}

bool tun_lost_has(const struct tun_lost *l, const struct tun_problem *now,
                  const struct pl_plan *incumbent, const struct pl_plan *challenger)
{
    struct tun_lost_pair pair = {0};

    see(now, &pair);
    return find(l, &pair, incumbent, challenger) < l->count;
}
