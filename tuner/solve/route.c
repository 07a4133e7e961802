/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/solve/route.h"

#include "base/base.h"
#include "tuner/eval.h"

/* A beginning of a route, up to a unit. */
struct tun_label {
    double cost, ns;
    size_t before; /* of the unit before */
    uint16_t ep;
};

static const struct tun_problem *slow_of(const struct tun_wish *w)
{
    return w->slow ? w->slow : w->p;
}

static double unit_ns(const struct tun_problem *p, size_t ep, size_t unit)
{
    return tun_cell_at(&p->costs, ep, 1, unit)->ns;
}

/* ---- what routes take ---- */

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
        ret_ns[r->ep[s]] += tun_team_ns(p, unit, r->last[s], r->ep[s], 1);
        unit = r->last[s] + 1u;
    }
}

double tun_route_ns(const struct tun_wish *w, const struct tun_route *r)
{
    const struct tun_problem *p = slow_of(w);
    double load[PL_EP_MAX], sum = 0;

    tun_route_load(p, r, load);
    for (size_t k = 0; k < p->ep_count; k++) {
        sum += load[k] / base_max(r->width, (uint16_t)1);
    }
    return sum;
}

bool tun_route_keeps(const struct tun_wish *w, const struct tun_route *r)
{
    double limit_ns = w->within * w->deadline_ns;

    return r->width > 1 || limit_ns == 0 || tun_route_ns(w, r) <= limit_ns;
}

bool tun_has_ep(const struct tun_wish *w)
{
    bool has = w->width <= 1;

    for (size_t k = 0; k < w->p->ep_count; k++) {
        has = has || wide_ns(w->p, k, w->width) > 0;
    }
    return has;
}

/* ---- on several cores at once ---- */

/* Return: a frame of a wide model is done in time on the EP, if it is alone there. */
static bool in_time(const struct tun_wish *w, size_t ep)
{
    double ns = wide_ns(slow_of(w), ep, w->width);

    return ns > 0 && (w->deadline_ns == 0 || ns <= w->deadline_ns);
}

/* The cheapest of EPs where it is in time, if there are. */
static void cheapest_wide(const struct tun_wish *w, const double *price, struct tun_route *ret)
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
}

/* ---- one core a unit ---- */

static void read_route(const struct tun_router *r, const struct tun_problem *p, size_t ep,
                       struct tun_route *ret)
{
    size_t left = r->changes;

    *ret = (struct tun_route){.stages = 1, .ep = {(uint16_t)ep}};
    for (size_t u = 0; u < p->unit_count; u++) {
        size_t next = r->to[(u * (r->changes + 1) + left) * r->ep_count + ep];

        ret->last[ret->stages - 1] = (uint16_t)u;
        if (u + 1 < p->unit_count && next != ep) {
            ret->ep[ret->stages++] = (uint16_t)next;
            ep = next;
            left--;
        }
    }
}

