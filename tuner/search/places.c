/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/search/places.h"

#include "base/base.h"

void tun_pipeline_plan(const struct tun_pipeline *p, struct pl_plan *ret)
{
    uint16_t next = 0;

    *ret = (struct pl_plan){.stage_count = p->stage_count};
    for (size_t s = 0; s < p->stage_count; s++) {
        struct pl_stage_plan *stage = &ret->stages[s];

        stage->first_unit = next;
        next = (uint16_t)(next + p->layers[s]);
        stage->last_unit = (uint16_t)(next - 1);
        stage->group_count = 1;
        stage->groups[0] =
            (struct pl_group){.ep = p->places[s].ep, .width = p->places[s].width, .count = 1};
    }
}

/* What the whole network takes on one core of each EP. Return: false if a cost is unknown. */
static bool whole_network(const struct tun_problem *p, double ret_ns[PL_EP_MAX])
{
    for (size_t k = 0; k < p->ep_count; k++) {
        ret_ns[k] = 0;
        for (size_t u = 0; u < p->unit_count; u++) {
            double ns = tun_cell_at(&p->costs, k, 1, u)->ns;

            if (!(ns >= 0)) {
                return false;
            }
            ret_ns[k] += ns;
        }
    }
    return true;
}

/* Does EP @a rank before EP @b; @ns: whole network on one core, NULL: not known. */
static bool ranks_before(const struct tun_problem *p, const double *ns, size_t a, size_t b)
{
    const struct tun_ep *x = &p->eps[a], *y = &p->eps[b];

    if (ns && ns[a] != ns[b]) {
        return ns[a] < ns[b];
    }
    if (!ns && x->speed != y->speed) {
        return x->speed > y->speed;
    }
    if (x->bandwidth != y->bandwidth) {
        return x->bandwidth > y->bandwidth;
    }
    return x->cores != y->cores ? x->cores > y->cores : a < b;
}

void tun_rank_eps(const struct tun_problem *p, size_t ret[PL_EP_MAX])
{
    double ns[PL_EP_MAX];
    bool known = whole_network(p, ns);

    for (size_t k = 0; k < p->ep_count; k++) {
        size_t at = k;

        while (at > 0 && ranks_before(p, known ? ns : NULL, k, ret[at - 1])) {
            ret[at] = ret[at - 1];
            at--;
        }
        ret[at] = k;
    }
}

/* Largest remainder with at least one each: @cores [eps] in rank order, eps <= stages.
 * Starting from the quotas rounded down, single stages go where most is lacking and come from
 * where least is, until the sum is right. */
static void share_stages(const size_t *cores, size_t eps, size_t stages, size_t *ret_share)
{
    size_t all = 0, given = 0;

    for (size_t k = 0; k < eps; k++) {
        all += cores[k];
    }
    for (size_t k = 0; k < eps; k++) {
        ret_share[k] = base_max(stages * cores[k] / all, (size_t)1);
        given += ret_share[k];
    }
    while (given != stages) {
        size_t pick = SIZE_MAX;
        double most = 0;

        for (size_t k = 0; k < eps; k++) {
            double lack = (double)(stages * cores[k]) / (double)all - (double)ret_share[k];

            if (given > stages ? ret_share[k] == 1 : ret_share[k] == cores[k]) {
                continue;
            }
            /* Giving: the first of the most lacking. Taking: the last of the least lacking. */
            if (pick == SIZE_MAX || (given > stages ? lack <= most : lack > most)) {
                pick = k;
                most = lack;
            }
        }
        ret_share[pick] = given < stages ? ret_share[pick] + 1 : ret_share[pick] - 1;
        given = given < stages ? given + 1 : given - 1;
    }
}

int tun_slots(const struct tun_problem *p, size_t stages, struct tun_place *ret)
{
    size_t rank[PL_EP_MAX], cores[PL_EP_MAX], share[PL_EP_MAX], eps, s = 0;

    if (stages == 0 || stages > tun_core_count(p)) {
        return -EINVAL;
    }
    tun_rank_eps(p, rank);
    eps = base_min(stages, p->ep_count);
    for (size_t k = 0; k < eps; k++) {
        cores[k] = p->eps[rank[k]].cores;
    }
    share_stages(cores, eps, stages, share);
    for (size_t k = 0; k < eps; k++) {
        for (size_t i = 0; i < share[k]; i++) {
            size_t width = cores[k] / share[k] + (i < cores[k] % share[k]);

            ret[s++] = (struct tun_place){.ep = (uint16_t)rank[k], .width = (uint16_t)width};
        }
    }
    return 0;
}

size_t tun_core_places(const struct tun_problem *p, struct tun_place *ret, size_t max)
{
    size_t rank[PL_EP_MAX], count = 0;

    tun_rank_eps(p, rank);
    for (size_t k = 0; k < p->ep_count; k++) {
        for (size_t c = 0; c < p->eps[rank[k]].cores && count < max; c++) {
            ret[count++] = (struct tun_place){.ep = (uint16_t)rank[k], .width = 1};
        }
    }
    return count;
}

double tun_binomial(size_t n, size_t k)
{
    double c = 1;

    if (k > n) {
        return 0;
    }
    k = base_min(k, n - k);
    for (size_t i = 1; i <= k; i++) {
        /* Every partial product is a binomial: in whole numbers the division leaves nothing. */
        c = c < 0x1p53 ? (double)((unsigned __int128)c * (n - k + i) / i)
                       : c * ((double)(n - k + i) / (double)i);
    }
    return c;
}

double tun_cut_count(size_t layers, size_t min, size_t max)
{
    double sum = 0;

    for (size_t p = base_max(min, (size_t)1); p <= max && p <= layers; p++) {
        sum += tun_binomial(layers - 1, p - 1);
    }
    return sum;
}
