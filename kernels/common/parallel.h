/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/common/parallel.h - work shared among the threads of a team
 */
#pragma once

#include <pthreadpool.h>
#include <stdbool.h>
#include <stddef.h>

/* The thread pool and scratch of one team; borrowed for each run. */
struct krn_exec {
    pthreadpool_t pool; /* NULL: the caller's thread alone */
    size_t width;  /* members; of a team of unequal cores krn_uneven_parts(); without a pool the
                           pieces, one after the other: krn_parallel_between() */
    void *scratch; /* krn_net_scratch_bytes(net, width), 64-byte aligned */
    size_t kind;   /* kind of cores whose primitives run: 0 .. krn_net_kinds() - 1 */
    /* The range of ops that this team runs for each frame, in one or several consecutive calls of
     * krn_net_run_ops(). A value may stay in NCHW from one call to the next. {0, 0}: calls are
     * independent. */
    size_t first_op, last_op;
};

/**
 * krn_parallel() - runs fn(arg, part) for part = 0 .. parts - 1 on a team
 *
 * Returns when all parts are done. Each part runs exactly once. With parts == width, each member
 * usually gets one. A part may use its own share of the scratch, the part-th.
 * Threads: the team's leader. Never allocates.
 */
void krn_parallel(pthreadpool_t pool, size_t parts, void (*fn)(void *arg, size_t part), void *arg);

/**
 * krn_parallel_yield() - sets how the caller's team waits between two krn_parallel()
 * @yield: true: members give up their cores; false, the default: they spin for some milliseconds
 *
 * Spinning is faster on cores that the team has to itself, and far slower on shared cores.
 * Threads: a team's leader, about its own team.
 */
void krn_parallel_yield(bool yield);

/* What is called between pieces; fn NULL: nothing. */
struct krn_between {
    void (*fn)(void *arg); /* may wait, and leaves the net and its frames alone */
    void *arg;
};
/**
 * krn_parallel_between() - calls @b before each part that the calling thread runs alone
 *
 * So a thread runs ops in n pieces: with krn_exec.width = n and no pool it runs the n parts of each
 * krn_parallel() one after the other, and may let others have the core between two of them.
 * Return: what was called before. Threads: a team of one core, about itself.
 */
struct krn_between krn_parallel_between(struct krn_between b);
#define KRN_BETWEEN_NULL ((struct krn_between){NULL, NULL})

/* The indices from begin up to, but not including, end. */
struct krn_range {
    size_t begin, end;
};

/**
 * krn_share() - divides @n items among @parts
 * @step: every share begins at a multiple of @step
 *
 * Return: the items of part @part. Shares differ by at most one step and may be empty.
 * Threads: any.
 */
struct krn_range krn_share(size_t n, size_t step, size_t part, size_t parts);

/** krn_parts_end() - takes all neighbouring parts that the calling member has to run now
 * (kernels/common/uneven.h), of @parts from @part on
 *
 * For the fn of krn_parallel(), which has to do their work, too; it may use the scratch of all of
 * them. Return: the end of these parts; @part + 1 in a team of equal cores.
 */
size_t krn_parts_end(size_t part, size_t parts);

/** krn_share_run() - as krn_share(), of all parts that the calling member has to run now */
struct krn_range krn_share_run(size_t n, size_t step, size_t part, size_t parts);

/** krn_by_panels() - Return: a team that divides its work in @width parts shares the @panels of
 * output channels, as there are few @tiles of pixels for its members. Threads: as
 * krn_uneven_members(). */
bool krn_by_panels(size_t tiles, size_t panels, size_t width);
