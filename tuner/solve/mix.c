/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/solve/mix.h"

#include "base/base.h"
#include "tuner/solve/mix_columns.h"

struct search {
    const struct tun_wish *wishes;
    size_t count, ep_count;
    struct tun_router router; /* owned */
};

static bool valid(const struct tun_wish *wishes, size_t count, enum tun_share objective,
                  size_t changes)
{
    const struct tun_problem *first = count ? wishes[0].p : NULL;
    bool right = count > 0 && count <= TUN_MIX_MAX && changes <= TUN_CHANGES_MAX;
    size_t width = 0;

    for (size_t m = 0; right && m < count; m++) {
        const struct tun_problem *p = wishes[m].p;

        right = tun_positive(wishes[m].rate) &&
                (objective != TUN_WEIGHTED || tun_positive(wishes[m].weight)) &&
                p->unit_count > 0 && p->ep_count > 0 && p->ep_count == first->ep_count &&
                p->boards.count <= 1;
        for (size_t k = 0; right && k < p->ep_count; k++) {
            right = p->eps[k].cores == first->eps[k].cores &&
                    strcmp(p->eps[k].name, first->eps[k].name) == 0;
            for (size_t u = 0; right && u < p->unit_count; u++) {
                right = tun_positive(tun_cell_at(&p->costs, k, 1, u)->ns);
            }
        }
        right = right && tun_has_ep(&wishes[m]) &&
                (wishes[m].width <= 1 || width == 0 || wishes[m].width == width);
        width = wishes[m].width > 1 ? wishes[m].width : width;
    }
    return right;
}

static bool same_route(const struct tun_route *a, const struct tun_route *b)
{
    return a->stages == b->stages && memcmp(a->ep, b->ep, a->stages * sizeof(a->ep[0])) == 0 &&
           memcmp(a->last, b->last, a->stages * sizeof(a->last[0])) == 0;
}

static int by_model_and_share(const void *a, const void *b)
{
    const struct tun_dealt *x = a, *y = b;

    return x->model != y->model ? (x->model > y->model) - (x->model < y->model)
                                : (x->share < y->share) - (x->share > y->share);
}

static struct tun_dealt *dealt_to(struct tun_mix *mix, size_t model, const struct tun_route *route)
{
    size_t i = 0;

    while (i < mix->count &&
           !(mix->dealt[i].model == model && same_route(&mix->dealt[i].route, route))) {
        i++;
    }
    mix->count = base_max(mix->count, i + 1);
    mix->dealt[i].model = model;
    mix->dealt[i].route = *route;
    return &mix->dealt[i];
}

/* Adds up the columns' routes. @times: of each wish. */
static void deal(const struct search *s, const struct tun_division *d, double times,
                 struct tun_mix *ret)
{
    double load[PL_EP_MAX];

    for (size_t i = 0; i < d->count * s->count; i++) {
        const struct tun_route *route = (const struct tun_route *)d->columns + i;
        size_t m = i % s->count;
        double share = times * d->share[i / s->count];

        if (route->stages == 0) {
            continue;
        }
        dealt_to(ret, m, route)->share += share;
        ret->given[m] += share;
        tun_route_load(s->wishes[m].p, route, load);
        for (size_t k = 0; k < s->ep_count; k++) {
            ret->busy[k] += share * s->wishes[m].rate * load[k] /
                            ((double)BASE_NS_PER_S * s->wishes[0].p->eps[k].cores);
        }
    }
    for (size_t i = 0; i < ret->count; i++) {
        ret->dealt[i].share /= ret->given[ret->dealt[i].model];
    }
    qsort(ret->dealt, ret->count, sizeof(*ret->dealt), by_model_and_share);
}

/* Return: all weighted frames that are wished, a second. */
static double wished(const struct search *s)
{
    double sum = 0;

    for (size_t m = 0; m < s->count; m++) {
        sum += s->wishes[m].weight * s->wishes[m].rate;
    }
    return sum;
}

