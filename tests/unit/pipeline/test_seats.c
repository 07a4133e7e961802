/* SPDX-License-Identifier: Apache-2.0 */
/* Who sits down first, and what everybody gets. That no two teams ever sit on one core, under any
 * schedule, is tests/interleavings' part. */
#include <pthread.h>

#include "pipeline/seats.h"
#include "tests/harness.h"

#define FIRST 0u
#define SECOND 1u
static const uint16_t both[] = {FIRST, SECOND};

/* A team in a thread of its own, that sits once and says when. */
struct guest {
    struct pl_client client;
    struct pl_sitter sitter;
    struct pl_want want;
    pthread_t thread;
    _Atomic int *turn;
    int sat; /* it was the so manieth; 0: it was cancelled */
};

static void *sit_once(void *arg)
{
    struct guest *g = arg;

    if (pl_sit(&g->sitter, &g->want)) {
        g->sat = atomic_fetch_add(g->turn, 1) + 1;
        pl_rise(&g->sitter);
    }
    return NULL;
}

static void guest_init(struct guest *g, struct pl_seats *seats, const uint16_t *cpus, size_t width,
                       unsigned class)
{
    struct pl_claim claim = PL_CLAIM_NULL;

    claim.class = class;
    pl_client_init(&g->client, seats);
    pl_client_claim(&g->client, &claim);
    g->sitter = (struct pl_sitter){.client = &g->client, .cpus = cpus, .width = width};
}

/* Starts it, and returns when it waits. */
static void come(struct guest *g, _Atomic int *turn)
{
    g->turn = turn;
    T_EQ(pthread_create(&g->thread, NULL, sit_once, g), 0);
    while (!pl_sit_waits(&g->sitter)) {
        sched_yield();
    }
}

static void leave(struct guest *g)
{
    pthread_join(g->thread, NULL);
}

TEST(release_then_class_then_due_then_tag)
{
    struct {
        unsigned class;
        struct pl_want want;
        int sits;
    } rows[] = {{0, {.left_ns = 5e6}, 5},
                {0, {.left_ns = 3e6}, 4},
                {0, {.left_ns = 9e6, .due_ns = 200, .number = 1}, 3},
                {0, {.left_ns = 9e6, .due_ns = 100, .number = 2}, 2},
                {1, {.left_ns = 99e6}, 1},
                {0, {.left_ns = 5e6, .number = 1}, 6},
                {7, {.left_ns = 1e6, .due_ns = 1, .released_ns = UINT64_MAX}, 7}};
    struct guest host, guests[7] = {0};
    struct pl_seats *seats = pl_seats_new(1, 0);
    _Atomic int turn = 0;

    guest_init(&host, seats, both, 1, 0);
    T_TRUE(pl_sit(&host.sitter, &(struct pl_want){0}));
    T_TRUE(!pl_sit_asked(&host.sitter));
    for (size_t i = 0; i < 7; i++) {
        guest_init(&guests[i], seats, both, 1, rows[i].class);
        guests[i].want = rows[i].want;
        come(&guests[i], &turn);
    }
    T_TRUE(pl_sit_late(&host.sitter, &(struct pl_want){.left_ns = 1}));
    for (size_t i = 0; i < 7; i++) {
        guests[i].client.v[FIRST] = 0;
    }
    T_TRUE(pl_sit_asked(&host.sitter));
    pl_rise(&host.sitter);
    for (size_t i = 0; i < 7; i++) {
        leave(&guests[i]);
        T_EQ(guests[i].sat, rows[i].sits);
        T_EQ(guests[i].client.active, 0);
    }
    pl_seats_free(seats);
}

/* Who sends too soon has what nobody else wants. */
TEST(who_is_not_released_gets_up_for_all)
{
    struct pl_want early = {.left_ns = 1, .due_ns = 1, .released_ns = UINT64_MAX};
    struct pl_seats *seats = pl_seats_new(1, 0);
    struct guest host, low = {0};
    _Atomic int turn = 0;

    guest_init(&host, seats, both, 1, 7);
    guest_init(&low, seats, both, 1, 0);
    low.want.left_ns = 1e9;
    T_TRUE(pl_sit(&host.sitter, &early));
    T_TRUE(!pl_sit_late(&host.sitter, &early));
    come(&low, &turn);
    T_TRUE(pl_sit_late(&host.sitter, &early));
    T_TRUE(pl_sit(&host.sitter, &early));
    leave(&low);
    pl_rise(&host.sitter);
    pl_seats_free(seats);
}

