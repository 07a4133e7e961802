/* SPDX-License-Identifier: Apache-2.0 */
/* Pipe-it's predictor: known coefficients come back, noise and degenerate rows do no harm. */
#include "base/base.h"
#include "tests/harness.h"
#include "tuner/predict.h"

/* ns, of the order of a core with 2 multiply-accumulates per ns */
static const double CONV[8] = {30, 5, 8, 0.2, 0.05, 0.9, 0.5, 4000};
static const double FC[8] = {0, 3, 2, 0, 0.4, 0, 0, 9000};
static const double DEPTHWISE[8] = {0, 0, 7, 0, 0.3, 1.1, 0.6, 3000};
static const double ALPHA[4] = {2500, 40, 6000, 0.04};

#define BENCH_MAX 4000
static struct tun_bench benches[BENCH_MAX];

static double of(const double *fit, double n, double k, double m, size_t width)
{
    const double terms[8] = {n, k, m, n * k, k * m, n * m, n * m * k, 1};
    double t = 0, h = (double)width;

    for (int i = 0; i < 8; i++) {
        t += fit[i] * terms[i];
    }
    return width == 1 ? t
                      : (t - ALPHA[0]) / h + ALPHA[1] * n / (TUN_TILE * h) + ALPHA[2] +
                            ALPHA[3] * t * (1 - 1 / h);
}

static double truth(double n, double k, double m, size_t width)
{
    return of(n == 1 ? FC : CONV, n, k, m, width);
}

static double predict(const struct tun_predictor *p, double n, double k, double m, size_t width)
{
    const struct tun_bench b = {n, k, m, (uint16_t)width, 0, TUN_CONV};

    return tun_predict_ns(p, &b);
}

/* The paper's grid (section V-B), products with N = 1, and depthwise layers. */
static size_t make(double noise, size_t widths)
{
    static const double images[] = {7, 14, 28, 56, 112}, filters[] = {1, 3, 5, 7, 11};
    static const double channels[] = {32, 64, 92, 128, 192, 256};
    size_t count = 0;

    for (size_t i = 0; i < 5 * 5 * 6 * 6; i++) {
        double n = images[i % 5] * images[i % 5];
        double k = filters[i / 5 % 5] * filters[i / 5 % 5] * channels[i / 25 % 6];
        double m = channels[i / 150];

        for (size_t w = 1; w <= widths; w++) {
            benches[count++] = (struct tun_bench){
                n,       k, m, (uint16_t)w, truth(n, k, m, w) * (1 + noise * (double)t_float()),
                TUN_CONV};
        }
    }
    for (size_t i = 0; i < 5 * 2 * 6; i++) {
        double n = images[i % 5] * images[i % 5], k = i / 5 % 2 ? 25 : 9, m = channels[i / 10];

        for (size_t w = 1; w <= widths; w++) {
            double ns = of(DEPTHWISE, n, k, m, w) * (1 + noise * (double)t_float());

            benches[count++] = (struct tun_bench){n, k, m, (uint16_t)w, ns, TUN_DEPTHWISE};
        }
    }
    for (size_t i = 0; i < 40; i++) {
        double k = 256.0 * (double)(i % 20 + 1), m = i < 20 ? 1000 : 4096;

        benches[count++] = (struct tun_bench){
            1, k, m, 1, truth(1, k, m, 1) * (1 + noise * (double)t_float()), TUN_CONV};
    }
    return count;
}

TEST(known_coefficients_come_back)
{
    struct tun_predictor p;

    T_EQ(tun_predictor_fit(benches, make(0, 4), &p), 0);
    T_TRUE(p.fits[TUN_CONV].has_wide && p.fits[TUN_DEPTHWISE].has_wide && p.fits[TUN_FC].has);
    for (int i = 0; i < 8; i++) {
        T_NEAR(p.fits[TUN_CONV].b[i], CONV[i], 0.02 * CONV[i]);
        T_NEAR(p.fits[TUN_FC].b[i], FC[i], 0.02 * FC[i]);
        T_NEAR(p.fits[TUN_DEPTHWISE].b[i], DEPTHWISE[i], 0.02 * DEPTHWISE[i]);
    }
    for (int i = 0; i < 4; i++) {
        T_NEAR(p.fits[TUN_CONV].a[i], ALPHA[i], 0.05 * ALPHA[i]);
    }
    for (int i = 0; i < TUN_LAYERS; i++) {
        T_TRUE(p.fits[i].error < 1e-4 && p.fits[i].error_wide < 1e-4);
    }
    T_NEAR(predict(&p, 1000, 700, 77, 1), truth(1000, 700, 77, 1), 500);
    T_NEAR(predict(&p, 1000, 700, 77, 8), truth(1000, 700, 77, 8), 500);
    T_NEAR(predict(&p, 1, 5000, 100, 1), truth(1, 5000, 100, 1), 500);
}

