/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/path.h - which row for each op, as a shortest path: the problem and the searches for it
 *
 * A node is one row at one step (an op), or, where its span is 2, at that step and the next. Behind
 * a node of step s come the nodes of step s + span. Going from one node to the next costs what the
 * second costs, and, where the form of values that the first leaves is not the one that the second
 * takes, the conversion at that step. A path from step 0 past the last is a choice. Pure data and
 * pure functions: no clock, no threads, chance only from the seed.
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
    size_t takes;  /* < form_count: the form of the values that it reads ... */
    size_t leaves; /* ... and of those that it writes */
    double cost;   /* what is minimised: >= 0, finite */
    double bytes;  /* what krn_path_front() weighs against it: >= 0, finite */
};

struct krn_path_problem {
    size_t step_count, node_count, form_count;
    const struct krn_path_node *nodes; /* borrowed */
    /* [step_count][form_count][form_count]: cost of turning what comes in at a step from one form
     * into another, 0 where they are the same; borrowed; NULL: conversions cost nothing. */
    const double *convert;
};

enum krn_path_algorithm {
    KRN_PATH_DIJKSTRA, /* the shortest path */
    KRN_PATH_A_STAR,   /* the shortest path: what remains is at least the cheapest next edge */
    KRN_PATH_Q_LEARNING,
    KRN_PATH_DIRECT_PLUS, /* greedy: the cheapest next edge, conversion included */
    KRN_PATH_DIRECT,      /* greedy: the cheapest next node, conversions not looked at */
    KRN_PATH_RANDOM,      /* the best of as many random paths as Q-learning has episodes */
    KRN_PATH_ALGORITHM_COUNT
};
/** krn_path_name() - "dijkstra", "a-star", "q-learning", "ds+", "ds", "rs". */
const char *krn_path_name(enum krn_path_algorithm a);
/** krn_path_find() - Return: false: there is none of that name. */
bool krn_path_find(const char *name, enum krn_path_algorithm *ret);

struct krn_path_options {
    enum krn_path_algorithm algorithm;
    size_t episodes; /* Q_LEARNING, RANDOM; 0: 1000 */
    uint64_t seed;
};

struct krn_path {
    size_t count;  /* of nodes */
    size_t *nodes; /* indices in order of steps, owned */
    double cost;   /* with conversions */
    double bytes;  /* sum over the nodes */
    size_t states; /* (node, next node) pairs that the search looked at */
};
#define KRN_PATH_NULL ((struct krn_path){0})

/** krn_path_check() - sorted, in range, every figure sane, a path exists. Return: 0, -EINVAL. */
int krn_path_check(const struct krn_path_problem *p);

/** krn_path_solve() - Return: 0, -EINVAL (krn_path_check()), -ENOMEM. */
int krn_path_solve(const struct krn_path_problem *p, const struct krn_path_options *o,
                   struct krn_path *ret);
void krn_path_deinit(struct krn_path *path);

/**
 * krn_path_front() - the paths that are best in cost, bytes or both, the cheapest first
 * @max: at most so many. Among more the cheapest and the smallest stay and the others are spread.
 * @bytes_max: none above; 0: no bound. @ret: [@max], each to be given back by krn_path_deinit();
 * the cheapest first. Bytes nearer to each other than a 1024th of the largest sum are taken for
 * equal; the cheapest path of all is always exact. Return: 0, -EINVAL, -ENOMEM, -ENOSPC (no path
 * stays below @bytes_max).
 */
int krn_path_front(const struct krn_path_problem *p, double bytes_max, size_t max,
                   struct krn_path *ret, size_t *ret_count);
