/* SPDX-License-Identifier: Apache-2.0 */
/* Why a route is as it is, and the front over boards. */
#include <errno.h>

#include "base/base.h"
#include "daemon/boards/route_fill.h"
#include "daemon/boards/spread_query.h"
#include "tests/unit/daemon/spread_rig.h"
#include "tuner/eval_boards.h"

#define UNITS 12u

static struct brd_link_report_all report;
static struct tun_problem here;
static struct dmn_spread_past past;
static struct dmn_spread_query q;
static struct dmn_explained e;

static void begin(size_t boards)
{
    rig_here(&here, UNITS, 2, 1e6, 2e5);
    rig_report(&report, boards, 2);
    past = (struct dmn_spread_past){.unit_count = UNITS};
}

static void explain(const struct brd_hop *hop, size_t count)
{
    struct dmn_spread_inputs in = {.here = &here, .report = &report, .past = &past};
    struct dmn_present now = {.hop = hop, .hop_count = count};
    struct tun_problem copy;

    T_EQ(tun_problem_copy(&here, &copy), 0);
    dmn_spread_query_deinit(&q);
    T_EQ(dmn_spread_query_init(&q, &copy, &in, &now), 0);
    T_EQ(dmn_spread_explain(&q, &e), 0);
}

static void end(void)
{
    dmn_spread_query_deinit(&q);
    tun_problem_deinit(&here);
    dmn_past_deinit(&past);
}

/* Half of the units here, the rest on the first board. */
static void halves(struct brd_hop hop[2])
{
    hop[0] = (struct brd_hop){.first_unit = 0, .last_unit = 5, .board_count = 1};
    hop[1] = (struct brd_hop){.first_unit = 6, .last_unit = UNITS - 1, .board_count = 1};
    hop[0].board[0].share = hop[1].board[0].share = 1000;
    memcpy(hop[0].board[0].print, report.self.print, BRD_FINGERPRINT_BYTES);
    memcpy(hop[1].board[0].print, report.board[0].print, BRD_FINGERPRINT_BYTES);
}

TEST(verdicts)
{
    static struct brd_hop hop[BRD_HOPS_MAX], best[BRD_HOPS_MAX];
    size_t count;

    begin(3);
    explain(NULL, 0);
    T_EQ(e.verdict, DMN_VERDICT_BETTER);
    T_TRUE(e.answer.best.possible && !e.answer.present.possible && e.answer.best.limit[0]);
    count = e.answer.hop_count;
    memcpy(best, e.answer.hop, sizeof(best));
    explain(best, count);
    T_EQ(e.verdict, DMN_VERDICT_SERVES);
    T_NEAR(e.answer.present.bottleneck_ns, e.answer.best.bottleneck_ns, 0);
    T_STR(e.answer.present.limit, e.answer.best.limit);
    halves(hop);
    explain(hop, 2);
    T_EQ(e.verdict, DMN_VERDICT_BETTER);
    T_TRUE(e.answer.present.hop_ns[0] > 0 && e.answer.present.hop_ns[1] > 0 &&
           e.answer.present.hop_ns[2] == 0);
    end();
}

TEST(links_decide)
{
    static struct brd_hop hop[BRD_HOPS_MAX];

    begin(1);
    halves(hop);
    rig_link(&report.self, &report.board[0], true, 1e5, 1e4);
    explain(hop, 2);
    T_EQ(e.verdict, DMN_VERDICT_ALONE_BETTER);
    T_CONTAINS(e.answer.present.limit, "link here to b1");
    explain(NULL, 0);
    T_TRUE(e.verdict == DMN_VERDICT_NONE || e.verdict == DMN_VERDICT_ALONE);
    end();
}

TEST(boards_that_are_left_out)
{
    begin(4);
    report.board[0].up = false;
    report.board[1].known = false;
    rig_link(&report.self, &report.board[2], false, 1e5, 1);
    explain(NULL, 0);
    T_EQ(e.left_count, 3);
    T_CONTAINS(e.left[0].why, "away");
    T_CONTAINS(e.left[1].why, "not told");
    T_CONTAINS(e.left[2].why, "link is down");
    q.may.usable[3] = false;
    T_EQ(dmn_spread_explain(&q, &e), 0);
    T_EQ(e.left_count, 4);
    T_CONTAINS(e.left[3].why, "stay for a while");
    T_EQ(e.verdict, DMN_VERDICT_NONE);
    end();
}

TEST(shares_have_no_common_divisor)
{
    static struct brd_hop hop[2];
    char text[DMN_ROUTE_TEXT_MAX];

    begin(2);
    halves(hop);
    hop[1].board_count = 2;
    hop[1].board[1].share = 500;
    memcpy(hop[1].board[1].print, report.board[1].print, BRD_FINGERPRINT_BYTES);
    dmn_hops_text(hop, 2, &report, text);
    T_STR(text, "0-5@here|6-11@b1*2+b2");
    end();
}

TEST(a_front)
{
    struct dmn_spread_front f;
    static char plan[PL_PLAN_TEXT_MAX], route[DMN_ROUTE_TEXT_MAX];

    begin(3);
    rig_link(&report.board[0], &report.board[1], false, 1e5, 1); /* a gap */
    explain(NULL, 0);
    T_EQ(dmn_spread_front(&q, 32, &f), 0);
    T_TRUE(f.count > 1);
    for (size_t i = 0; i < f.count; i++) {
        const struct tun_outcome *a = &f.solution[i].outcome;

        T_TRUE(!dmn_spread_crosses_gap(&f.t.p, &f.solution[i].plan));
        T_TRUE(tun_fits_boards(&f.t.p, &f.solution[i].plan));
        T_EQ(dmn_spread_front_texts(&f, i, &report, plan, route), 0);
        T_TRUE(plan[0] != '\0');
        for (size_t k = 0; k < f.count; k++) {
            const struct tun_outcome *b = &f.solution[k].outcome;

            T_TRUE(k == i || a->bottleneck_ns < b->bottleneck_ns ||
                   a->most_memory_bytes < b->most_memory_bytes ||
                   a->most_energy_nj < b->most_energy_nj);
        }
    }
    dmn_spread_front_deinit(&f);
    memset(q.may.usable, 0, sizeof(q.may.usable));
    T_EQ(dmn_spread_front(&q, 32, &f), -ENODATA);
    end();
}

TEST_MAIN()
