/* SPDX-License-Identifier: Apache-2.0 */
/* A watch that goes on on other cores and under other options. */
#include "tests/sim/two_cores.h"
#include "tuner/adapt/decided.h"

#define WINDOWS 30u

/* Windows in which the teams take so long. @hold_ns: of each. @ret_left_s: of the cool-down, if a
 * decision is due. Return: the first thing that is asked for. */
static int watch_held(struct tun_adapt *a, double a_ns, double b_ns, uint64_t hold_ns,
                      uint64_t *now_ns, double *ret_left_s)
{
    static const struct tun_ep_seen eps[] = {{.cores = 1}, {.cores = 1}};

    for (unsigned i = 0; i < WINDOWS; i++) {
        struct tun_team_seen teams[] = {
            {.stage = 0, .frames = 10, .service_ns = a_ns, .cpu_ns = a_ns},
            {.stage = 1, .frames = 10, .service_ns = b_ns, .cpu_ns = b_ns}};
        struct tun_seen_window w = {.start_ns = *now_ns,
                                    .now_ns = *now_ns + WINDOW_NS,
                                    .eps = eps,
                                    .teams = teams,
                                    .team_count = base_array_count(teams),
                                    .hold_ns = hold_ns};
        base_cleanup(tun_record_deinit) struct tun_record record = TUN_RECORD_NULL;
        int asks;

        *now_ns += WINDOW_NS;
        asks = tun_adapt_observe(a, &w, &record);
        *ret_left_s = record.cooldown_left_s;
        if (asks != TUN_ADAPT_NOTHING) {
            return asks;
        }
    }
    return TUN_ADAPT_NOTHING;
}

static int watch(struct tun_adapt *a, double a_ns, double b_ns, uint64_t *now_ns)
{
    double left_s;

    return watch_held(a, a_ns, b_ns, 0, now_ns, &left_s);
}

/* A watch of @plan since now; NULL: it could not be made. */
static struct tun_adapt *serving(const struct pl_plan *plan, uint64_t now_ns)
{
    static const struct tun_ep_seen eps[] = {{.cores = 1}, {.cores = 1}};
    base_cleanup(tun_problem_deinit) struct tun_problem p = TUN_PROBLEM_NULL;
    struct tun_adapt *a = NULL;

    machine(&p);
    if (tun_adapt_new(NULL, &a) == 0 && tun_adapt_serve(a, &p, plan, eps, now_ns) != 0) {
        a = tun_adapt_free(a);
    }
    return a;
}

TEST(what_is_known_is_no_surprise)
{
    static const bool contended[] = {false, true};
    const double slow[] = {1, 1, 1, 1, 3, 3, 3, 3};
    struct pl_plan plan = halves(2);
    uint64_t now = BASE_NS_PER_S;
    bool is;

    base_cleanup(adapt_free) struct tun_adapt *known = serving(&plan, now);

    T_TRUE(known);
    tun_adapt_resume(known, slow, contended);
    T_TRUE(tun_adapt_slow(known, 1, 3, &is) == 3 && is);
    T_TRUE(tun_adapt_slow(known, 0, 3, &is) == 1 && !is);
    T_TRUE(tun_adapt_slow(known, 2, 0, &is) == 1 && !is);
    T_EQ(watch(known, 2 * UNIT_NS, 6 * UNIT_NS, &now), TUN_ADAPT_NOTHING);

    base_cleanup(adapt_free) struct tun_adapt *unknown = serving(&plan, now);

    T_TRUE(unknown);
    T_EQ(watch(unknown, 2 * UNIT_NS, 6 * UNIT_NS, &now), TUN_ADAPT_DECIDE);
}

