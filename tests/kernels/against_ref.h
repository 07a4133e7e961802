/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/kernels/against_ref.h - checks every primitive of an operator against the reference
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
    double ulps;            /* error of the element function, or of all in a ULP check */
    double absolute;        /* absolute error near zero */
    const char *expect;     /* at least one primitive whose name contains this must run the case */
    const char *without;    /* NULL, or: skip primitives whose names contain this */
    bool in_place;          /* the output shares memory with input 0 */
    bool residual_in_place; /* the output shares memory with the residual */
    /* NULL, or: selects primitives that run whenever they can, even if supports() leaves the case
     * to faster ones (packed_bytes() is 0 if they cannot) */
    bool (*force)(const struct krn_primitive *v);
};

/** check_wants() - Return: whether to run primitives of this name. PIPED_TEST_PRIMITIVES=a,b
 * selects those whose names contain one of the parts; $ matches the end of a name. */
bool check_wants(const char *name);

/** check_run() - runs the case, and again with operands that repeat. Return: true, or false after
 * printing the failure. `expect` is ignored if check_wants() deselects such primitives, or the CPU
 * lacks their features. */
bool check_run(struct one_op *o, const struct check *c);

/** check_unexercised() - prints the usable primitives among @which that no case ran, or that none
 * ran in pieces although they are not whole. Primitives named by PIPED_TEST_PRIMITIVES must be
 * usable, unless PIPED_CPU excludes features of the CPU. Return: how many. */
int check_unexercised(bool (*which)(const struct krn_primitive *v));

/** check_partial - only some cases run, so unexercised primitives are no error */
extern bool check_partial;
/** CHECK_MAIN() - TEST_MAIN() that sets check_partial */
#define CHECK_MAIN()                                                                               \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        check_partial = argc > 1;                                                                  \
        return t_main(argc, argv);                                                                 \
    }
