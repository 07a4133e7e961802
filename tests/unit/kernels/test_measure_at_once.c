/* SPDX-License-Identifier: Apache-2.0 */
/* krn_measure_at_once(): which operators are timed with several frames, and what is said of the
 * others. How long anything takes is not tested. */
#include <errno.h>

#include "base.h"
#include "kernels/select/measure_at_once.h"
#include "tests/harness.h"
#include "tests/unit/kernels/two_ops.h"

#define ELEMENTS 320u /* 400 KiB of weights */

enum { X, W, C, T, Y };

static float w[ELEMENTS * ELEMENTS], c[ELEMENTS];

/* y = relu(x w) + c */
static void model_init(struct tiny *o)
{
    tiny_model(o, 5, ELEMENTS, 4 * ELEMENTS);
    o->tensors[W].dim[0] = ELEMENTS;
    o->storages[W] = (struct mdl_storage){.home = MDL_HOME_CONST, .bytes = sizeof(w), .data = w};
    o->storages[C] = (struct mdl_storage){.home = MDL_HOME_CONST, .bytes = sizeof(c), .data = c};
    for (size_t i = 0; i < 2; i++) {
        o->ops[i].kind = i == 0 ? MDL_OP_GEMM : MDL_OP_BINARY;
        o->ops[i].in[0] = i ? T : X;
        o->ops[i].in[1] = i ? C : W;
        o->ops[i].out[0] = i ? Y : T;
    }
    o->ops[0].attr.gemm.alpha = o->ops[0].attr.gemm.beta = 1;
    o->ops[0].channels = ELEMENTS;
    o->ops[1].attr.binary = MDL_BIN_ADD;
    o->m.weight_bytes = sizeof(w) + sizeof(c);
}

static void choose(const struct tiny *o, const char *only, struct krn_choice *ret)
{
    T_EQ(krn_choice_prefer(&o->m, only, ret), 0);
}

TEST(products_are_timed_and_the_others_are_not)
{
    const struct krn_at_once_options options = {.cpu = -1, .budget_ns = 1};
    double gains[2][KRN_AT_ONCE] = {{0}};
    struct krn_choice choice;
    struct tiny o;

    model_init(&o);
    choose(&o, "gemm_f32__igemm", &choice);
    T_TRUE(krn_at_once_gains(&o.m, &choice, 0));
    T_TRUE(!krn_at_once_gains(&o.m, &choice, 1));
    T_TRUE(krn_at_once_any(&o.m, &choice));
    T_EQ(krn_measure_at_once(&o.m, &choice, &options, gains), 0);
    for (size_t i = 0; i < KRN_AT_ONCE; i++) {
        T_TRUE(isfinite(gains[0][i]) && gains[0][i] > 0 && gains[0][i] != 1);
        T_NEAR(gains[1][i], 1, 0);
    }
    krn_choice_deinit(&choice);
}

TEST(light_weights_and_references_gain_nothing)
{
    const struct krn_at_once_options options = {.cpu = -1, .budget_ns = 1};
    double gains[2][KRN_AT_ONCE] = {{0}};
    struct krn_choice choice;
    struct tiny o;

    model_init(&o);
    choose(&o, "gemm_f32__igemm", &choice);
    o.tensors[W].dim[0] = o.tensors[X].dim[1] = 16;
    T_TRUE(!krn_at_once_any(&o.m, &choice));
    krn_choice_deinit(&choice);

    model_init(&o);
    choose(&o, "__ref", &choice);
    T_TRUE(!krn_at_once_any(&o.m, &choice));
    T_EQ(krn_measure_at_once(&o.m, &choice, &options, gains), 0);
    for (size_t i = 0; i < 2 * KRN_AT_ONCE; i++) {
        T_NEAR(gains[i / KRN_AT_ONCE][i % KRN_AT_ONCE], 1, 0);
    }
    krn_choice_deinit(&choice);
}

TEST(it_stops_early)
{
    const _Atomic bool stop = true;
    const struct krn_at_once_options options = {.cpu = -1, .budget_ns = UINT32_MAX, .stop = &stop};
    double gains[2][KRN_AT_ONCE];
    struct krn_choice choice;
    struct tiny o;

    model_init(&o);
    choose(&o, "gemm_f32__igemm", &choice);
    T_EQ(krn_measure_at_once(&o.m, &choice, &options, gains), -ECANCELED);
    krn_choice_deinit(&choice);
}

TEST_MAIN()