TEST(a_plan_that_came_from_outside_begins_the_cool_down)
{
    struct pl_plan plan = halves(2);
    uint64_t now = BASE_NS_PER_S;
    double left_s;

    for (int outside = 0; outside < 2; outside++) {
        base_cleanup(adapt_free) struct tun_adapt *a = serving(&plan, now);

        T_TRUE(a);
        if (outside) {
            tun_adapt_changed(a, now);
        }
        T_EQ(watch_held(a, 2 * UNIT_NS, 6 * UNIT_NS, 0, &now, &left_s), TUN_ADAPT_DECIDE);
        T_EQ(left_s > 0, outside);
    }
}

TEST(a_slowdown_is_not_decided_on_before_it_stood_as_long_as_is_asked)
{
    const uint64_t hold_ns = 20 * WINDOW_NS;
    struct pl_plan plan = halves(2);
    uint64_t begun, now = BASE_NS_PER_S;
    double left_s;

    base_cleanup(adapt_free) struct tun_adapt *a = serving(&plan, now);

    T_TRUE(a);
    T_EQ(watch(a, 2 * UNIT_NS, 2 * UNIT_NS, &now), TUN_ADAPT_NOTHING);
    begun = now;
    T_EQ(watch_held(a, 2 * UNIT_NS, 6 * UNIT_NS, hold_ns, &now, &left_s), TUN_ADAPT_DECIDE);
    T_TRUE(now - begun >= hold_ns && now - begun < hold_ns + 5 * WINDOW_NS);
}

TEST(an_unverified_plan_is_taken_back)
{
    struct pl_plan before = halves(2), plan = halves(1), other = halves(3);
    uint64_t now = BASE_NS_PER_S;

    base_cleanup(adapt_free) struct tun_adapt *bad = serving(&plan, now);

    T_TRUE(bad);
    T_EQ(tun_adapt_verify(bad, &before, 5 * UNIT_NS, 3 * UNIT_NS), 0);
    T_EQ(watch(bad, UNIT_NS, 7 * UNIT_NS, &now), TUN_ADAPT_BACK);
    T_TRUE(pl_plan_equal(tun_adapt_before(bad), &before));

    base_cleanup(adapt_free) struct tun_adapt *good = serving(&plan, now);

    T_TRUE(good);
    T_EQ(tun_adapt_verify(good, &before, 5 * UNIT_NS, 3 * UNIT_NS), 0);
    T_EQ(watch(good, UNIT_NS, 3 * UNIT_NS, &now), TUN_ADAPT_NOTHING);
    other.stages[1].groups[0].ep = 7;
    T_EQ(tun_adapt_verify(good, &other, 1, 1), -EINVAL);
    T_EQ(tun_adapt_verify(good, &before, 0, 1), -EINVAL);
}

TEST(options_hold_from_now_on)
{
    struct tun_adapt_options o = TUN_ADAPT_DEFAULTS;
    struct pl_plan plan = halves(2);
    uint64_t now = BASE_NS_PER_S;

    base_cleanup(adapt_free) struct tun_adapt *a = serving(&plan, now);

    T_TRUE(a);
    T_EQ(watch(a, 2 * UNIT_NS, 2 * UNIT_NS, &now), TUN_ADAPT_NOTHING);
    o.cooldown_ns = 7 * BASE_NS_PER_S;
    o.detect.firm = 1e6; /* nothing is ever sustained */
    T_EQ(tun_adapt_set_options(a, &o), 0);
    T_EQ(tun_adapt_cooldown_ns(a), 7 * BASE_NS_PER_S);
    T_EQ(watch(a, 2 * UNIT_NS, 6 * UNIT_NS, &now), TUN_ADAPT_NOTHING);
    o.detect.firm = TUN_ADAPT_DEFAULTS.detect.firm;
    T_EQ(tun_adapt_set_options(a, &o), 0);
    T_EQ(watch(a, 2 * UNIT_NS, 6 * UNIT_NS, &now), TUN_ADAPT_DECIDE);
    o.settle = 0;
    T_EQ(tun_adapt_set_options(a, &o), -EINVAL);
    T_EQ(tun_adapt_cooldown_ns(a), 7 * BASE_NS_PER_S);
}

TEST_MAIN()
