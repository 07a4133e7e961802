/* SPDX-License-Identifier: Apache-2.0 */
/* A model over boards as a problem: boards, links, costs; and plans as hops. */
#include "daemon/boards/spread_table.h"
#include "tests/unit/daemon/spread_rig.h"
#include "tuner/eval.h"
#include "tuner/eval_boards.h"

#define UNITS 12u

static struct brd_link_report_all report;
static struct tun_problem here;
static struct dmn_spread_past past;
static struct dmn_spread_table table;
static struct dmn_spread_inputs in;

static void begin(size_t boards, size_t cores)
{
    tun_problem_deinit(&here);
    dmn_past_deinit(&past);
    dmn_spread_table_deinit(&table);
    rig_here(&here, UNITS, cores, 1e6, 2e5);
    rig_report(&report, boards, cores);
    past = (struct dmn_spread_past){.unit_count = UNITS};
    in = (struct dmn_spread_inputs){.here = &here, .report = &report, .past = &past};
}

static void end(void)
{
    tun_problem_deinit(&here);
    dmn_past_deinit(&past);
    dmn_spread_table_deinit(&table);
}

/* The EP of that name; PL_EP_MAX: there is none. */
static size_t ep_of(const char *name)
{
    size_t k = 0;

    while (k < table.p.ep_count && strcmp(table.p.eps[k].name, name) != 0) {
        k++;
    }
    return k < table.p.ep_count ? k : PL_EP_MAX;
}

TEST(boards_that_are_there_are_in_the_problem)
{
    char error[TUN_ERROR_MAX];

    begin(4, 2);
    report.board[1].up = false;
    report.board[2].known = false;
    T_EQ(dmn_spread_table_init(&in, &table), 0);
    T_EQ(tun_problem_check(&table.p, error), 0);
    T_EQ(table.p.boards.count, 3);
    T_STR(table.p.boards.boards[0].name, "here");
    T_STR(table.p.boards.boards[1].name, "b1");
    T_STR(table.p.boards.boards[2].name, "b4");
    T_STR(table.print[2], report.board[3].print);
    T_EQ(ep_of("big"), 0);
    T_EQ(table.p.eps[ep_of("b4:big")].board, 2);
    T_EQ(ep_of("b2:big"), PL_EP_MAX);
    T_NEAR(table.p.boards.input_bytes, 2e5, 0);
    end();
}

TEST(unlike_names_stay_apart)
{
    begin(3, 1);
    snprintf(report.board[0].name, sizeof(report.board[0].name), "here");
    snprintf(report.board[1].name, sizeof(report.board[1].name), "a-board-with-a-long-name-1");
    snprintf(report.board[2].name, sizeof(report.board[2].name), "a-board-with-a-long-name-2");
    T_EQ(dmn_spread_table_init(&in, &table), 0);
    T_STR(table.p.boards.boards[1].name, report.board[0].print);
    T_STR(table.p.boards.boards[2].name, "a-board-with-a-long-nam");
    T_STR(table.p.boards.boards[3].name, report.board[2].print);
    end();
}

TEST(more_boards_than_can_be_planned_for)
{
    begin(12, 2);
    T_EQ(dmn_spread_table_init(&in, &table), 0);
    T_EQ(table.p.boards.count, TUN_BOARD_MAX);
    T_EQ(table.left_out, 12 - (TUN_BOARD_MAX - 1));
    end();
    begin(4, 80);
    T_EQ(dmn_spread_table_init(&in, &table), 0);
    T_EQ(table.p.boards.count, 3); /* 240 of 256 cores */
    T_EQ(table.left_out, 2);
    end();
}

