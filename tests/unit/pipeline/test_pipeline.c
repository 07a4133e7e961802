/* SPDX-License-Identifier: Apache-2.0 */
/* What a pipeline serves: answers, refusals, its limits, and how it goes from plan to plan. */
#include <sched.h>

#include "base/base.h"
#include "tests/harness.h"
#include "tests/unit/pipeline/rig.h"

/* A team counts a frame after it has passed it on: the last ones may still be uncounted. */
static uint64_t counted(const struct pl_pipeline *p, size_t stage, uint64_t expected)
{
    uint64_t frames;

    do {
        frames = 0;
        for (size_t i = 0; i < pl_team_count(p); i++) {
            struct pl_team_stats s;

            pl_team_stats(p, i, &s);
            frames += s.stage == stage ? s.frames : 0;
        }
    } while (frames < expected && sched_yield() == 0);
    return frames;
}

static void check_plan(struct tiny_net *net, const struct pl_ep_set *eps, const char *text)
{
    struct pl_plan plan = rig_plan(text, eps, net->model.unit_count);
    struct rig r;
    struct pl_options o;

    rig_init(&r, net);
    o = rig_options(&r);
    T_EQ(pl_new(net->net, eps, &plan, &o, &r.p), 0);
    T_TRUE(pl_plan_equal(&plan, pl_current_plan(r.p)));
    T_TRUE(rig_stream(&r, 60, 0));
    T_TRUE(rig_stream(&r, 20, RIG_IMAGE));
    T_EQ(r.ok, 80);
    T_EQ(pl_in_flight(r.p), 0);
    T_EQ(pl_stalled_ns(r.p, base_now_ns() + BASE_NS_PER_S), 0);
    for (size_t i = 0; i < plan.stage_count; i++) {
        T_EQ(counted(r.p, i, 80), 80);
    }
    for (size_t i = 0; i < pl_team_count(r.p); i++) {
        struct pl_team_stats s;

        pl_team_stats(r.p, i, &s);
        T_TRUE(s.pinned);
        T_EQ(s.queue, 0);
        T_EQ(s.held_since_ns, 0);
        T_TRUE(s.busy_ns > 0 || s.frames == 0);
    }
    for (size_t u = 0; u < net->model.unit_count; u++) {
        struct pl_series s;

        pl_unit_stats(r.p, u, &s);
        /* a wide team that others disturb keeps its first frames until one says what they took */
        T_TRUE(s.count == 80 || (s.count < 80 && strchr(text, 'x')));
        T_TRUE(s.count == 0 || (s.mean_ns > 0 && s.min_ns <= s.mean_ns));
    }
    rig_deinit(&r);
}

/* @values: bit u: the values of unit u are larger than its weights. */
static void set_larger(struct tiny_net *net, size_t values)
{
    for (size_t u = 0; u < net->model.unit_count; u++) {
        net->model.units[u].live_bytes = 1;
        net->model.units[u].weight_bytes = (values >> u & 1) != 0 ? 1 : SIZE_MAX / 64;
    }
}

TEST(every_shape_of_plan_gives_the_same_answers)
{
    static const char *const one_kind[] = {
        "0-5@big",
        "0-2@big|3-5@big",
        "0-5@big*3",
        "0-0@big|1-1@big|2-2@big|3-3@big|4-4@big|5-5@big",
        "0-1@big*2|2-3@big*3|4-5@big*2",
        "0-3@big*4|4-5@big",
    };
    static const char *const two_kinds[] = {
        "0-2@big|3-5@little",
        "0-2@little|3-5@big",
        "0-5@big+little",
        "0-5@big*2+little*3",
        "0-1@big+little|2-4@little*2+big|5-5@big",
    };
    struct pl_ep_set eps;
    struct tiny_net net;

    tiny_net_init(&net, 6, 3, 10);
    rig_eps(&eps, false);
    for (size_t i = 0; i < base_array_count(one_kind); i++) {
        check_plan(&net, &eps, one_kind[i]);
    }
    /* of each unit, values or weights */
    for (size_t larger = 0; larger < 64; larger += 7 * (size_t)t_share()) {
        set_larger(&net, larger);
        check_plan(&net, &eps, "0-5@big/4");
        check_plan(&net, &eps, "0-2@big|3-5@big*2/8");
    }
    if (eps.eps[0].cpu_count >= 2) {
        check_plan(&net, &eps, "0-5@bigx2");
        check_plan(&net, &eps, "0-2@bigx2|3-5@bigx2*2");
        check_plan(&net, &eps, "0-2@bigx2+big|3-5@big+bigx2");
    }
    rig_eps(&eps, true);
    for (size_t i = 0; i < base_array_count(two_kinds); i++) {
        check_plan(&net, &eps, two_kinds[i]);
    }
    tiny_net_deinit(&net);
}

