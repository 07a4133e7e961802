/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/base.h"
#include "tests/harness.h"
#include "tests/unit/tuner/boards_brute.h"
#include "tuner/boards/solve_boards.h"
#include "tuner/solve/solve.h"

static struct brute brute;
static struct tun_solution solution, points[128];

static void release(struct tun_problem *p)
{
    tun_problem_deinit(p);
}
#define problem base_cleanup(release) struct tun_problem

/* Equal but for sums in another order. */
static int near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * base_max(fabs(a), fabs(b));
}

static int plan_is_sound(const struct tun_problem *p, const struct tun_solution *s)
{
    struct pl_ep_set eps;
    struct tun_outcome o;
    char error[256];

    tun_eps(p, &eps);
    return pl_plan_check(&s->plan, &eps, p->unit_count, error, sizeof(error)) == 0 &&
           tun_fits(p, &s->plan) && tun_eval(p, &s->plan, &o) == 0 &&
           o.bottleneck_ns == s->outcome.bottleneck_ns && o.latency_ns == s->outcome.latency_ns &&
           o.energy_nj == s->outcome.energy_nj;
}

static void check_impossible(const struct tun_problem *p, int r)
{
    T_EQ(r, TUN_E_IMPOSSIBLE);
    if (brute.fits) {
        T_EQ(solution.missing, TUN_SHORT_TIME);
        T_TRUE(plan_is_sound(p, &solution));
        T_TRUE(near(solution.outcome.bottleneck_ns, brute.least_period_ns));
    } else {
        T_TRUE(solution.missing == TUN_SHORT_MEMORY || solution.missing == TUN_SHORT_ENERGY);
        T_EQ(solution.plan.stage_count, 0);
    }
}

static void check(const struct tun_problem *p)
{
    const struct tun_outcome *o = &solution.outcome;
    int r = tun_solve(p, &solution);

    boards_brute(p, false, &brute);
    if (!brute.possible) {
        check_impossible(p, r);
        return;
    }
    T_EQ(r, 0);
    T_TRUE(plan_is_sound(p, &solution));
    T_TRUE(p->bounds.period_max_ns <= 0 || o->bottleneck_ns <= p->bounds.period_max_ns);
    T_TRUE(p->bounds.latency_max_ns <= 0 || o->latency_ns <= p->bounds.latency_max_ns);
    if (solution.blocks) {
        return;
    }
    if (p->objective == TUN_POWER) {
        T_TRUE(near(o->energy_nj, brute.energy_nj));
        return;
    }
    T_TRUE(near(o->latency_ns, brute.latency_ns));
    if (p->objective == TUN_THROUGHPUT) {
        T_TRUE(o->bottleneck_ns <= brute.least_bound_ns * (1 + p->bounds.slack) * (1 + 1e-9));
    }
}

TEST(exact_on_random_problems)
{
    for (uint64_t seed = 1; seed <= (uint64_t)t_times(3000); seed++) {
        struct tun_random random = {seed};
        problem p;

        boards_random(&random, &p);
        t_note("seed %llu", (unsigned long long)seed);
        check(&p);
    }
}

/* Every point of the front, and no other. */
static void check_front(const struct tun_problem *p)
{
    size_t count = 0;
    bool exact = false;
    int r = tun_boards_front(p, base_array_count(points), points, &count, &exact);

    boards_brute(p, true, &brute);
    if (brute.front_count == 0) {
        T_EQ(r, TUN_E_IMPOSSIBLE);
        return;
    }
    T_EQ(r, 0);
    T_TRUE(exact);
    T_EQ(count, brute.front_count);
    for (size_t i = 0; i < count; i++) {
        const struct tun_outcome *o = &points[i].outcome;
        bool found = false;

        T_TRUE(plan_is_sound(p, &points[i]));
        for (size_t k = 0; k < brute.front_count; k++) {
            found |= near(o->bottleneck_ns, brute.front[k][0]) &&
                     near(o->most_memory_bytes, brute.front[k][1]) &&
                     near(o->most_energy_nj, brute.front[k][2]);
        }
        T_TRUE(found);
    }
}

TEST(exact_front)
{
    for (uint64_t seed = 1; seed <= (uint64_t)t_times(2000); seed++) {
        struct tun_random random = {seed};
        problem p;

        boards_random(&random, &p);
        t_note("seed %llu", (unsigned long long)seed);
        check_front(&p);
    }
}