TEST(links_as_measured)
{
    begin(3, 1);
    rig_link(&report.self, &report.board[0], true, 3e5, 80);
    rig_way(&report.board[0], &report.board[1])->measured = false;
    rig_link(&report.board[1], &report.board[2], false, 3e5, 80);
    T_EQ(dmn_spread_table_init(&in, &table), 0);
    T_NEAR(table.p.boards.links[0][1].ns, 3e5, 0);
    T_NEAR(table.p.boards.links[1][0].ns_per_byte, 80, 0);
    T_NEAR(table.p.boards.links[1][2].ns_per_byte, 8, 0); /* as the other direction */
    T_TRUE(table.p.boards.links[2][3].ns >= DMN_LINK_GAP_NS);
    T_TRUE(table.p.boards.links[3][2].ns >= DMN_LINK_GAP_NS);
    T_EQ(table.guessed_links, 0);
    end();
}

TEST(links_that_nobody_measured)
{
    begin(2, 1);
    rig_link(&report.self, &report.board[0], true, 0, 0);
    report.board[1].way_count = 0; /* new: it has told of no link yet */
    report.board[0].way_count = 1; /* of the head's alone */
    T_EQ(dmn_spread_table_init(&in, &table), 0);
    T_EQ(table.p.boards.count, 3);
    T_EQ(table.guessed_links, 2);
    T_NEAR(table.p.boards.links[0][1].ns, DMN_LINK_GUESS_NS, 0);
    T_NEAR(table.p.boards.links[2][0].ns, 2e5, 0);            /* the head measured it */
    T_TRUE(table.p.boards.links[1][2].ns >= DMN_LINK_GAP_NS); /* they may not know each other */
    dmn_spread_table_deinit(&table);
    rig_way(&report.self, &report.board[1])->up = false;
    T_EQ(dmn_spread_table_init(&in, &table), 0);
    T_EQ(table.p.boards.count, 2); /* no way to plan for a board that the head cannot reach */
    end();
}

TEST(one_direction_is_not_enough)
{
    begin(2, 1);
    rig_way(&report.board[0], &report.board[1])->up = false;
    T_TRUE(!dmn_spread_linked(&in, report.board[0].print, report.board[1].print));
    T_TRUE(!dmn_spread_linked(&in, report.board[1].print, report.board[0].print));
    T_TRUE(dmn_spread_linked(&in, report.self.print, report.board[0].print));
    end();
}

TEST(unknown_costs_are_the_heads_by_frequency)
{
    double ours;

    begin(2, 2);
    report.self.ep[0].max_khz = 2e6;
    report.board[0].ep[0].max_khz = 1e6;
    report.board[1].ep[0].cores = 4;
    T_EQ(dmn_spread_table_init(&in, &table), 0);
    ours = tun_cell_at(&table.p.costs, 0, 2, 5)->ns;
    T_NEAR(tun_cell_at(&table.p.costs, ep_of("b1:big"), 2, 5)->ns / ours, 2, 1e-9);
    T_NEAR(tun_cell_at(&table.p.costs, ep_of("b2:big"), 2, 5)->ns / ours, 1, 1e-9);
    T_NEAR(tun_cell_at(&table.p.costs, ep_of("b2:big"), 4, 5)->ns / ours, 0.325 / 0.55, 1e-9);
    T_TRUE(tun_cell_at(&table.p.costs, ep_of("b1:big"), 2, 5)->sigma >= 0.3);
    T_NEAR(table.p.eps[ep_of("b1:big")].speed, 0.5, 1e-9);
    end();
}

TEST(little_cores_are_like_little_cores)
{
    struct tun_ep eps[] = {
        {.name = "big", .cores = 1, .speed = 1, .bandwidth = 1, .watts = 2},
        {.name = "little", .cores = 1, .speed = 0.4, .bandwidth = 1, .watts = 0.5}};

    begin(1, 1);
    tun_problem_deinit(&here);
    T_EQ(tun_problem_init(&here, UNITS, eps, 2), 0);
    for (size_t u = 0; u < UNITS; u++) {
        *tun_cell_at(&here.costs, 0, 1, u) = (struct tun_cell){1e6, 0, TUN_MEASURED};
        *tun_cell_at(&here.costs, 1, 1, u) = (struct tun_cell){3e6, 0, TUN_MEASURED};
    }
    report.board[0].ep[0].speed = 0.5;
    T_EQ(dmn_spread_table_init(&in, &table), 0);
    T_NEAR(tun_cell_at(&table.p.costs, 2, 1, 3)->ns, 3e6 * 0.4 / 0.5, 1);
    T_NEAR(table.p.eps[2].watts, 0.5, 0);
    end();
}

