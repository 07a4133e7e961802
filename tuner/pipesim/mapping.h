/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/pipesim/mapping.h - what any mapping of units onto EPs should do, plan or not
 *
 * The hierarchical DSE lets every layer run anywhere (its section 3.1), so that a place may be
 * left and come back to; a plan cannot say that. The formulas are those of tuner/eval_boards.h
 * with communication added: with a run the consecutive units of one EP, all its cores a team, and
 * a segment the consecutive runs of one board,
 *
 *     an EP's time     sum over its runs of T (tuner/eval.h)
 *     a board's time   its busiest EP's + for each of its segments h(in) + h(out)
 *     throughput       1 / the longest of these
 *     memory           sum over the board's segments of tun_segment_memory()
 *     energy           its EPs' times x cores x watts + link_watts x (h(in) + h(out))
 *
 * A mapping that is a plan has the figures of tun_eval(); a unit test compares them.
 */
#pragma once

#include "tuner/problem.h"

struct psim_mapped {
    double bottleneck_ns, most_memory_bytes, most_energy_nj;
};

/** psim_mapping() - @places: [unit_count], the EP of each unit. @p: every cost known. Pure. */
void psim_mapping(const struct tun_problem *p, const uint16_t *places, struct psim_mapped *ret);

/**
 * psim_split_front() - the front of (time, largest memory, largest energy of a board) of all
 * mappings that SPE can say, by psim_mapping()'s formulas
 *
 * A program over boards in their order: labels of the first i units on the first b boards, merged
 * by the componentwise maximum; a label that another is no worse than in all three is dropped.
 * @p: all links equal; EPs in the order of their boards, one or two a board.
 * @may_cut: [unit_count], units that a place may begin with; NULL: any.
 * @ret: [*ret_count][3], owned by the caller. Return: 0, -EINVAL, -ENOMEM.
 */
int psim_split_front(const struct tun_problem *p, const bool *may_cut, double **ret,
                     size_t *ret_count);