TEST(nobody_gets_up_for_who_comes_after)
{
    struct guest host, low = {0}, high = {0};
    struct pl_seats *seats = pl_seats_new(1, 0);
    _Atomic int turn = 0;

    guest_init(&host, seats, both, 1, 1);
    guest_init(&low, seats, both, 1, 0);
    guest_init(&high, seats, both, 1, 2);
    T_TRUE(pl_sit(&host.sitter, &(struct pl_want){0}));
    come(&low, &turn);
    T_TRUE(!pl_sit_late(&host.sitter, &(struct pl_want){.left_ns = 1e9}));
    come(&high, &turn);
    T_TRUE(pl_sit_late(&host.sitter, &(struct pl_want){.left_ns = 1e9}));
    T_TRUE(pl_sit(&host.sitter, &(struct pl_want){.left_ns = 1e9})); /* again, behind `high` */
    leave(&high);
    T_EQ(high.sat, 1);
    T_EQ(low.sat, 0);
    pl_rise(&host.sitter);
    leave(&low);
    T_EQ(low.sat, 2);
    pl_seats_free(seats);
}

/* A wide team that is next has the seat that is free already kept; others do not. */
TEST(a_seat_is_kept_for_a_wide_team)
{
    struct guest here, there, wide = {0}, small = {0};
    struct pl_seats *seats = pl_seats_new(2, 0);
    _Atomic int turn = 0;

    guest_init(&here, seats, &both[FIRST], 1, 1);
    guest_init(&there, seats, &both[SECOND], 1, 1);
    guest_init(&wide, seats, both, 2, 2);
    guest_init(&small, seats, &both[FIRST], 1, 0);
    T_TRUE(pl_sit(&here.sitter, &(struct pl_want){0}));
    T_TRUE(pl_sit(&there.sitter, &(struct pl_want){0}));
    come(&wide, &turn);
    come(&small, &turn);
    pl_rise(&here.sitter);
    T_TRUE(pl_sit_waits(&small.sitter));
    T_TRUE(pl_sit_late(&there.sitter, &(struct pl_want){0}));
    pl_rise(&there.sitter);
    leave(&wide);
    leave(&small);
    T_EQ(wide.sat, 1);
    T_EQ(small.sat, 2);
    /* but not for one that others go before */
    guest_init(&wide, seats, both, 2, 0);
    wide.sat = 0;
    T_TRUE(pl_sit(&there.sitter, &(struct pl_want){0}));
    T_TRUE(pl_sit(&here.sitter, &(struct pl_want){0}));
    come(&wide, &turn);
    pl_rise(&here.sitter);
    T_TRUE(pl_sit(&here.sitter, &(struct pl_want){0}));
    pl_rise(&here.sitter);
    pl_sit_cancel(&wide.sitter);
    leave(&wide);
    T_EQ(wide.sat, 0);
    pl_rise(&there.sitter);
    pl_seats_free(seats);
}

/* A wide team that goes before one of those beside it does not go before the other one, too. */
TEST(a_wide_team_does_not_pass_who_goes_before_it)
{
    struct guest all, below, above, wide = {0};
    struct pl_seats *seats = pl_seats_new(2, 0);
    _Atomic int turn = 0;

    guest_init(&all, seats, both, 2, 3);
    guest_init(&below, seats, &both[FIRST], 1, 0);
    guest_init(&above, seats, &both[SECOND], 1, 2);
    guest_init(&wide, seats, both, 2, 1);
    T_TRUE(pl_sit(&all.sitter, &(struct pl_want){0}));
    come(&below, &turn);
    come(&above, &turn);
    come(&wide, &turn);
    pl_rise(&all.sitter);
    leave(&below);
    leave(&above);
    leave(&wide);
    T_EQ(wide.sat, 3);
    pl_seats_free(seats);
}

/* ---- shares ---- */

struct worker {
    struct guest guest;
    _Atomic bool *over;
    uint64_t ns, most_ns; /* that it sat for, in all and for one frame at most */
    _Atomic size_t frames;
};

static void *work(void *arg)
{
    struct worker *w = arg;

    while (!atomic_load(w->over) &&
           pl_sit(&w->guest.sitter, &(struct pl_want){.left_ns = 2e5, .unit_ns = 2e5})) {
        uint64_t start = base_now_ns(), ns;

        while ((ns = base_now_ns() - start) < 200000) {
        }
        w->ns += ns;
        w->most_ns = base_max(w->most_ns, ns);
        w->frames++;
    }
    pl_rise(&w->guest.sitter);
    return NULL;
}

