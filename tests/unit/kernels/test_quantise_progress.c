/* SPDX-License-Identifier: Apache-2.0 */
/* What people see of a quantisation: no step begins again under the same name. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/leaves/load_work.h"
#include "kernels/int8cal/quantise.h"
#include "kernels/kernels.h"
#include "model/model.h"
#include "tests/harness.h"

#define STEPS_MAX 16
#define EXAMPLES 12

static struct {
    const char *what;
    size_t done, of;
} steps[STEPS_MAX];
static size_t count, wrong;

void __wrap_mdl_progress(const char *what, size_t done, size_t of);

void __wrap_mdl_progress(const char *what, size_t done, size_t of)
{
    struct mdl_progress *told = mdl_progress_by(NULL);
    size_t i = 0;

    (void)mdl_progress_by(told);
    if (!told || strncmp(what, "packing ", 8) == 0) {
        return; /* nobody sees it, or it is a load's, of which there are two */
    }
    while (i < count && strcmp(steps[i].what, what) != 0) {
        i++;
    }
    if (i < count) {
        wrong += i + 1 < count || done <= steps[i].done || done >= of || of != steps[i].of;
        steps[i].done = done;
    } else if (count < STEPS_MAX) {
        steps[count].what = what;
        steps[count].done = done;
        steps[count++].of = of;
    }
}

static void quantise(double agreement, bool either, size_t front)
{
    struct krn_quantise_options o = {
        .either = either, .agreement_min = agreement, .front_max = front};
    struct mdl_load_options load = {.name = "digits", .const_eval = krn_const_eval};
    struct krn_examples e = KRN_EXAMPLES_NULL;
    struct krn_quantised of = KRN_QUANTISED_NULL;
    struct mdl_progress shown = {.what = NULL};
    char error[MDL_ERROR_MAX] = "";
    static float input[EXAMPLES][16 * 16];
    int r;

    for (size_t i = 0; i < EXAMPLES; i++) {
        for (size_t k = 0; k < 16 * 16; k++) {
            input[i][k] = (float)t_range(0, 1000) / 1000;
        }
        T_EQ(krn_examples_add(&e, "a.f32", input[i], sizeof(input[i]), false), 0);
    }
    count = wrong = 0;
    (void)mdl_progress_by(&shown);
    r = krn_quantise(getenv("PIPED_TEST_MODEL"), &load, &e, &o, error, &of);
    (void)mdl_progress_by(NULL);
    if (r < 0) {
        fprintf(stderr, "%s\n", error);
    }
    T_TRUE(r >= 0);
    for (size_t i = 0; i < count && wrong; i++) {
        fprintf(stderr, "%s: %zu of %zu\n", steps[i].what, steps[i].done, steps[i].of);
    }
    T_EQ(wrong, 0);
    T_EQ(of.front_count > 0, front > 0);
    krn_quantised_deinit(&of);
    krn_examples_deinit(&e);
}

TEST(no_step_begins_again)
{
    quantise(0, true, 0);
    T_TRUE(count >= 3); /* calibrating, comparing, judging */
    quantise(0, false, 0);
    T_TRUE(count >= 3);
}

/* All answers of noise have to agree surely: operators are left in f32. */
TEST(nor_where_operators_stay_f32)
{
    quantise(1, true, 0);
    T_TRUE(count >= 5);
}

TEST(nor_where_a_front_is_made)
{
    quantise(0, true, 4);
    T_TRUE(count >= 5);
    quantise(1, true, 4);
    T_TRUE(count >= 5);
}

TEST_MAIN()