TEST(what_a_board_told_corrects_the_rest)
{
    const struct tun_cell *told, *same, *wider;

    begin(2, 2);
    rig_past(&past, report.board[0].print, "big", 1, UNITS, 2, 6, 3e6); /* three times the head's */
    T_EQ(dmn_spread_table_init(&in, &table), 0);
    told = tun_cell_at(&table.p.costs, ep_of("b1:big"), 1, 4);
    same = tun_cell_at(&table.p.costs, ep_of("b1:big"), 1, 10);
    wider = tun_cell_at(&table.p.costs, ep_of("b1:big"), 2, 10);
    T_EQ(told->source, TUN_MEASURED);
    T_NEAR(told->ns / tun_cell_at(&here.costs, 0, 1, 4)->ns, 3, 1e-9);
    T_NEAR(same->ns / tun_cell_at(&here.costs, 0, 1, 10)->ns, 3, 0.1);
    T_NEAR(wider->ns / tun_cell_at(&here.costs, 0, 2, 10)->ns, 3, 0.1);
    T_TRUE(same->source == TUN_PREDICTED && same->sigma < 0.3);
    T_NEAR(tun_cell_at(&table.p.costs, ep_of("b2:big"), 1, 4)->ns /
               tun_cell_at(&here.costs, 0, 1, 4)->ns,
           1, 1e-9);
    end();
}

TEST(a_segment_here_corrects_the_head)
{
    struct tun_problem alone;

    begin(1, 1);
    rig_past(&past, report.self.print, "big", 1, UNITS, 0, 3, 2e6);
    T_EQ(dmn_spread_table_init(&in, &table), 0);
    T_NEAR(tun_cell_at(&table.p.costs, 0, 1, 1)->ns, 2.6e6, 1);
    T_NEAR(tun_cell_at(&table.p.costs, 0, 1, 8)->ns, 2e6, 1);
    T_EQ(dmn_spread_alone(&table, &alone), 0);
    T_EQ(alone.ep_count, 1);
    T_EQ(alone.boards.count, 0);
    T_NEAR(tun_cell_at(&alone.costs, 0, 1, 1)->ns, 2.6e6, 1);
    tun_problem_deinit(&alone);
    end();
}

TEST(the_past_is_forgotten_in_time)
{
    begin(1, 1);
    rig_past(&past, report.board[0].print, "big", 1, UNITS, 2, 6, 3e6);
    dmn_past_learn(&past, RIG_CONTENT, &report, DMN_PAST_KEEP_NS);
    T_TRUE(dmn_past_find(&past, report.board[0].print, "big", 1) != NULL);
    dmn_past_learn(&past, RIG_CONTENT, &report, DMN_PAST_KEEP_NS + 2);
    T_TRUE(dmn_past_find(&past, report.board[0].print, "big", 1) == NULL);
    end();
}

TEST(costs_that_do_not_fit_are_left_out)
{
    begin(1, 1);
    rig_past(&past, report.board[0].print, "big", 1, 2 * UNITS, 2, UNITS, 3e6);
    T_EQ(past.count, 0);
    end();
}

/* ---- hops ---- */

static struct pl_plan plan;
static struct brd_hop hop[BRD_HOPS_MAX];

static int parse(const char *text)
{
    struct pl_ep_set eps;
    char error[256];

    tun_eps(&table.p, &eps);
    return pl_plan_parse(text, &eps, UNITS, error, sizeof(error), &plan);
}

