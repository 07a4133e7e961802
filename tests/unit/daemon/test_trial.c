/* SPDX-License-Identifier: Apache-2.0 */
/* The pace of departures with its uncertainty, and the plans that show unknown shapes of team. */
#include <math.h>

#include "daemon/plans/retune_private.h"
#include "tests/harness.h"

#define SEED 20260801u

static double chance(unsigned *state) /* uniform in 0..1 */
{
    *state = *state * 1664525u + 1013904223u;
    return (double)(*state >> 8) / (double)(1u << 24);
}

TEST(even_departures_leave_no_uncertainty)
{
    struct dmn_pace p;

    dmn_pace_begin(&p, 1000, 1);
    T_TRUE(dmn_pace_mean_ns(&p) == 0 && isinf(dmn_pace_half_ns(&p)));
    for (uint64_t i = 1; i <= 1000; i++) {
        dmn_pace_add(&p, 1000 + 7 * i);
        T_NEAR(dmn_pace_mean_ns(&p), 7, 1e-9);
        T_TRUE(i < 2 || dmn_pace_half_ns(&p) < 1e-9);
        T_TRUE(p.batches <= DMN_PACE_BATCHES && (i < 20 || p.batches >= DMN_PACE_BATCHES / 2));
    }
    T_EQ(p.count, 1000);
}

TEST(bursts_are_one_batch)
{
    struct dmn_pace p;

    dmn_pace_begin(&p, 0, 3); /* three teams that finish together */
    for (uint64_t i = 0; i < 30; i++) {
        dmn_pace_add(&p, (i / 3 + 1) * 300);
    }
    T_NEAR(dmn_pace_mean_ns(&p), 100, 1e-9);
    T_NEAR(dmn_pace_half_ns(&p), 0, 1e-9);
    dmn_pace_add(&p, 10); /* out of order: as late as the one before */
    T_EQ(p.last_ns, 3000);
}

TEST(the_interval_holds_the_mean_as_often_as_it_says)
{
    unsigned state = SEED;
    int held = 0;

    for (int run = 0; run < 2000; run++) {
        struct dmn_pace p;
        double at = 0;

        dmn_pace_begin(&p, 0, 1);
        for (int i = 0; i < 15; i++) {
            at += 500 + 1000 * chance(&state);
            dmn_pace_add(&p, (uint64_t)at);
        }
        held += fabs(dmn_pace_mean_ns(&p) - 1000) <= dmn_pace_half_ns(&p);
    }
    printf("seed %u: %d of 2000 held\n", SEED, held);
    T_TRUE(held > 1840 && held < 1960); /* 95 % of 2000 is 1900, sigma 10 */
}

TEST(student_falls_to_the_normal)
{
    T_TRUE(isinf(dmn_student(0)));
    T_NEAR(dmn_student(1), 12.706, 0.001);
    T_NEAR(dmn_student(20), 2.086, 0.001);
    T_NEAR(dmn_student(30), 2.042, 0.01);
    T_NEAR(dmn_student(1000000), 1.96, 0.001);
}

static void problem(struct tun_problem *p, size_t big, size_t little, double slower)
{
    struct tun_ep eps[] = {
        {.name = "big", .cores = (uint16_t)big, .speed = 1, .bandwidth = 1},
        {.name = "little", .cores = (uint16_t)little, .speed = 0.5, .bandwidth = 1}};

    T_EQ(tun_problem_init(p, 3, eps, 2), 0);
    for (size_t k = 0; k < 2; k++) {
        for (size_t w = 1; w <= eps[k].cores; w++) {
            for (size_t u = 0; u < 3; u++) {
                *tun_cell_at(&p->costs, k, w, u) =
                    (struct tun_cell){(k ? slower : 1) * 1e6 / (double)w, 0.1, TUN_PREDICTED};
            }
        }
    }
}

