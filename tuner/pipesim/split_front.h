/* SPDX-License-Identifier: Apache-2.0 */
/** tuner/pipesim/split_front.h - the exact front of split-point mappings over boards */
#pragma once

#include "tuner/problem.h"

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