TEST(stages_of_a_board_are_one_hop)
{
    size_t count;

    begin(2, 4);
    T_EQ(dmn_spread_table_init(&in, &table), 0);
    T_EQ(parse("0-3@big|4-5@bigx2|6-8@b2:big|9-9@b1:big|10-11@here:big"), 0);
    T_EQ(dmn_plan_hops(&table, &plan, hop, &count), 0);
    T_EQ(count, 4);
    T_TRUE(hop[0].first_unit == 0 && hop[0].last_unit == 5 && hop[0].board_count == 1);
    T_STR(hop[0].board[0].print, report.self.print);
    T_STR(hop[1].board[0].print, report.board[1].print);
    T_STR(hop[3].board[0].print, report.self.print);
    T_EQ(hop[3].first_unit, 10);
    T_EQ(hop[1].board[0].share, 1000);
    T_EQ(parse("0-3@big|4-11@bigx2"), 0);
    T_EQ(dmn_plan_hops(&table, &plan, hop, &count), 0);
    T_EQ(count, 0);
    end();
}

TEST(shares_follow_rates)
{
    size_t count;

    begin(2, 4);
    report.self.ep[0].max_khz = 2e6;
    report.board[0].ep[0].max_khz = 1e6;
    T_EQ(dmn_spread_table_init(&in, &table), 0);
    T_EQ(parse("0-11@big*4+b1:big*4+b2:big*2"), 0);
    T_EQ(dmn_plan_hops(&table, &plan, hop, &count), 0);
    T_EQ(count, 1);
    T_EQ(hop[0].board_count, 3);
    T_EQ(hop[0].board[0].share, 1000);
    T_TRUE(abs((int)hop[0].board[1].share - 500) <= 1);
    T_TRUE(abs((int)hop[0].board[2].share - 500) <= 1);
    end();
}

TEST(hops_are_judged_as_their_plan)
{
    struct dmn_figures f;
    struct tun_outcome o;
    size_t count;

    begin(3, 2);
    T_EQ(dmn_spread_table_init(&in, &table), 0);
    T_EQ(parse("0-3@big*2|4-8@b1:big*2+b2:big*2|9-11@b3:big*2"), 0);
    T_EQ(dmn_plan_hops(&table, &plan, hop, &count), 0);
    T_EQ(tun_eval(&table.p, &plan, &o), 0);
    T_EQ(dmn_spread_judge(&table, hop, count, &f), 0);
    T_TRUE(f.possible);
    T_TRUE(f.bottleneck_ns <= o.bottleneck_ns * (1 + 1e-9));
    hop[1].board[0].share = 500; /* the other has two thirds instead of half of the frames */
    T_EQ(dmn_spread_judge(&table, hop, count, &f), 0);
    T_NEAR(f.bottleneck_ns / base_max(o.bottleneck_ns, o.stage_ns[1] * 4 / 3), 1, 0.01);
    hop[1].first_unit = 5;
    T_TRUE(dmn_spread_judge(&table, hop, count, &f) < 0);
    T_EQ(parse("0-11@big*2+b1:big*2"), 0);
    T_EQ(dmn_plan_hops(&table, &plan, hop, &count), 0);
    T_EQ(tun_eval(&table.p, &plan, &o), 0);
    hop[0].board[0].share = 500; /* whole copies take what they finish first */
    T_EQ(dmn_spread_judge(&table, hop, count, &f), 0);
    T_NEAR(f.bottleneck_ns / o.bottleneck_ns, 1, 0.01);
    end();
}

TEST(hops_alike)
{
    struct brd_hop a[1] = {{.last_unit = 3, .board_count = 2}}, b[1];

    snprintf(a[0].board[0].print, sizeof(a[0].board[0].print), "a");
    snprintf(a[0].board[1].print, sizeof(a[0].board[1].print), "b");
    a[0].board[0].share = 1000;
    a[0].board[1].share = 900;
    b[0] = a[0];
    b[0].board[0].share = 990;
    T_TRUE(dmn_hops_same(a, 1, b, 1));
    T_TRUE(!dmn_hops_same(a, 1, b, 0));
    b[0].board[0].share = 500;
    T_TRUE(!dmn_hops_same(a, 1, b, 1));
}

