/* SPDX-License-Identifier: Apache-2.0 */
/* When routes over boards are sought and changed: rules one by one, then random boards that come
 * and go for hours of a scripted clock. */
#include "tests/unit/daemon/spread_rig.h"
#include "tuner/eval_boards.h"

#define UNITS 12u
#define S BASE_NS_PER_S

/* A head that plans as daemon/boards/spread_auto.c does, but at once. */
struct world {
    struct brd_link_report_all report;
    struct tun_problem here;
    struct dmn_spread_past past;
    struct dmn_decide decide;
    struct brd_hop hop[BRD_HOPS_MAX];
    size_t hop_count;
    struct brd_route_state state;
    uint64_t now, ready_ns;
    unsigned changes, moves, searches;
    double slower[BRD_MAX]; /* what each board really takes, relative to the head */
    struct dmn_spread_may may;
    struct dmn_spread_inputs in;
    struct dmn_present present;
};
static struct world w;
static struct dmn_spread_answer answer;

static void begin(size_t boards)
{
    memset(&w, 0, sizeof(w));
    w.now = 1000 * S;
    rig_here(&w.here, UNITS, 1, 1e6, 2e4);
    rig_report(&w.report, boards, 1);
    w.past = (struct dmn_spread_past){.unit_count = UNITS};
    dmn_decide_init(&w.decide);
    for (size_t i = 0; i < BRD_MAX; i++) {
        w.slower[i] = 1;
    }
}

static void end(void)
{
    tun_problem_deinit(&w.here);
    dmn_past_deinit(&w.past);
}

static void look(void)
{
    w.in = (struct dmn_spread_inputs){
        .here = &w.here, .report = &w.report, .past = &w.past, .may = &w.may};
    w.present = (struct dmn_present){w.hop, w.hop_count, w.state.number ? &w.state : NULL};
    dmn_decide_see(&w.decide, &w.report, &w.present, w.now);
    dmn_decide_usable(&w.decide, &w.report, w.now, &w.may);
}

static void change(enum dmn_due due, size_t count)
{
    w.moves += dmn_hops_load(w.hop, w.hop_count, answer.hop, count);
    w.hop_count = count;
    memcpy(w.hop, answer.hop, sizeof(w.hop));
    w.state = (struct brd_route_state){.number = w.state.number + 1, .phase = BRD_PREPARING};
    w.ready_ns = w.now + S;
    w.changes++;
    dmn_decide_changed(&w.decide, due, w.now);
}

/* What boards tell of the segments that they serve. */
static void measure(void)
{
    for (size_t h = 0; h < w.hop_count; h++) {
        for (size_t b = 0; b < w.hop[h].board_count; b++) {
            for (size_t i = 0; i < w.report.board_count; i++) {
                if (strcmp(w.hop[h].board[b].print, w.report.board[i].print) == 0) {
                    rig_past(&w.past, w.report.board[i].print, "big", 1, UNITS, w.hop[h].first_unit,
                             w.hop[h].last_unit, 1e6 * w.slower[i]);
                }
            }
        }
    }
}

static void step(void)
{
    struct dmn_spread_query q;
    struct tun_problem copy;
    enum dmn_worth worth;
    enum dmn_due due;
    bool moves, lasts;

    if (w.state.number && w.state.phase == BRD_PREPARING && w.now >= w.ready_ns) {
        w.state.phase = BRD_READY;
    }
    if (w.state.phase == BRD_READY && w.hop_count && w.now > w.ready_ns + S) {
        measure();
    }
    look();
    due = dmn_decide_due(&w.decide, &w.in, &w.present, w.now);
    if (due == DMN_DUE_NOT) {
        return;
    }
    w.searches++;
    T_EQ(tun_problem_copy(&w.here, &copy), 0);
    T_EQ(dmn_spread_query_init(&q, &copy, &w.in, &w.present), 0);
    dmn_decide_sought(&w.decide, &w.in);
    T_EQ(dmn_spread_query_run(&q, &answer), 0);
    moves = dmn_hops_load(w.hop, w.hop_count, answer.hop, answer.hop_count);
    worth = dmn_decide_worth(&q.here, &answer.best, &answer.present, &answer.alone, w.hop_count > 0,
                             moves);
    lasts = dmn_decide_sustained(&w.decide, due, worth == DMN_TAKE_ROUTE, moves, w.now);
    switch (worth) {
    case DMN_TAKE_ROUTE:
        if (!lasts) {
            break;
        }
        if (due == DMN_DUE_BROKEN ||
            !dmn_hops_same(w.hop, w.hop_count, answer.hop, answer.hop_count)) {
            change(due, answer.hop_count);
        }
        break;
    case DMN_TAKE_NONE:
        change(due, 0);
        break;
    case DMN_KEEP:
        T_TRUE(due != DMN_DUE_BROKEN);
        break;
    }
    dmn_spread_query_deinit(&q);
}

static void run(unsigned seconds)
{
    for (unsigned i = 0; i < seconds; i++) {
        step();
        w.now += S;
    }
}

