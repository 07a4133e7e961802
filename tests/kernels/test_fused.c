/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Primitives that run two ops as one, against the references of both, one after the other: real
 * pairs of layers (made smaller) and random ones, alone and as a team. Here: that they refuse other
 * pairs, and that none of them is untested.
 */
#include "tests/harness.h"
#include "tests/kernels/against_ref.h"
#include "tests/kernels/fused_pair.h"

TEST(other_pairs_are_refused)
{
    struct fused_case k = {.n = 1, .c = 8, .h = 6, .w = 6, .o = 8, .k = 3, .stride = 1, .pad = 1};
    struct fused_pair p;
    size_t count;
    const struct krn_primitive *v = krn_primitives(&count);

    for (int change = 0; change < 4; change++) {
        fused_pair_init(&p, &k);
        switch (change) {
        case 0: /* two others */
            p.ops[1].kind = MDL_OP_UNARY;
            break;
        case 1: /* not one behind the other */
            p.ops[1].in[0] = p.ops[0].in[0];
            break;
        case 2: /* the first adds something */
            p.ops[0].residual = MDL_RESIDUAL_BEFORE_ACT;
            p.ops[0].residual_in = p.ops[0].out[0];
            break;
        default: /* a second 1x1 */
            p.ops[1] = p.ops[0];
            p.ops[1].in[0] = p.ops[0].out[0];
            break;
        }
        for (size_t i = 0; i < count; i++) {
            if (v[i].fused && v[i].kind == MDL_OP_CONV && !(v[i].needs & ~krn_cpu_features())) {
                T_TRUE(!v[i].supports(&p.o->m, p.ops));
            }
        }
        fused_pair_deinit(&p);
    }
}

TEST_LAST(no_fused_row_is_untested)
{
    size_t count;
    const struct krn_primitive *v = krn_primitives(&count);

    if (check_partial) {
        T_SKIP("only some cases were asked for");
    }
    for (size_t i = 0; i < count; i++) {
        if (v[i].fused && check_wants(v[i].name) && !(v[i].needs & ~krn_cpu_features())) {
            T_TRUE(fused_exercised(i) > 0);
        }
    }
}

CHECK_MAIN()
