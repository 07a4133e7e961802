/* SPDX-License-Identifier: Apache-2.0 */
/* Two plans in turns: a worse one is hardly ever taken, a better one soon, what lost is known. */
#include "tests/harness.h"
#include "tests/sim/two_cores.h"
#include "tuner/adapt/turns.h"
#include "tuner/search/random.h"

#define RUNS 4000

/* How @runs contests end in which B serves exp(@gain) times as many frames as A. */
struct tally {
    double better, worse, undecided; /* shares */
    double pairs;                    /* mean */
    size_t most;
};

/* @spread: of a pair. @bursts: share of windows that another program disturbs. @trend: by which
 * each window is slower than the last one. */
static struct tally contests(double gain, double spread, double bursts, double trend)
{
    struct tun_turns_options o = TUN_TURNS_DEFAULTS;
    struct tun_random r = {.state = t_seed};
    struct tally t = {0};
    int runs = t_times(RUNS);

    for (int i = 0; i < runs; i++) {
        enum tun_verdict v = TUN_TURNS_OPEN;
        struct tun_turns turns;
        unsigned windows = 0;

        (void)tun_turns_begin(&turns, &o, 0);
        while (v == TUN_TURNS_OPEN) {
            double x = spread / sqrt(2) * tun_random_normal(&r) + trend * windows++;

            x += tun_random_unit(&r) < bursts ? 0.3 * fabs(tun_random_normal(&r)) : 0;
            x -= tun_turns_challenger(&turns) ? gain : 0;
            v = tun_turns_add(&turns, 1e6 * exp(x), windows * 100 * BASE_NS_PER_MS);
        }
        t.better += v == TUN_TURNS_BETTER;
        t.worse += v == TUN_TURNS_WORSE;
        t.undecided += v == TUN_TURNS_UNDECIDED;
        t.pairs += (double)turns.count;
        t.most = base_max(t.most, turns.count);
    }
    t = (struct tally){t.better / runs, t.worse / runs, t.undecided / runs, t.pairs / runs, t.most};
    printf(
        "gain %+.2f, spread %.2f, bursts %.2f: better %.4f, worse %.4f, undecided %.4f after %.1f "
        "pairs, %zu at most (seed %llu)\n",
        gain, spread, bursts, t.better, t.worse, t.undecided, t.pairs, t.most,
        (unsigned long long)t_seed);
    return t;
}

/* Windows of a plan whose cores are seldom there at once differ by their nature: a fast one is no
 * end of what makes it slow, while the other plan is many times as fast. */
TEST(a_slow_plan_that_varies_is_left)
{
    static const double incumbent[] = {300, 900, 150, 800, 120}; /* for one of the challenger */
    struct tun_turns_options o = TUN_TURNS_DEFAULTS;
    enum tun_verdict v = TUN_TURNS_OPEN;
    struct tun_turns turns;
    uint64_t now_ns = 0;
    size_t windows = 0;

    o.before_ns = 600;
    o.challenger_ns = 20;
    T_EQ(tun_turns_begin(&turns, &o, 0), 0);
    while (v == TUN_TURNS_OPEN && windows < 4) {
        bool challenger = tun_turns_challenger(&turns);

        now_ns += 2 * BASE_NS_PER_S;
        v = tun_turns_add(&turns, challenger ? 1 : incumbent[windows++], now_ns);
    }
    T_EQ(v, TUN_TURNS_BETTER);
    /* unless it is as fast as that one */
    T_EQ(tun_turns_begin(&turns, &o, 0), 0);
    T_EQ(tun_turns_add(&turns, 24, BASE_NS_PER_S), TUN_TURNS_ENDED);
}

TEST(what_is_likely_is_taken_when_time_is_over)
{
    static const double ratios[] = {30, 8, 60, 18};
    struct tun_turns_options o = TUN_TURNS_DEFAULTS;

    for (double other = 1; other >= 0.1; other -= 0.9) { /* or where one pair says the opposite */
        struct tun_turns turns;

        T_EQ(tun_turns_begin(&turns, &o, 0), 0);
        for (size_t i = 0; i < base_array_count(ratios); i++) {
            double ratio = i == 1 ? ratios[i] * other * other : ratios[i];
            uint64_t now_ns = (i + 1) * 2 * BASE_NS_PER_S;
            bool first = tun_turns_challenger(&turns);

            (void)tun_turns_add(&turns, first ? 10 : 10 * ratio, now_ns);
            (void)tun_turns_add(&turns, first ? 10 * ratio : 10, now_ns);
        }
        T_EQ(turns.verdict, other == 1 ? TUN_TURNS_BETTER : TUN_TURNS_UNDECIDED);
    }
}

