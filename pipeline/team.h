/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pipeline/team.h - one team: takes the oldest frame from its rings, runs its units and passes the
 * frame on
 *
 * A team with a batch takes up to so many frames of those that wait for it, the oldest first, runs
 * its units for all of them (team_units.c), and passes them on in the order in which it took them.
 *
 * A team owns a frame from ring pop to ring push, its scratch, its counters and its end of each of
 * its rings. When all its input rings are closed and empty, it closes its output rings and ends, so
 * that a set drains from front to back. When abort is set, it ends at once.
 * Nothing in its loop allocates, logs, or takes a lock.
 */
#pragma once

#include "kernels/common/uneven.h"
#include "pipeline/clocks.h"
#include "pipeline/frame.h"
#include "pipeline/members.h"
#include "pipeline/ring.h"
#include "pipeline/seats.h"
#include "pipeline/trace.h"

/* Shared by the teams of one set. */
struct pl_team_common {
    const struct krn_net *net; /* borrowed */
    struct pl_options options; /* asleep: has not joined the net: no frame comes */
    _Atomic bool abort;        /* writer: loop. Relaxed: read between units, and wakes repeat */
    _Atomic uint32_t exited;   /* writers: each team adds 1 as its last act (release) */
};

struct pl_dispatch_view;

struct pl_team {
    /* set before the thread starts, then constant */
    struct pl_team_common *common; /* borrowed from the set */
    uint16_t stage, ep, width, replica;
    uint16_t first_unit, last_unit;
    uint16_t batch; /* frames that it takes at once, at most; 1 .. PL_BATCH_MAX */
    uint16_t kind;  /* the net's kind of cores whose primitives it runs */
    bool joined;    /* by krn_net_join() */
    uint16_t cpus[PL_CPU_MAX];
    double rate;     /* EP speed x width: estimate before its service rate is measured */
    double due_part; /* of the time until a frame is due, for stages up to this one */
    char name[PL_EP_NAME_MAX + 24];
    size_t input_count, output_count;
    struct pl_ring **inputs;  /* rings owned by the set, one per team of the stage before */
    struct pl_ring **outputs; /* one per team of the next stage; the last stage: its completions */
    struct pl_team *next;     /* teams of the next stage; NULL in the last stage */
    size_t next_count;
    void *scratch;             /* owned */
    double *shares;            /* owned; per unit of the team: expected part of their cost, 0..1 */
    struct krn_uneven *uneven; /* owned; per unit, the leader's own; NULL: it is of one EP */
    struct krn_speed *speeds;  /* owned; [units][width], theirs */
    uint8_t *pieces;           /* owned; per unit: in how many it runs; NULL: none is cut */
    _Atomic double *longest;   /* owned; per unit: part of its time that the longest piece takes, on
                                * average; 0: unknown. Writer: the team; relaxed */

    pthread_t thread;
    bool started;
    _Atomic int ready; /* writer: leader, once (release): 1, or -errno; 0 before. Futex word */
    bool pinned;       /* leader's; readable after ready */

    struct pl_members members;     /* leader's own */
    uint32_t cpu_period, cpu_skip; /* leader's own: CPU time is read for one frame in cpu_period */
    uint64_t mark_ns, mark_ticks;  /* leader's own: both clocks at one earlier time */
    double ns_per_tick;            /* leader's own: the clocks' ratio since then */
    bool slept;                    /* leader's own: since its last record */
    const struct pl_frame *first;  /* leader's own: of those that it computes */
    struct pl_sitter sitter;

    struct pl_trace_entry *trace_entry;    /* loop's own: its ring in a trace; NULL: none */
    _Atomic(struct pl_trace_ring *) trace; /* writer: loop; NULL: not traced (pipeline/trace.h) */
    /* written by the team for each frame; relaxed: for the dispatcher and the watchdog only */
    _Alignas(BASE_CACHE_LINE_BYTES) _Atomic uint64_t progress_ns; /* writer: team */
    _Atomic uint64_t held_since_ns; /* writer: team; 0: holds no frame */
    _Atomic uint32_t held;          /* writer: team; frames that it took then */
    _Atomic bool tracing;           /* writer: team; it may be writing to *trace */

    /* written by the producer that gives it a frame */
    _Alignas(BASE_CACHE_LINE_BYTES) struct pl_wake wake;
    /* frames dispatched to it and not yet passed on. Writers: producers add 1 before the push, the
     * team subtracts 1. Release and acquire make given_ns visible with it. Several writers, since a
     * dispatcher needs the sum over all producers. */
    _Atomic uint32_t pending;
    _Atomic uint64_t given_ns; /* writers: producers; when it was last given a frame. Relaxed */
    _Atomic uint32_t patience; /* writers: producers; see pipeline/dispatch.h. Relaxed */

    struct pl_clocks clocks;
};

/** pl_team_start() - starts the leader thread of a team whose constant fields are set. Return: 0,
 * -EAGAIN, -ENOMEM. Threads: loop. */
