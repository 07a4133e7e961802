/* SPDX-License-Identifier: Apache-2.0 */
/* Revised simplex of eps + 1 rows, and one for time_ns, with the inverse of its basis. */
#include "tuner/solve/divide.h"

#include "base/base.h"

#define GAP 1e-9
#define ROUNDS_MAX 20000

enum { MAKESPAN, SPARE, COLUMN };

struct lp {
    const struct tun_work *w;
    size_t rows; /* an EP each, the sum of the mix, and the time if costs count */
    bool costs_count;
    double inverse[TUN_DIVIDE_ROWS][TUN_DIVIDE_ROWS]; /* of the basis */
    double value[TUN_DIVIDE_ROWS];                    /* of the basic variables */
    double cost[TUN_DIVIDE_ROWS];                     /* of those that are columns, else 0 */
    uint8_t is[TUN_DIVIDE_ROWS];
    unsigned char *columns;   /* [TUN_DIVIDE_ROWS][column_bytes] */
    double scale, cost_scale; /* figures here are divided by them, and so near 1 */
};

/* The variable with this column comes in. @says: of a COLUMN, which it is. Return: false if it
 * cannot. */
static bool pivot(struct lp *l, const double *column, double cost, uint8_t is, const void *says)
{
    double d[TUN_DIVIDE_ROWS] = {0}, least = INFINITY;
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
    l->is[out] = is;
    if (is == COLUMN) {
        memcpy(l->columns + out * l->w->column_bytes, says, l->w->column_bytes);
    }
    return true;
}

/* Rows: cores_k P - load_k - s_k = 0 and sum of the mix = 1. Basis: P, one column, and the spare
 * time s_k of every EP but the one that takes longest. */
static void start(struct lp *l, const double *load, const void *says)
{
    const struct tun_ep *ep = l->w->eps;
    size_t eps = l->w->ep_count, top = 0;

    l->rows = eps + 1;
    for (size_t k = 1; k < eps; k++) {
        top = load[k] / ep[k].cores > load[top] / ep[top].cores ? k : top;
    }
    /* P from row top; s_k = cores_k P - load_k; the mix from the last row */
    for (size_t k = 0; k < eps; k++) {
        double part = (k == top ? 1.0 : ep[k].cores) / ep[top].cores;

        l->inverse[k][k] = -1;
        l->inverse[k][top] = part;
        l->inverse[k][eps] = (part * load[top] - (k == top ? 0 : load[k])) / l->scale;
        l->value[k] = base_max(l->inverse[k][eps], 0.0);
        l->is[k] = k == top ? MAKESPAN : SPARE;
    }
    l->inverse[eps][eps] = 1;
    l->value[eps] = 1;
    l->cost[eps] = load[eps] / l->cost_scale;
    l->is[eps] = COLUMN;
    memcpy(l->columns + eps * l->w->column_bytes, says, l->w->column_bytes);
}

/* One more row, P + s = time_ns, with s in the basis. From now on costs count, not P. */
static void count_costs(struct lp *l)
{
    size_t last = l->rows++, p = 0;

    while (l->is[p] != MAKESPAN) {
        p++;
    }
    for (size_t j = 0; j < last; j++) {
        l->inverse[last][j] = -l->inverse[p][j];
    }
    l->inverse[last][last] = 1;
    l->value[last] = base_max(l->w->time_ns / l->scale - l->value[p], 0.0);
    l->is[last] = SPARE;
    l->costs_count = true;
}

static double cost_of(const struct lp *l, size_t basic)
{
    return l->costs_count ? l->cost[basic] : l->is[basic] == MAKESPAN;
}

static void prices(const struct lp *l, double *ret)
{
    for (size_t j = 0; j < l->rows; j++) {
        ret[j] = 0;
        for (size_t i = 0; i < l->rows; i++) {
            ret[j] += cost_of(l, i) * l->inverse[i][j];
        }
    }
}

static double reached(const struct lp *l)
{
    double sum = 0;

    for (size_t i = 0; i < l->rows; i++) {
        sum += cost_of(l, i) * l->value[i];
    }
    return sum * (l->costs_count ? l->cost_scale : l->scale);
}

/* Of P, scales prices so that sum price cores = 1. Return: the bound that they prove. */
static double ask(const struct lp *l, const double *price, double *ret_price, double *ret_load,
                  void *ret_column)
{
    const struct tun_work *w = l->w;
    double sum = 0, scale;

    for (size_t k = 0; k < w->ep_count; k++) {
        sum += base_max(price[k], 0.0) * w->eps[k].cores;
    }
    scale = l->costs_count ? l->cost_scale / l->scale : 1 / sum;
    for (size_t k = 0; k < w->ep_count; k++) {
        ret_price[k] = base_max(price[k], 0.0) * scale;
    }
    ret_price[w->ep_count] = l->costs_count;
    return w->cheapest(w->arg, ret_price, ret_load, ret_column) -
           (l->costs_count ? sum * scale * w->time_ns : 0);
}

