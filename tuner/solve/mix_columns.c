/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/solve/mix_columns.h"

#include "base/base.h"

static double core_price(const struct tun_problem *p, size_t ep)
{
    bool known = true;

    for (size_t k = 0; k < p->ep_count; k++) {
        known = known && p->eps[k].watts > 0;
    }
    return known ? p->eps[ep].watts : p->eps[ep].speed;
}

double tun_time_price(enum tun_share objective, const struct tun_problem *p, size_t ep)
{
    return objective == TUN_ENERGY ? core_price(p, ep) : objective == TUN_SOONEST ? 1 : 0;
}

static double cheapest(void *arg, const double *price, double *ret_load, void *ret_column)
{
    const struct tun_columns *c = arg;
    const struct tun_problem *first = c->wishes[0].p;
    size_t eps = first->ep_count;
    double load[PL_EP_MAX], all[PL_EP_MAX], time[PL_EP_MAX], sum = 0;

    for (size_t k = 0; k < eps; k++) {
        time[k] = tun_time_price(c->objective, first, k);
        all[k] = price[k] + price[eps] * time[k];
    }
    memset(ret_load, 0, (eps + 1) * sizeof(*ret_load));
    memset(ret_column, 0, c->count * c->way_bytes);
    for (size_t m = 0; m < c->count; m++) {
        const struct tun_wish *w = &c->wishes[m];
        unsigned char *way = (unsigned char *)ret_column + m * c->way_bytes;
        double cost = c->way(c->arg, m, all, load, way), out = w->weight * (double)BASE_NS_PER_S;

        if (c->objective == TUN_WEIGHTED && cost >= price[eps] * out) {
            memset(way, 0, c->way_bytes);
            ret_load[eps] += w->rate * out;
            sum += w->rate * price[eps] * out;
            continue;
        }
        for (size_t k = 0; k < eps; k++) {
            ret_load[k] += w->rate * load[k];
            ret_load[eps] += w->rate * load[k] * time[k];
        }
        sum += w->rate * cost;
    }
    return sum;
}

int tun_columns_divide(const struct tun_columns *c, struct tun_division *ret)
{
    struct tun_work w = {.eps = c->wishes[0].p->eps,
                         .ep_count = c->wishes[0].p->ep_count,
                         .column_bytes = c->count * c->way_bytes,
                         .time_ns = c->objective == TUN_FAIR ? 0 : c->part * (double)BASE_NS_PER_S,
                         .cheapest = cheapest,
                         .arg = (void *)c};

    return tun_divide(&w, ret);
}
