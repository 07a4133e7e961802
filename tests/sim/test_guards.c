/* SPDX-License-Identifier: Apache-2.0 */
/* What a cool-down holds back and what not, and which plan is returned to. */
#include <math.h>

#include "tests/sim/two_cores.h"
#include "tuner/adapt/decided.h"

#define SETTLED 12u /* windows after which a plan is settled and verified */
#define SOON 6u     /* windows in which a large change is decided on */

/* A watch of a plan on a scripted clock. */
struct world {
    struct tun_adapt *adapt; /* owned */
    struct pl_plan plan;
    uint64_t now_ns;
};

static void begin(struct world *w, const struct tun_adapt_options *o)
{
    static const struct tun_ep_seen eps[] = {{.cores = 1}, {.cores = 1}};
    base_cleanup(tun_problem_deinit) struct tun_problem p = TUN_PROBLEM_NULL;

    machine(&p);
    p.bounds.one_ep_stages = true; /* or frames would be dispatched */
    w->now_ns = BASE_NS_PER_S;
    w->plan = halves(2);
    T_EQ(tun_adapt_new(o, &w->adapt), 0);
    T_EQ(tun_adapt_serve(w->adapt, &p, &w->plan, eps, w->now_ns), 0);
}

/* At most so many windows in which EP a takes @a times as long as the table says, and b @b times.
 * Return: the first thing that is asked for. */
static int watch(struct world *w, unsigned windows, double a, double b, struct tun_record *ret)
{
    static const struct tun_ep_seen eps[] = {{.cores = 1}, {.cores = 1}};
    int asks = TUN_ADAPT_NOTHING;

    for (unsigned i = 0; i < windows && asks == TUN_ADAPT_NOTHING; i++) {
        struct tun_team_seen teams[2];
        struct tun_seen_window seen = {.start_ns = w->now_ns,
                                       .now_ns = w->now_ns + WINDOW_NS,
                                       .eps = eps,
                                       .teams = teams,
                                       .team_count = w->plan.stage_count};

        for (size_t s = 0; s < w->plan.stage_count; s++) {
            const struct pl_stage_plan *stage = &w->plan.stages[s];
            double ns = (stage->last_unit - stage->first_unit + 1) * UNIT_NS *
                        (stage->groups[0].ep ? b : a);

            teams[s] = (struct tun_team_seen){
                .stage = (uint16_t)s, .frames = 10, .service_ns = ns, .cpu_ns = ns};
        }
        w->now_ns += WINDOW_NS;
        asks = tun_adapt_observe(w->adapt, &seen, ret);
    }
    return asks;
}

/* What became of a decision. */
struct outcome {
    bool asked, replan;
    enum tun_hold hold;
    double left_s; /* of the cool-down */
};

/* As above; what is asked for is decided on and done. */
static struct outcome follow(struct world *w, unsigned windows, double a, double b)
{
    base_cleanup(tun_record_deinit) struct tun_record r = TUN_RECORD_NULL;
    base_cleanup(tun_decision_deinit) struct tun_decision d = TUN_DECISION_NULL;
    struct outcome o = {.asked = watch(w, windows, a, b, &r) == TUN_ADAPT_DECIDE};

    if (o.asked && tun_decide(&r, &d) == 0 &&
        tun_adapt_decided(w->adapt, &r, &d, d.replan, w->now_ns) == 0) {
        o.replan = d.replan;
        w->plan = d.replan ? d.plan : w->plan;
        o.hold = d.hold;
        o.left_s = r.cooldown_left_s;
    }
    return o;
}

TEST(a_large_gain_does_not_wait)
{
    static const double urgent[] = {0.25, 0};

    for (size_t i = 0; i < base_array_count(urgent); i++) {
        struct tun_adapt_options o = TUN_ADAPT_DEFAULTS;
        base_cleanup(tun_record_deinit) struct tun_record none = TUN_RECORD_NULL;
        struct outcome found;
        struct world w;

        o.gain_urgent = urgent[i];
        begin(&w, &o);

        base_cleanup(adapt_free) struct tun_adapt *owned = w.adapt;

        T_EQ(watch(&w, SETTLED, 1, 1, &none), TUN_ADAPT_NOTHING);
        found = follow(&w, SOON, 1, 1.6); /* to 3 units and 1 */
        T_TRUE(found.replan && found.left_s == 0);
        T_EQ(watch(&w, SETTLED, 1, 1.6, &none), TUN_ADAPT_NOTHING);
        found = follow(&w, SOON, 1, 1);
        T_TRUE(found.asked && found.left_s > 0);
        T_EQ(found.hold, urgent[i] > 0 ? TUN_HOLD_NONE : TUN_HOLD_COOLDOWN);
    }
}

TEST(what_waits_is_decided_anew_when_it_gets_worse)
{
    struct tun_adapt_options o = TUN_ADAPT_DEFAULTS;
    base_cleanup(tun_record_deinit) struct tun_record none = TUN_RECORD_NULL;
    struct outcome found;
    struct world w;

    o.gain_urgent = 0.6;
    o.cooldown_ns = 60 * BASE_NS_PER_S;
    begin(&w, &o);

    base_cleanup(adapt_free) struct tun_adapt *owned = w.adapt;

    T_EQ(watch(&w, SETTLED, 1, 1, &none), TUN_ADAPT_NOTHING);
    T_TRUE(follow(&w, SOON, 1, 1.6).replan);
    T_EQ(watch(&w, SETTLED, 1, 1.6, &none), TUN_ADAPT_NOTHING);
    found = follow(&w, SOON, 1.5, 1.6); /* 40 % */
    T_TRUE(found.asked && !found.replan);
    T_EQ(found.hold, TUN_HOLD_COOLDOWN);
    T_EQ(watch(&w, SETTLED, 1.5, 1.6, &none), TUN_ADAPT_NOTHING);
    found = follow(&w, SOON, 3, 1.6); /* 80 % */
    T_TRUE(found.replan && found.left_s > 0);
}