/* By hand: each board twice what keeps its pipeline busy, and what the links hold. */
TEST(frames_on_their_way)
{
    struct pl_plan way = {.stage_count = 3};

    begin(2, 2);
    rig_link(&report.self, &report.board[0], true, 20e6, 8);
    rig_link(&report.self, &report.board[1], true, 900e6, 8);
    rig_link(&report.board[0], &report.board[1], true, 2e5, 80);
    T_EQ(dmn_spread_table_init(&in, &table), 0);
    way.stages[0] = (struct pl_stage_plan){0, 3, 1, {{0, 2, 1}}};
    way.stages[1] = (struct pl_stage_plan){4, 7, 1, {{(uint16_t)ep_of("b1:big"), 1, 2}}};
    way.stages[2] = (struct pl_stage_plan){8, 11, 1, {{(uint16_t)ep_of("b2:big"), 1, 1}}};
    T_TRUE(way.stages[1].groups[0].count == 2);
    /* 2 (1 + 1), 2 (1 + 2 + 1), 2 (1 + 1) at the boards; 20 ms hold 20 frames that are
     * 100 kB in 0.8 ms; 66.7 kB take 5.33 ms; no link holds more than 64 */
    T_NEAR(dmn_spread_frames(&table.p, &way), 4 + 8 + 4 + 21 + (1 + 2e5 / 66667 / 80) + 65, 0.01);
    way.stage_count = 2;
    way.stages[1].last_unit = 11;
    T_NEAR(dmn_spread_frames(&table.p, &way), 4 + 8 + 21 + 21, 0.01);
    way.stages[1].groups[0] = way.stages[0].groups[0]; /* one board, two stages */
    T_NEAR(dmn_spread_frames(&table.p, &way), 2 * (2 + 2), 0.01);
    end();
}

TEST(few_frames_do_not_fill_a_long_way)
{
    struct dmn_present none = {0};
    static struct dmn_spread_answer answer;

    for (int slow = 0; slow < 2; slow++) {
        struct dmn_spread_query q;
        struct tun_problem copy;

        begin(2, 1);
        rig_link(&report.self, &report.board[0], true, slow ? 5e9 : 2e5, 1);
        T_EQ(tun_problem_copy(&here, &copy), 0);
        T_EQ(dmn_spread_query_init(&q, &copy, &in, &none), 0);
        T_EQ(dmn_spread_query_run(&q, &answer), 0);
        dmn_spread_query_deinit(&q);
        T_TRUE(answer.best.possible);
        T_TRUE(answer.best.bottleneck_ns < answer.alone.bottleneck_ns / (slow ? 1.8 : 2.5));
        T_EQ(strstr(answer.text, "b1:") == NULL, slow);
        end();
    }
}

/* A route pays for a head that cannot serve alone, however slow its links. */
TEST(a_head_that_sleeps_needs_a_route)
{
    struct dmn_present none = {0};
    static struct dmn_spread_answer answer;

    for (int sleeps = 0; sleeps < 2; sleeps++) {
        struct dmn_spread_query q;
        struct tun_problem copy;

        begin(1, 1);
        report.self.memory_bytes = sleeps ? 1 : 0;
        rig_link(&report.self, &report.board[0], true, 1e6, 1e5);
        T_EQ(tun_problem_copy(&here, &copy), 0);
        T_EQ(dmn_spread_query_init(&q, &copy, &in, &none), 0);
        q.here_sleeps = sleeps;
        T_EQ(dmn_spread_query_run(&q, &answer), 0);
        T_EQ(answer.alone.possible, !sleeps);
        T_EQ(dmn_decide_worth(&q.here, &answer.best, &answer.present, &answer.alone, false, true),
             sleeps ? DMN_TAKE_ROUTE : DMN_KEEP);
        dmn_spread_query_deinit(&q);
        end();
    }
}

