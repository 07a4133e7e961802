/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/boards/boards.h - models that several boards serve together: the state of this room
 *
 * piped-link alone speaks to other boards. It reports how they and the routes are
 * (dmn_boards_report()), and is told which routes are wanted (dmn_boards_routes()), both by the
 * control socket. spread.h says what is wanted; away.h takes frames there and back. This room
 * decides whether a model's frames go there: while piped-link reports its route as ready and the
 * stream is open. Otherwise the model's own pipeline computes them, and those that come back
 * without an answer. So no frame is lost, whatever boards do.
 *
 * piped-link counts as away when its control connection ends, and when it is silent for
 * DMN_REPORTER_SILENT_NS.
 *
 * Threads: the loop thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base.h"
#include "daemon/models/models.h"
#include "ipc/boards/board_state.h"

#define DMN_REPORTER_SILENT_NS (5 * BASE_NS_PER_S)

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
    uint64_t reported_ns;                  /* when it came */
    struct dmn_board_seen seen[BRD_MAX];   /* of report->board, in their order */
    bool routes_changed;                   /* listeners are told before the loop waits */
};

/** dmn_boards_init() - starts to hear of models. */
void dmn_boards_init(struct dmn_boards *b);
/** dmn_boards_deinit() - call after the last model has gone. */
void dmn_boards_deinit(struct dmn_boards *b);
void dmn_boards_listen(struct dmn_boards *b, struct dmn_boards_listener *l);
/** dmn_boards_configure() - applies models[].boards of the configuration in force, to every
 * model. */
void dmn_boards_configure(struct dmn_boards *b);
/** dmn_boards_settle() - call before the loop waits. Return: frames may have come back. */
bool dmn_boards_settle(struct dmn_boards *b);

/** dmn_boards_report() - piped-link reports. @r: owned by the room from now on. */
void dmn_boards_report(struct dmn_boards *b, struct brd_link_report_all *r);
/** dmn_boards_reporter_gone() - piped-link's connection ended. */
void dmn_boards_reporter_gone(struct dmn_boards *b);
/** dmn_boards_routes() - Return: the routes that are wanted now, owned by the caller (free); NULL:
 * out of memory. */
struct brd_routes *dmn_boards_routes(const struct dmn_boards *b);
/** dmn_boards_of() - Return: what the room keeps for @m; NULL: it is not spread. */
const struct dmn_board_model *dmn_boards_of(const struct dmn_boards *b, const struct dmn_model *m);
