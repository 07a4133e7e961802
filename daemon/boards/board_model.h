/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/boards/board_model.h - what this room keeps for a model that may be spread over boards
 *
 * Owned by the room, from the model's start, or the configuration's change, to its end. Plain data
 * for daemon/control/. Threads: the loop thread.
 */
#pragma once

#include "base/pixfmt.h"
#include "daemon/boards/away.h"
#include "daemon/boards/board_room.h"
#include "daemon/boards/route_fill.h"
#include "daemon/models/elsewhere.h"

struct dmn_spread;

struct dmn_board_model {
    struct dmn_elsewhere elsewhere; /* dmn_model.elsewhere */
    LIST_ENTRY(dmn_board_model) linked;
    struct dmn_boards *of;
    struct dmn_model *model;             /* borrowed */
    char *config;                        /* owned: models[].boards */
    struct dmn_spread *spread;           /* owned */
    struct dmn_away *away[PIXFMT_COUNT]; /* owned; [0]: tensors; pictures: from the first one on */
    struct brd_route *route;             /* owned: wanted; number 0: none was ever wanted */
    struct brd_route_state state;        /* of the newest report; number 0: piped-link has none */
    uint32_t ready;                      /* number of the route that is ready; 0: none */
    uint32_t serving;              /* of the one that frames go to; 0: the pipeline computes them */
    char text[DMN_ROUTE_TEXT_MAX]; /* of the route that serves */
};

/* board_model.c */
/** dmn_board_model_new() - Return: owned, and the model's frames are offered to it; NULL: out of
 * memory. */
struct dmn_board_model *dmn_board_model_new(struct dmn_boards *b, struct dmn_model *m,
                                            const char *config);
/** dmn_board_model_free() - @ends: the model ends: frames that are away do not come back; otherwise
 * they come back undone. Return: NULL. */
struct dmn_board_model *dmn_board_model_free(struct dmn_board_model *bm, bool ends);
/** dmn_board_model_report() - the room has a new report, or none any more. */
void dmn_board_model_report(struct dmn_board_model *bm, uint64_t now_ns);
/** dmn_board_model_follow() - opens the stream once piped-link knows the route, closes it when no
 * route is wanted. Call it once a second, too. */
void dmn_board_model_follow(struct dmn_board_model *bm, uint64_t now_ns);
/** dmn_board_model_counts() - Return: of all its frames, tensors and pictures. */
struct dmn_away_counts dmn_board_model_counts(const struct dmn_board_model *bm);
/** dmn_board_model_settle() - as dmn_away_settle(). */
bool dmn_board_model_settle(struct dmn_board_model *bm);
/** dmn_board_model_why() - Return: why frames are not sent there; "": they are. */
const char *dmn_board_model_why(const struct dmn_board_model *bm);