/* Two boards of one core; unit u costs 10, 20, 30, 40 ns there and twice that on the other. */
static void two_boards(struct tun_problem *ret)
{
    struct tun_ep eps[2] = {
        {.name = "head:a", .cores = 1, .speed = 1, .bandwidth = 1, .watts = 2},
        {.name = "b2:a", .cores = 1, .speed = 0.5, .bandwidth = 1, .watts = 1, .board = 1}};

    tun_problem_init(ret, 4, eps, 2);
    for (size_t u = 0; u < 4; u++) {
        ret->units[u] = (struct tun_unit){.weight = 1,
                                          .in_bytes = u ? 100 : 0,
                                          .weight_bytes = 1000.0 * (double)(u + 1),
                                          .arena_bytes = 50};
        for (size_t k = 0; k < 2; k++) {
            *tun_cell_at(&ret->costs, k, 1, u) =
                (struct tun_cell){.ns = 10.0 * (double)((u + 1) * (k + 1)), .source = TUN_MEASURED};
        }
    }
    ret->boards.count = 2;
    ret->boards.input_bytes = 300;
    ret->boards.output_bytes = 20;
    snprintf(ret->boards.boards[0].name, PL_BOARD_NAME_MAX, "head");
    snprintf(ret->boards.boards[1].name, PL_BOARD_NAME_MAX, "b2");
    ret->boards.boards[1].frames_held = 2;
    ret->boards.boards[1].link_watts = 0.5;
    ret->boards.links[0][1] = (struct tun_link){7, 0.5};
    ret->boards.links[1][0] = (struct tun_link){7, 0.25};
}

static void evaluate(const struct tun_problem *p, const char *text, struct tun_outcome *ret)
{
    struct pl_ep_set eps;
    struct pl_plan plan;
    char error[256] = "";

    tun_eps(p, &eps);
    T_EQ(pl_plan_parse(text, &eps, p->unit_count, error, sizeof(error), &plan), 0);
    T_EQ(tun_eval(p, &plan, ret), 0);
}

TEST(formulas_by_hand)
{
    struct tun_outcome o;
    problem p;

    two_boards(&p);
    evaluate(&p, "0-2@a|3-3@b2:a", &o);
    T_NEAR(o.bottleneck_ns, 80, 1e-9);
    T_EQ(o.limit, TUN_LIMIT_TEAMS);
    T_NEAR(o.latency_ns, 60 + (7 + 50) + 80 + (7 + 5), 1e-9);
    T_NEAR(o.memory_bytes[0], 6000 + 50 + 300 + 100, 1e-9);
    T_NEAR(o.memory_bytes[1], 4000 + 2 * (50 + 100 + 20), 1e-9);
    T_NEAR(o.board_energy_nj[0], 120, 1e-9);
    T_NEAR(o.board_energy_nj[1], 80 + 0.5 * (57 + 12), 1e-9);
    T_NEAR(o.energy_nj, 120 + 80 + 34.5, 1e-9);

    p.boards.comm = TUN_COMM_ADDED;
    evaluate(&p, "0-2@head:a|3-3@b2:a", &o);
    T_NEAR(o.bottleneck_ns, 80 + 57 + 12, 1e-9);
    p.boards.comm = TUN_COMM_OVERLAPPED;

    /* Copies: inputs cross for the other's share alone, 150 ns a frame that goes there. */
    evaluate(&p, "0-3@a+b2:a", &o);
    T_NEAR(o.bottleneck_ns, 1 / (1 / 100.0 + 1 / 200.0), 1e-9);
    p.boards.links[0][1].ns_per_byte = 2;
    evaluate(&p, "0-3@a+b2:a", &o);
    T_NEAR(o.bottleneck_ns, 1 / (1 / 100.0 + 1 / 600.0), 1e-9);
    T_EQ(o.limit, TUN_LIMIT_LINK);
    T_EQ(o.limit_to, 1);

    p.boards.boards[0].port_ns_per_byte = 1;
    evaluate(&p, "0-0@b2:a|1-3@a", &o);
    T_NEAR(o.bottleneck_ns, 600, 1e-9); /* the link in */
    p.boards.links[0][1].ns_per_byte = 0.5;
    evaluate(&p, "0-0@b2:a|1-3@a", &o);
    T_NEAR(o.bottleneck_ns, 300, 1e-9);
    T_EQ(o.limit, TUN_LIMIT_PORT);
}

