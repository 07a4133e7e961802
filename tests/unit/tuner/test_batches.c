/* SPDX-License-Identifier: Apache-2.0 */
/* Several frames at once: what they gain, what a plan with them should do, and how the exact
 * planner chooses how many. */
#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "tests/harness.h"
#include "tests/unit/tuner/brute.h"
#include "tuner/oneboard/space.h"
#include "tuner/solve/solve.h"

static struct brute_plans brute;
static struct tun_solution solution, other, list[64];

static void release(struct tun_problem *p)
{
    tun_problem_deinit(p);
}
#define problem base_cleanup(release) struct tun_problem

/* An EP of @cores; units of 8, 8 and 16 ns on one core, 3/4 of that on two. The last unit needs
 * 3/4, 5/8 and 9/16 of its time if 2, 4 and 8 frames are taken at once. */
static void small(struct tun_problem *ret, uint16_t cores)
{
    const struct tun_ep ep = {.name = "big", .cores = cores, .speed = 1, .bandwidth = 1};

    if (tun_problem_init(ret, 3, &ep, 1) < 0 || !tun_problem_at_once(ret)) {
        abort();
    }
    for (size_t u = 0; u < 3; u++) {
        for (size_t w = 1; w <= cores; w++) {
            *tun_cell_at(&ret->costs, 0, w, u) =
                (struct tun_cell){(u == 2 ? 16 : 8) * (w > 1 ? 0.75 : 1), 0, TUN_MEASURED};
        }
    }
    ret->at_once[2] = (struct tun_at_once){.factor = {0.75, 0.625, 0.5625}};
}

static void parse(const struct tun_problem *p, const char *text, struct pl_plan *ret)
{
    struct pl_ep_set eps;
    char error[256];

    tun_eps(p, &eps);
    T_EQ(pl_plan_parse(text, &eps, p->unit_count, error, sizeof(error), ret), 0);
}

static const char *text_of(const struct tun_problem *p, const struct pl_plan *plan)
{
    static char text[PL_PLAN_TEXT_MAX];
    struct pl_ep_set eps;

    tun_eps(p, &eps);
    return pl_plan_format(plan, &eps, text, sizeof(text)) == 0 ? text : "?";
}

TEST(factors_lie_on_lines)
{
    const struct tun_at_once a = {.factor = {0.75, 0.625, 0.5625}}, none = {{0}, false};

    /* all frames: 1, 1.5, 2.5, 4.5 */
    T_NEAR(tun_at_once_factor(&a, 1), 1, 0);
    T_NEAR(tun_at_once_factor(&a, 1.5), 1.25 / 1.5, 1e-12);
    T_NEAR(tun_at_once_factor(&a, 2), 0.75, 0);
    T_NEAR(tun_at_once_factor(&a, 3), 2.0 / 3, 1e-12);
    T_NEAR(tun_at_once_factor(&a, 6), 3.5 / 6, 1e-12);
    T_NEAR(tun_at_once_factor(&a, 8), 0.5625, 0);
    T_NEAR(tun_at_once_factor(&a, 9), 0.5625, 0);
    T_NEAR(tun_at_once_factor(&a, 0.5), 1, 0);
    T_NEAR(tun_at_once_factor(&a, NAN), 1, 0);
    T_NEAR(tun_at_once_factor(&none, 4), 1, 0);
    T_NEAR(tun_at_once_factor(NULL, 4), 1, 0);
    T_TRUE(tun_at_once_gains(&a) && !tun_at_once_gains(&none) && !tun_at_once_gains(NULL));
}

TEST(factors_are_moved_into_their_ranges)
{
    const struct {
        double in[TUN_AT_ONCE], out[TUN_AT_ONCE];
    } cases[] = {{{0.75, 0.625, 0.5625}, {0.75, 0.625, 0.5625}},
                 {{1.2, 1.1, 1.05}, {1, 1, 1}},
                 {{0.9, 0.95, 0.8}, {0.9, 0.9, 0.8}},
                 {{0.2, 0.1, 0.01}, {0.5, 0.25, 0.125}},
                 {{0, NAN, -1}, {1, 1, 1}},
                 {{0.8, INFINITY, 0.7}, {0.8, 0.8, 0.7}}};

    for (size_t i = 0; i < base_array_count(cases); i++) {
        struct tun_at_once a = {.measured = true};

        memcpy(a.factor, cases[i].in, sizeof(a.factor));
        tun_at_once_settle(&a);
        for (size_t k = 0; k < TUN_AT_ONCE; k++) {
            T_NEAR(a.factor[k], cases[i].out[k], 0);
        }
    }
}

