/* SPDX-License-Identifier: Apache-2.0 */
/* What samples do to a cost table, and what fills its holes. */
#include "base/base.h"
#include "tests/harness.h"
#include "tuner/learn.h"
#include "tuner/search/random.h"

#define UNITS 20

static struct tun_problem p;

static struct tun_cell *cell(size_t ep, size_t width, size_t unit)
{
    return tun_cell_at(&p.costs, ep, width, unit);
}

static double true_ns(size_t ep, size_t width, size_t unit)
{
    return 1e5 * (double)(1 + unit % 7) * (ep ? 3 : 1) * (0.2 + 0.8 / (double)width);
}

/* Two EPs of four cores, every cell of @source unless that is TUN_UNKNOWN. */
static void make(enum tun_source source, double sigma)
{
    const struct tun_ep eps[2] = {{.name = "big", .cores = 4, .speed = 1, .bandwidth = 1},
                                  {.name = "little", .cores = 4, .speed = 0.4, .bandwidth = 1}};

    if (tun_problem_init(&p, UNITS, eps, 2) < 0) {
        abort();
    }
    for (size_t i = 0; i < 8 * UNITS && source != TUN_UNKNOWN; i++) {
        *cell(i / 4 % 2, i % 4 + 1, i / 8) =
            (struct tun_cell){true_ns(i / 4 % 2, i % 4 + 1, i / 8), sigma, source};
    }
}

static void learn(const struct tun_sample *samples, size_t count)
{
    struct tun_trial t = {.samples = samples, .sample_count = count};

    tun_learn(&p, &t);
}

TEST(samples_replace_beliefs)
{
    struct tun_sample s = {0, 2, 5, 777, 0.01};

    make(TUN_SAVED, 0.1);
    learn(&s, 1);
    T_NEAR(cell(0, 2, 5)->ns, 777, 0);
    T_NEAR(cell(0, 2, 5)->sigma, 0.01, 0);
    T_EQ(cell(0, 2, 5)->source, TUN_MEASURED);
    tun_problem_deinit(&p);
}

TEST(measurements_are_weighed)
{
    double before;
    struct tun_sample s = {0, 1, 0, 0, 0.01};

    make(TUN_MEASURED, 0.02);
    before = cell(0, 1, 0)->ns;
    s.ns = before * 1.02;
    learn(&s, 1);
    T_NEAR(cell(0, 1, 0)->ns, before * 1.016, before * 1e-4); /* weights 4 : 1 */
    T_NEAR(cell(0, 1, 0)->sigma, 0.02 / sqrt(5), 1e-6);
    s.ns = before * 1.5; /* they do not agree: the newer one */
    learn(&s, 1);
    T_NEAR(cell(0, 1, 0)->ns, s.ns, 1e-9);
    tun_problem_deinit(&p);
}

/* Unit 3 gains from several frames at once, on EP 0: 3/4, 5/8, 9/16 of its time. */
static struct tun_at_once *gain(void)
{
    struct tun_at_once *a = tun_problem_at_once(&p);

    if (!a) {
        abort();
    }
    a[3] = (struct tun_at_once){.factor = {0.75, 0.625, 0.5625}};
    return &a[3];
}

/* The times of single frames stay as they are, also those of the EP's other units and widths. */
TEST(several_frames_at_once_spoil_no_time_of_one)
{
    struct tun_sample s[2] = {{0, 1, 3, 0, 0.01, 4}, {0, 1, 4, 0, 0.01, 4}};

    make(TUN_MEASURED, 0.02);
    gain();
    s[0].ns = cell(0, 1, 3)->ns * 0.5;
    s[1].ns = cell(0, 1, 4)->ns * 0.9;
    learn(s, 2);
    for (size_t i = 0; i < 8 * UNITS; i++) {
        T_NEAR(cell(i / 4 % 2, i % 4 + 1, i / 8)->ns, true_ns(i / 4 % 2, i % 4 + 1, i / 8), 0);
        T_NEAR(cell(i / 4 % 2, i % 4 + 1, i / 8)->sigma, 0.02, 0);
    }
    tun_problem_deinit(&p);
}

