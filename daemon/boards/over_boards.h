/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/boards/over_boards.h - models that several boards serve together; the state is in
 * board_room.h
 *
 * piped-link alone speaks to other boards. It reports how they and the routes are
 * (dmn_boards_report()), and is told which routes are wanted (dmn_boards_routes()), both by the
 * control socket. spread.c says what is wanted; away.h takes frames there and back. This room
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

#include "base/base.h"
#include "daemon/boards/board_room.h"

#define DMN_REPORTER_SILENT_NS (5 * BASE_NS_PER_S)

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

/** dmn_boards_stop() - the daemon stops: frames that are away come back and are computed here. A
 * route that leads through this daemon would wait for what it no longer takes. */
void dmn_boards_stop(struct dmn_boards *b);

/** dmn_boards_report() - piped-link reports. @r: owned by the room from now on. */
void dmn_boards_report(struct dmn_boards *b, struct brd_link_report_all *r);
/** dmn_boards_reporter_gone() - piped-link's connection ended. */
void dmn_boards_reporter_gone(struct dmn_boards *b);
/** dmn_boards_routes() - Return: the routes that are wanted now, owned by the caller (free); NULL:
 * out of memory. */
struct brd_routes *dmn_boards_routes(const struct dmn_boards *b);

struct dmn_retune_request;
/** dmn_boards_retune() - starts a search over all boards that are there: dmn_retune_begin(), whose
 * @q says nothing of boards or costs. Return: as that; -EOPNOTSUPP: the model cannot be spread;
 * -ENODATA: piped-link is away; -ENODEV: no other board is there. */
int dmn_boards_retune(struct dmn_model *m, const struct dmn_retune_request *q);