TEST(a_plan_with_batches_by_hand)
{
    const struct {
        const char *text;
        double bottleneck, latency, energy;
    } cases[] = {
        /* hand-off 1, 2 in front of unit 2; waits of up to 5 */
        {"0-2@big*2", 33.0 / 2, 33, 33},
        {"0-2@big*2/2", 29.0 / 2, 5 + 2 * 29, 29},
        {"0-2@big*2/4", 27.0 / 2, 5 + 4 * 27, 27},
        {"0-2@big*2/3", (17 + 16 * 2.0 / 3) / 2, 5 + 3 * (17 + 16 * 2.0 / 3), 17 + 16 * 2.0 / 3},
        {"0-1@big|2-2@big/8", 17, 17 + 5 + 8 * 12.0, 17 + 12},
        {"0-1@big/4|2-2@big/8", 17, 5 + 4 * 17 + 5 + 8 * 12.0, 17 + 12},
        {"0-2@bigx2/2", 1 + 12 + 9, 5 + 2 * 22, 2 * 22},
        /* teams of one stage may differ */
        {"0-2@big+big/2", 1 / (1 / 33.0 + 1 / 29.0), 5 + 2 * 29, 2 / (1 / 33.0 + 1 / 29.0)},
    };
    problem p = TUN_PROBLEM_NULL;

    small(&p, 2);
    p.handoff_ns = 1;
    p.handoff_ns_per_byte = 0.5;
    p.units[2].in_bytes = 4;
    p.batch_wait_ns = 5;
    for (size_t i = 0; i < base_array_count(cases); i++) {
        struct tun_outcome o;
        struct pl_plan plan;

        parse(&p, cases[i].text, &plan);
        T_EQ(tun_eval(&p, &plan, &o), 0);
        T_NEAR(o.bottleneck_ns, cases[i].bottleneck, 1e-9);
        T_NEAR(o.latency_ns, cases[i].latency, 1e-9);
        T_NEAR(o.energy_nj, cases[i].energy, 1e-9);
    }
}

TEST(copies_have_the_factors)
{
    problem p = TUN_PROBLEM_NULL, copy = TUN_PROBLEM_NULL;

    small(&p, 2);
    T_EQ(tun_problem_copy(&p, &copy), 0);
    T_TRUE(copy.at_once != p.at_once);
    T_NEAR(tun_at_once_at(&copy, 0, 2)->factor[1], 0.625, 0);
    T_TRUE(tun_problem_gains(&copy));
    memset(copy.at_once, 0, 3 * sizeof(*copy.at_once));
    T_TRUE(!tun_problem_gains(&copy) && tun_problem_gains(&p));
}

static int keeps(const struct tun_problem *p, const struct tun_outcome *o)
{
    return (p->bounds.period_max_ns <= 0 || o->bottleneck_ns <= p->bounds.period_max_ns) &&
           (p->bounds.latency_max_ns <= 0 || o->latency_ns <= p->bounds.latency_max_ns);
}

static double figure(const struct tun_problem *p, const struct tun_outcome *o)
{
    return p->objective == TUN_POWER ? o->energy_nj : o->latency_ns;
}

static double uniform(struct tun_random *r, double low, double high)
{
    return low + (high - low) * tun_random_unit(r);
}

/* Some units gain from several frames at once. */
static void random_gains(struct tun_random *random, struct tun_problem *p)
{
    struct tun_at_once *a = tun_problem_at_once(p);

    if (!a) {
        abort();
    }
    for (size_t i = 0; i < p->ep_count * p->unit_count; i++) {
        for (size_t k = 0; k < TUN_AT_ONCE; k++) {
            a[i].factor[k] = tun_random_below(random, 2) ? uniform(random, 0.1, 1) : 1;
        }
        tun_at_once_settle(&a[i]);
    }
    p->batch_wait_ns = tun_random_below(random, 2) ? uniform(random, 0, 500) : 0;
}

static void random_problem(uint64_t seed, struct tun_problem *ret)
{
    struct tun_random random = {seed};

    if (brute_problem(&random, 4, 4, ret) < 0) {
        abort();
    }
    random_gains(&random, ret);
    if (ret->bounds.latency_max_ns > 0 && tun_random_below(&random, 2)) {
        ret->bounds.latency_max_ns *= 4; /* room for batches */
    }
}