TEST(several_frames_at_once_correct_the_gain)
{
    struct tun_sample s[2] = {{0, 1, 3, 0, 0.01, 4}, {0, 1, 4, 0, 0.01, 4}};
    struct tun_at_once *a;

    make(TUN_MEASURED, 0.02);
    a = gain();
    s[0].ns = cell(0, 1, 3)->ns * 0.55; /* 0.45 saved instead of 0.375: 1.2 times as much */
    learn(s, 1);
    T_NEAR(a->factor[0], 1 - 0.25 * 1.05, 1e-9); /* a quarter of that counts */
    T_NEAR(a->factor[1], 1 - 0.375 * 1.05, 1e-9);
    T_NEAR(a->factor[2], 1 - 0.4375 * 1.05, 1e-9);
    T_TRUE(a->measured);

    a = gain();
    s[0].ns = cell(0, 1, 3)->ns * 1.25; /* the core is twice as slow: unit 4 shows it */
    s[1].ns = cell(0, 1, 4)->ns * 2;
    learn(s, 2);
    T_NEAR(a->factor[1], 0.625, 1e-9);

    s[0].ns = cell(0, 1, 3)->ns * 5; /* gains nothing: at most half of it goes */
    learn(s, 1);
    T_NEAR(a->factor[1], 1 - 0.375 / 2, 1e-9);
    tun_problem_deinit(&p);
}

TEST(several_frames_at_once_correct_predictions)
{
    struct tun_sample s[2] = {{0, 1, 3, 500, 0.01, 4}, {0, 1, 4, 700, 0.01, 4}};

    make(TUN_PREDICTED, 0.45);
    gain();
    learn(s, 2);
    T_NEAR(cell(0, 1, 3)->ns, 800, 1e-9);
    T_NEAR(cell(0, 1, 4)->ns, 700, 1e-9);
    T_EQ(cell(0, 1, 3)->source, TUN_PREDICTED);
    T_NEAR(cell(0, 1, 3)->sigma, 0.1, 0);
    T_NEAR(tun_at_once_at(&p, 0, 3)->factor[1], 0.625, 0);

    s[0] = (struct tun_sample){0, 1, 3, 900, 0.01, 1}; /* one frame at a time, though it may more */
    learn(s, 1);
    T_NEAR(cell(0, 1, 3)->ns, 900, 0);
    T_EQ(cell(0, 1, 3)->source, TUN_MEASURED);
    tun_problem_deinit(&p);
}

TEST(nonsense_of_several_frames_is_ignored)
{
    const struct tun_sample bad[] = {
        {0, 1, 3, 0, 0, 4}, {0, 1, 3, NAN, 0, 4},   {9, 1, 3, 5, 0, 4},       {0, 9, 3, 5, 0, 4},
        {0, 0, 3, 5, 0, 4}, {0, 1, UNITS, 5, 0, 4}, {0, 1, 3, 5, 0, INFINITY}};

    make(TUN_PREDICTED, 0.45);
    gain();
    learn(bad, base_array_count(bad));
    T_NEAR(cell(0, 1, 3)->ns, true_ns(0, 1, 3), 0);
    T_TRUE(!tun_at_once_at(&p, 0, 3)->measured);
    tun_problem_deinit(&p);
}