/* The head's core computes units 0, 1 and 3 of each frame: 10 + 20 + 40; b2's only unit 2: 60. */
TEST(a_plan_that_comes_back_shares_the_cores)
{
    struct tun_outcome o;
    struct pl_ep_set eps;
    struct pl_plan plan;
    char error[256];
    problem p;

    two_boards(&p);
    evaluate(&p, "0-1@head:a|2-2@b2:a|3-3@head:a", &o);
    T_NEAR(o.bottleneck_ns, 70, 1e-9);
    T_EQ(o.limit, TUN_LIMIT_TEAMS);
    T_NEAR(o.latency_ns, 30 + (7 + 50) + 60 + (7 + 25) + 40, 1e-9);
    T_NEAR(o.memory_bytes[0], 3000 + 50 + 400 + 4000 + 50 + 120, 1e-9);
    tun_eps(&p, &eps);
    T_EQ(pl_plan_parse("0-1@head:a|2-2@b2:a|3-3@head:a", &eps, 4, error, sizeof(error), &plan), 0);
    T_TRUE(tun_fits(&p, &plan));
    T_EQ(pl_plan_parse("0-1@head:a|2-2@head:a|3-3@b2:a", &eps, 4, error, sizeof(error), &plan), 0);
    T_TRUE(!tun_fits(&p, &plan)); /* twice in one visit */
    p.boards.count = 1;
    p.eps[1].board = 0;
    evaluate(&p, "0-1@head:a|2-2@b2:a|3-3@head:a", &o); /* on one board as well */
    T_NEAR(o.bottleneck_ns, 70, 1e-9);
    T_TRUE(!tun_fits(&p, &plan));
}

TEST(reasons)
{
    problem p;

    two_boards(&p);
    p.boards.boards[0].memory_bytes = p.boards.boards[1].memory_bytes = 3000;
    T_EQ(tun_solve(&p, &solution), TUN_E_IMPOSSIBLE);
    T_EQ(solution.missing, TUN_SHORT_MEMORY);
    T_EQ(solution.plan.stage_count, 0);
    p.boards.boards[0].memory_bytes = p.boards.boards[1].memory_bytes = 7000;
    T_EQ(tun_solve(&p, &solution), 0);
    T_EQ(tun_board_mask(&p, &solution.plan.stages[0]), 1);
    p.boards.boards[0].energy_max_nj = p.boards.boards[1].energy_max_nj = 1;
    T_EQ(tun_solve(&p, &solution), TUN_E_IMPOSSIBLE);
    T_EQ(solution.missing, TUN_SHORT_ENERGY);
    p.boards.boards[0].energy_max_nj = p.boards.boards[1].energy_max_nj = 0;
    p.bounds.period_max_ns = 1;
    T_EQ(tun_solve(&p, &solution), TUN_E_IMPOSSIBLE);
    T_EQ(solution.missing, TUN_SHORT_TIME);
    T_LT(0, solution.plan.stage_count);
    p.bounds.period_max_ns = 0;
    p.boards.head = 2;
    T_EQ(tun_solve(&p, &solution), -EINVAL);
}

/* More units than a pass can afford: joined, and still what tun_eval() says. */
TEST(many_units)
{
    struct tun_ep eps[8] = {{{0}}};
    problem p;

    for (size_t k = 0; k < 8; k++) {
        snprintf(eps[k].name, sizeof(eps[k].name), "b%zu:%c", k / 2, (int)('a' + k % 2));
        eps[k].cores = 4;
        eps[k].speed = eps[k].bandwidth = 1;
        eps[k].board = (uint16_t)(k / 2);
    }
    tun_problem_init(&p, 3000, eps, 8);
    for (size_t u = 0; u < p.unit_count; u++) {
        p.units[u].weight_bytes = 1000;
        for (size_t k = 0; k < 8; k++) {
            for (size_t w = 1; w <= 4; w++) {
                *tun_cell_at(&p.costs, k, w, u) = (struct tun_cell){
                    .ns = (1000 + (double)(u % 7) * 100) / (double)w, .source = TUN_MEASURED};
            }
        }
    }
    p.boards.count = 4;
    for (size_t b = 0; b < 4; b++) {
        p.boards.boards[b].memory_bytes = 1e6;
    }
    T_EQ(tun_solve(&p, &solution), 0);
    T_TRUE(solution.blocks);
    T_TRUE(plan_is_sound(&p, &solution));
    T_LT(solution.outcome.bottleneck_ns, 1.1 * 3000 * 1300 / 32.0);
}

TEST_MAIN()
