/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/common/uneven.h - work divided among cores of unequal speed
 *
 * A team of unequal cores gives its primitives more parts than it has members. Of these P parts
 * member m first has a run of n_m neighbouring ones, with
 *     sum_m n_m = P and the least max_m n_m / v_m,
 * the time until all are done. Its speed v_m is what it did in the same krn_parallel() of the unit
 * before:
 *     v_m = D_m / T_m;  after each time  D_m <- 7/8 D_m + d,  T_m <- 7/8 T_m + t
 * for a share d of the work, done at the time t after its begin, so that who comes late gets less;
 * t counts as at most twice what was expected, else a core taken away for a millisecond would get
 * less for the next dozen frames. Before that, and of a member that did nothing yet, the speed of
 * its EP decides. One that was given nothing is taken for 2 % faster each time, so that it is
 * measured again; one that came too late for what it was given, for one that did a fourth of a
 * part. Where the leader is given all, nobody is waited for.
 *
 * While they run, the division is mended: a member takes most of a run that is not short at once,
 * then half of what is left, and when it has none left, the last part of another member's run if it
 * will have finished it before the other would have come to it. So a core that falls behind holds
 * the others by one part. Dividing rows by speed is Pipe-it's baseline (figures 3 and 5); taking
 * over of work is SANI's (OSDI'26) and AsyMo's.
 *
 * How many parts are best depends on the primitives, and all members have to come to the end of a
 * unit, so one that stands still for a while holds even those that left it nothing to do. So a unit
 * is run in several ways (enum krn_uneven_way), each with the speeds learned in it: the present one
 * for a pause, then another for KRN_UNEVEN_TRIAL times, which becomes the present one if it is
 * faster by 5 %. When all were tried in vain, the pause is four times as long,
 * up to 512 times.
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

enum krn_uneven_way {
    KRN_UNEVEN_FINE,                      /* krn_uneven_parts() */
    KRN_UNEVEN_COARSE,                    /* half as many */
    KRN_UNEVEN_EVEN,                      /* as many as members, as other teams do */
    KRN_UNEVEN_SPEEDS,                    /* so many ways have speeds */
    KRN_UNEVEN_ALONE = KRN_UNEVEN_SPEEDS, /* the leader runs it */
    KRN_UNEVEN_WAYS,
};
#define KRN_UNEVEN_TRIAL 3u
#define KRN_UNEVEN_CALLS 4u /* krn_parallel() of a unit that have speeds of their own */
#define KRN_UNEVEN_EACH (KRN_UNEVEN_SPEEDS * KRN_UNEVEN_CALLS) /* speeds of a member in a unit */

/* What a team learned of one unit. */
struct krn_uneven {
    size_t members;
    struct krn_speed *speeds;   /* [KRN_UNEVEN_SPEEDS][KRN_UNEVEN_CALLS][members], borrowed */
    uint32_t calls;             /* of krn_parallel() this time */
    double ns[KRN_UNEVEN_WAYS]; /* what it takes each way; 0: unknown */
    uint8_t way, tried,
        next;             /* enum krn_uneven_way: the present one, that of now, the last tried */
    uint32_t left, pause; /* times until the next trial, or of this one; between two trials */
};

/** krn_uneven_parts() - Return: into how many parts a team of @members divides its work at most: a
 * power of two, at least four for each. */
size_t krn_uneven_parts(size_t members);

/** krn_uneven_first() - chooses the first way, by the speeds' hints: equal parts where these take
 * at most 15 % longer than the best division. */
void krn_uneven_first(struct krn_uneven *u);
/** krn_uneven_width() - Return: into how many parts the unit is to be divided this time; 1: the
 * leader runs it. krn_uneven_took() tells what it took then, and chooses for the next time. */
size_t krn_uneven_width(const struct krn_uneven *u);
void krn_uneven_took(struct krn_uneven *u, double ns);

/** krn_parallel_uneven() - from now on krn_parallel() divides parts by the speeds of the caller's
 * team
 * @team: borrowed until the next call, learns; NULL, the default: all members are alike
 * Threads: the team's leader. */
void krn_parallel_uneven(struct krn_uneven *team);

/** krn_uneven_members() - Return: how many run at once where work is divided into @width parts: the
 * members if the caller's team is unequal, else @width. What recomputes at the borders of parts
 * decides by this: neighbouring parts are computed as one. Threads: the team's leader, a member in
 * its part, and who asks for the scratch of such a team. */
size_t krn_uneven_members(size_t width);

/** krn_uneven_self() - tells which member of its team the calling thread is. Threads: each member,
 * once; without it the one whose part it is given counts. */
void krn_uneven_self(size_t i);

/* ---- one krn_parallel(), for parallel.c ---- */

/** krn_uneven_team() - Return: of the calling leader; NULL: all members are alike. */
struct krn_uneven *krn_uneven_team(void);

/** krn_uneven_take() - Return: the end of the parts that the calling member has to run now, from
 * @part on, and takes all of them; 0: it is in no team of unequal cores. */
size_t krn_uneven_take(size_t part, size_t parts);
/** krn_uneven_is() - says what the parts taken last are of the whole work, which may come in few
 * steps */
void krn_uneven_is(double share);

struct krn_uneven_run {
    _Alignas(BASE_CACHE_LINE_BYTES) _Atomic uint64_t left; /* begin and end of its run, 32 bits
                                                              each; writers: members */
    bool given;                                            /* it had parts */
    size_t done;                                           /* parts; writer: the member */
    double share;                                          /* of the work; writer: the member */
    uint64_t ns;                                           /* until it had done them */
};
struct krn_uneven_job {
    struct krn_uneven *team;
    struct krn_speed *speeds; /* of the way and call */
    uint64_t start_ns;
    void (*fn)(void *arg, size_t part);
    void *arg;
    size_t parts;
    double speed[KRN_UNEVEN_MAX]; /* shares of the work per ns, or relative */
    struct krn_uneven_run runs[KRN_UNEVEN_MAX];
};

/** krn_uneven_begin() - divides the parts. Return: others than the leader have some. Threads: the
 * leader. */
bool krn_uneven_begin(struct krn_uneven *team, size_t parts, void (*fn)(void *arg, size_t part),
                      void *arg, struct krn_uneven_job *ret);
/** krn_uneven_member() - @job: a struct krn_uneven_job; runs the parts of member @i, and others.
 * Threads: each member. */
void krn_uneven_member(void *job, size_t i);
/** krn_uneven_end() - learns from what the members did. Threads: the leader. */
void krn_uneven_end(struct krn_uneven_job *job);