static void expect(struct dmn_shapes *s, const struct tun_problem *p, const char *wanted)
{
    char text[PL_PLAN_TEXT_MAX], error[256];
    struct pl_ep_set eps;
    struct pl_plan plan;

    tun_eps(p, &eps);
    if (!wanted) {
        T_TRUE(!dmn_shapes_next(s, p, 0, &plan));
        return;
    }
    T_TRUE(dmn_shapes_next(s, p, 0, &plan));
    T_EQ(pl_plan_check(&plan, &eps, p->unit_count, error, sizeof(error)), 0);
    T_TRUE(!pl_plan_oversubscribed(&plan, &eps));
    T_EQ(pl_plan_format(&plan, &eps, text, sizeof(text)), 0);
    T_STR(text, wanted);
}

TEST(all_cores_work_while_shapes_are_shown)
{
    struct dmn_shapes s = {0};
    struct tun_problem p;

    problem(&p, 4, 3, 2);
    expect(&s, &p, "0-2@big*4+little*3");
    expect(&s, &p, "0-2@bigx2*2+littlex2+little");
    expect(&s, &p, "0-2@bigx4+littlex3");
    expect(&s, &p, NULL);
    tun_problem_deinit(&p);
}

/* Cores of one EP, all shapes of one core known: perfect scaling is what they do already. */
TEST(width_is_left_alone_where_it_cannot_gain)
{
    struct dmn_shapes s = {0};
    struct tun_problem p;

    problem(&p, 2, 2, 2);
    for (size_t u = 0; u < 3; u++) {
        tun_cell_at(&p.costs, 0, 1, u)->source = TUN_MEASURED;
    }
    expect(&s, &p, "0-2@little*2+big*2"); /* the others are not known yet */
    for (size_t u = 0; u < 3; u++) {
        tun_cell_at(&p.costs, 1, 1, u)->source = TUN_MEASURED;
    }
    expect(&s, &p, NULL);
    p.bounds.latency_max_ns = 1e6; /* that is what width is good for */
    expect(&s, &p, "0-2@bigx2+littlex2");
    p.bounds.latency_max_ns = 0;
    s = (struct dmn_shapes){.tried = {1, 1}};
    tun_cell_at(&p.costs, 0, 1, 0)->ns /= 5; /* EPs with units of their own */
    tun_cell_at(&p.costs, 1, 1, 2)->ns /= 5;
    for (size_t k = 0; k < 2; k++) {
        for (size_t u = 0; u < 3; u++) {
            tun_cell_at(&p.costs, k, 2, u)->ns = tun_cell_at(&p.costs, k, 1, u)->ns / 1.8;
        }
    }
    expect(&s, &p, "0-2@bigx2+littlex2");
    tun_problem_deinit(&p);
}

TEST(what_is_known_is_not_run_again)
{
    struct dmn_shapes s = {0};
    struct tun_problem p;

    problem(&p, 2, 2, 2);
    for (size_t u = 0; u < 3; u++) {
        tun_cell_at(&p.costs, 0, 1, u)->source = TUN_MEASURED;
        tun_cell_at(&p.costs, 1, 2, u)->source = TUN_SAVED;
    }
    expect(&s, &p, "0-2@little*2+big*2");
    expect(&s, &p, "0-2@bigx2+little*2");
    expect(&s, &p, NULL);
    tun_problem_deinit(&p);
}

TEST(what_is_far_behind_is_left_alone)
{
    struct dmn_shapes s = {0};
    struct tun_problem p;

    problem(&p, 2, 2, 200); /* little adds 0.5 % */
    for (size_t u = 0; u < 3; u++) {
        tun_cell_at(&p.costs, 0, 2, u)->ns = 0.9e6; /* two threads, hardly faster than one */
        tun_cell_at(&p.costs, 1, 2, u)->ns = 1e9;
    }
    expect(&s, &p, "0-2@big*2");
    expect(&s, &p, NULL);
    s = (struct dmn_shapes){0};
    p.objective = TUN_LATENCY; /* then width is worth its cores */
    expect(&s, &p, "0-2@big*2");
    expect(&s, &p, "0-2@bigx2+littlex2");
    expect(&s, &p, NULL);
    tun_problem_deinit(&p);
}

TEST_MAIN()