/* The cheapest of all, from its end to its beginning. */
static void cheapest_narrow(const struct tun_router *r, const struct tun_problem *p,
                            const double *price, struct tun_route *ret)
{
    size_t states = (r->changes + 1) * r->ep_count, best = 0;
    double *next = r->cost, *now = next + states;

    memset(next, 0, states * sizeof(*next));
    for (size_t u = p->unit_count; u-- > 0;) {
        uint16_t *to = r->to + u * states;
        double *swap;

        for (size_t i = 0; i < states; i++) {
            size_t left = i / r->ep_count, ep = i % r->ep_count;

            now[i] = next[i];
            to[i] = (uint16_t)ep;
            for (size_t k = 0; left > 0 && u + 1 < p->unit_count && k < r->ep_count; k++) {
                double cost = next[i - r->ep_count - ep + k] + price[k] * tun_handoff_ns(p, u + 1);

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
    next += r->changes * r->ep_count;
    for (size_t k = 0; k < r->ep_count; k++) {
        next[k] += price[k] * tun_handoff_ns(p, 0);
        best = next[k] < next[best] ? k : best;
    }
    read_route(r, p, best, ret);
}

/* ---- the cheapest within a time ---- */

struct limited { /* a search for one route */
    struct tun_router *r;
    const struct tun_wish *w;
    const double *price;
    double limit_ns;
};

static int cheapest_first(const void *a, const void *b)
{
    const struct tun_label *x = a, *y = b;

    return x->cost != y->cost ? (x->cost > y->cost) - (x->cost < y->cost)
                              : (x->ns > y->ns) - (x->ns < y->ns);
}

/* Goes on with @before (SIZE_MAX: begins) by the unit on the EP, if that is within the limit. */
static void add_label(const struct limited *l, size_t before, size_t unit, size_t ep)
{
    struct tun_router *r = l->r;
    struct tun_label new = {.before = before, .ep = (uint16_t)ep};
    bool moves = true;

    if (before != SIZE_MAX) {
        new.cost = r->labels[before].cost;
        new.ns = r->labels[before].ns;
        moves = r->labels[before].ep != ep;
    }
    new.cost +=
        l->price[ep] * (unit_ns(l->w->p, ep, unit) + (moves ? tun_handoff_ns(l->w->p, unit) : 0));
    new.ns += unit_ns(slow_of(l->w), ep, unit) + (moves ? tun_handoff_ns(slow_of(l->w), unit) : 0);
    if (new.ns + r->rest_ns[unit + 1] > l->limit_ns || r->no_memory) {
        return;
    }
    if (!base_room(&r->labels, sizeof(*r->labels), r->label_count, &r->label_room)) {
        r->no_memory = true;
        return;
    }
    r->labels[r->label_count++] = new;
}

/* Keeps of the labels from @first on those that no other is cheaper and faster than. */
static void keep_best(struct tun_router *r, size_t first)
{
    double least_ns = INFINITY;
    size_t kept = first;

    if (r->label_count > first) {
        qsort(r->labels + first, r->label_count - first, sizeof(*r->labels), cheapest_first);
    }
    for (size_t i = first; i < r->label_count; i++) {
        if (r->labels[i].ns < least_ns) {
            least_ns = r->labels[i].ns;
            r->labels[kept++] = r->labels[i];
        }
    }
    r->label_count = kept;
}

/* All labels of the unit on the EP behind so many changes. @before: of the unit before. */
static void add_state(const struct limited *l, const size_t (*before)[2], size_t unit,
                      size_t changed, size_t ep)
{
    struct tun_router *r = l->r;

    for (size_t k = 0; k < r->ep_count; k++) {
        if (k == ep || changed > 0) {
            const size_t *of = before[(changed - (k != ep)) * r->ep_count + k];

            for (size_t i = of[0]; i < of[1]; i++) {
                add_label(l, i, unit, ep);
            }
        }
    }
}

static void read_label(const struct tun_router *r, const struct tun_problem *p, size_t label,
                       size_t changed, struct tun_route *ret)
{
    *ret = (struct tun_route){.stages = (uint16_t)(changed + 1)};
    for (size_t u = p->unit_count, s = changed + 1; u-- > 0; label = r->labels[label].before) {
        if (u + 1 == p->unit_count || ret->ep[s] != r->labels[label].ep) {
            s--;
            ret->ep[s] = r->labels[label].ep;
            ret->last[s] = (uint16_t)u;
        }
    }
}

static void find_rests(const struct limited *l)
{
    double *rest = l->r->rest_ns;
    const struct tun_problem *p = slow_of(l->w);

    rest[p->unit_count] = 0;
    for (size_t u = p->unit_count; u-- > 0;) {
        double least = INFINITY;

        for (size_t k = 0; k < p->ep_count; k++) {
            least = base_min(least, unit_ns(p, k, u));
        }
        rest[u] = rest[u + 1] + least;
    }
}

/* Return: there is such a route, in *ret. */
static bool cheapest_limited(const struct limited *l, struct tun_route *ret)
{
    struct tun_router *r = l->r;
    const struct tun_problem *p = l->w->p;
    size_t states = (r->changes + 1) * r->ep_count, best = SIZE_MAX, changed = 0;
    size_t(*now)[2] = (size_t(*)[2])r->of_state, (*before)[2] = now + states;

    find_rests(l);
    r->label_count = 0;
    for (size_t u = 0; u < p->unit_count; u++) {
        size_t(*swap)[2] = before;

        before = now;
        now = swap;
        for (size_t i = 0; i < states; i++) {
            now[i][0] = r->label_count;
            if (u > 0) {
                add_state(l, before, u, i / r->ep_count, i % r->ep_count);
            } else if (i < r->ep_count) {
                add_label(l, SIZE_MAX, 0, i);
            }
            keep_best(r, now[i][0]);
            now[i][1] = r->label_count;
        }
    }
    for (size_t i = 0; i < states; i++) { /* the first of each is its cheapest */
        size_t first = now[i][0];

        if (first < now[i][1] &&
            (best == SIZE_MAX || r->labels[first].cost < r->labels[best].cost)) {
            best = first;
            changed = i / r->ep_count;
        }
    }
    if (best != SIZE_MAX && !r->no_memory) {
        read_label(r, p, best, changed, ret);
    }
    return best != SIZE_MAX && !r->no_memory;
}

/* ---- */

double tun_router_cheapest(void *router, size_t model, const double *price, double *ret_load,
                           void *ret_route)
{
    struct tun_router *r = router;
    const struct tun_wish *w = &r->wishes[model];
    struct limited l = {.r = r, .w = w, .price = price, .limit_ns = w->within * w->deadline_ns};
    double cost = 0;

    if (w->width > 1) {
        cheapest_wide(w, price, ret_route);
    } else {
        cheapest_narrow(r, w->p, price, ret_route);
        if (!tun_route_keeps(w, ret_route)) {
            (void)cheapest_limited(&l, ret_route);
        }
    }
    tun_route_load(w->p, ret_route, ret_load);
    for (size_t k = 0; k < r->ep_count; k++) {
        cost += price[k] * ret_load[k];
    }
    return cost;
}

int tun_router_init(const struct tun_wish *wishes, size_t count, size_t changes,
                    struct tun_router *ret)
{
    size_t units = 0, states = (changes + 1) * wishes[0].p->ep_count;

    *ret = (struct tun_router){
        .wishes = wishes, .changes = changes, .ep_count = wishes[0].p->ep_count};
    for (size_t m = 0; m < count; m++) {
        units = base_max(units, wishes[m].p->unit_count);
    }
    ret->cost = calloc(2 * states, sizeof(*ret->cost));
    ret->to = calloc(units * states, sizeof(*ret->to));
    ret->rest_ns = calloc(units + 1, sizeof(*ret->rest_ns));
    ret->of_state = calloc(4 * states, sizeof(*ret->of_state));
    return ret->cost && ret->to && ret->rest_ns && ret->of_state ? 0 : -ENOMEM;
}

void tun_router_deinit(struct tun_router *r)
{
    free(r->cost);
    free(r->to);
    free(r->rest_ns);
    free(r->of_state);
    free(r->labels);
    *r = (struct tun_router){0};
}