/* One frame after the other, so that every route has room. */
TEST(routes_get_their_parts)
{
    static const char text[] = "62.5%:0-5@big;25%:0-2@big|3-5@big;12.5%:0-0@big|1-4@big|5-5@big";
    struct pl_ep_set eps;
    struct tiny_net net;
    struct pl_plan plan;
    struct pl_options o;
    struct rig r;

    tiny_net_init(&net, 6, 3, 12);
    rig_eps(&eps, false);
    plan = rig_plan(text, &eps, 6);
    rig_init(&r, &net);
    o = rig_options(&r);
    T_EQ(pl_new(net.net, &eps, &plan, &o, &r.p), 0);
    for (int i = 0; i < 160; i++) {
        T_TRUE(rig_stream(&r, 1, i % 4 ? 0 : RIG_IMAGE));
    }
    T_EQ(r.ok, 160);
    T_EQ(counted(r.p, 0, 100), 100);
    T_EQ(counted(r.p, 1, 40), 40);
    T_EQ(counted(r.p, 2, 40), 40);
    for (size_t stage = 3; stage < 6; stage++) {
        T_EQ(counted(r.p, stage, 20), 20);
    }
    T_TRUE(rig_stream(&r, 200, 0));
    rig_deinit(&r);
    tiny_net_deinit(&net);
}

TEST(refuses_what_it_cannot_serve)
{
    struct pl_ep_set eps;
    struct tiny_net net;
    struct pl_plan plan;
    struct rig r;
    struct pl_options o;

    tiny_net_init(&net, 3, 3, 6);
    rig_init(&r, &net);
    rig_eps(&eps, false);
    o = rig_options(&r);
    plan = rig_plan("0-3@big", &eps, 4); /* one unit too many */
    T_EQ(pl_new(net.net, &eps, &plan, &o, &r.p), -EINVAL);
    plan = rig_plan("0-2@big", &eps, 3);
    o.frames = SIZE_MAX;
    T_EQ(pl_new(net.net, &eps, &plan, &o, &r.p), -EINVAL);
    o.frames = 0;
    T_EQ(pl_new(net.net, &eps, &plan, &o, &r.p), 0);
    T_EQ(pl_frame_count(r.p), 2 * eps.eps[0].cpu_count + 2);
    T_EQ(pl_depth(r.p), 2);
    plan = rig_plan("0-1@big", &eps, 2);
    T_EQ(pl_switch(r.p, &plan), -EINVAL);
    T_EQ(pl_epoch(r.p), 1);
    T_TRUE(rig_stream(&r, 10, 0));
    rig_deinit(&r);
    tiny_net_deinit(&net);
}

TEST(cancelled_and_expired_frames_are_not_computed)
{
    struct pl_ep_set eps;
    struct tiny_net net;
    struct pl_plan plan;
    struct rig r;
    struct pl_options o;

    tiny_net_init(&net, 4, 3, 8);
    rig_init(&r, &net);
    rig_eps(&eps, false);
    o = rig_options(&r);
    plan = rig_plan("0-1@big|2-3@big*2", &eps, 4);
    T_EQ(pl_new(net.net, &eps, &plan, &o, &r.p), 0);
    T_TRUE(rig_stream(&r, 40, RIG_CANCELLED));
    T_TRUE(rig_stream(&r, 40, RIG_EXPIRED));
    T_EQ(r.ok, 0);
    for (size_t i = 0; i < pl_team_count(r.p); i++) {
        struct pl_team_stats s;

        pl_team_stats(r.p, i, &s);
        T_EQ(s.frames, 0); /* computed none */
        T_EQ(s.service.count, 0);
    }
    T_TRUE(rig_stream(&r, 40, 0));
    T_EQ(r.ok, 40);
    rig_deinit(&r);
    tiny_net_deinit(&net);
}

/* One frame at a time with teams that never spin: each hand-off goes through a sleep. */
TEST(no_wakeup_is_lost)
{
    struct pl_ep_set eps;
    struct tiny_net net;
    struct pl_plan plan;
    struct rig r;
    struct pl_options o;

    tiny_net_init(&net, 3, 1, 2);
    rig_init(&r, &net);
    rig_eps(&eps, false);
    o = rig_options(&r);
    o.spin_ns = 0;
    plan = rig_plan("0-0@big|1-1@big|2-2@big", &eps, 3);
    T_EQ(pl_new(net.net, &eps, &plan, &o, &r.p), 0);
    for (int i = 0; i < t_times(10000); i++) {
        T_TRUE(rig_submit(&r, 0));
        T_TRUE(rig_drain(&r));
    }
    T_TRUE(!r.wrong);
    T_EQ(r.ok, t_times(10000));
    rig_deinit(&r);
    tiny_net_deinit(&net);
}

