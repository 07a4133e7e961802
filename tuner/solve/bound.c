/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The linear program of tun_bound_ns() by columns: a column is an assignment of every unit to an
 * EP, a mix of columns is a fractional assignment. With y_k the price of an EP (sum y_k c_k = 1)
 * the cheapest assignment gives each unit its min_k y_k t_uk, and the sum of these is a bound from
 * below; the mix so far is one from above. Only ep_count + 1 rows, whatever the number of units
 * (Dantzig, Wolfe 1960). What is returned is always the bound from below.
 */

#include "base/base.h"
#include "tuner/solve/solve.h"

#define ROWS_MAX (PL_EP_MAX + 1)
#define GAP 1e-9
#define ROUNDS_MAX 20000

struct lp {
    size_t rows;                        /* an EP each, and the sum of the mix */
    double inverse[ROWS_MAX][ROWS_MAX]; /* of the basis */
    double value[ROWS_MAX];             /* of the basic variables */
    double cost[ROWS_MAX];              /* 1: the makespan, else 0 */
};

/* The least time of cores for every EP and unit: a team of three that takes 2 ms takes 6 of them;
 * with as many frames at once as a team may take. Return: owned; NULL: out of memory. */
static double *core_times(const struct tun_problem *p)
{
    double *ns = calloc(p->ep_count * p->unit_count, sizeof(*ns));

    for (size_t i = 0; ns && i < p->ep_count * p->unit_count; i++) {
        size_t ep = i / p->unit_count, unit = i % p->unit_count;

        ns[i] = tun_cell_at(&p->costs, ep, 1, unit)->ns;
        for (size_t w = 2; w <= p->eps[ep].cores; w++) {
            double wide_ns = (double)w * tun_cell_at(&p->costs, ep, w, unit)->ns;

            ns[i] = wide_ns > 0 ? base_min(ns[i], wide_ns) : ns[i];
        }
        ns[i] *= tun_at_once_factor(tun_at_once_at(p, ep, unit), PL_BATCH_MAX);
    }
    return ns;
}

/* Each unit to the EP where it is cheapest. Return: the sum; ret_load: time given to an EP. */
static double assign(const struct tun_problem *p, const double *ns, const double *price,
                     double *ret_load)
{
    double sum = 0;

    memset(ret_load, 0, p->ep_count * sizeof(*ret_load));
    for (size_t u = 0; u < p->unit_count; u++) {
        size_t best = 0;
        double least = INFINITY;

        for (size_t k = 0; k < p->ep_count; k++) {
            double cost = base_max(price[k], 0.0) * ns[k * p->unit_count + u];

            if (cost < least) {
                least = cost;
                best = k;
            }
        }
        ret_load[best] += ns[best * p->unit_count + u];
        sum += least;
    }
    return sum;
}

/* The variable with this column comes in. Return: false if it cannot. */
static bool pivot(struct lp *l, const double *column, double cost)
{
    double d[ROWS_MAX] = {0}, least = INFINITY;
    size_t out = l->rows;

    for (size_t i = 0; i < l->rows; i++) {
        for (size_t j = 0; j < l->rows; j++) {
            d[i] += l->inverse[i][j] * column[j];
        }
    }
    for (size_t i = 0; i < l->rows; i++) {
        /* of equal steps the largest pivot, for accuracy */
        if (d[i] > 1e-11 && (out == l->rows || l->value[i] < least * d[i] * (1 - 1e-12) ||
                             (l->value[i] <= least * d[i] * (1 + 1e-12) && d[i] > d[out]))) {
            least = base_max(l->value[i], 0.0) / d[i];
            out = i;
        }
    }
    if (out == l->rows) {
        return false;
    }
    for (size_t j = 0; j < l->rows; j++) {
        l->inverse[out][j] /= d[out];
    }
    for (size_t i = 0; i < l->rows; i++) {
        for (size_t j = 0; i != out && j < l->rows; j++) {
            l->inverse[i][j] -= d[i] * l->inverse[out][j];
        }
        l->value[i] = i == out ? least : base_max(l->value[i] - d[i] * least, 0.0);
    }
    l->cost[out] = cost;
    return true;
}

/* Rows: c_k P - load_k - s_k = 0 and sum of the mix = 1. Basis: P, one assignment, and the spare
 * time s_k of every EP but the one that takes longest. */
static void start(struct lp *l, const struct tun_problem *p, const double *load)
{
    size_t eps = p->ep_count, top = 0;
    double top_cores;

    for (size_t k = 1; k < eps; k++) {
        if (load[k] / p->eps[k].cores > load[top] / p->eps[top].cores) {
            top = k;
        }
    }
    top_cores = p->eps[top].cores;
    *l = (struct lp){.rows = eps + 1};
    /* P from row top; s_k = c_k P - load_k; the mix from the last row */
    l->inverse[top][top] = 1 / top_cores;
    l->inverse[top][eps] = load[top] / top_cores;
    l->cost[top] = 1;
    l->value[top] = load[top] / top_cores;
    for (size_t k = 0; k < eps; k++) {
        if (k != top) {
            double cores = p->eps[k].cores;

            l->inverse[k][top] = cores / top_cores;
            l->inverse[k][eps] = cores * load[top] / top_cores - load[k];
            l->inverse[k][k] = -1;
            l->value[k] = base_max(l->inverse[k][eps], 0.0);
        }
    }
    l->inverse[eps][eps] = 1;
    l->value[eps] = 1;
}

static void prices(const struct lp *l, double *ret)
{
    for (size_t j = 0; j < l->rows; j++) {
        ret[j] = 0;
        for (size_t i = 0; i < l->rows; i++) {
            ret[j] += l->cost[i] * l->inverse[i][j];
        }
    }
}

static double core_price(const struct tun_problem *p, const double *price)
{
    double sum = 0;

    for (size_t k = 0; k < p->ep_count; k++) {
        sum += base_max(price[k], 0.0) * p->eps[k].cores;
    }
    return sum;
}

double tun_bound_ns(const struct tun_problem *p)
{
    double load[PL_EP_MAX], price[ROWS_MAX] = {0}, column[ROWS_MAX], best, scale;
    base_autofree double *ns = core_times(p);
    size_t eps = p->ep_count;
    struct lp l;

    if (!ns) {
        return 0;
    }
    for (size_t k = 0; k < eps; k++) {
        price[k] = 1.0 / p->eps[k].cores;
    }
    best = assign(p, ns, price, load) / core_price(p, price);
    scale = best; /* so that all figures are near 1 */
    for (size_t k = 0; k < eps; k++) {
        load[k] /= scale;
    }
    start(&l, p, load);
    for (int round = 0; round < ROUNDS_MAX; round++) {
        double upper = 0, least = 0;
        size_t spare = eps;

        for (size_t i = 0; i < l.rows; i++) {
            upper += l.cost[i] * l.value[i] * scale;
        }
        prices(&l, price);
        best = base_max(best, assign(p, ns, price, load) / core_price(p, price));
        if (upper <= best * (1 + GAP)) {
            break;
        }
        for (size_t k = 0; k < eps; k++) {
            if (price[k] < least) {
                least = price[k];
                spare = k;
            }
        }
        memset(column, 0, sizeof(column));
        if (spare < eps && least * p->eps[spare].cores < -1e-12) {
            column[spare] = -1;
        } else {
            for (size_t k = 0; k < eps; k++) {
                column[k] = -load[k] / scale;
            }
            column[eps] = 1;
        }
        if (!pivot(&l, column, 0)) {
            break;
        }
    }
    return best;
}