/* With any largest batch, the program finds what trying every plan with every batch does. */
TEST(equals_brute_force)
{
    int possible = 0, batches = 0;

    for (uint64_t seed = t_seed; seed < t_seed + (uint64_t)t_times(300); seed++) {
        struct tun_space_options o = {.batch_max = (size_t)1 << (1 + seed % 3)};
        problem p = TUN_PROBLEM_NULL;
        int r;

        random_problem(seed, &p);
        T_EQ(brute_batches(&p, o.batch_max, &brute), 0);
        r = tun_oneboard_solve(&p, &o, &solution);
        if (r != (brute.possible ? 0 : TUN_E_IMPOSSIBLE)) {
            T_FAIL("problem %llu: %d, by brute force %s", (unsigned long long)seed, r,
                   brute.possible ? "possible" : "impossible");
        }
        if (!brute.possible) {
            T_NEAR(solution.outcome.bottleneck_ns, brute.least_bottleneck_ns,
                   1e-9 * brute.least_bottleneck_ns);
            continue;
        }
        possible++;
        batches += pl_plan_batched(&solution.plan) > 0;
        T_TRUE(keeps(&p, &solution.outcome));
        if (!solution.blocks &&
            fabs(figure(&p, &solution.outcome) - brute.figure) > 1e-9 * brute.figure) {
            T_FAIL("problem %llu: %s has %.12g, by brute force %.12g", (unsigned long long)seed,
                   text_of(&p, &solution.plan), figure(&p, &solution.outcome), brute.figure);
        }
        if (p.objective == TUN_THROUGHPUT) {
            T_TRUE(solution.outcome.bottleneck_ns <=
                   brute.within_bottleneck_ns * (1 + p.bounds.slack) * (1 + 1e-9));
        }
    }
    T_TRUE(possible > t_times(100));
    T_TRUE(batches > t_times(30));
}

/* Never predicted to be worse than the best plan of single frames, possible where any batch is, and
 * a batch gains what it has to. */
TEST(batches_have_to_gain)
{
    int batches = 0, only = 0;

    for (uint64_t seed = t_seed; seed < t_seed + (uint64_t)t_times(300); seed++) {
        struct tun_space_options alone = {.batch_max = 1};
        problem p = TUN_PROBLEM_NULL;
        double before, after;
        int r, first;

        random_problem(seed, &p);
        first = tun_oneboard_solve(&p, &alone, &other);
        r = tun_solve(&p, &solution);
        T_EQ(brute_batches(&p, PL_BATCH_MAX, &brute), 0);
        T_EQ(r, brute.possible ? 0 : TUN_E_IMPOSSIBLE);
        T_TRUE(r <= first);
        T_TRUE(r != 0 || keeps(&p, &solution.outcome));
        only += r < first;
        if (r < first || pl_plan_equal(&solution.plan, &other.plan)) {
            continue;
        }
        batches++;
        T_TRUE(pl_plan_batched(&solution.plan) > 0);
        before = p.objective == TUN_THROUGHPUT || r != 0 ? other.outcome.bottleneck_ns
                                                         : figure(&p, &other.outcome);
        after = p.objective == TUN_THROUGHPUT || r != 0 ? solution.outcome.bottleneck_ns
                                                        : figure(&p, &solution.outcome);
        T_TRUE(after * (1 + TUN_BATCH_GAIN) < before);
    }
    T_TRUE(batches > t_times(30));
    T_TRUE(only > 0);
}

TEST(as_few_frames_as_gain)
{
    problem p = TUN_PROBLEM_NULL;

    small(&p, 2); /* a frame: 32; with 2, 4, 8 frames 28, 26, 25 */
    T_EQ(tun_solve(&p, &solution), 0);
    T_STR(text_of(&p, &solution.plan), "0-2@big*2/4");

    p.at_once[2] = (struct tun_at_once){.factor = {0.95, 0.92, 0.91}}; /* 31.2, 30.7, 30.6 */
    T_EQ(tun_solve(&p, &solution), 0);
    T_STR(text_of(&p, &solution.plan), "0-2@big*2");

    /* no step gains enough, but all of them together do: 30.9, 29.9, 29.3 */
    p.at_once[2] = (struct tun_at_once){.factor = {0.93, 0.87, 0.83}};
    T_EQ(tun_solve(&p, &solution), 0);
    T_STR(text_of(&p, &solution.plan), "0-2@big*2/4");

    p.objective = TUN_LATENCY;
    T_EQ(tun_solve(&p, &solution), 0);
    T_EQ(pl_plan_batched(&solution.plan), 0);

    p.bounds.period_max_ns = 15.5; /* which single frames do not reach */
    T_EQ(tun_solve(&p, &solution), 0);
    T_STR(text_of(&p, &solution.plan), "0-2@big*2/2");
}