TEST(one_switch_at_a_time)
{
    struct pl_ep_set eps, fewer;
    struct tiny_net net;
    struct pl_plan a, b;
    struct rig r;
    struct pl_options o;

    tiny_net_init(&net, 2, 8, 48); /* tens of milliseconds a frame: the old set is still at it */
    rig_init(&r, &net);
    rig_eps(&eps, true);
    o = rig_options(&r);
    a = rig_plan("0-0@big|1-1@little", &eps, 2);
    b = rig_plan("0-1@little", &eps, 2);
    T_EQ(pl_new(net.net, &eps, &a, &o, &r.p), 0);
    T_TRUE(rig_submit(&r, 0));
    T_EQ(pl_switch(r.p, &b), 0);
    T_TRUE(pl_switching(r.p));
    T_EQ(pl_switch(r.p, &a), PL_E_BUSY);
    T_EQ(pl_epoch(r.p), 2);
    T_TRUE(rig_submit(&r, 0));
    T_TRUE(rig_drain(&r));
    T_TRUE(!pl_switching(r.p));
    T_EQ(r.epoch, 2);
    /* the machine changed: the plan that serves still means its own places */
    fewer = eps;
    fewer.count = 1;
    T_EQ(pl_set_eps(r.p, &fewer), 0);
    T_EQ(pl_current_eps(r.p)->count, 2);
    T_EQ(pl_switch(r.p, &b), -EINVAL);
    b = rig_plan("0-1@big", &fewer, 2);
    T_EQ(pl_switch(r.p, &b), 0);
    T_EQ(pl_current_eps(r.p)->count, 1);
    T_TRUE(rig_stream(&r, 3, 0));
    rig_deinit(&r);
    tiny_net_deinit(&net);
}

/* Asleep it admits nothing, by any plan, and holds no weights. */
#define UNITS 6u

/* Waits until the previous plan is gone, and asserts that each unit has taken @frames frames so
 * far, and no less time than before. */
static void check_totals(struct rig *r, uint64_t frames, double *least_ns)
{
    T_TRUE(rig_drain(r));
    for (size_t u = 0; u < UNITS; u++) {
        struct pl_unit_total t;

        pl_unit_total(r->p, u, &t);
        T_EQ(t.frames, frames);
        T_TRUE(t.ns >= least_ns[u]);
        T_TRUE((t.ns > 0) == (frames > 0));
        least_ns[u] = t.ns;
    }
}

TEST(totals_of_units_outlive_plans)
{
    static const char *const plans[] = {"0-5@big*2", "0-2@big|3-5@big", "0-5@big",
                                        "0-0@big|1-5@big*3"};
    double least_ns[UNITS] = {0};
    struct pl_plan plan;
    struct pl_ep_set eps;
    struct tiny_net net;
    struct pl_options o;
    struct rig r;

    tiny_net_init(&net, UNITS, 3, 10);
    rig_init(&r, &net);
    rig_eps(&eps, false);
    o = rig_options(&r);
    plan = rig_plan("0-5@big", &eps, UNITS);
    T_EQ(pl_new(net.net, &eps, &plan, &o, &r.p), 0);
    check_totals(&r, 0, least_ns);
    for (size_t i = 0; i < 8; i++) {
        T_TRUE(rig_stream(&r, 1 + 7 * (i % 2), 0));
        plan = rig_plan(plans[i % base_array_count(plans)], &eps, UNITS);
        T_EQ(pl_switch(r.p, &plan), 0);
        check_totals(&r, (i + 1) / 2 * 9 + (i + 1) % 2, least_ns);
    }
    rig_deinit(&r);
    tiny_net_deinit(&net);
}

TEST(sleeps)
{
    struct pl_options options;
    struct pl_ep_set eps;
    struct tiny_net net;
    struct pl_plan plan;
    struct rig r;

    tiny_net_init(&net, 4, 4, 12);
    rig_init(&r, &net);
    rig_eps(&eps, false);
    plan = rig_plan("0-1@big|2-3@big", &eps, 4);
    options = rig_options(&r);
    options.asleep = true;
    T_EQ(pl_new(net.net, &eps, &plan, &options, &r.p), 0);
    T_TRUE(pl_asleep(r.p) && !rig_submit(&r, 0));
    plan = rig_plan("0-3@big", &eps, 4);
    T_EQ(pl_switch(r.p, &plan), 0);
    T_TRUE(pl_asleep(r.p) && !rig_submit(&r, 0));
    rig_deinit(&r);
    tiny_net_deinit(&net);
}

