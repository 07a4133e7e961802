/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/solve/mix.h"

#include "base/base.h"
#include "tuner/eval.h"
#include "tuner/solve/divide.h"

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

void tun_route_load(const struct tun_problem *p, const struct tun_route *r, double *ret_ns)
{
    size_t unit = 0;

    memset(ret_ns, 0, p->ep_count * sizeof(*ret_ns));
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

/* Return: what the model's cheapest route costs at these prices of a core. */
static double cheapest_route(const struct search *s, const struct tun_problem *p,
                             const double *price, struct tun_route *ret)
{
    size_t states = (s->changes + 1) * s->ep_count, best = 0;
    double *next = s->path.cost, *now = next + states, *swap;

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
    read_route(s, p, best, ret);
    return next[best];
}

/* A column: a route for each model. */
static double cheapest(void *arg, const double *price, double *ret_load, void *ret_column)
{
    const struct search *s = arg;
    struct tun_route *routes = ret_column;
    double sum = 0, load[PL_EP_MAX];

    memset(ret_load, 0, s->ep_count * sizeof(*ret_load));
    for (size_t m = 0; m < s->count; m++) {
        const struct tun_wish *w = &s->wishes[m];

        sum += w->rate * cheapest_route(s, w->p, price, &routes[m]);
        tun_route_load(w->p, &routes[m], load);
        for (size_t k = 0; k < s->ep_count; k++) {
            ret_load[k] += w->rate * load[k];
        }
    }
    return sum;
}

static bool valid(const struct tun_wish *wishes, size_t count, size_t changes)
{
    const struct tun_problem *first = count ? wishes[0].p : NULL;
    bool right = count > 0 && count <= TUN_MIX_MAX && changes <= TUN_CHANGES_MAX;

    for (size_t m = 0; right && m < count; m++) {
        const struct tun_problem *p = wishes[m].p;

        right = tun_positive(wishes[m].rate) && p->unit_count > 0 && p->ep_count > 0 &&
                p->ep_count == first->ep_count && p->boards.count <= 1;
        for (size_t k = 0; right && k < p->ep_count; k++) {
            right = p->eps[k].cores == first->eps[k].cores &&
                    strcmp(p->eps[k].name, first->eps[k].name) == 0;
            for (size_t u = 0; right && u < p->unit_count; u++) {
                right = tun_positive(unit_ns(p, k, u));
            }
        }
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

/* Adds up the columns' routes. */
static void deal(const struct search *s, const struct tun_division *d, struct tun_mix *ret)
{
    double load[PL_EP_MAX];

    for (size_t c = 0; c < d->count; c++) {
        const struct tun_route *routes = (const struct tun_route *)d->columns + c * s->count;

        for (size_t m = 0; m < s->count; m++) {
            size_t i = 0;

            while (i < ret->count &&
                   !(ret->dealt[i].model == m && same_route(&ret->dealt[i].route, &routes[m]))) {
                i++;
            }
            ret->count = base_max(ret->count, i + 1);
            ret->dealt[i].model = m;
            ret->dealt[i].route = routes[m];
            ret->dealt[i].share += d->share[c];
            tun_route_load(s->wishes[m].p, &routes[m], load);
            for (size_t k = 0; k < s->ep_count; k++) {
                ret->busy[k] += d->share[c] * s->wishes[m].rate * load[k] /
                                (d->ns * s->wishes[0].p->eps[k].cores);
            }
        }
    }
    qsort(ret->dealt, ret->count, sizeof(*ret->dealt), by_model_and_share);
}

int tun_mix_solve(const struct tun_wish *wishes, size_t count, size_t changes, struct tun_mix *ret)
{
    struct search s = {.wishes = wishes, .count = count, .changes = changes};
    struct tun_division d = TUN_DIVISION_NULL;
    struct tun_work w = {.cheapest = cheapest, .arg = &s};
    size_t units = 0, states;
    double least = 0;
    int r;

    *ret = TUN_MIX_NULL;
    if (!valid(wishes, count, changes)) {
        return -EINVAL;
    }
    w.eps = wishes[0].p->eps;
    w.ep_count = s.ep_count = wishes[0].p->ep_count;
    w.column_bytes = count * sizeof(struct tun_route);
    for (size_t m = 0; m < count; m++) {
        units = base_max(units, wishes[m].p->unit_count);
    }
    states = (changes + 1) * s.ep_count;
    s.path.cost = calloc(2 * states, sizeof(*s.path.cost));
    s.path.to = calloc(units * states, sizeof(*s.path.to));
    ret->dealt = calloc((s.ep_count + 1) * count, sizeof(*ret->dealt));
    r = s.path.cost && s.path.to && ret->dealt ? 0 : -ENOMEM;
    if (r == 0) {
        least = tun_mix_bound_ns(wishes, count, ret->limits);
        tun_divide(&w, &d);
        r = least > 0 && d.bound_ns > 0 ? 0 : -ENOMEM;
    }
    if (r == 0) {
        ret->lambda = (double)BASE_NS_PER_S / d.ns;
        ret->bound = (double)BASE_NS_PER_S / least;
        for (size_t k = 0; k < s.ep_count; k++) {
            ret->limits[k] = d.price[k] * w.eps[k].cores;
        }
        deal(&s, &d, ret);
    }
    tun_division_deinit(&d);
    free(s.path.cost);
    free(s.path.to);
    return r;
}

void tun_mix_deinit(struct tun_mix *m)
{
    free(m->dealt);
    *m = TUN_MIX_NULL;
}
