/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/select/path.h - the choice of primitives as a shortest path: the problem, and searches
 * for it
 *
 * A node is one primitive at one step (an op), or, with span 2, at that step and the next. The
 * successors of a node of step s are the nodes of step s + span. An edge costs the cost of its
 * second node, plus the conversion at that step if the first node's output layout differs from the
 * second one's input layout. A path from step 0 past the last step is a choice. Pure data and pure
 * functions: no clock, no threads, randomness only from the seed.
 *
 * Source of the problem and of the searches: M. de Prado et al., "Automated Design
 * Space Exploration for optimised Deployment of DNN on Arm Cortex-A CPUs" (QS-DNN), sections IV, V
 * and VI-D.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct krn_path_node {
    size_t step;   /* < step_count; nodes are sorted by it */
    size_t span;   /* 1 or 2; step + span <= step_count */
    size_t takes;  /* < layout_count: layout of its input ... */
    size_t leaves; /* ... and of its output */
    double cost;   /* minimised; >= 0, finite */
    double bytes;  /* traded against cost by krn_path_front(); >= 0, finite */
};

struct krn_path_problem {
    size_t step_count, node_count, layout_count;
    const struct krn_path_node *nodes; /* borrowed */
    /* [step_count][layout_count][layout_count]: cost of converting a step's input from one layout
     * to another, 0 if they are equal; borrowed; NULL: conversions are free. */
    const double *convert;
};

enum krn_path_algorithm {
    KRN_PATH_DIJKSTRA, /* the shortest path */
    KRN_PATH_A_STAR,   /* the shortest path; lower bound of the rest: the cheapest next edge */
    KRN_PATH_Q_LEARNING,
    KRN_PATH_DIRECT_PLUS, /* greedy: the cheapest next edge, conversion included */
    KRN_PATH_DIRECT,      /* greedy: the cheapest next node, without conversions */
    KRN_PATH_RANDOM,      /* the best of as many random paths as episodes */
    KRN_PATH_ALGORITHM_COUNT
};
/** krn_path_name() - "dijkstra", "a-star", "q-learning", "ds+", "ds", "rs". */
const char *krn_path_name(enum krn_path_algorithm a);
/** krn_path_find() - looks up an algorithm by name. Return: false if there is none. */
bool krn_path_find(const char *name, enum krn_path_algorithm *ret);

struct krn_path_options {
    enum krn_path_algorithm algorithm;
    size_t episodes; /* Q_LEARNING, RANDOM; 0: 1000 */
    uint64_t seed;
    /* Q_LEARNING, RANDOM: called with each episode's path, whose costs are the learning curve of
     * section V-B; NULL: nobody asks */
    void (*episode)(void *arg, const size_t *nodes, size_t count, double cost);
    void *arg;
};

struct krn_path {
    size_t count;  /* of nodes */
    size_t *nodes; /* indices in order of steps, owned */
    double cost;   /* with conversions */
    double bytes;  /* sum over the nodes */
    size_t states; /* (node, next node) pairs that the search visited */
};
#define KRN_PATH_NULL ((struct krn_path){0})

/** krn_path_check() - checks that nodes are sorted, all numbers are in range, and a path exists.
 * Return: 0, -EINVAL. */
int krn_path_check(const struct krn_path_problem *p);

/** krn_path_solve() - Return: 0, -EINVAL (krn_path_check() failed), -ENOMEM. */
int krn_path_solve(const struct krn_path_problem *p, const struct krn_path_options *o,
                   struct krn_path *ret);
void krn_path_deinit(struct krn_path *path);

/**
 * krn_path_doubt() - what a shortest path may lose because costs are uncertain
 * @sigma: [node_count], standard uncertainty of each node's cost. @ret_lose: [step_count], >= 0:
 * krn_figure_gain() of the node at the step that may most likely be the better one; a node of span
 * 2 counts by halves. Their sum is what knowing all costs would gain on average, roughly.
 * Return: 0, -ENOMEM.
 */
int krn_path_doubt(const struct krn_path_problem *p, const struct krn_path *path,
                   const double *sigma, double *ret_lose);

/**
 * krn_path_front() - finds the Pareto-optimal paths in cost and bytes, the cheapest first
 * @max: most paths to return; if there are more, the cheapest, the smallest and an even spread
 * between them.
 * @bytes_max: limit of a path; 0: none. @ret: [@max], free each by krn_path_deinit(). Byte sums
 * that differ by less than a 1024th of the largest, or of the limit, count as equal; the cheapest
 * path of all is always exact. Return: 0, -EINVAL, -ENOMEM, -ENOSPC (no path stays within
 * @bytes_max).
 */
int krn_path_front(const struct krn_path_problem *p, double bytes_max, size_t max,
                   struct krn_path *ret, size_t *ret_count);
