/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "pipeline/seats.h"
#include "tests/harness.h"
#include "tests/unit/pipeline/rig.h"

#define UNITS 7u

/* Adds stages for all units. */
static void add_route(struct pl_plan *p, const struct pl_ep_set *eps, uint16_t share)
{
    size_t next = 0;

    p->stages[p->stage_count].share = share;
    while (next < UNITS) {
        struct pl_stage_plan *s = &p->stages[p->stage_count++];

        s->first_unit = (uint16_t)next;
        s->last_unit = (uint16_t)t_range((int64_t)next, UNITS - 1);
        next = (size_t)s->last_unit + 1;
        s->group_count = (uint16_t)t_range(1, 2);
        for (size_t g = 0; g < s->group_count; g++) {
            s->groups[g].ep = (uint16_t)t_range(0, (int64_t)eps->count - 1);
            s->groups[g].width =
                (uint16_t)(t_range(0, 3) == 0 ? eps->eps[s->groups[g].ep].cpu_count : 1);
            s->groups[g].width = (uint16_t)base_min(s->groups[g].width, 3);
            s->groups[g].count = (uint16_t)t_range(1, 2);
            s->groups[g].more = (uint16_t)(t_range(0, 1) ? 0 : t_range(1, PL_BATCH_MAX - 1));
        }
    }
}

static struct pl_plan random_plan(const struct pl_ep_set *eps)
{
    size_t routes = t_range(0, 2) ? 1 : (size_t)t_range(2, 3);
    struct pl_plan p = {0};

    for (size_t i = 0; i < routes; i++) {
        add_route(&p, eps,
                  routes == 1      ? 0
                  : i + 1 < routes ? 300
                                   : (uint16_t)(PL_SHARE_ALL - 300 * (routes - 1)));
    }
    return p;
}

static unsigned random_flags(void)
{
    switch (t_range(0, 15)) {
    case 0:
        return RIG_CANCELLED;
    case 1:
        return RIG_EXPIRED;
    case 2:
    case 3:
        return RIG_DEADLINE;
    case 4:
        return RIG_IMAGE;
    default:
        return 0;
    }
}

static void cancel_any(struct rig *r)
{
    if (r->sent > r->got) {
        uint64_t tag = r->got + t_random() % (r->sent - r->got);

        r->jobs[tag % RIG_FRAMES].cancelled = true;
        atomic_store_explicit(&r->frames[tag % RIG_FRAMES]->cancel, true, memory_order_relaxed);
    }
}

static bool step(struct rig *r, const struct pl_ep_set *eps, int switch_percent, int *switches)
{
    bool moved = false;

    for (int64_t n = t_range(0, 4); n > 0; n--) {
        moved |= rig_submit(r, random_flags());
    }
    if (t_range(0, 9) == 0) {
        cancel_any(r);
    }
    for (int64_t n = t_range(0, 4); n > 0; n--) {
        moved |= rig_collect(r);
    }
    if (t_range(0, 99) < switch_percent) {
        struct pl_plan plan = random_plan(eps);
        uint32_t epoch = pl_epoch(r->p);
        uint8_t pieces[UNITS];
        int result;

        for (size_t i = 0; i < UNITS; i++) {
            pieces[i] = (uint8_t)(t_range(0, 1) ? t_range(1, PL_PIECES_MAX) : 1);
        }
        result = pl_cut(r->p, pieces) < 0 ? -EINVAL : pl_switch(r->p, &plan);

        if (result != 0 && result != PL_E_BUSY) {
            fprintf(stderr, "switch: %d\n", result);
            return false;
        }
        if (pl_epoch(r->p) != epoch + (result == 0)) {
            fprintf(stderr, "epoch %u after %u\n", pl_epoch(r->p), epoch);
            return false;
        }
        *switches += result == 0;
    }
    if (t_range(0, 7) == 0) {
        struct pl_team_stats team;
        struct pl_series unit;

        pl_team_stats(r->p, t_random() % pl_team_count(r->p), &team);
        pl_unit_stats(r->p, t_random() % UNITS, &unit);
        (void)pl_stalled_ns(r->p, base_now_ns());
        (void)pl_depth(r->p);
    }
    pl_reap(r->p);
    /* nothing to do but to wait for a team */
    if (!moved && r->sent > r->got && pl_frame_count(r->p) == pl_in_flight(r->p) &&
        !rig_collect(r) && !rig_wait(&r->wake)) {
        fprintf(stderr, "no wake-up: %llu sent, %llu got\n", (unsigned long long)r->sent,
                (unsigned long long)r->got);
        return false;
    }
    return true;
}

/* Two pipelines that take turns on the cores, or one. */
static void run_schedule(struct tiny_net *net, const struct pl_ep_set *eps, uint64_t frames,
                         int switch_percent, size_t pool, int *switches)
{
    size_t count = (size_t)t_range(1, 2);
    struct pl_seats *seats = t_range(0, 2) ? pl_seats_new(eps->count, 0.05) : NULL;
    struct pl_client clients[2];
    struct rig *r = calloc(count, sizeof(*r));

    for (size_t i = 0; i < count; i++) {
        struct pl_claim claim = {.class = (unsigned)t_range(0, 2),
                                 .weight = (double)t_range(1, 9),
                                 .max_share = t_range(0, 3) ? 1 : 0.9,
                                 .deadline_ns = (uint64_t)t_range(0, 1) * 1000000,
                                 .period_ns = 1000};
        struct pl_plan plan = random_plan(eps);
        struct pl_options o;

        rig_init(&r[i], net);
        pl_client_init(&clients[i], seats);
        pl_client_claim(&clients[i], &claim);
        o = rig_options(&r[i]);
        o.frames = pool;
        o.spin_ns = t_range(0, 1) ? 0 : 10000;
        o.no_pin = t_range(0, 3) == 0;
        o.client = &clients[i];
        T_EQ(pl_new(net->net, eps, &plan, &o, &r[i].p), 0);
    }
    while (r[0].sent < frames) {
        for (size_t i = 0; i < count; i++) {
            T_TRUE(step(&r[i], eps, switch_percent, switches));
            T_TRUE(!r[i].wrong);
        }
    }
    for (size_t i = 0; i < count; i++) {
        T_TRUE(rig_drain(&r[i]));
        T_TRUE(!r[i].wrong);
        T_EQ(r[i].got, r[i].sent);
        T_EQ(pl_in_flight(r[i].p), 0);
        T_TRUE(pl_collect(r[i].p) == NULL);
        T_LT(0, r[i].ok);
        rig_deinit(&r[i]);
        T_EQ(clients[i].active, 0);
    }
    free(r);
    pl_seats_free(seats);
}

TEST(random_plans_and_schedules)
{
    struct tiny_net net;
    int switches = 0;

    tiny_net_init(&net, UNITS, 3, 4);
    for (int i = 0; i < t_times(40); i++) {
        struct pl_ep_set eps;

        rig_eps(&eps, i % 2);
        run_schedule(&net, &eps, 200, 1, (size_t)t_range(1, 24), &switches);
    }
    tiny_net_deinit(&net);
}

TEST(switching_every_few_frames)
{
    struct pl_ep_set eps;
    struct tiny_net net;
    int switches = 0;

    tiny_net_init(&net, UNITS, 3, 4);
    rig_eps(&eps, true);
    run_schedule(&net, &eps, 6000, 60, 12, &switches);
    tiny_net_deinit(&net);
    T_LT(200, switches);
}

TEST_MAIN()