TEST(nonsense_is_ignored)
{
    const struct tun_sample bad[] = {{0, 1, 0, 0, 0},        {0, 1, 0, -5, 0},   {0, 1, 0, NAN, 0},
                                     {0, 1, 0, INFINITY, 0}, {2, 1, 0, 5, 0},    {0, 5, 0, 5, 0},
                                     {0, 0, 0, 5, 0},        {0, 1, UNITS, 5, 0}};
    struct tun_trial failed = {
        .failed = true, .samples = &(struct tun_sample){0, 1, 0, 5, 0}, .sample_count = 1};

    make(TUN_PREDICTED, 0.1);
    p.handoff_ns = 1000;
    learn(bad, base_array_count(bad));
    tun_learn(&p, &failed);
    for (size_t i = 0; i < 8 * UNITS; i++) {
        T_NEAR(cell(i / 4 % 2, i % 4 + 1, i / 8)->ns, true_ns(i / 4 % 2, i % 4 + 1, i / 8), 0);
    }
    T_NEAR(p.handoff_ns, 1000, 0);
    /* A noise that is not a number is taken for a usual one. */
    learn(&(struct tun_sample){0, 1, 0, 5, NAN}, 1);
    T_NEAR(cell(0, 1, 0)->ns, 5, 0);
    T_TRUE(cell(0, 1, 0)->sigma > 0 && cell(0, 1, 0)->sigma < 1);
    tun_problem_deinit(&p);
}

/* The error is the unit's: other widths of it follow, other EPs do not. */
TEST(other_widths_follow)
{
    struct tun_sample s[2] = {{0, 1, 3, true_ns(0, 1, 3) * 1.2, 0.005},
                              {0, 1, 4, true_ns(0, 1, 4) / 1.2, 0.005}};

    make(TUN_SAVED, 0.1);
    learn(s, 2);
    T_NEAR(cell(0, 4, 3)->ns, true_ns(0, 4, 3) * 1.2, 1);
    T_NEAR(cell(0, 3, 4)->ns, true_ns(0, 3, 4) / 1.2, 1);
    T_TRUE(cell(0, 4, 3)->sigma < 0.05 && cell(0, 4, 3)->sigma > 0.005);
    T_EQ(cell(0, 4, 3)->source, TUN_SAVED);
    T_NEAR(cell(0, 1, 9)->ns, true_ns(0, 1, 9), true_ns(0, 1, 9) * 1e-9); /* nothing in common */
    T_NEAR(cell(1, 1, 3)->ns, true_ns(1, 1, 3), 0);
    tun_problem_deinit(&p);
}

static size_t slow_samples(struct tun_sample *s, size_t count, double factor)
{
    for (size_t u = 0; u < count; u++) {
        s[u] = (struct tun_sample){1, 2, (uint32_t)u, true_ns(1, 2, u) * factor, 0.005};
    }
    return count;
}

/* Many samples with one factor: all of the EP, and it alone. One sample: only a part of it. */
TEST(a_common_factor_of_a_ep)
{
    struct tun_sample s[UNITS];
    double ratio;

    make(TUN_SAVED, 0.05);
    learn(s, slow_samples(s, 10, 1.2));
    for (size_t u = 10; u < UNITS; u++) {
        T_NEAR(cell(1, 1, u)->ns / true_ns(1, 1, u), 1.2, 0.005);
        T_NEAR(cell(0, 1, u)->ns / true_ns(0, 1, u), 1, 0);
    }
    tun_problem_deinit(&p);
    make(TUN_SAVED, 0.05);
    learn(s, slow_samples(s, 1, 1.2));
    ratio = cell(1, 1, 15)->ns / true_ns(1, 1, 15);
    T_TRUE(ratio > 1.05 && ratio < 1.19);
    tun_problem_deinit(&p);
}

/* Samples that scatter: the uncertainty of the cells that were not sampled grows. */
TEST(scatter_is_uncertainty)
{
    struct tun_sample s[UNITS];

    make(TUN_SAVED, 0.001);
    slow_samples(s, 10, 1);
    for (size_t u = 0; u < 10; u++) {
        s[u].ns *= u % 2 ? 1.1 : 1 / 1.1;
    }
    learn(s, 10);
    T_TRUE(cell(1, 1, 15)->sigma > 0.08 && cell(1, 1, 15)->sigma < 0.12);
    T_NEAR(cell(1, 1, 15)->ns / true_ns(1, 1, 15), 1, 0.01);
    tun_problem_deinit(&p);
}

/* Measured cells stay where evidence against beliefs would move them, and where a disagreement is
 * noise; they move when measurements of their EP have gone stale together. */
