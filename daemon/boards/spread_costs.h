/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/boards/spread_costs.h - what the units of a model took on every board, as far as boards
 * told, and the cost table that follows
 *
 * A board tells costs of the segments that it serves. They are kept after it stopped to serve them:
 * else a board that proved slow would look fast again, and routes would swing. After
 * DMN_PAST_KEEP_NS without news they are forgotten, so that such a board gets another chance.
 *
 * Plain data and pure functions; any thread, one at a time.
 */
#pragma once

#include "ipc/boards/board_state.h"
#include "tuner/problem.h"

#define DMN_PAST_ROWS_MAX 512u
#define DMN_PAST_KEEP_NS (30 * 60 * UINT64_C(1000000000))

struct dmn_past_row {
    char print[BRD_FINGERPRINT_BYTES]; /* board */
    char ep[BRD_EP_NAME_BYTES];        /* as the board calls it */
    uint32_t width;
    uint64_t at_ns; /* of the newest report */
    double *ns;     /* [units of the model], owned; < 0: not measured */
};
struct dmn_spread_past {
    size_t unit_count, count;
    struct dmn_past_row *row; /* owned */
};
#define DMN_SPREAD_PAST_NULL ((struct dmn_spread_past){0})

void dmn_past_init(struct dmn_spread_past *p, size_t unit_count);
void dmn_past_deinit(struct dmn_spread_past *p);
/** dmn_past_copy() - deep. Return: 0 or -ENOMEM. */
int dmn_past_copy(const struct dmn_spread_past *from, struct dmn_spread_past *ret);

/** dmn_past_learn() - takes what the boards of a report, its own included, tell of @content, and
 * forgets what is too old. Segments that do not fit the model and rows past DMN_PAST_ROWS_MAX are
 * left out. Return: 0 or -ENOMEM. */
int dmn_past_learn(struct dmn_spread_past *p, const char *content,
                   const struct brd_link_report_all *r, uint64_t now_ns);
/** dmn_past_find() - Return: what is known of (board, EP, width), or NULL. */
const struct dmn_past_row *dmn_past_find(const struct dmn_spread_past *p, const char *print,
                                         const char *ep, size_t width);

/* Of each EP of the table. */
struct dmn_spread_ep {
    const char *name;  /* as its board calls it */
    const char *print; /* its board */
    size_t like;       /* the head's EP whose times it has ... */
    double scale;      /* ... times this, until it is known better */
};

/** dmn_spread_costs() - fills @p->costs (spread_table.h). @eps: [p->ep_count]; the first are the
 * head's. */
void dmn_spread_costs(struct tun_problem *p, const struct tun_problem *here,
                      const struct dmn_spread_past *past, const struct dmn_spread_ep *eps);
