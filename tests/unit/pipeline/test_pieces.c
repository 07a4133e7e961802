/* SPDX-License-Identifier: Apache-2.0 */
/* Units that are run in pieces: the same answers, and others go between two of them. */
#include <sched.h>

#include "base/base.h"
#include "pipeline/seats.h"
#include "tests/harness.h"
#include "tests/unit/pipeline/rig.h"

#define UNITS 4u
#define TRIES 300

/* A pipeline on seats. */
struct on_seats {
    struct tiny_net net;
    struct pl_client client;
    struct pl_ep_set eps;
    struct rig rig;
    uint64_t waited_ns; /* of its team, when the last frame was sent */
};

/* Of one kind of cores, or on one core. */
static void start(struct on_seats *s, struct pl_seats *seats, unsigned class, const char *plan_text,
                  size_t side)
{
    struct pl_claim claim = PL_CLAIM_NULL;
    size_t units = side ? 1 : UNITS;
    struct pl_options o;
    struct pl_plan plan;

    claim.class = class;
    tiny_net_init(&s->net, units, side ? 16 : 3, side ? side : 9);
    rig_init(&s->rig, &s->net);
    rig_eps(&s->eps, false);
    s->eps.eps[0].cpu_count = side ? 1 : s->eps.eps[0].cpu_count;
    pl_client_init(&s->client, seats);
    pl_client_claim(&s->client, &claim);
    o = rig_options(&s->rig);
    o.client = &s->client;
    o.no_clocks = side > 0; /* all of a run's time counts */
    plan = rig_plan(plan_text, &s->eps, units);
    T_EQ(pl_new(s->net.net, &s->eps, &plan, &o, &s->rig.p), 0);
}

static void cut(struct on_seats *s, const uint8_t *pieces)
{
    struct pl_plan plan = *pl_current_plan(s->rig.p);

    T_EQ(pl_cut(s->rig.p, pieces), 0);
    T_EQ(pl_switch(s->rig.p, &plan), 0);
    T_TRUE(rig_drain(&s->rig));
}

static void stop(struct on_seats *s)
{
    rig_deinit(&s->rig);
    T_EQ(s->client.active, 0);
    tiny_net_deinit(&s->net);
}

TEST(answers_are_the_same_in_pieces)
{
    static const char *const plans[] = {"0-3@big", "0-1@big|2-3@big", "0-3@big*2", "0-3@big/4",
                                        "0-0@big/2|1-3@big*2/3"};

    for (size_t i = 0; i < base_array_count(plans); i++) {
        struct pl_seats *seats = pl_seats_new(1, 0);
        struct on_seats s;

        start(&s, seats, 0, plans[i], 0);
        for (int k = 0; k < 4; k++) {
            uint8_t pieces[UNITS];

            for (size_t u = 0; u < UNITS; u++) {
                pieces[u] = (uint8_t)t_range(1, PL_PIECES_MAX);
            }
            cut(&s, pieces);
            T_TRUE(rig_stream(&s.rig, 40, k % 2 ? RIG_IMAGE : 0));
        }
        T_EQ(s.rig.ok, 160);
        cut(&s, (uint8_t[UNITS]){1, 16, 4, 1});
        for (size_t u = 0; u < UNITS; u++) {
            T_TRUE(pl_longest_piece(s.rig.p, u) == 0);
        }
        T_TRUE(rig_stream(&s.rig, 1, 0));
        T_TRUE(pl_longest_piece(s.rig.p, 0) == 0);
        T_TRUE(pl_longest_piece(s.rig.p, 1) > 1.0 / 17 && pl_longest_piece(s.rig.p, 1) <= 1);
        T_TRUE(pl_longest_piece(s.rig.p, 2) > 1.0 / 5 && pl_longest_piece(s.rig.p, 2) <= 1);
        stop(&s);
        pl_seats_free(seats);
    }
}

TEST(refuses_pieces_that_make_no_sense)
{
    uint8_t none[UNITS] = {1, 0, 1, 1}, many[UNITS] = {1, 1, 1, PL_PIECES_MAX + 1};
    struct pl_seats *seats = pl_seats_new(1, 0);
    struct on_seats s;

    start(&s, seats, 0, "0-3@big", 0);
    T_EQ(pl_cut(s.rig.p, none), -EINVAL);
    T_EQ(pl_cut(s.rig.p, many), -EINVAL);
    stop(&s);
    pl_seats_free(seats);
}

/* A guest of a higher class on the pipelines' core. */
struct guest {
    struct pl_client client;
    struct pl_sitter sitter;
};

static void guest_init(struct guest *g, struct pl_seats *seats, const struct on_seats *beside)
{
    struct pl_claim claim = PL_CLAIM_NULL;

    claim.class = 7;
    pl_client_init(&g->client, seats);
    pl_client_claim(&g->client, &claim);
    g->sitter =
        (struct pl_sitter){.client = &g->client, .cpus = beside->eps.eps[0].cpus, .width = 1};
}

/* @ret: how many frames of @quick are begun and answered while @slow computes the only unit of one,
 * each of them after @slow went on. */
