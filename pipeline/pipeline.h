/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pipeline/pipeline.h - a model served by a plan: frames in, frames out in admission order, plans
 * switched under load
 *
 * One thread (the loop thread) owns a pipeline and calls everything here except inside notify().
 * Teams own a frame from ring pop to ring push. Invariant: every admitted frame is collected
 * exactly once, in admission order, whatever plans were switched meanwhile. A switch makes before
 * it breaks: the new plan's teams wait, admission moves over at a frame border (new epoch), the old
 * teams run dry and are joined and freed by pl_reap().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"
#include "pipeline/plan.h"
#include "pipeline/stats.h"

enum pl_frame_status {
    PL_FRAME_OK,
    PL_FRAME_EXPIRED, /* its deadline passed before the next stage would have started it */
    PL_FRAME_CANCELLED,
};

#define PL_FRAME_IO_MAX 16u

struct pl_frame {
    /* set by the submitter between pl_frame_get() and pl_submit() */
    uint64_t tag;                        /* the submitter's own */
    void *owner;                         /* the submitter's own */
    const void *inputs[PL_FRAME_IO_MAX]; /* one per model input, borrowed until collected; unused
                                            with has_image */
    void *outputs[PL_FRAME_IO_MAX];      /* one per model output, borrowed until collected */
    bool has_image; /* input 0 comes from image: converted, or read as it is, in unit 0 */
    struct krn_image image;
    uint64_t deadline_ns; /* monotonic; 0: none */
    /* set by the pipeline */
    enum pl_frame_status status;
    uint32_t epoch;
    uint64_t admitted_ns, started_ns,
        done_ns;         /* submitted; taken by stage 0; last stage finished */
    _Atomic bool cancel; /* loop sets it: hand-offs then skip the computing */
    struct pl_frame_private *private;
};

struct pl_options {
    size_t frames; /* frame pool: most frames in flight; 0: enough for any plan on these cores (2 a
                      core + 2, more where cores are unequal) */
    uint64_t spin_ns;          /* how long a team spins for work before it sleeps; 0 allowed */
    void (*notify)(void *arg); /* called by a team when a frame can be collected or a set ran dry;
                                  must only wake the loop */
    void *notify_arg;
    bool no_pin;    /* for machines that forbid it; status says so */
    bool no_clocks; /* no per-unit clocks: only bench/clocks turns them off */
};

struct pl_pipeline;

/**
 * pl_new() - builds the frame pool and the first plan's teams
 * @net: borrowed until pl_free(). @eps: copied. @plan: valid for net's unit count (pl_plan_check).
 * Return: 0, -EINVAL, -ENOMEM, -EAGAIN (no threads). Failure to pin is not an error: the team runs
 * unpinned and says so.
 */
int pl_new(const struct krn_net *net, const struct pl_ep_set *eps, const struct pl_plan *plan,
           const struct pl_options *options, struct pl_pipeline **ret);

/** pl_free() - cancels what is in flight, joins all teams, frees everything, frames too, whoever
 * has them. Blocks at most one unit's time. Takes NULL. Return: NULL. */
struct pl_pipeline *pl_free(struct pl_pipeline *p);

/** pl_frame_get() - a frame from the pool with its fields cleared, or NULL when all are in flight.
 */
struct pl_frame *pl_frame_get(struct pl_pipeline *p);
/** pl_frame_put() - gives back a frame that was collected or never submitted. */
void pl_frame_put(struct pl_pipeline *p, struct pl_frame *f);

/** pl_submit() - admits a frame. Return: 0, or PL_E_FULL (stage 0 has no room: try after the next
 * collect). */
enum { PL_E_FULL = 1 };
int pl_submit(struct pl_pipeline *p, struct pl_frame *f);

/** pl_collect() - the next frame in admission order if it is finished, else NULL. The caller gives
 * it back. After notify() call it until it returns NULL (notifications coalesce): the NULL is what
 * makes sure that a later completion notifies again, see docs/pipeline.md. */
struct pl_frame *pl_collect(struct pl_pipeline *p);

/**
 * pl_switch() - serve by another plan from the next frame on
 * Only one switch at a time may be running dry. Return: 0; PL_E_BUSY while an old set is still
 * running dry; -EINVAL, -ENOMEM, -EAGAIN: nothing changed, the old plan serves on.
 */
enum { PL_E_BUSY = 2 };
int pl_switch(struct pl_pipeline *p, const struct pl_plan *plan);

/** pl_set_eps() - the machine changed: plans given from now on refer to these; copied. The plan
 * that serves keeps its own until pl_switch(). Return: 0, -EINVAL for more than PL_EP_MAX. */
int pl_set_eps(struct pl_pipeline *p, const struct pl_ep_set *eps);

/** pl_reap() - frees an old set that has run dry, if there is one; called after notify(). Never
 * blocks for long. */
void pl_reap(struct pl_pipeline *p);
/** pl_switching() - an old set is still running dry. */
bool pl_switching(const struct pl_pipeline *p);

const struct pl_plan *pl_current_plan(const struct pl_pipeline *p);
/** pl_current_eps() - what pl_current_plan() refers to. Both borrowed until pl_switch(). */
const struct pl_ep_set *pl_current_eps(const struct pl_pipeline *p);
uint32_t pl_epoch(const struct pl_pipeline *p);
size_t pl_in_flight(const struct pl_pipeline *p);
size_t pl_frame_count(const struct pl_pipeline *p);
/** pl_arena_bytes() - of the arenas that frames were ever in. */
size_t pl_arena_bytes(const struct pl_pipeline *p);
/** pl_depth() - frames that keep the present plan busy: stages + teams + 1 (what a client's credits
 * should reach); a stage of unequal teams counts its faster ones as often as they are faster, since
 * answers in order wait for the slowest. */
size_t pl_depth(const struct pl_pipeline *p);

/** pl_team_count(), pl_team_stats(), pl_unit_stats() - consistent samples of the present plan;
 * never disturb a team. */
size_t pl_team_count(const struct pl_pipeline *p);
void pl_team_stats(const struct pl_pipeline *p, size_t team, struct pl_team_stats *ret);
void pl_unit_stats(const struct pl_pipeline *p, size_t unit, struct pl_unit_stats *ret);
/** pl_team_unit_stats() - one unit on one team: what a cost table is made of where the teams of a
 * stage are of different kinds. Return: false if the team does not run @unit (@ret is then empty).
 */
bool pl_team_unit_stats(const struct pl_pipeline *p, size_t team, size_t unit,
                        struct pl_unit_stats *ret);

/** pl_stalled_ns() - longest time any team that holds a frame or has one waiting made no progress;
 * 0 when all idle. */
uint64_t pl_stalled_ns(const struct pl_pipeline *p, uint64_t now_ns);
