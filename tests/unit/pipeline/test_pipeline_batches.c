/* SPDX-License-Identifier: Apache-2.0 */
/* A team that computes several frames at once, and for how long it waits for them. */
#include <sched.h>

#include "tests/harness.h"
#include "tests/unit/pipeline/rig.h"

/* Starts a pipeline of one team that takes up to four frames at once. */
static void start_batch(struct rig *r, struct tiny_net *net, uint64_t wait_ns)
{
    struct pl_ep_set eps;
    struct pl_options o;
    struct pl_plan plan;

    tiny_net_init(net, 3, 3, 6);
    rig_init(r, net);
    rig_eps(&eps, false);
    o = rig_options(r);
    o.batch_wait_ns = wait_ns;
    plan = rig_plan("0-2@big/4", &eps, 3);
    T_EQ(pl_new(net->net, &eps, &plan, &o, &r->p), 0);
}

#define LONG_WAIT_NS (600 * BASE_NS_PER_S)

TEST(several_frames_are_computed_at_once)
{
    struct pl_team_stats s;
    struct pl_series unit;
    struct tiny_net net;
    struct rig r;
    size_t cores;

    start_batch(&r, &net, LONG_WAIT_NS);
    cores = pl_current_eps(r.p)->eps[0].cpu_count;
    /* four are computed while four gather */
    T_EQ(pl_frame_count(r.p), 2 * cores + 2 + 2 * 4);
    T_EQ(pl_depth(r.p), 1 + 4 + 4);
    for (int i = 0; i < 8; i++) {
        T_TRUE(rig_submit(&r, i == 5 ? RIG_CANCELLED : 0));
    }
    T_TRUE(rig_drain(&r)); /* neither run waits, since both are full */
    T_TRUE(!r.wrong);
    T_EQ(r.ok, 7);
    do { /* a frame may be collected a moment before it is counted */
        sched_yield();
        pl_team_stats(r.p, 0, &s);
    } while (s.frames < 7);
    T_EQ(s.frames, 7);
    T_EQ(s.service.count, 7);
    T_EQ(s.runs, 2);
    pl_unit_stats(r.p, 1, &unit);
    T_EQ(unit.count, 7);
    /* each frame has its part of the time; the first sample may have been cut */
    T_LE(s.service.mean_ns * 7, (double)s.busy_ns * 1.001);
    rig_deinit(&r);
    tiny_net_deinit(&net);
}

TEST(a_team_does_not_wait_for_company_when_its_plan_ends)
{
    struct pl_ep_set eps;
    struct pl_plan plan;
    struct tiny_net net;
    struct rig r;

    start_batch(&r, &net, LONG_WAIT_NS);
    T_TRUE(rig_submit(&r, 0));
    rig_eps(&eps, false);
    plan = rig_plan("0-2@big", &eps, 3);
    T_EQ(pl_switch(r.p, &plan), 0);
    T_TRUE(rig_drain(&r));
    T_EQ(r.ok, 1);
    T_EQ(pl_frame_count(r.p), 2 * eps.eps[0].cpu_count + 2);
    rig_deinit(&r);
    tiny_net_deinit(&net);
}

TEST(a_team_does_not_wait_for_company_past_a_deadline)
{
    struct tiny_net net;
    struct rig r;

    start_batch(&r, &net, LONG_WAIT_NS);
    T_TRUE(rig_submit(&r, RIG_DEADLINE));
    T_TRUE(rig_drain(&r)); /* not after the long wait */
    T_TRUE(rig_submit(&r, RIG_DEADLINE));
    T_TRUE(rig_drain(&r)); /* likewise, with a service time that is known */
    T_TRUE(!r.wrong);
    rig_deinit(&r);
    tiny_net_deinit(&net);
}

/* Without a wait a lone frame is computed at once. */
TEST(a_lone_frame_does_not_wait)
{
    struct pl_team_stats s;
    struct tiny_net net;
    struct rig r;

    start_batch(&r, &net, 0);
    for (uint64_t i = 1; i <= 20; i++) {
        T_TRUE(rig_submit(&r, 0));
        T_TRUE(rig_drain(&r));
        T_EQ(r.ok, i);
    }
    pl_team_stats(r.p, 0, &s);
    T_LE(20 - s.runs, 1); /* the last one may not be counted yet */
    rig_deinit(&r);
    tiny_net_deinit(&net);
}