static void take(const struct lp *l, struct tun_division *ret)
{
    size_t bytes = l->w->column_bytes;

    for (size_t i = 0; i < l->rows; i++) {
        if (l->is[i] == COLUMN && l->value[i] > 0) {
            ret->share[ret->count] = l->value[i];
            memmove(l->columns + ret->count++ * bytes, l->columns + i * bytes, bytes);
        }
    }
    ret->columns = l->columns;
}

/* Which variable that is not a column is worth to come in at these prices. Return: what it is;
 * COLUMN: none. */
static uint8_t worth_more(const struct lp *l, const double *price, double *ret_column)
{
    const struct tun_work *w = l->w;
    size_t eps = w->ep_count, best = 0;
    double least = 0, p = l->costs_count ? -price[eps + 1] : 0;
    bool spare_time = l->costs_count && p < -1e-12;

    for (size_t k = 0; k < eps; k++) {
        if (price[k] < least) {
            least = price[k];
            best = k;
        }
        p -= l->costs_count ? price[k] * w->eps[k].cores : 0;
    }
    if (least * w->eps[best].cores < -1e-12) {
        ret_column[best] = -1;
        return SPARE;
    }
    if (spare_time || p < -1e-12) {
        for (size_t k = 0; !spare_time && k < eps; k++) {
            ret_column[k] = w->eps[k].cores;
        }
        ret_column[eps + 1] = 1;
        return spare_time ? SPARE : MAKESPAN;
    }
    return COLUMN;
}

/* Takes columns in until none makes what is reached less. */
static void improve(struct lp *l, void *says, double *ret_bound, double *ret_reached,
                    double *ret_price)
{
    double load[TUN_DIVIDE_ROWS], asked[TUN_DIVIDE_ROWS], price[TUN_DIVIDE_ROWS], bound;
    size_t eps = l->w->ep_count;

    for (int round = 0; round < ROUNDS_MAX; round++) {
        double column[TUN_DIVIDE_ROWS] = {0};
        uint8_t is;

        prices(l, price);
        bound = ask(l, price, asked, load, says);
        if (bound > *ret_bound || round == 0) {
            *ret_bound = bound;
            memcpy(ret_price, asked, eps * sizeof(*asked));
        }
        *ret_reached = reached(l);
        if (*ret_reached <= *ret_bound + GAP * (l->costs_count ? l->cost_scale : *ret_bound)) {
            break;
        }
        is = worth_more(l, price, column);
        for (size_t k = 0; is == COLUMN && k < eps; k++) {
            column[k] = -load[k] / l->scale;
            column[eps] = 1;
        }
        if (!pivot(l, column, is == COLUMN ? load[eps] / l->cost_scale : 0, is, says)) {
            break;
        }
    }
    *ret_reached = reached(l);
}

int tun_divide(const struct tun_work *w, struct tun_division *ret)
{
    struct lp l = {.w = w, .scale = 1, .cost_scale = 1};
    double load[TUN_DIVIDE_ROWS] = {0}, price[TUN_DIVIDE_ROWS], asked[TUN_DIVIDE_ROWS];
    base_autofree void *says = calloc(1, w->column_bytes + 1);

    *ret = TUN_DIVISION_NULL;
    l.columns = calloc(TUN_DIVIDE_ROWS, w->column_bytes + 1);
    if (!says || !l.columns) {
        free(l.columns);
        return -ENOMEM;
    }
    for (size_t k = 0; k < w->ep_count; k++) {
        price[k] = 1;
    }
    l.scale = ask(&l, price, asked, load, says);
    l.scale = l.scale > 0 ? l.scale : w->time_ns;
    l.cost_scale = load[w->ep_count] > 0 ? load[w->ep_count] : 1;
    start(&l, load, says);
    improve(&l, says, &ret->bound_ns, &ret->ns, ret->price);
    ret->kept = w->time_ns > 0 && ret->ns <= w->time_ns;
    if (ret->kept) {
        count_costs(&l);
        improve(&l, says, &ret->cost_bound, &ret->cost, ret->price);
    }
    take(&l, ret);
    return 0;
}

void tun_division_deinit(struct tun_division *d)
{
    free(d->columns);
    d->columns = NULL;
}
