/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/int8cal/agree.h"

#include "base/base.h"
#include "base/leaves/how_far.h"
#include "kernels/int8cal/runner.h"

int krn_agreement(const struct mdl_model *m, const struct krn_choice *a, const struct krn_choice *b,
                  const struct krn_examples *e, double *ret)
{
    struct krn_runner x = KRN_RUNNER_NULL, y = KRN_RUNNER_NULL;
    base_autofree void *input = NULL;
    char error[MDL_ERROR_MAX];
    size_t same = 0;
    int r;

    if (e->count == 0) {
        return -EINVAL;
    }
    r = krn_runner_init(&x, m, a, error);
    r = r < 0 ? r : krn_runner_init(&y, m, b, error);
    input = r < 0 ? NULL : aligned_alloc(64, base_align_up(m->inputs[0].bytes + 1, 64));
    r = r == 0 && !input ? -ENOMEM : r;
    for (size_t i = 0; r == 0 && i < e->count; i++) {
        mdl_progress("judging by examples", i, e->count);
        r = krn_example_input(e, i, m, input, error);
        if (r == 0) {
            krn_runner_run(&x, input);
            krn_runner_run(&y, input);
            same += krn_answer_agrees(m, x.outputs[0], y.outputs[0]);
        }
    }
    krn_runner_deinit(&x);
    krn_runner_deinit(&y);
    if (r == 0) {
        *ret = (double)same / (double)e->count;
    }
    return r;
}