TEST(measured_cells_stay_until_stale)
{
    struct tun_sample s[UNITS];
    double measured = true_ns(1, 1, 15);

    make(TUN_SAVED, 0.05);
    *cell(1, 1, 15) = (struct tun_cell){measured, 0.005, TUN_MEASURED};
    learn(s, slow_samples(s, 10, 1.2));
    T_NEAR(cell(1, 1, 15)->ns, measured, 0);
    tun_problem_deinit(&p);

    make(TUN_MEASURED, 0.005);
    learn(s, slow_samples(s, 10, 1.004));
    T_NEAR(cell(1, 1, 15)->ns, measured, 0);
    learn(s, slow_samples(s, 10, 1.3));
    T_NEAR(cell(1, 1, 15)->ns / measured, 1.3, 0.02);
    T_NEAR(cell(1, 4, 3)->ns / true_ns(1, 4, 3), 1.3, 0.02);
    T_EQ(cell(1, 1, 15)->source, TUN_MEASURED);
    tun_problem_deinit(&p);
}

/* Measured cells that prove wrong each in its own way: the others are believed no more than saved
 * ones. */
TEST(contradicted_measurements_become_beliefs)
{
    struct tun_sample s[UNITS];

    make(TUN_MEASURED, 0.005);
    slow_samples(s, 10, 1);
    for (size_t u = 0; u < 10; u++) {
        s[u].ns *= u % 2 ? 1.1 : 1 / 1.1;
    }
    learn(s, 10);
    T_EQ(cell(1, 2, 3)->source, TUN_MEASURED);
    T_EQ(cell(1, 1, 15)->source, TUN_SAVED);
    T_TRUE(cell(1, 1, 15)->sigma > 0.08);
    T_NEAR(cell(1, 4, 3)->ns / true_ns(1, 4, 3), 1.1, 1e-6);
    T_EQ(cell(0, 1, 15)->source, TUN_MEASURED);
    tun_problem_deinit(&p);
}

static void stage_trial(struct tun_trial *t, struct tun_sample *s, double handoff)
{
    double sum = 0;

    *t = (struct tun_trial){.samples = s, .sample_count = UNITS};
    t->plan.stage_count = 1;
    t->plan.stages[0] =
        (struct pl_stage_plan){.last_unit = UNITS - 1, .group_count = 1, .groups = {{0, 1, 4}}};
    for (size_t u = 0; u < UNITS; u++) {
        s[u] = (struct tun_sample){0, 1, (uint32_t)u, true_ns(0, 1, u), 0};
        sum += s[u].ns;
    }
    t->measured.team_ns[0][0] = sum + handoff;
}

TEST(hand_off_is_what_is_left)
{
    struct tun_sample s[UNITS];
    struct tun_trial t;
    double units;

    make(TUN_SAVED, 0.05);
    stage_trial(&t, s, 50000);
    tun_learn(&p, &t);
    tun_learn(&p, &t);
    T_TRUE(p.handoff_ns > 1000 && p.handoff_ns <= 50000);
    for (int i = 0; i < 3000; i++) {
        tun_learn(&p, &t);
    }
    T_NEAR(p.handoff_ns, 50000, 5000);
    units = t.measured.team_ns[0][0] - 50000;
    t.measured.team_ns[0][0] = units / 2; /* less than its units: never negative */
    for (int i = 0; i < 100; i++) {
        tun_learn(&p, &t);
    }
    T_NEAR(p.handoff_ns, 0, 0);
    tun_problem_deinit(&p);
}

