/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "pipeline/dispatch.h"
#include "tests/harness.h"

static size_t pick(const struct pl_dispatch_view *v, size_t count)
{
    bool probe;

    return pl_dispatch_pick(v, count, &probe);
}

TEST(dispatch_follows_the_formula)
{
    for (int round = 0; round < 50000; round++) {
        struct pl_dispatch_view v[8];
        size_t n = (size_t)t_range(1, 8), best;
        double finish[8];

        for (size_t i = 0; i < n; i++) {
            v[i] = (struct pl_dispatch_view){
                .pending = (uint32_t)t_range(0, 6),
                .service_ns = (double)t_range(1, 50),
                .rate = 1,
                .held_ns = (double)t_range(0, 100),
            };
            finish[i] = (v[i].pending + 1.0) * base_max(v[i].service_ns, v[i].held_ns);
        }
        best = pick(v, n);
        for (size_t i = 0; i < n; i++) {
            T_TRUE(finish[best] <= finish[i]);
            if (finish[i] == finish[best]) {
                T_LE(v[best].pending, v[i].pending);
            }
        }
    }
}

TEST(dispatch_before_anything_was_measured)
{
    struct pl_dispatch_view v[] = {{0, 0, 4, 0}, {0, 0, 1, 0}};
    size_t given[2] = {0};

    /* frames that come at once: four to the fast one for each to the slow one */
    for (int i = 0; i < 50; i++) {
        size_t to = pick(v, 2);

        v[to].pending++;
        given[to]++;
    }
    T_EQ(given[0], 40);
    T_EQ(given[1], 10);
    /* one measured: the other is judged by it and by the prior */
    v[0] = (struct pl_dispatch_view){1, 100, 4, 0};
    v[1] = (struct pl_dispatch_view){0, 0, 1, 0};
    T_EQ(pick(v, 2), 0); /* 200 against 400 */
    v[0].pending = 4;
    T_EQ(pick(v, 2), 1); /* 500 against 400 */
    /* the measure beats the prior */
    v[1].service_ns = 600;
    T_EQ(pick(v, 2), 0);
    /* a team that got stuck in a frame is left alone */
    v[0].held_ns = 100000;
    T_EQ(pick(v, 2), 1);
}

TEST(cores_that_others_want_come_later)
{
    struct pl_dispatch_view v[] = {{.service_ns = 100, .rate = 1, .beside = 1},
                                   {.service_ns = 100, .rate = 1}};

    T_EQ(pick(v, 2), 1);
    v[1].pending = 1;
    T_EQ(pick(v, 2), 0);
    v[0].service_ns = 150;
    T_EQ(pick(v, 2), 1);
}

TEST(a_probe_waits_the_longer_the_more_there_were)
{
    struct pl_dispatch_view v[] = {
        {.pending = 1, .service_ns = 10, .rate = 1, .patience = PL_PATIENCE},
        {.service_ns = 100, .rate = 1, .patience = PL_PATIENCE}};
    uint32_t patience = PL_PATIENCE;
    bool probe;

    for (uint32_t wanted = PL_PATIENCE; wanted <= 1024;) {
        v[1].patience = patience;
        v[1].idle_ns = 100.0 * patience;
        T_EQ(pl_dispatch_pick(v, 2, &probe), 0);
        T_TRUE(!probe);
        v[1].idle_ns++;
        T_EQ(pl_dispatch_pick(v, 2, &probe), 1);
        T_TRUE(probe);
        patience = pl_dispatch_patience(patience, probe);
        wanted += wanted / 2;
        T_EQ(patience, base_min(wanted, 64u));
    }
    /* other frames, of which there are many once it is fast, bring it back */
    for (int i = 0; i < 200; i++) {
        patience = pl_dispatch_patience(patience, false);
    }
    T_EQ(patience, PL_PATIENCE);
    /* nothing is known: no probes; one is: the prior says when the other is due */
    v[0] = v[1] = (struct pl_dispatch_view){.rate = 1, .patience = PL_PATIENCE, .idle_ns = 1e9};
    T_EQ(pl_dispatch_pick(v, 2, &probe), 0);
    T_TRUE(!probe);
    v[0] = (struct pl_dispatch_view){.pending = 1, .service_ns = 10, .rate = 1};
    v[1].rate = 0.1;
    T_EQ(pl_dispatch_pick(v, 2, &probe), 1);
    T_TRUE(probe);
    /* a frame that need not wait goes where it is finished first */
    v[0].pending = 0;
    T_EQ(pl_dispatch_pick(v, 2, &probe), 0);
    T_TRUE(!probe);
}

