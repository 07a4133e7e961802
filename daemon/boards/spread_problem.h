/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/boards/spread_problem.h - a model over the boards that are there, as the tuner sees it
 *
 * Board 0 is the head. Its EPs keep their names; those of the others are BOARD:EP.
 *
 * Costs: the head's are its own table. Another board's are what it told (spread_past.h). A row with
 * some measured units has its other units from tun_fill(), which learns their ratio to other rows.
 * A row with none has the times of the head's EP that is most like it, scaled by what is known of
 * both (speed, highest frequency), and by how wrong that was for the board's other rows.
 *
 * Links: as measured by the sending board. Where only the other direction was measured, it counts
 * for both. A link that is down, or that two other boards do not have, costs so much that no plan
 * uses it unless it must; dmn_spread_crosses_gap() tells.
 *
 * Pure functions; any thread; they allocate.
 */
#pragma once

#include "daemon/boards/spread_past.h"
#include "tuner/problem.h"

#define DMN_LINK_GUESS_NS 1e6 /* of a link that nobody has measured yet */
#define DMN_LINK_GUESS_NS_PER_BYTE 9.0
#define DMN_LINK_GAP_NS 1e12 /* of a link that is not there */
#define DMN_LINK_GAP_NS_PER_BYTE 1e9

/* All borrowed. */
struct dmn_spread_inputs {
    const struct tun_problem *here; /* one board: the whole model at the head, with what
                                     * dmn_spread_units() sets; every cost known */
    const struct brd_link_report_all *report;
    const struct dmn_spread_past *past;
    const bool *usable; /* [report->board_count]: may be planned for; NULL: all */
    /* links that are not to be used, in either direction, whatever their boards say */
    size_t gap_count;
    const struct dmn_spread_gap {
        char a[BRD_FINGERPRINT_BYTES], b[BRD_FINGERPRINT_BYTES];
    } * gaps;
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

/** dmn_spread_linked() - Return: frames may go from one of these boards to the other, as far as
 * both say. Fingerprints; a board and itself: true. */
bool dmn_spread_linked(const struct dmn_spread_inputs *in, const char *a, const char *b);

/** dmn_spread_crosses_gap() - Return: the plan sends something over a link that is not there. */
bool dmn_spread_crosses_gap(const struct tun_problem *p, const struct pl_plan *plan);
