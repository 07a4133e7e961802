/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/boards/spread_query.h - all that planning over boards needs, as a copy for a work thread,
 * and what comes out: the best route, why it is that, and a front of plans
 *
 * Threads: any, one at a time.
 */
#pragma once

#include "daemon/boards/spread_decide.h"
#include "tuner/oneboard/oneboard.h"

struct dmn_spread_query {
    struct tun_problem here;           /* owned */
    struct brd_link_report_all report; /* without costs */
    struct dmn_spread_past past;       /* owned */
    struct dmn_spread_may may;
    bool here_sleeps; /* the head cannot serve the model alone */
    size_t hop_count;
    struct brd_hop hop[BRD_HOPS_MAX]; /* of the present route */
};

/** dmn_spread_query_init() - @here: taken over, also on failure. @in: the rest is copied.
 * @present: NULL: none. Return: 0 or -ENOMEM. */
int dmn_spread_query_init(struct dmn_spread_query *q, struct tun_problem *here,
                          const struct dmn_spread_inputs *in, const struct dmn_present *present);
void dmn_spread_query_deinit(struct dmn_spread_query *q);

/** dmn_spread_query_table() - the problem over boards. @ret: the caller's,
 * dmn_spread_table_deinit(). Return: as dmn_spread_table_init(). */
int dmn_spread_query_table(const struct dmn_spread_query *q, struct dmn_spread_table *ret);

struct dmn_spread_answer {
    struct dmn_figures best, present, alone; /* not possible: there is none */
    struct pl_plan plan; /* the best over boards, for a table of the same inputs */
    size_t hop_count;    /* 0: the head alone is best */
    struct brd_hop hop[BRD_HOPS_MAX];
    char text[PL_PLAN_TEXT_MAX]; /* the best plan with boards' names */
    char limit[TUN_ERROR_MAX];   /* what decides its throughput, else why there is none */
};

/** dmn_spread_query_run() - makes the table, solves, and judges the present route. May take
 * seconds. Return: 0; -EINVAL or -ENOMEM. */
int dmn_spread_query_run(const struct dmn_spread_query *q, struct dmn_spread_answer *ret);

/* ---- why a route is as it is ---- */

enum dmn_verdict {
    DMN_VERDICT_NONE,         /* there is no route, and none is possible: .answer.limit */
    DMN_VERDICT_SERVES,       /* the best route is the present one */
    DMN_VERDICT_BETTER,       /* the best route gains enough to be taken */
    DMN_VERDICT_ALONE_BETTER, /* the present route should be left */
    DMN_VERDICT_LITTLE,       /* the best route gains too little over the present one */
    DMN_VERDICT_ALONE,        /* there is no route; the best gains too little */
};

struct dmn_left_out {
    char print[BRD_FINGERPRINT_BYTES];
    const char *why; /* a sentence, static */
};

struct dmn_explained {
    struct dmn_spread_answer answer;
    enum dmn_verdict verdict;
    bool moves; /* boards must load other segments for the best route than for the present one */
    size_t left_count, guessed_links;
    struct dmn_left_out left[BRD_MAX]; /* boards that have no part in the best route */
};

/** dmn_spread_explain() - Return: 0; -EINVAL or -ENOMEM. */
int dmn_spread_explain(const struct dmn_spread_query *q, struct dmn_explained *ret);

/* ---- plans of which none beats another in throughput, in the most memory and in the most energy
 * of a board ---- */

struct dmn_spread_front {
    struct dmn_spread_table t;     /* owned */
    struct tun_solution *solution; /* [count], by falling throughput, owned */
    size_t count;
    bool exact; /* it is the whole front */
};
#define DMN_SPREAD_FRONT_NULL ((struct dmn_spread_front){0})

/** dmn_spread_front() - @max: at most so many, >= 1. @ret: dmn_spread_front_deinit(). Return: 0
 * with .count >= 1; -ENODATA: no other board can be planned for; -ENOENT: no plan fits in the
 * boards; -EINVAL; -ENOMEM. */
int dmn_spread_front(const struct dmn_spread_query *q, size_t max, struct dmn_spread_front *ret);
void dmn_spread_front_deinit(struct dmn_spread_front *f);

/** dmn_spread_front_texts() - a plan, and its route, with boards' names
 * @ret_plan: PL_PLAN_TEXT_MAX. @ret_route: DMN_ROUTE_TEXT_MAX; "": all on this board, or a route
 * cannot say it. Return: 0 or -ENOMEM. */
int dmn_spread_front_texts(const struct dmn_spread_front *f, size_t i,
                           const struct brd_link_report_all *r, char *ret_plan, char *ret_route);