static void start(struct worker *w, _Atomic bool *over)
{
    w->over = over;
    T_EQ(pthread_create(&w->guest.thread, NULL, work, w), 0);
}

/* Two who always want the core have it by weight, but for one frame. */
TEST(shares_go_by_weight)
{
    struct pl_claim claim = PL_CLAIM_NULL;
    struct pl_seats *seats = pl_seats_new(1, 0);
    struct worker w[2] = {0};
    _Atomic bool over = false;
    struct guest host;

    guest_init(&host, seats, both, 1, 0);
    T_TRUE(pl_sit(&host.sitter, &(struct pl_want){0}));
    for (size_t i = 0; i < 2; i++) {
        guest_init(&w[i].guest, seats, both, 1, 0);
        claim.weight = i == 0 ? 1 : 4;
        pl_client_claim(&w[i].guest.client, &claim);
        start(&w[i], &over);
        while (!pl_sit_waits(&w[i].guest.sitter)) {
            sched_yield();
        }
    }
    T_TRUE(pl_sit_late(&host.sitter, &(struct pl_want){.left_ns = 1e9}));
    w[0].guest.client.v[FIRST] = w[1].guest.client.v[FIRST] = 0;
    pl_rise(&host.sitter);
    while (w[0].frames < 20) {
        sched_yield();
    }
    over = true;
    leave(&w[0].guest);
    leave(&w[1].guest);
    T_TRUE(w[1].frames >= 20);
    T_TRUE((double)w[1].ns / 4 > (double)w[0].ns - 4e5 - 2 * (double)w[0].most_ns);
    pl_seats_free(seats);
}

/* A class that always wants the core leaves its floor to one below it. */
TEST(no_class_starves)
{
    struct pl_seats *seats = pl_seats_new(1, 0.1);
    struct worker high = {0};
    struct guest low[3] = {0};
    _Atomic bool over = false;
    _Atomic int turn = 0;

    guest_init(&high.guest, seats, both, 1, 7);
    start(&high, &over);
    while (high.frames < 5) {
        sched_yield();
    }
    for (size_t i = 0; i < 3; i++) {
        guest_init(&low[i], seats, both, 1, (unsigned)i);
        low[i].want = (struct pl_want){.left_ns = 1e6, .unit_ns = 1e5};
        low[i].turn = &turn;
        T_EQ(pthread_create(&low[i].thread, NULL, sit_once, &low[i]), 0);
    }
    for (size_t i = 0; i < 3; i++) {
        leave(&low[i]); /* for ever, without a floor */
        T_TRUE(low[i].sat > 0);
    }
    over = true;
    leave(&high.guest);
    pl_seats_free(seats);
}

TEST(max_share_is_kept)
{
    struct pl_claim claim = PL_CLAIM_NULL;
    struct pl_seats *seats = pl_seats_new(2, 0);
    struct worker w = {0};
    _Atomic bool over = false;
    uint64_t start_ns, took;

    claim.max_share = 0.125; /* a quarter of one of two cores */
    guest_init(&w.guest, seats, both, 1, 0);
    pl_client_claim(&w.guest.client, &claim);
    start_ns = base_now_ns();
    start(&w, &over);
    while (w.frames < 60) {
        sched_yield();
    }
    over = true;
    leave(&w.guest);
    took = base_now_ns() - start_ns;
    /* 20 ms are saved up, of which it may use a quarter, and the last frame is not waited for */
    T_TRUE((double)w.ns <= (double)took / 4 + 5e6 + 2 * (double)w.most_ns);
    pl_seats_free(seats);
}

TEST(releases_are_a_period_apart_but_for_a_second)
{
    const uint64_t second = BASE_NS_PER_S, period = second / 4;
    struct pl_claim claim = PL_CLAIM_NULL;
    struct pl_client c;

    pl_client_init(&c, NULL);
    claim.period_ns = period;
    pl_client_claim(&c, &claim);
    for (size_t i = 0; i < 5; i++) {
        T_EQ(pl_client_release(&c, second, second, i), second);
    }
    for (size_t i = 1; i < 10; i++) {
        T_EQ(pl_client_release(&c, second, second, 4 + i), second + i * period);
    }
    for (size_t i = 0; i < 100; i++) { /* a hundred times what it may, done early: no debt */
        T_EQ(pl_client_release(&c, 4 * second, 4 * second, 0), 4 * second + (i < 3 ? 0 : period));
    }
    T_EQ(pl_client_release(&c, 4 * second + period, 4 * second + period, 0), 4 * second + period);
    T_EQ(pl_client_release(&c, 9 * second, 9 * second, 3), 9 * second);
}

TEST_MAIN()
