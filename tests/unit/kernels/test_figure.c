/* SPDX-License-Identifier: Apache-2.0 */
/* What samples say: centres, their uncertainty, and choices by figures with noise. */
#include <math.h>

#include "base/base.h"
#include "kernels/select/choose.h"
#include "kernels/select/figure.h"
#include "tests/harness.h"

TEST(a_figure_is_the_median_and_what_surrounds_it)
{
    double x[20], odd[3] = {300, 100, 200}, far[2] = {900, 1000};
    struct krn_figure f;

    for (size_t i = 0; i < 20; i++) {
        x[i] = (double)(100 + 7 * i % 20); /* 100 to 119, mixed */
    }
    f = krn_figure_of(x, 20, far, 2);
    T_NEAR(f.ns, 109.5, 1e-9);
    T_NEAR(f.sigma_ns, (109.5 - 104.0) / 1.96, 1e-9); /* down to the 5th */
    f = krn_figure_of(odd, 3, far, 2);
    T_NEAR(f.ns, 200, 1e-9);
    T_NEAR(f.sigma_ns, 100 / 1.96, 1e-9);
    f = krn_figure_of(odd, 1, far, 2); /* too few: the disturbed ones count */
    T_NEAR(f.ns, 900, 1e-9);
    T_TRUE(f.sigma_ns >= 225);
    f = krn_figure_of(odd, 0, far, 0);
    T_TRUE(f.ns == 0 && f.sigma_ns == 0);
}

TEST(the_least_sample_alone_decides_nothing)
{
    double x[20], y[20];

    for (size_t i = 0; i < 20; i++) {
        x[i] = i == 0 ? 1 : 100;
        y[i] = 90;
    }
    T_TRUE(krn_figure_of(y, 20, NULL, 0).ns < krn_figure_of(x, 20, NULL, 0).ns);
    T_NEAR(krn_figure_of(x, 20, NULL, 0).sigma_ns, 0.2, 1e-9);
}

TEST(figures_join_by_what_they_are_worth)
{
    struct krn_figure wild = {300, 75}, sure = {100, 1}, f = krn_figure_join(wild, sure);

    T_NEAR(f.ns, 100, 0.1);
    T_TRUE(f.sigma_ns < 5);
    f = krn_figure_join((struct krn_figure){100, 2}, (struct krn_figure){101, 2});
    T_NEAR(f.ns, 100.5, 1e-9);
    T_NEAR(f.sigma_ns, 2 / sqrt(2), 1e-9);
    f = krn_figure_join((struct krn_figure){100, 1},
                        (struct krn_figure){120, 1}); /* both cannot be */
    T_TRUE(f.sigma_ns > 9.9);
    f = krn_figure_join((struct krn_figure){0}, sure);
    T_TRUE(f.ns == 100);
}

TEST(a_gain_is_expected_where_figures_meet)
{
    T_NEAR(krn_figure_gain(0, 10), 10 / sqrt(2 * M_PI), 1e-6);
    T_TRUE(krn_figure_gain(50, 10) < 1e-5);
    T_TRUE(krn_figure_gain(1, 0) == 0);
    T_TRUE(krn_figure_gain(5, 10) < krn_figure_gain(0, 10));
}

static double normal(void)
{
    double sum = -6;

    for (size_t i = 0; i < 12; i++) {
        sum += (double)t_range(0, 1000000) / 1e6;
    }
    return sum;
}

#define OPS 30u
#define ROWS 4u
#define CASES 400

static const struct krn_primitive rows[ROWS] = {
    {.name = "a"}, {.name = "b"}, {.name = "c"}, {.name = "d"}};

/* One sample in @every is a neighbour's: up to five times as long. It was not noticed. */
static double sample(double truth, double noise, int64_t every)
{
    double ns = truth * (1 + noise * fabs(normal()));

    return t_range(1, every) == 1 ? ns * (double)t_range(2, 5) : ns;
}

/* Measures a network of random times, chooses. *@ret_regret: the share by which the choice is
 * behind the best; *@ret_doubt: the share that it is said to lose on average. */
static void measure_once(double noise, double *ret_regret, double *ret_doubt)
{
    struct krn_time times[OPS * ROWS];
    struct krn_times t = {.op_count = OPS, .count = OPS * ROWS, .times = times};
    struct krn_choose_options o = {.exact = true};
    double truth[OPS][ROWS], best = 0, taken = 0;
    struct krn_chosen c;

    for (size_t op = 0; op < OPS; op++) {
        double least = INFINITY;

        for (size_t i = 0; i < ROWS; i++) {
            double x[KRN_FIGURE_SAMPLES];
            struct krn_figure f;

            truth[op][i] = (double)t_range(10000, 12000);
            least = fmin(least, truth[op][i]);
            for (size_t k = 0; k < KRN_FIGURE_SAMPLES; k++) {
                x[k] = sample(truth[op][i], noise, 10);
            }
            f = krn_figure_of(x, KRN_FIGURE_SAMPLES, NULL, 0);
            times[op * ROWS + i] = (struct krn_time){
                .op = op, .primitive = &rows[i], .ns = f.ns, .samples = 20, .sigma_ns = f.sigma_ns};
        }
        best += least;
    }
    T_EQ(krn_choose(&t, &o, &c), 0);
    for (size_t op = 0; op < OPS; op++) {
        taken += truth[op][c.choice.own[op] - rows];
    }
    *ret_doubt = krn_chosen_doubt(&c);
    krn_chosen_deinit(&c);
    *ret_regret = taken / best - 1;
}

/* With noise of 3 %, 99 of 100 choices are within 2 % of the best. The share that they are said to
 * lose is no less than what they do lose. */
TEST(choices_by_noisy_times_are_within_two_percent)
{
    double lost = 0, said = 0, doubt = 0, r = 0;
    int far = 0;

    for (int i = 0; i < CASES; i++) {
        measure_once(0.03, &r, &doubt);
        far += r > 0.02;
        lost += r;
        said += doubt;
    }
    T_LE(far, CASES / 100);
    T_TRUE(lost <= said);
}

TEST(noise_is_told_as_doubt)
{
    double calm = 0, wild = 0, doubt = 0, r = 0;

    for (int i = 0; i < 50; i++) {
        measure_once(0.002, &r, &doubt);
        calm += doubt / 50;
        measure_once(0.3, &r, &doubt);
        wild += doubt / 50;
    }
    T_TRUE(calm < 0.005);
    T_TRUE(wild > 0.01);
}

TEST_MAIN()