TEST(noisy_rows)
{
    struct tun_predictor p;
    double error = 0;
    size_t count;

    T_EQ(tun_predictor_fit(benches, make(0.2, 4), &p), 0);
    T_TRUE(p.fits[TUN_CONV].error > 0.02 && p.fits[TUN_CONV].error < 0.12);
    T_TRUE(p.fits[TUN_FC].error < 0.12 && p.fits[TUN_CONV].error_wide < 0.12);
    count = make(0, 4);
    for (size_t i = 0; i < count; i++) {
        const struct tun_bench *b = &benches[i];
        double ns = tun_predict_ns(&p, b);

        T_TRUE(ns >= 1);
        error += fabs(ns / b->ns - 1) / (double)count;
    }
    T_TRUE(error < 0.05); /* of the truth, less than of the noisy rows */
}

/* The same matrices take as long as that kind of layer does, and as the others without its rows. */
TEST(depthwise_layers_have_a_fit_of_their_own)
{
    const struct tun_bench narrow = {3136, 9, 64, 1, 0, TUN_DEPTHWISE},
                           wide = {3136, 9, 64, 2, 0, TUN_DEPTHWISE};
    struct tun_predictor p;
    size_t count = make(0, 2), kept = 0;

    T_EQ(tun_predictor_fit(benches, count, &p), 0);
    T_NEAR(tun_predict_ns(&p, &narrow), of(DEPTHWISE, 3136, 9, 64, 1), 500);
    T_NEAR(tun_predict_ns(&p, &wide), of(DEPTHWISE, 3136, 9, 64, 2), 500);
    T_NEAR(predict(&p, 3136, 9, 64, 1), of(CONV, 3136, 9, 64, 1), 500);
    for (size_t i = 0; i < count; i++) {
        benches[kept] = benches[i];
        kept += benches[i].layer != TUN_DEPTHWISE;
    }
    T_EQ(tun_predictor_fit(benches, kept, &p), 0);
    T_TRUE(!p.fits[TUN_DEPTHWISE].has && tun_predict_ns(&p, &narrow) < 0);
    T_NEAR(predict(&p, 3136, 9, 64, 2), of(CONV, 3136, 9, 64, 2), 500);
}

/* Windows that are computed in other ways take other times; without rows of their own they take
 * those of all convolutions. Tiles of Winograd's transform are whole. */
TEST(windows_have_fits_of_their_own)
{
    static const double PLAIN[8] = {0, 0, 0, 0.5, 0.3, 0.7, 0.01, 900};
    static const double CONV3[8] = {0, 0, 0, 1.5, 0.2, 2, 0.003, 700};
    const struct tun_bench plain = {3000, 96, 77, 1, 0, TUN_PLAIN};
    const struct tun_bench three = {169, 960, 77, 1, 0, TUN_CONV3};
    struct tun_predictor p;
    size_t count = make(0, 1), all;

    T_EQ(tun_predictor_fit(benches, count, &p), 0);
    T_TRUE(!p.fits[TUN_PLAIN].has && !p.fits[TUN_CONV3].has);
    T_NEAR(tun_predict_ns(&p, &plain), of(CONV, 3000, 96, 77, 1), 500);
    T_NEAR(tun_predict_ns(&p, &three), of(CONV, 169, 960, 77, 1), 500);
    all = count;
    for (size_t i = 0; i < count; i++) {
        double n = benches[i].n, k = benches[i].k, m = benches[i].m;

        if (benches[i].layer == TUN_CONV && n > 1) {
            double tiles = ceil(sqrt(n) / 4) * ceil(sqrt(n) / 4) * 16;

            benches[all++] = (struct tun_bench){n, k, m, 1, of(PLAIN, n, k, m, 1), TUN_PLAIN};
            benches[all++] = (struct tun_bench){n, k, m, 1, of(CONV3, tiles, k, m, 1), TUN_CONV3};
        }
    }
    T_EQ(tun_predictor_fit(benches, all, &p), 0);
    T_NEAR(tun_predict_ns(&p, &plain), of(PLAIN, 3000, 96, 77, 1), 500);
    T_NEAR(tun_predict_ns(&p, &three), of(CONV3, 256, 960, 77, 1), 500);
}

/* A term that would take time away is left out: it has no sense outside of what was measured. */
TEST(no_term_takes_time_away)
{
    static const double LESS[8] = {0, 0, 0, 1, -2, 1, 0.02, 5000};
    struct tun_predictor p;
    size_t count = make(0, 1);

    for (size_t i = 0; i < count; i++) {
        benches[i].ns = base_max(of(LESS, benches[i].n, benches[i].k, benches[i].m, 1), 1.0);
    }
    T_EQ(tun_predictor_fit(benches, count, &p), 0);
    for (size_t l = 0; l < TUN_LAYERS; l++) {
        for (size_t i = 0; i < 8; i++) {
            T_TRUE(p.fits[l].b[i] >= 0);
        }
    }
}