static void answer_between(struct on_seats *slow, struct on_seats *quick, const struct guest *looks,
                           size_t *ret)
{
    struct rig *r = &quick->rig;
    uint64_t begun[TRIES], done[TRIES];
    const struct pl_frame *f;
    size_t sent = 0;

    T_TRUE(rig_submit(&slow->rig, 0));
    f = slow->rig.frames[(slow->rig.sent - 1) % RIG_FRAMES];
    while (slow->rig.got < slow->rig.sent && !rig_collect(&slow->rig) && sent < TRIES) {
        const struct pl_frame *q;

        T_TRUE(rig_submit(r, 0));
        q = r->frames[(r->sent - 1) % RIG_FRAMES];
        T_TRUE(rig_drain(r));
        begun[sent] = q->started_ns;
        done[sent++] = q->done_ns;
        while (pl_sit_others(&looks->sitter, false) > 1) {
            sched_yield();
        }
    }
    T_TRUE(rig_drain(&slow->rig));
    T_TRUE(!r->wrong && !slow->rig.wrong);
    *ret = 0;
    for (size_t i = 0; i < sent; i++) {
        *ret += begun[i] > f->started_ns && done[i] < f->done_ns;
    }
}

/* Between two units: one, in front of the only unit. */
TEST(a_higher_class_goes_between_two_pieces)
{
    struct pl_seats *seats = pl_seats_new(1, 0);
    struct on_seats slow, quick;
    size_t between, most = 0;
    struct guest looks;

    start(&slow, seats, 0, "0-0@big", TINY_NET_SLOW_SIDE);
    start(&quick, seats, 1, "0-0@big", 2);
    guest_init(&looks, seats, &slow);
    for (int i = 0; i < 10; i++) {
        answer_between(&slow, &quick, &looks, &between);
        T_LE(between, 1);
    }
    cut(&slow, &(uint8_t){8});
    for (int i = 0; i < TRIES && most < 3; i++) {
        answer_between(&slow, &quick, &looks, &between);
        most = base_max(most, between);
    }
    T_LE(3, most);
    cut(&slow, &(uint8_t){1});
    answer_between(&slow, &quick, &looks, &between);
    T_LE(between, 1);
    stop(&slow);
    stop(&quick);
    pl_seats_free(seats);
}

/* Sits down in the middle of the only unit of a frame, which then waits. It sits for the second
 * time in that frame: the first may be in front of the unit. */
static void sit_in_the_middle(struct guest *g, struct on_seats *s)
{
    for (int i = 0, sat = 0; i < TRIES; i++) {
        if (sat == 0) {
            struct pl_team_stats team;

            pl_team_stats(s->rig.p, 0, &team);
            s->waited_ns = team.waited_ns;
            T_TRUE(rig_submit(&s->rig, 0));
        }
        while (pl_sit_others(&g->sitter, false) == 0 && s->rig.got < s->rig.sent &&
               !rig_collect(&s->rig)) {
            sched_yield();
        }
        T_TRUE(pl_sit(&g->sitter, &(struct pl_want){0}));
        sat = pl_sit_others(&g->sitter, true) > 0 ? sat + 1 : 0;
        if (sat == 2) {
            return;
        }
        pl_rise(&g->sitter);
        T_TRUE(sat > 0 || rig_drain(&s->rig));
    }
    T_TRUE(!"in the middle of a unit");
}

/* What a frame stood for does not count as its time. */
TEST(clocks_stop_between_two_pieces)
{
    static const char *const plans[] = {"0-0@big", "0-0@big/2"};

    for (size_t i = 0; i < base_array_count(plans); i++) {
        struct pl_seats *seats = pl_seats_new(1, 0);
        struct pl_team_stats team;
        const struct pl_frame *f;
        struct on_seats s;
        struct guest g;

        start(&s, seats, 0, plans[i], TINY_NET_SLOW_SIDE);
        cut(&s, &(uint8_t){16});
        guest_init(&g, seats, &s);
        sit_in_the_middle(&g, &s);
        pl_rise(&g.sitter);
        T_TRUE(rig_drain(&s.rig));
        T_TRUE(!s.rig.wrong);
        f = s.rig.frames[(s.rig.sent - 1) % RIG_FRAMES];
        pl_team_stats(s.rig.p, 0, &team);
        T_LT(s.waited_ns, team.waited_ns);
        T_LE(f->busy_ns + team.waited_ns - s.waited_ns, f->done_ns - f->started_ns);
        stop(&s);
        pl_seats_free(seats);
    }
}

/* It finishes its unit while the guest sits. */
TEST(a_pipeline_can_end_between_two_pieces)
{
    struct pl_seats *seats = pl_seats_new(1, 0);
    struct on_seats s;
    struct guest g;

    start(&s, seats, 0, "0-0@big", TINY_NET_SLOW_SIDE);
    cut(&s, &(uint8_t){16});
    guest_init(&g, seats, &s);
    sit_in_the_middle(&g, &s);
    stop(&s);
    T_EQ(pl_sit_others(&g.sitter, true), 0);
    pl_rise(&g.sitter);
    T_EQ(g.client.active, 0);
    pl_seats_free(seats);
}

TEST_MAIN()