static bool serves(size_t board)
{
    for (size_t h = 0; h < w.hop_count; h++) {
        for (size_t b = 0; b < w.hop[h].board_count; b++) {
            if (strcmp(w.hop[h].board[b].print, w.report.board[board].print) == 0) {
                return true;
            }
        }
    }
    return false;
}

TEST(boards_that_are_there_serve_soon)
{
    begin(2);
    step();
    T_EQ(w.hop_count, 0); /* others may follow */
    w.now += S;
    step();
    T_TRUE(serves(0) && serves(1));
    run(120);
    T_EQ(w.changes, 1);
    T_TRUE(w.searches <= 4);
    end();
}

TEST(a_lost_board_is_left_at_once)
{
    begin(2);
    run(30);
    w.report.board[0].up = false;
    step();
    T_TRUE(!serves(0) && serves(1));
    T_EQ(w.changes, 2);
    w.report.board[0].up = true;
    run(5);
    T_TRUE(!serves(0)); /* it must stay for a while */
    run(8);
    T_TRUE(serves(0));
    T_EQ(w.changes, 3);
    end();
}

TEST(all_boards_lost)
{
    begin(1);
    run(30);
    T_TRUE(serves(0));
    w.report.board[0].up = false;
    step();
    T_EQ(w.hop_count, 0);
    end();
}

TEST(the_longer_the_more_often_it_goes)
{
    uint64_t back = 0;

    begin(1);
    run(20);
    for (int i = 0; i < 6; i++) {
        w.report.board[0].up = false;
        step();
        w.now += 3 * S;
        w.report.board[0].up = true;
        back = w.now;
        while (!serves(0) && w.now < back + 1000 * S) {
            run(1);
        }
        T_TRUE(w.now - back >= base_min(5 * S << i, 300 * S));
    }
    T_TRUE(w.now - back <= 301 * S);
    run(3600);
    w.report.board[0].up = false;
    step();
    w.now += S;
    w.report.board[0].up = true;
    run(12);
    T_TRUE(serves(0)); /* long ago is forgotten */
    end();
}

TEST(a_flapping_board_does_not_swing_routes)
{
    begin(2);
    run(30);
    w.changes = 0;
    for (int i = 0; i < 3600; i++) {
        w.report.board[0].up = i / 8 % 2;
        run(1);
    }
    printf("%u changes in an hour of flapping\n", w.changes);
    T_TRUE(w.changes <= 4);
    T_TRUE(serves(1));
    end();
}

TEST(who_fails_is_left_alone)
{
    begin(2);
    run(30);
    w.state.phase = BRD_FAILED;
    memcpy(w.state.board, w.report.board[0].print, sizeof(w.state.board));
    step();
    T_TRUE(!serves(0) && serves(1));
    run(4);
    T_TRUE(!serves(0));
    run(12);
    T_TRUE(serves(0));
    end();
}

TEST(links_that_fail_are_left_alone)
{
    begin(2);
    w.here.boards.input_bytes = 2e7; /* a pipeline, so that boards send to each other */
    w.report.self.memory_bytes = w.report.board[0].memory_bytes = w.report.board[1].memory_bytes =
        1;
    look();
    w.hop_count = 2;
    for (int i = 0; i < 2; i++) {
        w.hop[i] = (struct brd_hop){.board_count = 1};
        memcpy(w.hop[i].board[0].print, w.report.board[i].print, BRD_FINGERPRINT_BYTES);
    }
    w.state = (struct brd_route_state){.number = 7, .phase = BRD_FAILED};
    memcpy(w.state.board, w.report.board[0].print, BRD_FINGERPRINT_BYTES);
    memcpy(w.state.to, w.report.board[1].print, BRD_FINGERPRINT_BYTES);
    w.now += 2 * S;
    look();
    T_EQ(w.may.gap_count, 1);
    T_TRUE(w.may.usable[0] && w.may.usable[1]); /* the boards themselves are well */
    T_TRUE(dmn_decide_broken(&w.in, &w.present));
    T_TRUE(!dmn_spread_linked(&w.in, w.report.board[1].print, w.report.board[0].print));
    w.now += 5 * S;
    look();
    T_EQ(w.may.gap_count, 0);
    end();
}

TEST(nobody_to_blame)
{
    begin(1);
    run(30);
    w.state.phase = BRD_FAILED;
    step();
    T_EQ(w.hop_count, 0);
    run(16);
    T_TRUE(serves(0));
    end();
}

TEST(a_slow_board_is_found_out)
{
    begin(2);
    w.slower[0] = 6;
    run(60);
    T_TRUE(serves(1));
    T_TRUE(w.changes >= 2 && w.changes <= 3); /* shares were corrected */
    w.changes = 0;
    run(1500);
    T_EQ(w.changes, 0);
    end();
}

TEST(a_slow_link_is_left)
{
    begin(2);
    run(30);
    T_TRUE(serves(0) && serves(1));
    rig_link(&w.report.self, &w.report.board[0], true, 2e5, 1e5);
    run(20);
    T_TRUE(!serves(0) && serves(1));
    T_EQ(w.changes, 2);
    rig_link(&w.report.self, &w.report.board[0], true, 2e5, 8);
    run(60);
    T_TRUE(serves(0));
    T_EQ(w.changes, 3);
    end();
}

