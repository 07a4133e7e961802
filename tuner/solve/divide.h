/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/solve/divide.h - work that is divided among cores in fractions: a linear program by columns
 *
 *     min P:  sum_c x_c load_c[k] <= cores_k P for each EP k,  sum_c x_c = 1,  x >= 0
 *
 * and, if time_ns is given and P can be as short, with P <= time_ns instead
 *     min C:  sum_c x_c cost_c
 *
 * A column c is a way to do all of the work once; it takes load_c[k] of the cores of EP k. There
 * may be far too many columns to list: who asks gives a function that finds the cheapest one at
 * given prices. With y_k the price of a core of EP k (sum y_k cores_k = 1) the cheapest column is a
 * bound of P from below, the mix so far is one from above (G. B. Dantzig, P. Wolfe, Decomposition
 * Principle for Linear Programs, Operations Research 8, 1960). Of C the bound is that of the
 * cheapest column, its cost counted, less sum y_k cores_k time_ns. There are only eps + 1 rows, and
 * one of time_ns, so at most as many columns have a share.
 */
#pragma once

#include "tuner/problem.h"

#define TUN_DIVIDE_ROWS (PL_EP_MAX + 2)

struct tun_work {
    const struct tun_ep *eps;
    size_t ep_count;
    size_t column_bytes; /* of what says which column it is; 0: nobody asks */
    double time_ns;      /* as above; 0: only P counts */
    /* Finds the cheapest column at these prices, none below 0, [ep_count], and that of its cost, 0
     * or 1, behind them. @ret_load: [ep_count], and its cost behind them. @ret_column:
     * column_bytes. Return: the sum of price and load, with the cost. */
    double (*cheapest)(void *arg, const double *price, double *ret_load, void *ret_column);
    void *arg;
};

struct tun_division {
    double bound_ns;         /* P is not below this */
    double ns;               /* the least P; equal to bound_ns but for rounding */
    bool kept;               /* P <= time_ns; then the mix and the prices are those of C */
    double cost_bound, cost; /* C is not below the first; of the mix */
    double price[PL_EP_MAX]; /* of a core, 0 where cores are to spare. Of P: sum price cores = 1; of
                              * C: by how much it falls with each ns of a core */
    size_t count;
    double share[TUN_DIVIDE_ROWS]; /* x, [count] */
    unsigned char *columns;        /* [count][column_bytes], owned */
};
#define TUN_DIVISION_NULL ((struct tun_division){0})

/** tun_divide() - @ret: tun_division_deinit(). Any thread. Return: 0 or -ENOMEM. */
int tun_divide(const struct tun_work *w, struct tun_division *ret);
void tun_division_deinit(struct tun_division *d);
