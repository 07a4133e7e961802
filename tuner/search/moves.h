/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/search/moves.h - small changes of a pipeline: what is next to what
 *
 * A pipeline stays one: units in order, at least one in every stage, no core given out twice, no
 * more stages than the bounds allow. Pure, no allocation. Only files of tuner/ include it.
 */
#pragma once

#include "tuner/search/places.h"

enum tun_move_what {
    TUN_MOVE_BORDER,  /* stage and other are neighbours: one unit goes from stage to other */
    TUN_MOVE_SWAP,    /* stage and other change places */
    TUN_MOVE_REPLACE, /* stage gets the place */
    TUN_MOVE_MERGE,   /* the units of the neighbour other join stage; its place is given up */
    TUN_MOVE_SPLIT,   /* stage gives the half of its units next to other (before it: the first
                         half) to a new stage on the place; other is stage + 1 or stage */
};
struct tun_move {
    uint8_t what;
    uint16_t stage, other;
    struct tun_place place;
};

/* Swaps 64 * 63 / 2, borders and merges 4 * 63, replacements 64 * 33, splits 64 * 32 * 2. */
#define TUN_MOVE_MAX (2016u + 252u + 2112u + 4096u)

/** tun_move_unit() - one unit of stage @from ends in stage @to: every border between moves by one
 * @from: has two units or more. */
void tun_move_unit(struct tun_pipeline *p, size_t from, size_t to);

/**
 * tun_moves() - every neighbour of a pipeline, each once
 * Borders by one unit; swaps of unlike places; a core of another EP for a stage; merges of
 * neighbours, on the place of either; splits of a stage where its weight halves best, the new
 * stage on one core of any EP that has one left, before or behind. @wide: places may have any
 * width: one core more or less as well, and the other EP with as many cores as it has up to the
 * old width.
 * Return: how many, at most TUN_MOVE_MAX; 0 for one unit on the only core.
 */
size_t tun_moves(const struct tun_problem *p, const struct tun_pipeline *from, bool wide,
                 struct tun_move ret[TUN_MOVE_MAX]);
/** tun_move_apply() - @m: of tun_moves() for this @from. */
void tun_move_apply(const struct tun_problem *p, const struct tun_pipeline *from,
                    const struct tun_move *m, struct tun_pipeline *ret);
