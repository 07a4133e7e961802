/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/solve/mix.h"

#include "base/base.h"
#include "tuner/eval.h"
#include "tuner/solve/mix_columns.h"

/* Cheapest ends of a route: from unit u on, which runs on EP k, with c changes left. */
struct path {
    double *cost; /* [changes + 1][ep_count] of unit u + 1, and the same of unit u */
    uint16_t *to; /* [unit_count][changes + 1][ep_count]: the EP of the next unit */
};

struct search {
    const struct tun_wish *wishes;
    size_t count, changes, ep_count;
    struct path path; /* for the model with most units; owned */
};

static double unit_ns(const struct tun_problem *p, size_t ep, size_t unit)
{
    return tun_cell_at(&p->costs, ep, 1, unit)->ns;
}

/* Return: of a frame on @width cores of the EP, with its hand-off; 0: it has too few, or a cost is
 * unknown. */
static double wide_ns(const struct tun_problem *p, size_t ep, size_t width)
{
    double sum = tun_handoff_ns(p, 0);

    for (size_t u = 0; u < p->unit_count; u++) {
        double ns = width <= p->eps[ep].cores ? tun_cell_at(&p->costs, ep, width, u)->ns : 0;

        if (!tun_positive(ns)) {
            return 0;
        }
        sum += ns;
    }
    return sum;
}

void tun_route_load(const struct tun_problem *p, const struct tun_route *r, double *ret_ns)
{
    size_t unit = 0;

    memset(ret_ns, 0, p->ep_count * sizeof(*ret_ns));
    if (r->width > 1) {
        ret_ns[r->ep[0]] = r->width * wide_ns(p, r->ep[0], r->width);
        return;
    }
    for (size_t s = 0; s < r->stages; s++) {
        ret_ns[r->ep[s]] += tun_handoff_ns(p, unit);
        for (; unit <= r->last[s]; unit++) {
            ret_ns[r->ep[s]] += unit_ns(p, r->ep[s], unit);
        }
    }
}

static void read_route(const struct search *s, const struct tun_problem *p, size_t ep,
                       struct tun_route *ret)
{
    size_t left = s->changes;

    *ret = (struct tun_route){.stages = 1, .ep = {(uint16_t)ep}};
    for (size_t u = 0; u < p->unit_count; u++) {
        size_t next = s->path.to[(u * (s->changes + 1) + left) * s->ep_count + ep];

        ret->last[ret->stages - 1] = (uint16_t)u;
        if (u + 1 < p->unit_count && next != ep) {
            ret->ep[ret->stages++] = (uint16_t)next;
            ep = next;
            left--;
        }
    }
}

/* Return: a frame of a wide model is done in time on the EP, if it is alone there. */
static bool in_time(const struct tun_wish *w, size_t ep)
{
    double ns = wide_ns(w->slow ? w->slow : w->p, ep, w->width);

    return ns > 0 && (w->deadline_ns == 0 || ns <= w->deadline_ns);
}

/* Return: what a wide model's cheapest route costs; of EPs where it is in time, if there are. */
static double cheapest_wide(const struct tun_wish *w, const double *price, double *ret_load,
                            struct tun_route *ret)
{
    const struct tun_problem *p = w->p;
    double least = INFINITY;
    bool any = false;

    *ret = (struct tun_route){
        .width = (uint16_t)w->width, .stages = 1, .last = {(uint16_t)(p->unit_count - 1)}};
    for (size_t k = 0; k < p->ep_count; k++) {
        any = any || in_time(w, k);
    }
    for (size_t k = 0; k < p->ep_count; k++) {
        double ns = wide_ns(p, k, w->width), cost = price[k] * (double)w->width * ns;

        if (ns > 0 && cost < least && (!any || in_time(w, k))) {
            least = cost;
            ret->ep[0] = (uint16_t)k;
        }
    }
    tun_route_load(p, ret, ret_load);
    return least;
}

/* Return: what the model's cheapest route costs at these prices of a core. */
static double cheapest_route(void *arg, size_t model, const double *price, double *ret_load,
                             void *ret_route)
{
    const struct search *s = arg;
    const struct tun_problem *p = s->wishes[model].p;
    size_t states = (s->changes + 1) * s->ep_count, best = 0;
    double *next = s->path.cost, *now = next + states, *swap;

    if (s->wishes[model].width > 1) {
        return cheapest_wide(&s->wishes[model], price, ret_load, ret_route);
    }
    memset(next, 0, states * sizeof(*next));
    for (size_t u = p->unit_count; u-- > 0;) {
        uint16_t *to = s->path.to + u * states;

        for (size_t i = 0; i < states; i++) {
            size_t left = i / s->ep_count, ep = i % s->ep_count;

            now[i] = next[i];
            to[i] = (uint16_t)ep;
            for (size_t k = 0; left > 0 && u + 1 < p->unit_count && k < s->ep_count; k++) {
                double cost = next[i - s->ep_count - ep + k] + price[k] * tun_handoff_ns(p, u + 1);

                if (k != ep && cost < now[i]) {
                    now[i] = cost;
                    to[i] = (uint16_t)k;
                }
            }
            now[i] += price[ep] * unit_ns(p, ep, u);
        }
        swap = next;
        next = now;
        now = swap;
    }
    next += s->changes * s->ep_count;
    for (size_t k = 0; k < s->ep_count; k++) {
        next[k] += price[k] * tun_handoff_ns(p, 0);
        best = next[k] < next[best] ? k : best;
    }
    read_route(s, p, best, ret_route);
    tun_route_load(p, ret_route, ret_load);
    return next[best];
}

bool tun_has_ep(const struct tun_wish *w)
{
    bool has = w->width <= 1;

    for (size_t k = 0; k < w->p->ep_count; k++) {
        has = has || wide_ns(w->p, k, w->width) > 0;
    }
    return has;
}

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
                right = tun_positive(unit_ns(p, k, u));
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
    struct search s = {.wishes = wishes, .count = count, .changes = changes};
    struct tun_division d = TUN_DIVISION_NULL, bound = TUN_DIVISION_NULL;
    struct tun_columns c = {.wishes = wishes,
                            .count = count,
                            .objective = objective,
                            .part = part,
                            .way_bytes = sizeof(struct tun_route),
                            .way = cheapest_route,
                            .arg = &s};
    size_t units = 0, states;
    int r;

    *ret = TUN_MIX_NULL;
    if (!valid(wishes, count, objective, changes) || !(part > 0 && part <= 1)) {
        return -EINVAL;
    }
    s.ep_count = wishes[0].p->ep_count;
    for (size_t m = 0; m < count; m++) {
        units = base_max(units, wishes[m].p->unit_count);
    }
    states = (changes + 1) * s.ep_count;
    s.path.cost = calloc(2 * states, sizeof(*s.path.cost));
    s.path.to = calloc(units * states, sizeof(*s.path.to));
    ret->dealt = calloc(TUN_DIVIDE_ROWS * count, sizeof(*ret->dealt));
    r = s.path.cost && s.path.to && ret->dealt ? divide(&c, &d) : -ENOMEM;
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
    free(s.path.cost);
    free(s.path.to);
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
