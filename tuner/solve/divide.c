/* SPDX-License-Identifier: Apache-2.0 */
/* Revised simplex of eps + 1 rows, with the inverse of its basis. */
#include "tuner/solve/divide.h"

#include "base/base.h"

#define GAP 1e-9
#define ROUNDS_MAX 20000

struct lp {
    size_t rows;                                      /* an EP each, and the sum of the mix */
    double inverse[TUN_DIVIDE_ROWS][TUN_DIVIDE_ROWS]; /* of the basis */
    double value[TUN_DIVIDE_ROWS];                    /* of the basic variables */
    double cost[TUN_DIVIDE_ROWS];                     /* 1: the makespan, else 0 */
    bool is_column[TUN_DIVIDE_ROWS];                  /* else the makespan, or spare time */
    unsigned char *columns;                           /* [rows][column_bytes] */
    size_t column_bytes;
};

/* The variable with this column comes in. @says: which it is; NULL: spare time. Return: false if it
 * cannot. */
static bool pivot(struct lp *l, const double *column, const void *says)
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
    l->cost[out] = 0;
    l->is_column[out] = says != NULL;
    if (says && l->column_bytes) {
        memcpy(l->columns + out * l->column_bytes, says, l->column_bytes);
    }
    return true;
}

/* Rows: cores_k P - load_k - s_k = 0 and sum of the mix = 1. Basis: P, one column, and the spare
 * time s_k of every EP but the one that takes longest. */
static void start(struct lp *l, const struct tun_work *w, const double *load)
{
    size_t eps = w->ep_count, top = 0;
    double top_cores;

    for (size_t k = 1; k < eps; k++) {
        if (load[k] / w->eps[k].cores > load[top] / w->eps[top].cores) {
            top = k;
        }
    }
    top_cores = w->eps[top].cores;
    /* P from row top; s_k = cores_k P - load_k; the mix from the last row */
    l->inverse[top][top] = 1 / top_cores;
    l->inverse[top][eps] = load[top] / top_cores;
    l->cost[top] = 1;
    l->value[top] = load[top] / top_cores;
    for (size_t k = 0; k < eps; k++) {
        if (k != top) {
            double cores = w->eps[k].cores;

            l->inverse[k][top] = cores / top_cores;
            l->inverse[k][eps] = cores * load[top] / top_cores - load[k];
            l->inverse[k][k] = -1;
            l->value[k] = base_max(l->inverse[k][eps], 0.0);
        }
    }
    l->inverse[eps][eps] = 1;
    l->value[eps] = 1;
    l->is_column[eps] = true;
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

static double makespan(const struct lp *l)
{
    double sum = 0;

    for (size_t i = 0; i < l->rows; i++) {
        sum += l->cost[i] * l->value[i];
    }
    return sum;
}

/* Scales prices so that sum price cores = 1. Return: the price of the cheapest column. */
static double ask(const struct tun_work *w, const double *price, double *ret_price,
                  double *ret_load, void *ret_column)
{
    double sum = 0;

    for (size_t k = 0; k < w->ep_count; k++) {
        sum += base_max(price[k], 0.0) * w->eps[k].cores;
    }
    for (size_t k = 0; k < w->ep_count; k++) {
        ret_price[k] = base_max(price[k], 0.0) / sum;
    }
    return w->cheapest(w->arg, ret_price, ret_load, ret_column);
}

static void take(const struct lp *l, struct tun_division *ret)
{
    for (size_t i = 0; i < l->rows; i++) {
        if (l->is_column[i] && l->value[i] > 0) {
            ret->share[ret->count] = l->value[i];
            if (l->column_bytes) {
                memmove(l->columns + ret->count * l->column_bytes, l->columns + i * l->column_bytes,
                        l->column_bytes);
            }
            ret->count++;
        }
    }
    ret->columns = l->columns;
}

/* Which spare time is worth more than none at these prices. Return: ep_count: none. */
static size_t worth_sparing(const struct tun_work *w, const double *price)
{
    size_t spare = w->ep_count;
    double least = 0;

    for (size_t k = 0; k < w->ep_count; k++) {
        if (price[k] < least) {
            least = price[k];
            spare = k;
        }
    }
    return spare < w->ep_count && least * w->eps[spare].cores < -1e-12 ? spare : w->ep_count;
}

void tun_divide(const struct tun_work *w, struct tun_division *ret)
{
    struct lp l = {.rows = w->ep_count + 1, .column_bytes = w->column_bytes};
    double load[PL_EP_MAX], asked[PL_EP_MAX], price[TUN_DIVIDE_ROWS] = {0}, scale;
    size_t eps = w->ep_count;
    base_autofree void *says = calloc(1, w->column_bytes + 1);

    *ret = TUN_DIVISION_NULL;
    l.columns = calloc(l.rows, w->column_bytes + 1);
    if (!says || !l.columns) {
        free(l.columns);
        return;
    }
    for (size_t k = 0; k < eps; k++) {
        price[k] = 1;
    }
    ret->bound_ns = scale = ask(w, price, ret->price, load, says); /* all figures are near 1 */
    for (size_t k = 0; k < eps; k++) {
        load[k] /= scale;
    }
    start(&l, w, load);
    memcpy(l.columns + eps * w->column_bytes, says, w->column_bytes);
    for (int round = 0; round < ROUNDS_MAX; round++) {
        double column[TUN_DIVIDE_ROWS] = {0}, bound;
        size_t spare;

        prices(&l, price);
        bound = ask(w, price, asked, load, says);
        if (bound > ret->bound_ns) {
            ret->bound_ns = bound;
            memcpy(ret->price, asked, sizeof(asked));
        }
        if (makespan(&l) * scale <= ret->bound_ns * (1 + GAP)) {
            break;
        }
        spare = worth_sparing(w, price);
        if (spare < eps) {
            column[spare] = -1;
        } else {
            for (size_t k = 0; k < eps; k++) {
                column[k] = -load[k] / scale;
            }
            column[eps] = 1;
        }
        if (!pivot(&l, column, spare < eps ? NULL : says)) {
            break;
        }
    }
    ret->ns = makespan(&l) * scale;
    take(&l, ret);
}

void tun_division_deinit(struct tun_division *d)
{
    free(d->columns);
    d->columns = NULL;
}
