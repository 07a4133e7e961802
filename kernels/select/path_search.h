/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/select/path_search.h - shared by the path searches; for path_*.c only
 */
#pragma once

#include "kernels/select/path.h"

struct krn_path_search {
    const struct krn_path_problem *p; /* borrowed */
    size_t *first; /* [step_count + 1]: the first node of each step and the end; owned */
    size_t *trail; /* [step_count]: the nodes of the best path, owned */
    size_t trail_count;
    double cost; /* of the best path */
    size_t states;
};

/** krn_path_edge() - Return: the cost of the edge to node @to; @from: SIZE_MAX at the start. */
static inline double krn_path_edge(const struct krn_path_problem *p, size_t from, size_t to)
{
    const struct krn_path_node *n = &p->nodes[to];
    double cost = n->cost;

    if (from != SIZE_MAX && p->convert) {
        cost += p->convert[(n->step * p->layout_count + p->nodes[from].leaves) * p->layout_count +
                           n->takes];
    }
    return cost;
}

/** krn_path_after() - Return: the step after node @from, 0 at the start. */
static inline size_t krn_path_after(const struct krn_path_problem *p, size_t from)
{
    return from == SIZE_MAX ? 0 : p->nodes[from].step + p->nodes[from].span;
}

/** krn_path_reverse() - puts @count nodes, found from the end to the start, in order */
static inline void krn_path_reverse(size_t *nodes, size_t count)
{
    for (size_t i = 0; i < count / 2; i++) {
        size_t swap = nodes[i];

        nodes[i] = nodes[count - 1 - i];
        nodes[count - 1 - i] = swap;
    }
}

/** krn_path_learn() - searches by Q-learning with replay, or by random paths only. Return: 0,
 * -ENOMEM. */
int krn_path_learn(struct krn_path_search *s, const struct krn_path_options *o, bool learn);
