/* SPDX-License-Identifier: Apache-2.0 */
/* A bound on accuracy: of the choices that trade rounding for time, finds the fastest whose classes
 * agree with the exact choice's on a set of examples. */

#include "base/base.h"
#include "daemon/models/choosing_private.h"
#include "kernels/int8cal/agree.h"

/* Drops examples that are not inputs of the model. */
static int fit(struct dmn_choose *c, const struct mdl_model *m)
{
    char error[MDL_ERROR_MAX];
    int r = krn_examples_fit(c->examples, m, error);

    if (r < 0) {
        snprintf(c->note, sizeof(c->note), "%s", error);
    } else if (c->examples->left_out) {
        snprintf(c->note, sizeof(c->note), "%zu examples skipped; %.900s", c->examples->left_out,
                 c->examples->note);
    }
    return r;
}

int dmn_choose_agree(struct dmn_choose *c, const struct mdl_model *m, const struct krn_times *t,
                     struct krn_chosen *ret)
{
    struct krn_choose_options o = c->options;
    struct krn_chosen exact = KRN_CHOSEN_NULL, front[DMN_CHOOSE_FRONT_MAX];
    size_t count = 0;
    bool found = false;
    int r = fit(c, m);

    o.exact = true;
    r = r < 0 ? r : krn_choose(t, &o, &exact);
    o.exact = false;
    o.front_inexact = true;
    r = r < 0 ? r : krn_choose_front(t, &o, DMN_CHOOSE_FRONT_MAX, front, &count);
    for (size_t i = 0; i < count; i++) {
        double agreement = 0;

        if (r == 0 && !found) {
            r = krn_agreement(m, &exact.choice, &front[i].choice, c->examples, &agreement);
        }
        if (r == 0 && !found && agreement >= c->agreement_min) {
            found = true;
            c->agreement = agreement;
            *ret = front[i];
        } else {
            krn_chosen_deinit(&front[i]);
        }
    }
    if (r == 0 && !found) { /* not even those with the fewest inexact primitives agree */
        c->agreement = 1;
        *ret = exact;
    } else {
        krn_chosen_deinit(&exact);
    }
    return r;
}
