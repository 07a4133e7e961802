/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/solve/mix_columns.h - what the linear programs of a mix have in common: a column has a way
 * for a frame of each model, as often as the model's rate
 *
 * Whatever a way is, a route or every unit where it likes. The cheapest column has each model's
 * cheapest way; by the objective a way costs energy, too, or a model's frames may be left out for
 * their weight (tuner/solve/mix.h). Used by that folder alone.
 */
#pragma once

#include "tuner/solve/divide.h"
#include "tuner/solve/wish.h"

struct tun_columns {
    const struct tun_wish *wishes; /* [count], borrowed */
    size_t count;
    enum tun_share objective;
    double part;      /* of the cores' time, for what is not TUN_FAIR */
    size_t way_bytes; /* of what says which way it is; 0: nobody asks */
    /* Finds the cheapest way for a frame of @model. @price: [ep_count], of a core for a ns.
     * @ret_load: [ep_count], ns. @ret_way: way_bytes, zeroed. Return: the sum of price and load. */
    double (*way)(void *arg, size_t model, const double *price, double *ret_load, void *ret_way);
    void *arg;
};

/** tun_columns_divide() - tun_divide() of these columns, whose way is zeroed for a model that is
 * left out. Costs are what a second costs, in ns. @ret: tun_division_deinit(). Return: 0 or
 * -ENOMEM. */
int tun_columns_divide(const struct tun_columns *c, struct tun_division *ret);

/** tun_mix_divide() - the bound: a way is every unit anywhere (tuner/solve/mix.h). As above. */
int tun_mix_divide(const struct tun_wish *wishes, size_t count, enum tun_share objective,
                   struct tun_division *ret);