TEST(a_plan_that_is_not_better_is_hardly_ever_taken)
{
    static const double spreads[] = {0.005, 0.02, 0.05, 0.1};

    for (size_t i = 0; i < base_array_count(spreads); i++) {
        T_TRUE(contests(0, spreads[i], 0, 0).better <= 0.025);
        T_TRUE(contests(0, spreads[i], 0.05, 0).better <= 0.025);
        T_TRUE(contests(-0.05, spreads[i], 0, 0).better <= 0.01);
    }
    T_TRUE(contests(0, 0.02, 0, 0.01).better <= 0.025); /* a trend is no gain */
    T_TRUE(contests(0, 0.02, 0, -0.01).better <= 0.025);
}

TEST(a_better_plan_is_taken_soon)
{
    struct tally t = contests(0.1, 0.04, 0, 0);

    T_TRUE(t.better >= 0.98 && t.pairs <= 7);
    t = contests(0.1, 0.04, 0.05, 0);
    T_TRUE(t.better >= 0.95 && t.pairs <= 8);
    t = contests(0.5, 0.08, 0, 0);
    T_TRUE(t.better >= 0.99 && t.pairs <= 5.5);
}

/* What the turns cost where the other plan is worse: its share of a few windows. */
TEST(a_much_worse_plan_is_left_after_two_or_three_windows)
{
    struct tally t = contests(-0.3, 0.04, 0, 0);

    T_TRUE(t.better == 0 && t.worse >= 0.99 && t.pairs <= 3);
}

TEST(the_number_of_turns_and_the_time_are_bounded)
{
    struct tun_turns_options o = TUN_TURNS_DEFAULTS;
    struct tun_turns t;

    T_LE(contests(0.01, 0.2, 0, 0).most, o.pairs_most);
    T_EQ(tun_turns_begin(&t, &o, 5), 0);
    for (unsigned i = 0; i < 2 * o.pairs_least; i++) {
        bool faster = t.count % 2 == 0; /* B, in every other pair */

        T_EQ(t.verdict, TUN_TURNS_OPEN);
        tun_turns_add(&t, tun_turns_challenger(&t) && faster ? 60 : 100,
                      5 + o.time_most_ns * i / (2 * o.pairs_least - 1));
    }
    T_EQ(t.verdict, TUN_TURNS_UNDECIDED);
    T_EQ(t.count, o.pairs_least);
}

TEST(plans_take_turns_as_abba)
{
    struct tun_turns_options o = TUN_TURNS_DEFAULTS;
    struct tun_turns_shown shown;
    struct tun_turns t;
    char order[16] = "";

    T_EQ(tun_turns_begin(&t, &o, 0), 0);
    tun_turns_show(&t, &shown);
    T_TRUE(shown.pairs == 0 && shown.low == 0 && shown.high == INFINITY && shown.incumbent_ns == 0);
    for (size_t i = 0; i < 6; i++) {
        bool challenger = tun_turns_challenger(&t);

        order[i] = challenger ? 'B' : 'A';
        T_EQ(t.verdict, TUN_TURNS_OPEN);
        tun_turns_add(&t, challenger ? 50 : 100 + (double)i, i * o.time_least_ns / 5);
        if (i == 1) {
            tun_turns_show(&t, &shown);
            T_NEAR(shown.ratio, 2, 1e-9);
            T_TRUE(shown.high == INFINITY);
        }
    }
    T_STR(order, "ABBAAB");
    T_EQ(t.verdict, TUN_TURNS_BETTER);
    tun_turns_show(&t, &shown);
    T_EQ(shown.pairs, 3);
    T_NEAR(shown.ratio, 2.05, 0.02);
    T_TRUE(shown.low > 1 && shown.high > shown.ratio);
    T_NEAR(shown.challenger_ns, 50, 1e-9);
}

/* Frames a second of A and of B before and after the slowdown ends at window 8. Return: windows. */
static size_t that_ends(double a, double b, double a_then, double b_then, enum tun_verdict *ret)
{
    struct tun_turns_options o = TUN_TURNS_DEFAULTS;
    struct tun_turns t;
    size_t i;

    (void)tun_turns_begin(&t, &o, 0);
    for (i = 0; t.verdict == TUN_TURNS_OPEN; i++) {
        double fps = tun_turns_challenger(&t) ? (i < 8 ? b : b_then) : (i < 8 ? a : a_then);

        tun_turns_add(&t, 1e9 / (fps + (double)(i % 3)), i * 100 * BASE_NS_PER_MS);
    }
    *ret = t.verdict;
    return i;
}

/* What ends while the turns begin shows in their first pair. */
TEST(what_was_measured_before_counts)
{
    for (int known = 0; known < 2; known++) {
        struct tun_turns_options o = TUN_TURNS_DEFAULTS;
        struct tun_turns t;

        o.before_ns = known ? 1e7 : 0;
        T_EQ(tun_turns_begin(&t, &o, 0), 0);
        T_EQ(tun_turns_add(&t, 5e6, 1), known ? TUN_TURNS_ENDED : TUN_TURNS_OPEN);
    }
}

