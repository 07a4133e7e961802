/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/boards/board_model.h - what this room keeps for a model that may be spread over boards
 *
 * Owned by the room, from the model's start, or the configuration's change, to its end. spread.c
 * says which route is wanted: one that the configuration or a user fixes, or one that spread_auto.c
 * plans. board_model.c watches what becomes of it, and sends frames there. Plain data for
 * daemon/control/. Threads: the loop thread; slow work is queued (daemon/service/work.h).
 */
#pragma once

#include "base/pixfmt.h"
#include "daemon/boards/away.h"
#include "daemon/boards/board_room.h"
#include "daemon/boards/route_fill.h"
#include "daemon/boards/spread_query.h"
#include "daemon/config/config.h"
#include "daemon/models/elsewhere.h"

struct dmn_board_trial;
struct dmn_spread_job;

struct dmn_board_model {
    struct dmn_elsewhere elsewhere; /* dmn_model.elsewhere */
    LIST_ENTRY(dmn_board_model) linked;
    struct dmn_boards *of;
    struct dmn_model *model;             /* borrowed */
    char *config;                        /* owned: models[].boards */
    struct dmn_away *away[PIXFMT_COUNT]; /* owned; [0]: tensors; pictures: from the first one on */
    /* owned: wanted; number 0: none was ever wanted; hop_count 0: this board alone */
    struct brd_route *route;
    struct brd_route_state state;  /* of the newest report; number 0: piped-link has none */
    uint32_t ready;                /* number of the route that is ready; 0: none */
    uint32_t serving;              /* of the one that frames go to; 0: the pipeline computes them */
    char text[DMN_ROUTE_TEXT_MAX]; /* of the route that serves */
    void (*unwanted)(struct dmn_board_model *bm); /* board_model.c hears that no route is wanted */
    /* spread.c */
    bool spreads;                /* false: it cannot be spread, and no route is ever wanted */
    bool set;                    /* by a user, not by the configuration */
    bool fixed;                  /* .fixes is wanted; else one that is planned */
    struct dmn_route_text fixes; /* if fixed; hop_count 0: no route */
    bool missing;                /* a board went since the route was made; the others go on */
    bool searched; /* a search measured what is best; costs alone change no planned route */
    struct dmn_board_trial *trial; /* of a search that goes on, or NULL: nothing else changes it */
    uint64_t retry_ns, back_off_ns, ready_ns;
    char why[512]; /* the present route: a phrase for the history, such as "board b2 is away" */
    /* spread_auto.c */
    struct tun_problem memory; /* owned: only what dmn_spread_units() sets */
    double wire_bytes;         /* of an input, at the last search */
    struct dmn_decide decide;
    struct dmn_spread_past past; /* owned */
    struct dmn_spread_job *job;  /* at work, or NULL */
};

/** dmn_boards_of() - Return: what the room keeps for @m; NULL: it is not spread. */
static inline struct dmn_board_model *dmn_boards_of(const struct dmn_model *m)
{
    return m->elsewhere ? base_container_of(m->elsewhere, struct dmn_board_model, elsewhere) : NULL;
}

#define dmn_spread_say(bm, ...) snprintf((bm)->why, sizeof((bm)->why), __VA_ARGS__)

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

/* spread.c */
/** dmn_spread_init() - from now on bm->config decides: "auto" or a route. A model that cannot be
 * spread has none; bm->why says why. Return: 0 or -ENOMEM. */
int dmn_spread_init(struct dmn_board_model *bm);
/** dmn_spread_report() - a new report, or none any more; so once a second at least while piped-link
 * is there. */
void dmn_spread_report(struct dmn_board_model *bm, uint64_t now_ns);
/** dmn_boards_set() - a user sets a route for @m, as text, until dmn_boards_unset(). @why:
 * DMN_ROUTE_ERROR_MAX bytes. Return: 0; -EINVAL with @why, and nothing was changed. */
int dmn_boards_set(const struct dmn_model *m, const char *text, char *why);
/** dmn_boards_set_alone() - a user sets a plan of this board: no route serves @m any more. */
void dmn_boards_set_alone(const struct dmn_model *m);
/** dmn_boards_unset() - the configuration decides again. */
void dmn_boards_unset(const struct dmn_model *m);

/** dmn_spread_searched() - the search is over, and what it chose is wanted already. @text: of the
 * route or plan that it found; NULL: what was there stays. Where a route was fixed, this one is
 * from now on; else it stays until boards or links change. */
void dmn_spread_searched(struct dmn_board_model *bm, const char *text);

/* board_trial.c */
/** dmn_board_trial_leave() - a search goes on without @bm, which is to be freed now. @ends: frames
 * that are away do not come back. */
void dmn_board_trial_leave(struct dmn_board_model *bm, bool ends);

/*
 * spread_auto.c: joins costs, decisions and the planner over boards
 *
 * It hears every report. When a route is to be sought, a work thread solves on a copy of all it
 * needs, and the loop thread applies the answer, unless boards went meanwhile: then it is sought
 * again. One search at a time. While the route is fixed it seeks nothing.
 */
/** dmn_spread_want() - from now on the first @count of bm->route->hop are wanted, whose units and
 * boards are set; 0: this board alone. The route gets a number of its own. Return: 0; -ENOMEM, and
 * it is this board alone. */
int dmn_spread_want(struct dmn_board_model *bm, size_t count);
/** dmn_spread_state() - Return: what piped-link says of the route that is wanted; NULL: nothing. */
const struct brd_route_state *dmn_spread_state(const struct dmn_board_model *bm);
/** dmn_auto_init() - Return: 0; -EINVAL: the model is a segment; -ENOMEM. */
int dmn_auto_init(struct dmn_board_model *bm);
/** dmn_auto_deinit() - also of one that is zeroed. The loop must run once more if a search is going
 * on. */
void dmn_auto_deinit(struct dmn_board_model *bm);
/** dmn_auto_report() - as dmn_spread_report(). */
void dmn_auto_report(struct dmn_board_model *bm, uint64_t now_ns);
/** dmn_auto_release() - the route is not fixed any more. What is wanted stays so until something
 * better is found. */
void dmn_auto_release(struct dmn_board_model *bm);
/** dmn_auto_searched() - what is wanted was measured now, as the best of a search. */
void dmn_auto_searched(struct dmn_board_model *bm);
/** dmn_auto_query() - all that is known now, for planning on a work thread. @ret: the caller's,
 * dmn_spread_query_deinit(). Return: 0; -EOPNOTSUPP: the model cannot be spread; -ENODATA:
 * piped-link is away; -EINVAL or -ENOMEM. */
int dmn_auto_query(const struct dmn_board_model *bm, struct dmn_spread_query *ret);