/* What a division or its bound is in figures of the objective. */
static double value_of(const struct search *s, enum tun_share objective, double ns, double cost)
{
    switch (objective) {
    case TUN_FAIR:
        return (double)BASE_NS_PER_S / ns;
    case TUN_ENERGY:
    case TUN_SOONEST:
        return cost / (double)BASE_NS_PER_S;
    default:
        return base_max(wished(s) - cost / (double)BASE_NS_PER_S, 0.0);
    }
}

static void tell(const struct search *s, const struct tun_division *d, struct tun_mix *ret)
{
    const struct tun_ep *eps = s->wishes[0].p->eps;
    double sum = 0;

    deal(s, d, ret->objective == TUN_FAIR ? (double)BASE_NS_PER_S / d->ns : 1, ret);
    ret->value = value_of(s, ret->objective, d->ns, d->cost);
    ret->lambda = INFINITY;
    for (size_t m = 0; m < s->count; m++) {
        ret->lambda = base_min(ret->lambda, ret->given[m]);
    }
    for (size_t k = 0; k < s->ep_count; k++) {
        ret->worth[k] = d->price[k] * (ret->objective == TUN_FAIR ? ret->value : 1);
        sum += ret->worth[k] * eps[k].cores;
    }
    for (size_t k = 0; sum > 0 && k < s->ep_count; k++) {
        ret->limits[k] = ret->worth[k] * eps[k].cores / sum;
    }
}

/* Divides, fairly if the wishes cannot be kept. */
static int divide(struct tun_columns *c, struct tun_division *d)
{
    int r = tun_columns_divide(c, d);

    if (r == 0 && tun_least_cost(c->objective) && !d->kept) {
        c->objective = TUN_FAIR;
    }
    return r;
}

int tun_mix_solve(const struct tun_wish *wishes, size_t count, enum tun_share objective,
                  size_t changes, double part, struct tun_mix *ret)
{
    struct search s = {.wishes = wishes, .count = count};
    struct tun_division d = TUN_DIVISION_NULL, bound = TUN_DIVISION_NULL;
    struct tun_columns c = {.wishes = wishes,
                            .count = count,
                            .objective = objective,
                            .part = part,
                            .way_bytes = sizeof(struct tun_route),
                            .way = tun_router_cheapest,
                            .arg = &s.router};
    int r;

    *ret = TUN_MIX_NULL;
    if (!valid(wishes, count, objective, changes) || !(part > 0 && part <= 1)) {
        return -EINVAL;
    }
    s.ep_count = wishes[0].p->ep_count;
    r = tun_router_init(wishes, count, changes, &s.router);
    ret->dealt = calloc(TUN_DIVIDE_ROWS * count, sizeof(*ret->dealt));
    r = r == 0 && ret->dealt ? divide(&c, &d) : -ENOMEM;
    r = s.router.no_memory ? -ENOMEM : r;
    if (r == 0) {
        r = tun_mix_divide(wishes, count, c.objective, &bound);
    }
    if (r == 0) {
        ret->objective = c.objective;
        ret->bound = value_of(&s, c.objective, bound.bound_ns, bound.cost_bound);
        tell(&s, &d, ret);
    }
    tun_division_deinit(&bound);
    tun_division_deinit(&d);
    tun_router_deinit(&s.router);
    return r;
}

double tun_mix_of_bound(const struct tun_mix *m)
{
    return tun_least_cost(m->objective) ? m->bound / m->value : m->value / m->bound;
}

double tun_fairness(const double *x, size_t count)
{
    double sum = 0, squares = 0;

    for (size_t i = 0; i < count; i++) {
        sum += x[i];
        squares += x[i] * x[i];
    }
    return squares > 0 ? sum * sum / ((double)count * squares) : 1;
}

void tun_mix_deinit(struct tun_mix *m)
{
    free(m->dealt);
    *m = TUN_MIX_NULL;
}