/* Two teams behind a client that has several frames in flight; answers keep their order. */
struct replay {
    struct pl_dispatch_view views[2];
    double free_at[2]; /* when the team has computed all that it was given */
    double done[8];    /* of the frames in flight, the oldest first */
    size_t flight, answered, given[2];
    double now;
};

/* One frame more. @times: of a frame on each team now. */
static void replay_frame(struct replay *r, size_t flight, const double *times)
{
    size_t to;
    bool probe;

    if (r->flight == flight) {
        r->now = base_max(r->now, r->done[0]);
        r->answered++;
        memmove(r->done, r->done + 1, --r->flight * sizeof(r->done[0]));
    }
    for (size_t i = 0; i < 2; i++) {
        struct pl_dispatch_view *v = &r->views[i];
        double left = r->free_at[i] - r->now;

        v->pending = left > 0 ? (uint32_t)ceil(left / times[i] - 1e-9) : 0;
        v->idle_ns = v->pending > 0 ? 0 : r->now - r->free_at[i];
    }
    to = pl_dispatch_pick(r->views, 2, &probe);
    r->views[to].patience = pl_dispatch_patience(r->views[to].patience, probe);
    r->given[to]++;
    r->free_at[to] = base_max(r->free_at[to], r->now) + times[to];
    r->done[r->flight++] = r->free_at[to];
    for (size_t i = 1; i < r->flight; i++) {
        r->done[i] = base_max(r->done[i], r->done[i - 1]);
    }
    if (probe) {
        r->views[to].service_ns = times[to];
    }
    r->views[to].service_ns += (times[to] - r->views[to].service_ns) / 8;
}

static void replay_until(struct replay *r, double until, size_t flight, const double *times)
{
    while (r->now < until) {
        replay_frame(r, flight, times);
    }
}

TEST(a_team_that_was_slow_has_its_share_again)
{
    for (double slow = 2; slow <= 200; slow *= 1.7) {
        const double equal[] = {1, 1}, slowed[] = {1, slow};
        struct replay r = {
            .views = {{0, 1, 1, 0, 0, 0, PL_PATIENCE}, {0, 1, 1, 0, 0, 0, PL_PATIENCE}}};
        size_t answered, given;

        replay_until(&r, 1000, 4, equal);
        T_NEAR((double)r.answered, 2000, 20);
        answered = r.answered;
        replay_until(&r, 21000, 4, slowed);
        /* one team alone: 20000; the first probes of a much slower one are a part of that */
        T_LE((slow < 50 ? 0.97 : 0.93) * 20000, (double)(r.answered - answered));
        replay_until(&r, 21000 + 10000 + PL_PATIENCE * slow, 4, equal);
        answered = r.answered;
        given = r.given[1];
        replay_until(&r, r.now + 1000, 4, equal);
        T_NEAR((double)(r.answered - answered), 2000, 20);
        T_NEAR((double)(r.given[1] - given), 1000, 20);
    }
}

TEST(dispatch_shares)
{
    struct pl_dispatch_view equal[] = {{0, 100, 1, 0}, {0, 102, 1, 0}, {0, 98, 1, 0}};
    struct pl_dispatch_view mixed[] = {{0, 0, 4, 0}, {0, 0, 4, 0}, {0, 0, 1, 0}};
    struct pl_dispatch_view apart[] = {{0, 1, 1, 0}, {0, 1e9, 1, 0}};

    T_EQ(pl_dispatch_shares(equal, 3), 3);
    T_EQ(pl_dispatch_shares(mixed, 3), 9);
    T_EQ(pl_dispatch_shares(apart, 2), 17);
}

/* While a frame is held for so long, each team passes as many as it can: one that was not measured
 * one, none more than 16. */
TEST(frames_that_pass_a_slow_one)
{
    const struct pl_dispatch_view views[] = {
        {0, 10, 1, 0}, {0, 4, 1, 0}, {0, 0, 1, 0}, {0, 0.1, 1, 0}};

    T_NEAR(pl_dispatch_slowest_ns(views, 4), 10, 1e-9);
    T_NEAR(pl_dispatch_slowest_ns(views + 2, 1), 0, 1e-9);
    T_NEAR(pl_dispatch_passed(views, 1, 10), 1, 1e-9);
    T_NEAR(pl_dispatch_passed(views, 2, 10), 1 + 2.5, 1e-9);
    T_NEAR(pl_dispatch_passed(views, 4, 10), 1 + 2.5 + 1 + 16, 1e-9);
}

TEST_MAIN()