/* What lasts for less than a second is no reason for another plan. */
TEST(a_gain_that_ends_is_not_taken)
{
    enum tun_verdict v;

    T_EQ(that_ends(100, 150, 200, 150, &v), 9); /* A got faster: seen in one window */
    T_EQ(v, TUN_TURNS_ENDED);
    T_EQ(that_ends(100, 150, 100, 80, &v), 12);
    T_EQ(v, TUN_TURNS_ENDED);
    T_EQ(that_ends(100, 80, 100, 80, &v), 4);
    T_EQ(v, TUN_TURNS_WORSE);
}

/* The plan from before returns unless the one that serves is better. */
TEST(a_plan_that_returns_need_not_be_better)
{
    static const double fps[] = {100, 98, 130, 80}; /* of the challenger; the incumbent: 100 */
    static const enum tun_verdict wanted[] = {TUN_TURNS_BETTER, TUN_TURNS_BETTER, TUN_TURNS_BETTER,
                                              TUN_TURNS_WORSE};

    for (size_t k = 0; k < base_array_count(fps); k++) {
        struct tun_turns_options o = TUN_TURNS_DEFAULTS;
        struct tun_turns_shown shown;
        struct tun_turns t;

        o.returns = true;
        T_EQ(tun_turns_begin(&t, &o, 0), 0);
        T_TRUE(tun_turns_challenger(&t));
        for (size_t i = 0; t.verdict == TUN_TURNS_OPEN; i++) {
            double each = tun_turns_challenger(&t) ? fps[k] : 100;

            T_LT(i, 2 * o.pairs_most);
            tun_turns_add(&t, 1e9 / (each + (double)(i % 3) - 1), i * 100 * BASE_NS_PER_MS);
        }
        T_EQ(t.verdict, wanted[k]);
        tun_turns_show(&t, &shown);
        T_NEAR(shown.ratio, fps[k] / 100, 0.02);
        T_NEAR(1e9 / shown.challenger_ns, fps[k], 1);
        T_TRUE(shown.low < shown.ratio && shown.ratio < shown.high);
    }
}

/* A third of the incumbent's frames, and more in some windows: a neighbour is busy. */
TEST(a_plan_that_returns_is_not_better_for_one_good_window)
{
    struct tun_turns_options o = TUN_TURNS_DEFAULTS;
    struct tun_turns t;

    o.returns = true;
    T_EQ(tun_turns_begin(&t, &o, 0), 0);
    for (size_t i = 0; t.verdict == TUN_TURNS_OPEN; i++) {
        double fps = tun_turns_challenger(&t) ? (i < 3 ? 30 : 45) : 100;

        tun_turns_add(&t, 1e9 / fps, i * 100 * BASE_NS_PER_MS);
    }
    T_EQ(t.verdict, TUN_TURNS_WORSE);
}

TEST(a_window_without_a_figure_begins_the_pair_anew)
{
    struct tun_turns_options o = TUN_TURNS_DEFAULTS;
    struct tun_turns t;

    T_EQ(tun_turns_begin(&t, &o, 0), 0);
    tun_turns_add(&t, 100, 1);
    T_TRUE(tun_turns_challenger(&t));
    tun_turns_add(&t, NAN, 2);
    T_EQ(t.count, 0);
    T_TRUE(!tun_turns_challenger(&t));
    o.pairs_most = TUN_TURNS_MAX + 1;
    T_EQ(tun_turns_begin(&t, &o, 0), -EINVAL);
}

TEST(what_lost_is_not_tried_until_the_machine_differs)
{
    base_cleanup(tun_problem_deinit) struct tun_problem p = TUN_PROBLEM_NULL;
    struct pl_plan a = halves(2), b = halves(3), c = halves(1);
    struct tun_lost lost = {0};

    machine(&p);
    T_TRUE(!tun_lost_has(&lost, &p, &a, &b));
    tun_lost_add(&lost, &p, &a, &b);
    T_TRUE(tun_lost_has(&lost, &p, &a, &b));
    T_TRUE(!tun_lost_has(&lost, &p, &b, &a) && !tun_lost_has(&lost, &p, &a, &c));
    for (size_t u = 0; u < UNITS; u++) {
        tun_cell_at(&p.costs, 1, 1, u)->ns *= 1.1; /* noise */
    }
    T_TRUE(tun_lost_has(&lost, &p, &a, &b));
    for (size_t u = 0; u < UNITS; u++) {
        tun_cell_at(&p.costs, 1, 1, u)->ns *= 1.1;
    }
    T_TRUE(!tun_lost_has(&lost, &p, &a, &b));
    for (uint16_t i = 0; i < 2 * TUN_LOST_MAX; i++) { /* the newest ones stay */
        struct pl_plan of = halves((uint16_t)(1 + i % 3));

        of.stages[0].groups[0].count = i;
        tun_lost_add(&lost, &p, &a, &of);
        T_TRUE(tun_lost_has(&lost, &p, &a, &of));
    }
    T_EQ(lost.count, TUN_LOST_MAX);
}

TEST_MAIN()
