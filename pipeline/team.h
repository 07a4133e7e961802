/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pipeline/team.h - one team: takes the oldest frame from its rings, runs its units, hands it on
 *
 * A team owns a frame from ring pop to ring push, its scratch, its counters and its end of every
 * ring it is on. It ends by itself when all its input rings are closed and empty, and closes its
 * output rings then, so that a set runs dry from front to back; or at once when abort is set.
 * Nothing in its loop allocates, logs, or takes a lock.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "pipeline/clocks.h"
#include "pipeline/members.h"
#include "pipeline/pipeline.h"
#include "pipeline/ring.h"
#include "pipeline/wake.h"

/* What the teams of one set share. */
struct pl_team_common {
    const struct krn_net *net; /* borrowed */
    uint64_t spin_ns;
    bool no_pin, no_clocks;
    void (*notify)(void *arg); /* may be NULL */
    void *notify_arg;
    _Atomic bool abort;      /* writer: loop. Relaxed: looked at between units, and wakes repeat */
    _Atomic uint32_t exited; /* writers: each team adds 1 as its last act (release) */
};

struct pl_team {
    /* set before the thread starts, then constant */
    struct pl_team_common *common; /* borrowed from the set */
    uint16_t stage, ep, width, replica;
    uint16_t first_unit, last_unit;
    uint16_t kind; /* of the net: whose rows it runs */
    bool joined;   /* by krn_net_join() */
    uint16_t cpus[PL_CPU_MAX];
    double rate; /* EP speed x width: prior of its service rate */
    char name[PL_EP_NAME_MAX + 24];
    size_t input_count, output_count;
    struct pl_ring **inputs;  /* rings owned by the set, one per team of the stage before */
    struct pl_ring **outputs; /* one per team of the next stage; the last stage: its completions */
    struct pl_team **next;    /* teams of the next stage; NULL in the last stage */
    size_t next_count;
    void *scratch;  /* owned */
    double *shares; /* owned; per unit of the team: what it is expected to cost, in any one unit */

    pthread_t thread;
    bool started;
    _Atomic int ready; /* writer: leader, once (release): 1, or -errno; 0 before. Futex word */
    bool pinned;       /* leader's; readable after ready */

    struct pl_members members;     /* leader's own */
    uint32_t cpu_period, cpu_skip; /* leader's own: of how many frames one's CPU time is read */
    uint64_t mark_ns, mark_ticks;  /* leader's own: both clocks at one earlier moment */
    double ns_per_tick;            /* leader's own: what they say since */

    /* written by the team for each frame; relaxed: figures for the dealer and the watchdog */
    _Alignas(BASE_CACHE_LINE_BYTES) _Atomic uint64_t progress_ns; /* writer: team */
    _Atomic uint64_t held_since_ns; /* writer: team; 0: holds no frame */

    /* written by whoever gives it a frame */
    _Alignas(BASE_CACHE_LINE_BYTES) struct pl_wake wake;
    /* frames given and not yet passed on. Writers: producers add 1 before the push, the team
     * subtracts 1; release and acquire so that given_ns is seen with it. A dealer needs the sum
     * over all producers, hence no single writer. */
    _Atomic uint32_t pending;
    _Atomic uint64_t given_ns; /* writers: producers; when it was last given a frame. Relaxed */

    struct pl_clocks clocks;
};

/** pl_team_start() - starts the leader thread of a team whose constant part is filled in. Return:
 * 0, -EAGAIN, -ENOMEM. Threads: loop. */
int pl_team_start(struct pl_team *t);
/** pl_team_wait_ready() - waits until the leader has set up its team. Return: 0 or what failed. */
int pl_team_wait_ready(struct pl_team *t);

/**
 * pl_team_give() - hands a frame to one of @count teams: where it is expected to finish first
 * @rings: the calling thread's ring to each of them, with room for every frame there is
 * Threads: the producer end of @rings.
 */
void pl_team_give(struct pl_team *const *teams, struct pl_ring *const *rings, size_t count,
                  struct pl_frame *f, uint64_t now_ns);

/** pl_team_view() - the team as a dealer sees it. Threads: any. */
struct pl_deal_view;
void pl_team_view(const struct pl_team *t, uint64_t now_ns, struct pl_deal_view *ret);

/** pl_team_stalled_ns() - time since it made progress while it has a frame, else 0. Threads: any.
 */
uint64_t pl_team_stalled_ns(const struct pl_team *t, uint64_t now_ns);
