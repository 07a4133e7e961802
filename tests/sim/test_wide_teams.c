/* SPDX-License-Identifier: Apache-2.0 */
/* Other programs on the cores of a team: a wider one suffers more, since it needs all its cores at
 * once. One EP of two cores, where a team of both is a little faster than two teams of one. */
#include "tests/sim/two_cores.h"
#include "tuner/adapt/decide.h"
#include "tuner/adapt/decided.h"

#define WIDE 0.48 /* time of a team of two, of that of one core */

static void one_ep(struct tun_problem *p)
{
    static const struct tun_ep ep = {
        .name = "a", .cores = 2, .speed = 1, .bandwidth = 1, .watts = 1};

    T_EQ(tun_problem_init(p, UNITS, &ep, 1), 0);
    for (size_t u = 0; u < UNITS; u++) {
        p->units[u] = (struct tun_unit){.weight = 1};
        for (size_t w = 1; w <= 2; w++) {
            *tun_cell_at(&p->costs, 0, w, u) =
                (struct tun_cell){.ns = w == 1 ? UNIT_NS : WIDE * UNIT_NS, .source = TUN_MEASURED};
        }
    }
}

/* All units on both cores: @count teams of @width. */
static struct pl_plan whole(uint16_t width, uint16_t count)
{
    struct pl_plan plan = {.stage_count = 1};

    plan.stages[0] = (struct pl_stage_plan){
        .last_unit = UNITS - 1, .group_count = 1, .groups = {{.width = width, .count = count}}};
    return plan;
}

/* What is decided where @plan serves and its teams take @times as long. @waiting: that much of the
 * time they wait for a core. */
static void decide(const struct pl_plan *plan, double times, double waiting,
                   struct tun_decision *ret)
{
    struct tun_team_now team = {
        .level = log(times), .sigma = 0.01, .waiting = waiting, .firm = true};
    double beta[UNITS] = {1, 1, 1, 1}, slow[UNITS] = {1, 1, 1, 1};
    base_cleanup(tun_problem_deinit) struct tun_problem p = TUN_PROBLEM_NULL;
    struct tun_record r = {.plan = *plan,
                           .beta = beta,
                           .slow = slow,
                           .eps = {{.cores = 2}},
                           .team_count = 1,
                           .teams = &team,
                           .gain_min = 0.03,
                           .budget_left = 10};

    one_ep(&p);
    r.problem = p;
    T_EQ(tun_decide(&r, ret), 0);
}

TEST(a_wider_team_is_no_way_out)
{
    struct pl_plan narrow = whole(1, 2), wide = whole(2, 1);
    base_cleanup(tun_decision_deinit) struct tun_decision free = TUN_DECISION_NULL;

    decide(&narrow, 1, NAN, &free);
    T_TRUE(pl_plan_equal(&free.plan, &wide)); /* when nothing else runs */
    for (int i = 0; i < 3; i++) {
        base_cleanup(tun_decision_deinit) struct tun_decision d = TUN_DECISION_NULL;

        decide(&narrow, i == 0 ? 1.2 : 3, i == 2 ? NAN : 0.5, &d);
        T_EQ(d.cause, i == 2 ? TUN_CAUSE_THROUGHPUT : TUN_CAUSE_CONTENTION);
        T_EQ(d.hold, TUN_HOLD_SAME);
    }
}

TEST(a_wide_team_gives_way_to_narrow_ones)
{
    struct pl_plan narrow = whole(1, 2), wide = whole(2, 1);
    base_cleanup(tun_decision_deinit) struct tun_decision d = TUN_DECISION_NULL;

    decide(&wide, 10, 0.5, &d);
    T_TRUE(d.replan && pl_plan_equal(&d.plan, &narrow));
    T_NEAR(d.gain, 10 * WIDE / (sqrt(10) / 2) - 1, 0.1);
}

/* Else the plan would seem to be three times as fast as expected, the EP free, and the wide team
 * would return. */
TEST(its_factors_are_those_of_the_new_teams)
{
    static const struct tun_ep_seen ep = {.cores = 2};
    base_cleanup(tun_problem_deinit) struct tun_problem p = TUN_PROBLEM_NULL;
    struct pl_plan wide = whole(2, 1);
    struct tun_team_seen team = {.frames = 10, .service_ns = UNITS * WIDE * UNIT_NS, .busy = 1};
    struct tun_seen_window seen = {
        .start_ns = BASE_NS_PER_S, .eps = &ep, .teams = &team, .team_count = 1};
    struct tun_adapt *adapt = NULL;
    bool contended = false, switched = false;

    one_ep(&p);
    T_EQ(tun_adapt_new(NULL, &adapt), 0);

    base_cleanup(adapt_free) struct tun_adapt *owned = adapt;

    T_EQ(tun_adapt_serve(adapt, &p, &wide, &ep, seen.start_ns), 0);
    for (size_t i = 0; i < 100 && !switched; i++, seen.start_ns = seen.now_ns) {
        base_cleanup(tun_record_deinit) struct tun_record r = TUN_RECORD_NULL;

        team.service_ns = UNITS * WIDE * UNIT_NS * (i < 50 ? 1 : 9);
        team.cpu_ns = UNITS * WIDE * UNIT_NS;
        seen.now_ns = seen.start_ns + WINDOW_NS;
        if (tun_adapt_observe(adapt, &seen, &r) == TUN_ADAPT_DECIDE) {
            base_cleanup(tun_decision_deinit) struct tun_decision d = TUN_DECISION_NULL;

            T_EQ(tun_decide(&r, &d), 0);
            switched = d.replan;
            T_EQ(tun_adapt_decided(adapt, &r, &d, switched, seen.now_ns), 0);
        }
    }
    T_TRUE(switched);
    T_NEAR(tun_adapt_slow(adapt, 0, 0, &contended), 3, 0.2);
    T_TRUE(contended);
}

TEST_MAIN()