/* No clock per unit: the stage's time corrects its believed cells together. */
TEST(stage_times_alone_teach)
{
    struct tun_sample s[UNITS];
    struct tun_trial t;

    make(TUN_SAVED, 0.05);
    stage_trial(&t, s, 0);
    t.sample_count = 0;
    t.measured.team_ns[0][0] *= 1.5;
    *cell(0, 1, 0) = (struct tun_cell){true_ns(0, 1, 0), 0, TUN_MEASURED};
    tun_learn(&p, &t);
    T_NEAR(cell(0, 1, 7)->ns / true_ns(0, 1, 7), 1.5, 1e-9);
    T_NEAR(cell(0, 1, 0)->ns, true_ns(0, 1, 0), 0);
    T_NEAR(cell(0, 2, 7)->ns, true_ns(0, 2, 7), 0);
    tun_problem_deinit(&p);
}

TEST(nothing_known_is_filled_by_weights)
{
    make(TUN_UNKNOWN, 0);
    p.units[1].weight = 3;
    T_EQ(tun_fill(&p), 8 * UNITS);
    T_EQ(tun_fill(&p), 0);
    T_NEAR(cell(0, 1, 1)->ns, 3 * cell(0, 1, 0)->ns, 1e-6);
    T_NEAR(cell(1, 1, 0)->ns, cell(0, 1, 0)->ns / 0.4, 1e-6);
    T_NEAR(cell(0, 4, 0)->ns, cell(0, 1, 0)->ns * (0.1 + 0.9 / 4), 1e-6);
    for (size_t i = 0; i < 8 * UNITS; i++) {
        const struct tun_cell *c = cell(i / 4 % 2, i % 4 + 1, i / 8);

        T_TRUE(c->ns > 0 && c->sigma > 0.3 && c->sigma < 1 && c->source == TUN_PREDICTED);
    }
    tun_problem_deinit(&p);
}

/* A row of which half is known: the rest follows by the ratio to a row that is. */
TEST(holes_are_filled_by_learned_ratios)
{
    make(TUN_MEASURED, 0.005);
    for (size_t u = 10; u < UNITS; u++) {
        *cell(1, 3, u) = (struct tun_cell){u % 2 ? -1 : NAN, 0, TUN_UNKNOWN};
    }
    cell(0, 1, 0)->ns = 0;
    T_EQ(tun_fill(&p), 11);
    for (size_t u = 10; u < UNITS; u++) {
        T_NEAR(cell(1, 3, u)->ns / true_ns(1, 3, u), 1, 1e-6);
        T_TRUE(cell(1, 3, u)->sigma > 0.005 && cell(1, 3, u)->sigma < 0.2);
    }
    T_NEAR(cell(0, 1, 0)->ns / true_ns(0, 1, 0), 1, 1e-6);
    tun_problem_deinit(&p);
}

/* Light units gain less from the faster EP: units of like size say so. */
TEST(units_of_like_size_first)
{
    make(TUN_MEASURED, 0.005);
    for (size_t u = 0; u < UNITS; u++) {
        bool light = u % 2;

        cell(0, 1, u)->ns = light ? 1e4 : 1e6;
        cell(1, 1, u)->ns = light ? 1.5e4 : 4e6;
        for (size_t w = 2; w <= 4; w++) {
            cell(1, w, u)->ns = -1;
            cell(0, w, u)->ns = -1;
        }
    }
    cell(1, 1, 0)->ns = cell(1, 1, 1)->ns = -1;
    tun_fill(&p);
    T_NEAR(cell(1, 1, 0)->ns, 4e6, 1);
    T_NEAR(cell(1, 1, 1)->ns, 1.5e4, 1);
    tun_problem_deinit(&p);
}

/* Whatever is known, every cell comes out known, finite and positive. */
TEST(random_tables_are_filled)
{
    for (int round = 0; round < 300; round++) {
        char error[TUN_ERROR_MAX];
        size_t open = 0;

        make(TUN_MEASURED, 0.01);
        for (size_t i = 0; i < 8 * UNITS; i++) {
            if (t_range(0, 9) < round % 10) {
                cell(i / 4 % 2, i % 4 + 1, i / 8)->ns = -1;
                open++;
            }
        }
        T_EQ(tun_fill(&p), open);
        T_EQ(tun_problem_check(&p, error), 0);
        tun_problem_deinit(&p);
    }
}

TEST_MAIN()