TEST(latency_bounds_the_batch)
{
    problem p = TUN_PROBLEM_NULL;

    small(&p, 2);
    for (size_t i = 0; i < 2; i++) {
        p.batch_wait_ns = i == 0 ? 0 : 10;
        p.bounds.latency_max_ns = 103; /* 4 frames: 4 * 26 */
        T_EQ(tun_solve(&p, &solution), 0);
        T_STR(text_of(&p, &solution.plan), "0-2@big*2/2");
        T_TRUE(solution.outcome.latency_ns <= 103);
        p.bounds.latency_max_ns = 104;
        T_EQ(tun_solve(&p, &solution), 0);
        T_STR(text_of(&p, &solution.plan), i == 0 ? "0-2@big*2/4" : "0-2@big*2/2");
        p.bounds.latency_max_ns = 50; /* 2 frames: 56 */
        T_EQ(tun_solve(&p, &solution), 0);
        T_EQ(pl_plan_batched(&solution.plan), 0);
        p.bounds.latency_max_ns = 10; /* no plan: then not one of the longest latency */
        T_EQ(tun_solve(&p, &solution), TUN_E_IMPOSSIBLE);
        T_EQ(pl_plan_batched(&solution.plan), 0);
    }
}

TEST(a_bound_on_the_batch)
{
    static const char *const plans[] = {"0-2@big*2", "0-2@big*2", "0-2@big*2/2", "0-2@big*2/2"};
    problem p = TUN_PROBLEM_NULL;

    small(&p, 2);
    for (size_t most = 1; most < base_array_count(plans); most++) {
        p.bounds.batch_max = most;
        T_EQ(tun_solve(&p, &solution), 0);
        T_STR(text_of(&p, &solution.plan), plans[most]);
    }
    p.bounds.batch_max = PL_BATCH_MAX + 1;
    T_EQ(tun_problem_batch_max(&p), PL_BATCH_MAX);
}

/* Only the stage that gains waits for company. */
TEST(other_stages_take_single_frames)
{
    const struct tun_ep eps[2] = {{.name = "a", .cores = 1, .speed = 1, .bandwidth = 1},
                                  {.name = "b", .cores = 1, .speed = 1, .bandwidth = 1}};
    problem p = TUN_PROBLEM_NULL;

    T_EQ(tun_problem_init(&p, 2, eps, 2), 0);
    T_TRUE(tun_problem_at_once(&p));
    for (size_t k = 0; k < 2; k++) {
        for (size_t u = 0; u < 2; u++) { /* each is good at one unit */
            *tun_cell_at(&p.costs, k, 1, u) =
                (struct tun_cell){k == u ? (u ? 20 : 10) : 1000, 0, TUN_MEASURED};
        }
    }
    p.at_once[1 * 2 + 1] = (struct tun_at_once){.factor = {0.6, 0.5, 0.4}};
    T_EQ(tun_solve(&p, &solution), 0);
    T_STR(text_of(&p, &solution.plan), "0-0@a|1-1@b/4");
    p.bounds.one_ep_stages = true;
    T_EQ(tun_solve(&p, &solution), 0);
    T_STR(text_of(&p, &solution.plan), "0-0@a|1-1@b");
}

TEST(the_front_has_batches)
{
    problem p = TUN_PROBLEM_NULL;
    size_t count;
    int batched = 0;

    small(&p, 2);
    T_EQ(tun_front(&p, base_array_count(list), list, &count), 0);
    for (size_t i = 0; i < count; i++) {
        batched += pl_plan_batched(&list[i].plan) > 0;
        T_TRUE(i == 0 || (list[i].outcome.bottleneck_ns > list[i - 1].outcome.bottleneck_ns &&
                          list[i].outcome.latency_ns < list[i - 1].outcome.latency_ns));
    }
    T_TRUE(batched >= 3);
    T_STR(text_of(&p, &list[0].plan), "0-2@big*2/8");
    T_EQ(pl_plan_batched(&list[count - 1].plan), 0);
}

TEST(no_plan_is_below_the_bound)
{
    for (uint64_t seed = t_seed; seed < t_seed + (uint64_t)t_times(60); seed++) {
        problem p = TUN_PROBLEM_NULL;
        double bound;

        random_problem(seed, &p);
        p.objective = TUN_THROUGHPUT;
        p.bounds = (struct tun_bounds){0};
        T_EQ(brute_batches(&p, PL_BATCH_MAX, &brute), 0);
        bound = tun_bound_ns(&p);
        T_TRUE(bound <= brute.least_bottleneck_ns * (1 + 1e-9));
    }
}

TEST_MAIN()
