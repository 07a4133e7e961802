/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/boards/board_room.h - the state of this room; its interface is daemon/boards/over_boards.h
 *
 * Threads: the loop thread.
 */
#pragma once

#include <sys/queue.h>

#include "daemon/models/models.h"
#include "ipc/boards/board_state.h"

struct dmn_board_model;
struct dmn_plans;

/* Each function may be NULL. */
struct dmn_boards_listener {
    void *ctx;
    /* dmn_boards_routes() has others now. */
    void (*routes_changed)(void *ctx);
    /* The model's frames go to another route now, or to none. */
    void (*serving_changed)(void *ctx, struct dmn_model *m);
    struct dmn_boards_listener *next; /* in the list */
};

/* A board of the newest report. */
struct dmn_board_seen {
    char print[BRD_FINGERPRINT_BYTES];
    bool up;
    uint64_t since_ns; /* it has been up, or not */
};

struct dmn_boards {
    struct dmn_plans *plans; /* set by the owner before dmn_boards_init(), borrowed */
    /* state of this room */
    struct dmn_models_listener hears;
    struct dmn_boards_listener *listeners; /* borrowed */
    LIST_HEAD(, dmn_board_model) models;   /* owned */
    struct brd_link_report_all *report;    /* owned; NULL: piped-link is away */
    bool stopping;                         /* no route is taken any more */
    uint64_t reported_ns;                  /* when it came */
    struct dmn_board_seen seen[BRD_MAX];   /* of report->board, in their order */
    bool routes_changed;                   /* listeners are told before the loop waits */
};
