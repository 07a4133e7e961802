/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/boards/spread_table.h - a model over the boards that are there, as the tuner sees it
 *
 * Board 0 is the head. Its EPs keep their names; those of the others are BOARD:EP.
 *
 * Costs: the head's are its own table. Another board's are what it told (spread_costs.c). A row
 * with some measured units has its other units from tun_fill(), which learns their ratio to other
 * rows. A row with none has the times of the head's EP that is most like it, scaled by what is
 * known of both (speed, highest frequency), and by how wrong that was for the board's other rows.
 *
 * Links: as measured by the sending board. Where only the other direction was measured, it counts
 * for both. A link that is down, or that two other boards do not have, costs so much that no plan
 * uses it unless it must; dmn_spread_crosses_gap() tells.
 *
 * Pure functions; any thread; they allocate.
 */
#pragma once

#include "ipc/boards/board_state.h"
#include "kernels/kernels.h"
#include "model/model.h"
#include "tuner/problem.h"

/*
 * ---- spread_costs.c: what the units of a model took on every board, as far as boards told, and
 * the cost table that follows ----
 *
 * A board tells costs of the segments that it serves. They are kept after it stopped to serve them:
 * else a board that proved slow would look fast again, and routes would swing. After
 * DMN_PAST_KEEP_NS without news they are forgotten, so that such a board gets another chance.
 */
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
    size_t unit_count, count, room;
    struct dmn_past_row *row; /* owned */
};
#define DMN_SPREAD_PAST_NULL ((struct dmn_spread_past){0})

void dmn_past_deinit(struct dmn_spread_past *p);
/** dmn_past_copy() - deep. Return: 0 or -ENOMEM. */
int dmn_past_copy(const struct dmn_spread_past *from, struct dmn_spread_past *ret);

/** dmn_past_learn() - takes what the boards of a report, its own included, tell of @content, and
 * forgets what is too old. Segments that do not fit the model and rows past DMN_PAST_ROWS_MAX are
 * left out; so is what finds no memory. */
void dmn_past_learn(struct dmn_spread_past *p, const char *content,
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

/** dmn_spread_costs() - fills @p->costs. @eps: [p->ep_count]; the first are the
 * head's. */
void dmn_spread_costs(struct tun_problem *p, const struct tun_problem *here,
                      const struct dmn_spread_past *past, const struct dmn_spread_ep *eps);

/* ---- spread_table.c ---- */

/**
 * dmn_spread_units() - sets weight_bytes, arena_bytes and in_bytes of the units, and input_bytes
 * and output_bytes of @p->boards
 *
 * in_bytes are the bytes of the border (model/segment/segment.h), which may be more than what one
 * team hands to the next. arena_bytes is what is alive in the arena while the unit runs.
 * weight_bytes are those that @net packs (NULL: those of the file). @p: with the model's units.
 * Return: 0; -EINVAL: the model is a segment, or has other units; -ENOMEM.
 */
int dmn_spread_units(const struct mdl_model *m, const struct krn_net *net, struct tun_problem *p);

#define DMN_LINK_GUESS_NS 1e6 /* of a link that nobody has measured yet */
#define DMN_LINK_GUESS_NS_PER_BYTE 9.0
#define DMN_LINK_GAP_NS 1e12 /* of a link that is not there */
#define DMN_LINK_GAP_NS_PER_BYTE 1e9
#define DMN_SPREAD_GAPS 8u

/* Who may be planned for. */
struct dmn_spread_may {
    bool usable[BRD_MAX]; /* boards of a report, in their order */
    /* links that are not to be used, in either direction, whatever their boards say */
    size_t gap_count;
    struct dmn_spread_gap {
        char a[BRD_FINGERPRINT_BYTES], b[BRD_FINGERPRINT_BYTES];
    } gaps[DMN_SPREAD_GAPS];
};

/* All borrowed. */
struct dmn_spread_inputs {
    const struct tun_problem *here; /* one board: the whole model at the head, with what
                                     * dmn_spread_units() sets; every cost known */
    const struct brd_link_report_all *report;
    const struct dmn_spread_past *past;
    const struct dmn_spread_may *may; /* NULL: all */
};

struct dmn_spread_table {
    struct tun_problem p;                             /* owned; .boards.count may be 1 */
    char print[TUN_BOARD_MAX][BRD_FINGERPRINT_BYTES]; /* of its boards */
    size_t guessed_links;                             /* that nobody has measured */
    size_t left_out; /* boards that are there, but are too many, or have too many EPs or cores */
};
#define DMN_SPREAD_TABLE_NULL ((struct dmn_spread_table){0})

/**
 * dmn_spread_table_init() - the problem over the head and all boards that are up, known, usable and
 * linked with the head
 *
 * Objective and bounds are those of `here`, but for its bound on the number of stages, which plans
 * over boards do not have. Return: 0; -EINVAL: `here` has unknown costs or too many cores; -ENOMEM.
 */
int dmn_spread_table_init(const struct dmn_spread_inputs *in, struct dmn_spread_table *ret);
void dmn_spread_table_deinit(struct dmn_spread_table *t);

/** dmn_spread_alone() - the head alone, by the same table. @ret: owned (tun_problem_deinit).
 * Return: 0, -EINVAL or -ENOMEM. */
int dmn_spread_alone(const struct dmn_spread_table *t, struct tun_problem *ret);

/** dmn_spread_part() - units @first..@last on the EPs of one board alone; without bounds. @ret:
 * owned. @ret_eps: which of @p these EPs are. Return: as above. */
int dmn_spread_part(const struct tun_problem *p, size_t board, size_t first, size_t last,
                    struct tun_problem *ret, uint16_t ret_eps[PL_EP_MAX]);

/** dmn_spread_board() - Return: which board of the table it is; p.boards.count: none. */
size_t dmn_spread_board(const struct dmn_spread_table *t, const char *print);
/** dmn_spread_linked() - Return: frames may go from one of these boards to the other, as far as
 * both say. Fingerprints; a board and itself: true. */
bool dmn_spread_linked(const struct dmn_spread_inputs *in, const char *a, const char *b);

/** dmn_way_find() - Return: what the board tells of its way to another; NULL: nothing. */
const struct brd_way *dmn_way_find(const struct brd_state *from, const char *print);
/** dmn_spread_is_gap() - Return: it is the one between these boards. */
bool dmn_spread_is_gap(const struct dmn_spread_gap *g, const char *a, const char *b);
/** dmn_spread_any_gap() - Return: a link from one of @from to one of @to is not there; both are
 * bits of boards. */
bool dmn_spread_any_gap(const struct tun_problem *p, uint32_t from, uint32_t to);
/** dmn_spread_crosses_gap() - Return: the plan sends something over a link that is not there. */
bool dmn_spread_crosses_gap(const struct tun_problem *p, const struct pl_plan *plan);
