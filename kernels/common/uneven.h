/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/common/uneven.h - work divided among cores of unequal speed
 *
 * A team of unequal cores gives its primitives more parts than it has members, P parts in place of
 * the width (krn_uneven_width()). Of these member m first has a run of n_m neighbouring ones, with
 *     sum_m n_m = P and the least max_m n_m / v_m,
 * the time until all are done. Its speed v_m is what it did of the same unit before:
 *     v_m = D_m / T_m;  after each krn_parallel()  D_m <- 7/8 D_m + d / P,  T_m <- 7/8 T_m + t
 * for d parts done in the time t. Before that, and of a member that did nothing yet, the speed of
 * its EP decides. One that was given nothing is taken for 2 % faster each time, so that it is
 * measured again; one that came too late for what it was given, for one that did a fourth of a
 * part.
 *
 * While they run, the division is mended: a member takes most of a run that is not short at once,
 * then part after part, and when it has none left, the last part of another member's run if it will
 * have finished it before the other would have come to it. So a core that falls behind holds the
 * others by one part. Dividing rows by speed is Pipe-it's baseline (figures 3 and 5); taking over
 * of work is SANI's (OSDI'26) and AsyMo's.
 *
 * All members have to come to the end of a unit, so one that stands still for a while holds even
 * those that left it nothing to do. So the leader alone is tried, too, and runs a unit where it is
 * faster: first after 16 times, then after twice as many each time that changes nothing, up to
 * 1024.
 *
 * The team's leader owns all of it; members write their own lines during krn_parallel().
 */
#pragma once

#include <stdatomic.h>

#include "base/base.h"

#define KRN_UNEVEN_MAX 64u /* members of a team of unequal cores */

struct krn_speed {
    double hint;     /* relative speed of its EP, > 0: until it is measured */
    double done, ns; /* D and T; 0: not measured */
};

/* What a team learned of one unit. */
struct krn_uneven {
    size_t members;
    struct krn_speed *speeds; /* [members], borrowed */
    double ns[2];             /* that it takes together, and the leader alone; 0: unknown */
    bool alone;               /* the leader alone is faster */
    uint32_t left, pause;     /* times until the other way is tried again; between two trials */
};

/** krn_uneven_parts() - Return: into how many parts a team of @members divides its work: a power of
 * two, at least four for each. */
size_t krn_uneven_parts(size_t members);

/** krn_uneven_width() - Return: the parts for the unit that @u has the speeds of: as many as
 * members
 * where these are about equal, so that they divide it as other teams do; else
 * krn_uneven_parts(). */
size_t krn_uneven_width(const struct krn_uneven *u);

/** krn_uneven_alone() - Return: the leader is to run the unit alone, with a width of 1, this time;
 * krn_uneven_took() tells what the unit took then, and chooses for the next time. */
bool krn_uneven_alone(const struct krn_uneven *u);
void krn_uneven_took(struct krn_uneven *u, double ns);

/** krn_parallel_uneven() - from now on krn_parallel() divides parts by the speeds of the caller's
 * team
 * @team: borrowed until the next call, learns; NULL, the default: all members are alike
 * Threads: the team's leader. */
void krn_parallel_uneven(struct krn_uneven *team);

/** krn_uneven_self() - tells which member of its team the calling thread is. Threads: each member,
 * once; without it the one whose part it is given counts. */
void krn_uneven_self(size_t i);

/* ---- one krn_parallel(), for parallel.c ---- */

/** krn_uneven_team() - Return: of the calling leader; NULL: all members are alike. */
struct krn_uneven *krn_uneven_team(void);

/** krn_uneven_take() - Return: the end of the parts that the calling member has to run now, from
 * @part on, and takes all of them; 0: it is in no team of unequal cores. */
size_t krn_uneven_take(size_t part, size_t parts);

struct krn_uneven_run {
    _Alignas(BASE_CACHE_LINE_BYTES) _Atomic uint64_t left; /* begin and end of its run, 32 bits
                                                              each; writers: members */
    bool given;                                            /* it had parts */
    size_t done;                                           /* parts; writer: the member */
    uint64_t ns;                                           /* that it took for them */
};
struct krn_uneven_job {
    struct krn_uneven *team;
    void (*fn)(void *arg, size_t part);
    void *arg;
    size_t parts;
    double speed[KRN_UNEVEN_MAX]; /* shares of the work per ns, or relative */
    struct krn_uneven_run runs[KRN_UNEVEN_MAX];
};

/** krn_uneven_begin() - divides the parts. Threads: the leader. */
void krn_uneven_begin(struct krn_uneven *team, size_t parts, void (*fn)(void *arg, size_t part),
                      void *arg, struct krn_uneven_job *ret);
/** krn_uneven_member() - @job: a struct krn_uneven_job; runs the parts of member @i, and others.
 * Threads: each member. */
void krn_uneven_member(void *job, size_t i);
/** krn_uneven_end() - learns from what the members did. Threads: the leader. */
void krn_uneven_end(struct krn_uneven_job *job);
