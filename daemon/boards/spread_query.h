/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/boards/spread_query.h - all that planning over boards needs, as a copy for a work thread,
 * and what comes out
 *
 * Threads: any, one at a time.
 */
#pragma once

#include "daemon/boards/spread_decide.h"
#include "daemon/boards/spread_judge.h"
#include "daemon/boards/spread_plan.h"

struct dmn_spread_query {
    struct tun_problem here;           /* owned */
    struct brd_link_report_all report; /* without costs */
    struct dmn_spread_past past;       /* owned */
    bool usable[BRD_MAX];
    bool here_sleeps; /* the head cannot serve the model alone */
    size_t gap_count, hop_count;
    struct dmn_spread_gap gaps[DMN_DECIDE_GAPS];
    struct brd_hop hop[BRD_HOPS_MAX]; /* of the present route */
};

/** dmn_spread_query_init() - @here: taken over, also on failure. @in: the rest is copied.
 * @present: NULL: none. Return: 0 or -ENOMEM. */
int dmn_spread_query_init(struct dmn_spread_query *q, struct tun_problem *here,
                          const struct dmn_spread_inputs *in, const struct dmn_present *present);
void dmn_spread_query_deinit(struct dmn_spread_query *q);
/** dmn_spread_query_inputs() - Return: of dmn_spread_table_init(); they borrow @q. */
struct dmn_spread_inputs dmn_spread_query_inputs(const struct dmn_spread_query *q);

struct dmn_spread_answer {
    struct dmn_figures best, present, alone;
    struct pl_plan plan; /* the best over boards, for a table of the same inputs */
    size_t hop_count;    /* 0: the head alone is best */
    struct brd_hop hop[BRD_HOPS_MAX];
    char text[PL_PLAN_TEXT_MAX]; /* the best plan with boards' names */
    char limit[TUN_ERROR_MAX];   /* what decides its throughput, else why there is none */
};

/** dmn_spread_query_run() - makes the table, solves, and judges the present route. May take
 * seconds. Return: 0; -EINVAL or -ENOMEM. */
int dmn_spread_query_run(const struct dmn_spread_query *q, struct dmn_spread_answer *ret);