/* One configuration over and over, one dimension constant, fewer rows than terms: no explosion. */
TEST(degenerate_rows)
{
    struct tun_predictor p;
    size_t count = 0;

    for (size_t i = 0; i < 20; i++) {
        benches[count++] = (struct tun_bench){196, 576, 64, 1, 1e6 + (double)i, false};
    }
    T_EQ(tun_predictor_fit(benches, count, &p), 0);
    T_NEAR(predict(&p, 196, 576, 64, 1), 1e6, 100);
    T_TRUE(predict(&p, 392, 576, 64, 1) > 1e6 && predict(&p, 392, 576, 64, 1) < 2e6);
    T_TRUE(predict(&p, 196, 576, 64, 2) < 0); /* no rows of two cores */
    T_TRUE(predict(&p, 1, 576, 64, 1) < 0);   /* none with N = 1 */

    T_EQ(tun_predictor_fit(benches, 7, &p), -EINVAL);
    T_EQ(tun_predictor_fit(benches, 0, &p), -EINVAL);
    for (size_t i = 0; i < count; i++) {
        benches[i].ns = i % 2 ? NAN : -5;
    }
    T_EQ(tun_predictor_fit(benches, count, &p), -EINVAL);
}

TEST(nonsense_rows_are_left_out)
{
    struct tun_predictor clean, mixed;
    size_t count = make(0, 2);

    T_EQ(tun_predictor_fit(benches, count, &clean), 0);
    benches[count++] = (struct tun_bench){100, 100, 100, 1, INFINITY, false};
    benches[count++] = (struct tun_bench){100, 100, 0, 1, 5, false};
    benches[count++] = (struct tun_bench){100, NAN, 100, 1, 5, false};
    benches[count++] = (struct tun_bench){100, 100, 100, 0, 5, false};
    T_EQ(tun_predictor_fit(benches, count, &mixed), 0);
    T_EQ(memcmp(&clean, &mixed, sizeof(clean)), 0);
}

/* A line that passes 0 within reach: predictions stay positive, wide ones too. */
TEST(predictions_are_positive)
{
    struct tun_predictor p = {.fits = {[TUN_CONV] = {.has = true, .has_wide = true}}};

    p.fits[TUN_CONV].b[6] = 1;
    p.fits[TUN_CONV].b[7] = -5000;
    p.fits[TUN_CONV].a[0] = 1e6;
    T_NEAR(predict(&p, 2, 2, 2, 1), 1, 0);
    T_NEAR(predict(&p, 100, 100, 10, 1), 95000, 1e-6);
    T_NEAR(predict(&p, 100, 100, 10, 2), 95000.0 / 4, 1e-6);
    T_TRUE(predict(&p, 100, 100, 10, 0) < 0);
    T_TRUE(predict(&p, -1, 100, 10, 1) < 0);
}

TEST(costs_are_filled_where_nothing_better_is)
{
    const struct tun_ep ep = {.name = "big", .cores = 2, .speed = 1, .bandwidth = 1};
    struct tun_problem problem;
    struct tun_predictor p;

    T_EQ(tun_predictor_fit(benches, make(0, 2), &p), 0);
    T_EQ(tun_problem_init(&problem, 5, &ep, 1), 0);
    for (size_t u = 0; u < 3; u++) {
        tun_gemm_of_conv(14, 14, 3, 3, 64, 128, &problem.units[u].gemm_n, &problem.units[u].gemm_k,
                         &problem.units[u].gemm_m);
    }
    T_NEAR(problem.units[0].gemm_n, 196, 0);
    T_NEAR(problem.units[0].gemm_k, 576, 0);
    T_NEAR(problem.units[0].gemm_m, 128, 0);
    *tun_cell_at(&problem.costs, 0, 1, 1) = (struct tun_cell){7, 0.1, TUN_MEASURED};
    *tun_cell_at(&problem.costs, 0, 1, 2) = (struct tun_cell){7, 0.1, TUN_PREDICTED};
    problem.units[4] = problem.units[0];
    problem.units[4].layer = TUN_DEPTHWISE;
    T_EQ(tun_predict_costs(&problem, 0, &p), 7); /* unit 3 has no matrices, unit 1 a measurement */
    T_NEAR(tun_cell_at(&problem.costs, 0, 1, 4)->ns, of(DEPTHWISE, 196, 576, 128, 1), 1000);
    T_NEAR(tun_cell_at(&problem.costs, 0, 1, 1)->ns, 7, 0);
    T_NEAR(tun_cell_at(&problem.costs, 0, 1, 2)->ns, truth(196, 576, 128, 1), 1000);
    T_NEAR(tun_cell_at(&problem.costs, 0, 2, 0)->ns, truth(196, 576, 128, 2), 1000);
    T_EQ(tun_cell_at(&problem.costs, 0, 2, 0)->source, TUN_PREDICTED);
    T_TRUE(tun_cell_at(&problem.costs, 0, 2, 0)->sigma >= 0.01);
    T_TRUE(tun_cell_at(&problem.costs, 0, 1, 3)->ns < 0);
    tun_problem_deinit(&problem);
}

TEST_MAIN()