/* The reason has the figures that a user needs to choose boards. */
TEST(no_memory_is_told_with_figures)
{
    struct dmn_spread_query q;
    struct tun_problem copy;
    struct dmn_present none = {0};
    static struct dmn_spread_answer answer;

    begin(1, 1);
    report.self.memory_bytes = report.board[0].memory_bytes = 1 << 20;
    T_EQ(tun_problem_copy(&here, &copy), 0);
    for (size_t u = 0; u < copy.unit_count; u++) {
        copy.units[u].weight_bytes = 2 << 20;
    }
    T_EQ(dmn_spread_query_init(&q, &copy, &in, &none), 0);
    T_EQ(dmn_spread_query_run(&q, &answer), 0);
    T_EQ(answer.hop_count, 0);
    T_TRUE(strstr(answer.limit, "in the memory of the boards, 2 MiB together: weights take ") !=
           NULL);
    dmn_spread_query_deinit(&q);
    end();
}

/* Random boards: whatever is planned is sound, and is what tun_eval() says of it. */
static void check_answer(void)
{
    struct dmn_spread_query q;
    static struct dmn_spread_answer answer;
    struct dmn_present none = {0};
    struct tun_problem copy;
    struct dmn_figures again;
    struct tun_outcome o;

    T_EQ(tun_problem_copy(&here, &copy), 0);
    T_EQ(dmn_spread_query_init(&q, &copy, &in, &none), 0);
    T_EQ(dmn_spread_query_run(&q, &answer), 0);
    dmn_spread_query_deinit(&q);
    T_TRUE(answer.alone.possible && answer.alone.bottleneck_ns > 0);
    if (!answer.best.possible) {
        T_EQ(answer.hop_count, 0);
        return;
    }
    T_EQ(dmn_spread_table_init(&in, &table), 0);
    T_EQ(tun_eval(&table.p, &answer.plan, &o), 0);
    /* boards compute their segments for throughput, the plan may have less latency instead */
    T_TRUE(answer.best.bottleneck_ns >= o.bottleneck_ns / 2);
    T_TRUE(answer.best.bottleneck_ns <=
           base_max(o.bottleneck_ns * 1.05,
                    2 * o.latency_ns / dmn_spread_frames(&table.p, &answer.plan)));
    T_TRUE(tun_fits_boards(&table.p, &answer.plan));
    T_TRUE(!dmn_spread_crosses_gap(&table.p, &answer.plan));
    T_EQ(dmn_spread_judge(&table, answer.hop, answer.hop_count, &again), 0);
    T_TRUE(again.possible);
    T_NEAR(again.bottleneck_ns, answer.best.bottleneck_ns, 0);
    dmn_spread_table_deinit(&table);
}

TEST(random_boards)
{
    for (int i = 0; i < t_times(150); i++) {
        size_t boards = (size_t)t_range(1, 4);

        begin(boards, (size_t)t_range(1, 2));
        for (size_t b = 0; b < boards; b++) {
            struct brd_state *s = &report.board[b];

            s->up = t_range(0, 5) > 0;
            s->ep[0].max_khz = (double)t_range(0, 3) * 1e6;
            s->memory_bytes = t_range(0, 1) ? (double)t_range(2, 14) * 1e6 : 0;
            for (size_t k = 0; k < b; k++) {
                rig_link(s, &report.board[k], t_range(0, 3) > 0, (double)t_range(0, 5) * 1e5,
                         (double)t_range(1, 100));
            }
            if (t_range(0, 1)) {
                rig_past(&past, s->print, "big", 1, UNITS, 0, (size_t)t_range(0, UNITS - 1),
                         (double)t_range(1, 40) * 1e5);
            }
        }
        report.self.ep[0].max_khz = 2e6;
        check_answer();
        end();
    }
}

TEST_MAIN()