TEST(a_link_that_goes_is_left_at_once)
{
    begin(2);
    run(30);
    rig_way(&w.report.board[1], &w.report.self)->up = false;
    step();
    T_TRUE(serves(0) && !serves(1));
    end();
}

TEST(small_changes_are_passed_over)
{
    begin(2);
    run(30);
    w.searches = 0;
    for (int i = 0; i < 300; i++) {
        double noise = 1 + 0.1 * (double)t_float();

        rig_link(&w.report.self, &w.report.board[0], true, 2e5 * noise, 8 * noise);
        w.slower[0] = w.slower[1] = 1 + 0.03 * (double)t_float();
        run(1);
    }
    T_EQ(w.searches, 0);
    T_EQ(w.changes, 1);
    end();
}

/* Costs that are noise of 50 %: the best of many routes looks better than it is, now this one, now
 * that. The cool-down bounds how often that moves a route. */
TEST(noise_moves_few_routes)
{
    begin(3);
    for (unsigned s = 0; s < 1800; s++) {
        for (size_t i = 0; i < 3; i++) {
            w.slower[i] = 1 + 0.5 * (double)t_float();
        }
        run(1);
    }
    printf("%u changes in half an hour of noise, %u with other segments\n", w.changes, w.moves);
    T_LE(w.changes, 25);
    end();
}

TEST(worth)
{
    struct tun_problem p = {.objective = TUN_THROUGHPUT};
    struct dmn_figures none = {0}, slow = {true, 100, 5, 9}, fast = {true, 90, 20, 5},
                       near = {true, 98, 5, 9};

    T_EQ(dmn_decide_worth(&p, &fast, &none, &slow, false, true), DMN_TAKE_ROUTE);
    T_EQ(dmn_decide_worth(&p, &near, &none, &slow, false, true), DMN_KEEP);
    T_EQ(dmn_decide_worth(&p, &fast, &slow, &slow, true, false), DMN_TAKE_ROUTE);
    T_EQ(dmn_decide_worth(&p, &fast, &slow, &slow, true, true), DMN_TAKE_ROUTE);
    T_EQ(dmn_decide_worth(&p, &fast, &near, &slow, true, true), DMN_KEEP);
    T_EQ(dmn_decide_worth(&p, &fast, &near, &slow, true, false), DMN_TAKE_ROUTE);
    T_EQ(dmn_decide_worth(&p, &fast, &fast, &slow, true, false), DMN_KEEP);
    T_EQ(dmn_decide_worth(&p, &near, &near, &slow, true, false), DMN_KEEP);
    T_EQ(dmn_decide_worth(&p, &slow, &slow, &fast, true, true), DMN_TAKE_NONE);
    T_EQ(dmn_decide_worth(&p, &none, &none, &slow, true, true), DMN_TAKE_NONE);
    T_EQ(dmn_decide_worth(&p, &near, &none, &slow, true, true), DMN_TAKE_NONE);
    T_EQ(dmn_decide_worth(&p, &none, &none, &slow, false, true), DMN_KEEP);
    p.objective = TUN_LATENCY;
    T_EQ(dmn_decide_worth(&p, &fast, &none, &slow, false, true), DMN_KEEP);
    p.bounds.period_max_ns = 95;
    T_EQ(dmn_decide_worth(&p, &fast, &none, &slow, false, true),
         DMN_TAKE_ROUTE); /* keeps the bound */
    p.objective = TUN_POWER;
    p.bounds.period_max_ns = 110;
    T_EQ(dmn_decide_worth(&p, &fast, &slow, &slow, true, false), DMN_TAKE_ROUTE);
}

/* Never a route over a board that is away; every fault is answered at once; few changes. */
TEST(random_schedules)
{
    for (int run_at = 0; run_at < t_times(20); run_at++) {
        size_t boards = (size_t)t_range(1, 3);
        unsigned faults = 0, seconds = 900;

        begin(boards);
        for (size_t i = 0; i < boards; i++) {
            w.slower[i] = (double)t_range(5, 40) / 10;
        }
        for (unsigned i = 0; i < seconds; i++) {
            size_t b = (size_t)t_range(0, (int64_t)boards - 1);

            if (t_range(0, 60) == 0) {
                faults++;
                w.report.board[b].up = !w.report.board[b].up;
            } else if (t_range(0, 150) == 0) {
                struct brd_way *way = rig_way(&w.report.board[b], &w.report.self);

                faults++;
                way->up = !way->up;
            } else if (t_range(0, 200) == 0) {
                faults++;
                w.slower[b] = (double)t_range(5, 40) / 10;
            }
            step();
            for (size_t k = 0; k < boards; k++) {
                T_TRUE(!serves(k) ||
                       (w.report.board[k].up && rig_way(&w.report.board[k], &w.report.self)->up));
            }
            w.now += S;
        }
        T_TRUE(w.changes <= 3 * faults + 4);
        end();
    }
}

TEST_MAIN()