TEST(one_plan_taken_back_is_not_in_the_way)
{
    base_cleanup(tun_record_deinit) struct tun_record none = TUN_RECORD_NULL;
    struct outcome found;
    struct world w;

    begin(&w, NULL);

    base_cleanup(adapt_free) struct tun_adapt *owned = w.adapt;

    T_EQ(watch(&w, SETTLED, 1, 1, &none), TUN_ADAPT_NOTHING);
    T_TRUE(follow(&w, SOON, 1, 1.6).replan);
    T_EQ(watch(&w, SETTLED, 1.3, 1.6, &none),
         TUN_ADAPT_BACK); /* worse than predicted, and before */
    w.plan = *tun_adapt_before(w.adapt);
    T_EQ(tun_adapt_went_back(w.adapt, true, w.now_ns), 0);
    T_TRUE(tun_adapt_cooldown_ns(w.adapt) > TUN_ADAPT_DEFAULTS.cooldown_ns);
    T_TRUE(!follow(&w, SETTLED, 1.3, 1.6).replan);
    found = follow(&w, SOON, 1.3, 4.8);
    T_TRUE(found.replan && found.left_s > 0);
}

/* Both cores free again, under a plan that dispatches whole frames: by the table it is as good as
 * the previous plan. */
TEST(the_previous_plan_returns_when_it_is_as_good)
{
    struct tun_team_now teams[] = {
        {.stage = 0, .group = 0, .sigma = 0.01, .waiting = NAN},
        {.stage = 0, .group = 1, .level = -log(3), .sigma = 0.01, .waiting = NAN, .firm = true}};
    double beta[UNITS] = {1, 1, 1, 1}, slow[2 * UNITS] = {1, 1, 1, 1, 3, 3, 3, 3};
    base_cleanup(tun_problem_deinit) struct tun_problem p = TUN_PROBLEM_NULL;
    base_cleanup(tun_decision_deinit) struct tun_decision d = TUN_DECISION_NULL;
    struct tun_record r = {.home = halves(2),
                           .beta = beta,
                           .slow = slow,
                           .eps = {{.cores = 1}, {.cores = 1, .contended = true}},
                           .team_count = base_array_count(teams),
                           .teams = teams,
                           .gain_min = 0.03,
                           .budget_left = 10};

    machine(&p);
    p.bounds.one_ep_stages = true;
    r.problem = p;
    r.plan.stage_count = 1;
    r.plan.stages[0] = (struct pl_stage_plan){
        .first_unit = 0,
        .last_unit = UNITS - 1,
        .group_count = 2,
        .groups = {{.ep = 0, .width = 1, .count = 1}, {.ep = 1, .width = 1, .count = 1}}};
    T_EQ(tun_decide(&r, &d), 0);
    T_TRUE(d.released);
    T_EQ(d.hold, TUN_HOLD_NONE);
    T_TRUE(pl_plan_equal(&d.plan, &r.home));
}

/* Costs were measured since the plan was chosen: 1 unit on a and 3 on b, where unit 0 takes @first
 * times as long as the others. @measured_ns: as the plan serves. */
static void solve_again(double first, double measured_ns, struct tun_decision *ret)
{
    static const struct tun_ep_seen eps[] = {{.cores = 1}, {.cores = 1}};
    base_cleanup(tun_problem_deinit) struct tun_problem p = TUN_PROBLEM_NULL;
    base_cleanup(tun_record_deinit) struct tun_record r = TUN_RECORD_NULL;
    struct tun_seen_window seen = {.start_ns = BASE_NS_PER_S, .eps = eps};
    struct pl_plan plan = halves(1);
    struct tun_adapt *adapt = NULL;

    machine(&p);
    p.bounds.one_ep_stages = true;
    T_EQ(tun_adapt_new(NULL, &adapt), 0);

    base_cleanup(adapt_free) struct tun_adapt *owned = adapt;

    T_EQ(tun_adapt_serve(adapt, &p, &plan, eps, seen.start_ns), 0);
    for (size_t k = 0; k < p.ep_count; k++) {
        tun_cell_at(&p.costs, k, 1, 0)->ns = first * UNIT_NS;
    }
    T_EQ(tun_adapt_learned(adapt, &p), 0);
    seen.now_ns = seen.start_ns + WINDOW_NS;
    seen.events = TUN_EVENT_COSTS;
    T_EQ(tun_adapt_observe(adapt, &seen, &r), TUN_ADAPT_DECIDE);
    r.measured_ns = measured_ns;
    T_EQ(tun_decide(&r, ret), 0);
}

TEST(a_plan_that_the_table_refutes_is_solved_again)
{
    static const struct {
        double first, measured;
        enum tun_hold hold;
    } cases[] = {
        {1, 3, TUN_HOLD_NONE},   /* takes 3 units, where 2 are possible */
        {1, 2, TUN_HOLD_GAIN},   /* but in truth it serves as fast as any can */
        {1.6, 3, TUN_HOLD_GAIN}, /* 2.6 are possible */
    };

    for (size_t i = 0; i < base_array_count(cases); i++) {
        base_cleanup(tun_decision_deinit) struct tun_decision d = TUN_DECISION_NULL;

        solve_again(cases[i].first, cases[i].measured * UNIT_NS, &d);
        T_EQ(d.cause, TUN_CAUSE_MEASURED);
        T_EQ(d.hold, cases[i].hold);
    }
}

TEST_MAIN()
