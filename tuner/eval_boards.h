/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/eval_boards.h - what a plan over several boards should do: formulas, and what to say of it
 *
 * The stages of one board that follow each other are a segment; a stage with teams on several
 * boards is shared, and a segment of each of them. Between neighbouring segments each frame crosses
 * one link, the first and the last of all also that from and to the head if they are elsewhere.
 * With n the bytes at that border, b(l) = ns_per_byte x n the time that link l is busy and
 * h(l) = ns + b(l) the time until the message is there:
 *
 * OVERLAPPED. The period of a segment of one board is its longest stage. In a shared stage board b
 * takes a frame each
 *     T_b = max(1 / sum_t 1/T_t, b(l) of the links that count with b)
 * and frames are dispatched in shares x_b proportional to 1/T_b: the stage's period is
 * 1 / sum_b 1/T_b.
 * A link counts with the shared stage at its one end, with the receiver if both ends are shared,
 * and by itself, as b(l), if neither is. Where several of a board's neighbours share a stage, the
 * slowest of their links counts. A board's port is busy, each direction for itself, for
 * port_ns_per_byte x (what a frame of the stream sends there on average). Segments that come back
 * to a board share its cores: B_k of tuner/eval.h, with each stage's part times x_b. The bottleneck
 * is the longest of all these.
 *
 * ADDED (AutoDiCE, section 3.1). T_b = (longest stage of the segment) + h(in) + h(out), the slowest
 * link where there are several, for shared stages likewise; ports do not count, nor what the head
 * spends on inputs and answers of other boards' segments.
 *
 * Latency: the slowest team of every stage and h of the slowest link of every border. Energy of a
 * board: its teams', and link_watts x h(l) of the slowest links to and from each of its segments,
 * by shares; not for inputs and answers of other boards' segments. Memory of a board: over its
 * segments, weights + frames_held x (largest arena + bytes at both borders).
 *
 * Pure functions; any thread.
 */
#pragma once

#include "tuner/eval.h"

/** tun_eval_boards() - tun_eval() for boards.count > 1; called by it. */
int tun_eval_boards(const struct tun_problem *p, const struct pl_plan *plan,
                    struct tun_outcome *ret);

/** tun_eval_shares() - which part of its frames each board takes, of every stage; 1 where it has
 * the stage for itself. @plan: valid for a problem of several boards. Return: as tun_eval(). */
int tun_eval_shares(const struct tun_problem *p, const struct pl_plan *plan,
                    double ret[PL_STAGE_MAX][TUN_BOARD_MAX]);

/** tun_slowest_link() - how long @bytes keep a link busy, or with @hop until they are there: the
 * longest time of @board to (@out) or from any of @others
 * @ret_other: the board at its other end; NULL: not wanted */
double tun_slowest_link(const struct tun_problem *p, size_t board, uint32_t others, bool out,
                        double bytes, bool hop, size_t *ret_other);

/** tun_board_mask() - boards that have a team in the stage, one bit each. */
uint32_t tun_board_mask(const struct tun_problem *p, const struct pl_stage_plan *stage);

/** tun_single() - Return: a mask is of one board, or of none. */
static inline bool tun_single(uint32_t mask)
{
    return (mask & (mask - 1)) == 0;
}

/** tun_border_bytes() - bytes in front of @unit; 0: a frame's input, unit_count: its answer. */
double tun_border_bytes(const struct tun_problem *p, size_t unit);

/** tun_segment_memory() - bytes that units first..last take on a board. */
double tun_segment_memory(const struct tun_problem *p, size_t board, size_t first, size_t last);
/** tun_plan_memory() - the same summed over a board's segments: @ret_bytes: [TUN_BOARD_MAX]. */
void tun_plan_memory(const struct tun_problem *p, const struct pl_plan *plan, double *ret_bytes);

/** tun_fits_boards() - the plan keeps within the memory of every board, and a board that shares a
 * stage runs nothing else. */
bool tun_fits_boards(const struct tun_problem *p, const struct pl_plan *plan);

/** tun_limit_text() - what decides the bottleneck, in words: "link head to b2", "stage 2 (b3)". */
void tun_limit_text(const struct tun_problem *p, const struct pl_plan *plan,
                    const struct tun_outcome *o, char ret[TUN_ERROR_MAX]);