TEST(sees_a_team_that_makes_no_progress)
{
    const uint64_t later = 1000 * BASE_NS_PER_S;
    struct pl_ep_set eps;
    struct tiny_net net;
    struct pl_plan plan;
    struct rig r;
    struct pl_options o;
    uint64_t before, now;

    tiny_net_init(&net, 1, 16, TINY_NET_SLOW_SIDE); /* one unit of tens of milliseconds */
    rig_init(&r, &net);
    rig_eps(&eps, false);
    o = rig_options(&r);
    plan = rig_plan("0-0@big", &eps, 1);
    T_EQ(pl_new(net.net, &eps, &plan, &o, &r.p), 0);
    T_EQ(pl_stalled_ns(r.p, base_now_ns() + later), 0);
    before = base_now_ns();
    T_TRUE(rig_submit(&r, 0));
    now = base_now_ns();
    /* seen from far in the future, the frame that is being computed is a stall */
    T_TRUE(pl_stalled_ns(r.p, now + later) >= later - BASE_NS_PER_S);
    T_TRUE(pl_stalled_ns(r.p, now + later) <= now + later - before);
    T_TRUE(rig_drain(&r));
    T_EQ(pl_stalled_ns(r.p, base_now_ns() + later), 0);
    rig_deinit(&r);
    tiny_net_deinit(&net);
}

/* What stage 0 cannot begin soon stays with the caller, though there are frames and memory. */
TEST(stage_0_says_when_it_has_enough)
{
    struct pl_ep_set eps;
    struct tiny_net net;
    struct pl_plan plan;
    struct rig r;
    struct pl_options o;
    size_t before;

    tiny_net_init(&net, 1, 16, TINY_NET_SLOW_SIDE); /* tens of milliseconds a frame */
    rig_init(&r, &net);
    rig_eps(&eps, false);
    o = rig_options(&r);
    o.frames = 40;
    plan = rig_plan("0-0@big", &eps, 1);
    T_EQ(pl_new(net.net, &eps, &plan, &o, &r.p), 0);
    while (rig_submit(&r, 0)) {
    }
    before = pl_in_flight(r.p);
    T_LE(3, before); /* one held, two waiting */
    T_LT(before, 40);
    T_LE(pl_depth(r.p), before); /* what keeps it busy is let in */
    T_TRUE(rig_drain(&r));
    T_EQ(r.ok, before);
    rig_deinit(&r);
    tiny_net_deinit(&net);
}

/* Frames leave a batch together, and the caller can only then send more: enough for another one. */
TEST(stage_0_takes_enough_for_a_batch_behind_it)
{
    struct pl_ep_set eps;
    struct tiny_net net;
    struct pl_plan plan;
    struct rig r;
    struct pl_options o;
    size_t before;

    tiny_net_init(&net, 2, 16, TINY_NET_SLOW_SIDE); /* tens of milliseconds a unit */
    rig_init(&r, &net);
    rig_eps(&eps, false);
    o = rig_options(&r);
    plan = rig_plan("0-0@big|1-1@big/8", &eps, 2);
    T_EQ(pl_new(net.net, &eps, &plan, &o, &r.p), 0);
    while (rig_submit(&r, 0)) {
    }
    before = pl_in_flight(r.p);
    T_LE(1 + 8, before); /* one held, eight waiting */
    T_TRUE(rig_drain(&r));
    T_EQ(r.ok, before);
    rig_deinit(&r);
    tiny_net_deinit(&net);
}

TEST(one_frame_waits_for_each_stage)
{
    static const struct {
        const char *plan;
        size_t depth;
    } rows[] = {{"0-2@big", 2},
                {"0-2@big*2", 4}, /* a frame is dealt before a team is free */
                {"0-2@big*3", 5},
                {"0-0@big|1-2@big", 4},
                {"0-0@big|1-1@big|2-2@big", 6},
                {"0-0@big*2|1-2@big", 6},
                {"0-0@big|1-2@big/4", 2 + 1 + 4 + 4}};
    struct pl_ep_set eps;
    struct tiny_net net;

    tiny_net_init(&net, 3, 3, 6);
    rig_eps(&eps, false);
    for (size_t i = 0; i < base_array_count(rows); i++) {
        struct pl_plan plan;
        struct pl_options o;
        struct rig r;

        rig_init(&r, &net);
        o = rig_options(&r);
        plan = rig_plan(rows[i].plan, &eps, 3);
        T_EQ(pl_new(net.net, &eps, &plan, &o, &r.p), 0);
        T_EQ(pl_depth(r.p), rows[i].depth);
        rig_deinit(&r);
    }
    tiny_net_deinit(&net);
}

TEST_MAIN()
