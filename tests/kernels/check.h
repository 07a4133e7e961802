/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/kernels/check.h - runs every variant that takes an operator against its reference
 *
 * Tolerance (HOUSE_STYLE section 7): with u = 2^-24, n terms and S = sum |w x| (the reference run
 * on the absolute values of everything), |y - ref| <= 2 n u S before the element function, times
 * its Lipschitz constant, plus its own error in units of the result.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "tests/kernels/one_op.h"

enum check_bound { CHECK_SUM, CHECK_ULP, CHECK_EXACT };

struct check {
    enum check_bound bound;
    double terms;           /* SUM: n */
    double ulps;            /* of the result: the element function, or all of a ULP check */
    double absolute;        /* error near zero */
    const char *expect;     /* at least one variant whose name holds this must take the case */
    const char *without;    /* NULL, or: rows whose names hold it are left out */
    bool in_place;          /* the output is the memory of input 0 */
    bool residual_in_place; /* the output is the memory of the residual */
    /* NULL, or: rows that run wherever they can, even where supports() leaves the case to faster
     * ones (they tell by packed_bytes() being 0 that they cannot) */
    bool (*force)(const struct krn_variant *v);
};

/** check_wants() - Return: whether rows of this name are run. PIPED_TEST_ROWS=a,b leaves only those
 * whose names hold one of the parts; a $ in a part is the end of a name. */
bool check_wants(const char *name);

/** check_run() - Return: true, or false after printing what failed. What it expects is waived where
 * check_wants() leaves no such row. */
bool check_run(struct one_op *o, const struct check *c);

/** check_unexercised() - prints the usable variants among @which that no case reached; those that
 * PIPED_TEST_ROWS names have to be usable. Return: how many. */
int check_unexercised(bool (*which)(const struct krn_variant *v));

/** check_fill() - uniform random values in [-scale, scale) */
void check_fill(struct one_op *o, size_t tensor, float scale);
/** check_epilogue() - random per-channel scale and shift (by chance), an act, a residual */
void check_epilogue(struct one_op *o, size_t channels, enum mdl_act act,
                    enum mdl_residual residual);
/** check_act_lipschitz() - largest slope of an element function */
double check_act_lipschitz(const struct mdl_op *op);

/** check_partial - only some cases run: what none of them reached says nothing */
extern bool check_partial;
/** CHECK_MAIN() - TEST_MAIN() that sets check_partial */
#define CHECK_MAIN()                                                                               \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        check_partial = argc > 1;                                                                  \
        return t_main(argc, argv);                                                                 \
    }