int pl_team_start(struct pl_team *t);
/** pl_team_wait_ready() - waits until the leader has set up its team. Return: 0, or the leader's
 * -errno. */
int pl_team_wait_ready(struct pl_team *t);

/**
 * pl_team_give() - gives a frame to the one of @count teams that is expected to finish it first
 * @rings: the calling thread's ring to each team, with room for all frames of the pipeline
 * Threads: the producer end of @rings.
 */
void pl_team_give(struct pl_team *teams, struct pl_ring *const *rings, size_t count,
                  struct pl_frame *f, uint64_t now_ns);

/** pl_team_view() - reads what a dispatcher needs of the team. Threads: any. */
void pl_team_view(const struct pl_team *t, uint64_t now_ns, struct pl_dispatch_view *ret);

/** pl_team_trace() - gives the team a ring in @trace, if there is room for one. @pipeline: as
 * pl_trace_attach() was told. Threads: loop. */
void pl_team_trace(struct pl_team *t, struct pl_trace *trace, const char *ep, uint32_t epoch,
                   uint32_t pipeline);
/** pl_team_untrace() - takes its ring away. @joined: its thread has ended. Threads: loop. Return:
 * true; false: it is writing just now, ask again. A team without a ring has none to take. */
bool pl_team_untrace(struct pl_team *t, bool joined);

/** pl_team_stalled_ns() - Return: time since its last progress, 0 if it has no frame. Threads:
 * any. */
uint64_t pl_team_stalled_ns(const struct pl_team *t, uint64_t now_ns);

/* ---- team_take.c ----
 *
 * It takes the oldest frame of all its rings; without one it spins, then sleeps. With a batch it
 * takes more of those that are there, the oldest first, and waits for more if batch_wait_ns allows
 * it. A frame joins only as long as none of those taken before is expected to miss its deadline for
 * it.
 */

/* The frames that a team computes at once, in the order in which it took them. */
struct pl_held {
    struct pl_frame *frames[PL_BATCH_MAX];
    size_t count;
};

/** pl_team_take() - takes 1 to t->batch frames, sleeping until there is one. Threads: the leader.
 * Return: false when the team has to end. */
bool pl_team_take(struct pl_team *t, struct pl_held *ret);

/* ---- team_seat.c ----
 *
 * Where the pipeline is a client of seats (pipeline/seats.h), a team sits down before it takes
 * frames, gets up between two units for who goes before it, and when no frame waits. Without seats
 * these do nothing. Threads: the leader, but for the first.
 */

/** pl_team_share_cores() - makes the team a sitter of its client; one with a core beyond the seats
 * shares none. Threads: the loop, before it starts. */
void pl_team_share_cores(struct pl_team *t);
/** pl_team_sit() - @f: the frame that it will take. Return: false: the team has to end. */
bool pl_team_sit(struct pl_team *t, const struct pl_frame *f);
/** pl_team_goes_on() - lets others go before its unit @at, if they do. @laps: of its clocks, which
 * were set so far. Return: false: the team has to end. */
bool pl_team_goes_on(struct pl_team *t, size_t at, size_t laps, struct pl_clock_run *clock);
/* A run of a unit of one frame in pieces. */
struct pl_in_pieces {
    struct pl_team *team;
    size_t at, laps; /* as above */
    struct pl_clock_run *clock;
    uint64_t start_ticks, stood_ticks;   /* of the unit; for which it got up meanwhile */
    uint64_t piece_ticks, longest_ticks; /* when the present piece began; of any, so far */
};
/** pl_team_between() - ends a piece, and lets others go before the next one, if they do. @pieces: a
 * struct pl_in_pieces. A team that has to end finishes the unit first, without a seat. */
void pl_team_between(void *pieces);
/** pl_team_rise() - Return: another team wants a core of its. */
bool pl_team_rise(struct pl_team *t);

/* ---- team_units.c ----
 *
 * Of several frames, a unit either computes all before the next unit begins, so that its weights
 * stay in the caches from frame to frame, or a frame goes on through the units that follow, so that
 * its values do. What is larger decides. Either way each unit's time is that of all frames.
 *
 * Where a team of one core takes turns, a unit of one frame may be run in pieces, between which it
 * gets up as between two units.
 */

/** pl_team_cut() - has the team run its units in @pieces, one for each of the net, from 1 on, if it
 * takes turns and its primitives can. @io_scratch_bytes: that it needs. Return: 0, -ENOMEM,
 * -EOPNOTSUPP. Threads: the loop, before it starts. */
int pl_team_cut(struct pl_team *t, const uint8_t *pieces, size_t *io_scratch_bytes);

/**
 * pl_team_run_units() - runs the team's units
 * @mems: [clock->computed], of the frames, at least one     @clock: started by the team; without
 * the time for which it got up
 * Sets the laps of the team's clocks if clock->timed. Threads: the leader. Return: false if the
 * pipeline is being freed and the frames are incomplete.
 */
bool pl_team_run_units(struct pl_team *t, const struct krn_mem *const *mems,
                       struct pl_clock_run *clock);
