/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pipeline/pipeline.h - serves a model by a plan: frames in, answers out in admission order; plans
 * can be switched under load
 *
 * One thread (the loop thread) owns a pipeline. It calls every function here, but none from inside
 * notify(). Teams own a frame from ring pop to ring push. Invariant: every admitted frame is
 * collected exactly once, in admission order, whichever plans are switched meanwhile. A switch is
 * make before break: the new plan's teams are started and wait; the next frame admitted goes to
 * them (new epoch); the old teams drain, and pl_reap() joins and frees them.
 */
#pragma once

#include "kernels/kernels.h"
#include "pipeline/frame.h"
#include "pipeline/plan.h"
#include "pipeline/stats.h"
#include "pipeline/trace.h"

struct pl_pipeline;

/**
 * pl_new() - builds the frame pool and the first plan's teams
 * @net: borrowed until pl_free(). @eps: copied. @plan: valid for net's unit count (pl_plan_check).
 *
 * A team that cannot be pinned runs unpinned, and its statistics say so.
 * Return: 0, -EINVAL, -ENOMEM, -EAGAIN (no threads).
 */
int pl_new(const struct krn_net *net, const struct pl_ep_set *eps, const struct pl_plan *plan,
           const struct pl_options *options, struct pl_pipeline **ret);

/** pl_free() - cancels frames in flight, joins all teams and frees everything, all frames included.
 * Blocks for at most the time of one unit, for all frames of a batch. Accepts NULL. Return: NULL.
 */
struct pl_pipeline *pl_free(struct pl_pipeline *p);

/** pl_frame_get() - Return: a frame from the pool with cleared fields, or NULL if all that the
 * present plan may have are in flight. */
struct pl_frame *pl_frame_get(struct pl_pipeline *p);
/** pl_frame_put() - returns a frame to the pool; it was collected or never submitted. */
void pl_frame_put(struct pl_pipeline *p, struct pl_frame *f);

/** pl_submit() - admits a frame. Return: 0, or PL_E_FULL (stage 0 has no room: retry after the next
 * collect), or PL_E_ASLEEP. */
enum { PL_E_FULL = 1, PL_E_ASLEEP = 3 };
int pl_submit(struct pl_pipeline *p, struct pl_frame *f);

/** pl_collect() - Return: the next frame in admission order if it is finished, else NULL. The
 * caller returns it by pl_frame_put(). After notify(), call this until it returns NULL:
 * notifications coalesce, and a later completion notifies again only after the NULL
 * (docs/pipeline.md). */
struct pl_frame *pl_collect(struct pl_pipeline *p);

/**
 * pl_switch() - switches to another plan from the next frame on
 * One switch at a time. Return: 0; PL_E_BUSY: the previous plan is still draining; -EINVAL,
 * -ENOMEM, -EAGAIN: nothing changed, the present plan goes on serving.
 */
enum { PL_E_BUSY = 2 };
int pl_switch(struct pl_pipeline *p, const struct pl_plan *plan);

/**
 * pl_cut() - sets in how many pieces units are run from the next pl_switch() on
 * @pieces: [units], copied; each 1 (the default) .. PL_PIECES_MAX
 *
 * Between two pieces a team of one core gets up for others, as between two units
 * (pipeline/seats.h). What cannot be cut (krn_net_pieces()), several frames at once, wider teams,
 * and pipelines without seats run whole units. Return: 0, -EINVAL, -ENOMEM; then nothing changed.
 */
#define PL_PIECES_MAX 16u
int pl_cut(struct pl_pipeline *p, const uint8_t *pieces);
/** pl_pieces() - Return: in how many pieces the unit may be run from the next pl_switch() on. */
size_t pl_pieces(const struct pl_pipeline *p, size_t unit);
/** pl_longest_piece() - Return: what part of the unit's time its longest piece takes, on average,
 * of the present plan's team where it is longest; 0: no frame ran it in pieces yet. */
double pl_longest_piece(const struct pl_pipeline *p, size_t unit);

/**
 * pl_trace_attach() - traces the teams of @p, and those of plans that follow, from their next frame
 * on
 * @t: borrowed until pl_trace_detach() or pl_free(); no other trace is attached     @id: of @p in
 * the records
 */
void pl_trace_attach(struct pl_pipeline *p, struct pl_trace *t, uint32_t id);
/** pl_trace_detach() - Return: true: no team writes to a ring any more; false: one does just now,
 * call again. Nothing is recorded of frames that teams finish from now on. */
bool pl_trace_detach(struct pl_pipeline *p);
/** pl_trace_id() - Return: as attached; 0: not traced. */
uint32_t pl_trace_id(const struct pl_pipeline *p);

/** pl_asleep() - Return: pl_options.asleep. */
bool pl_asleep(const struct pl_pipeline *p);

/** pl_set_eps() - sets the EPs (copied) that later plans refer to, after the machine has changed.
 * The serving plan keeps its EPs until pl_switch(). Return: 0, -EINVAL for more than PL_EP_MAX. */
int pl_set_eps(struct pl_pipeline *p, const struct pl_ep_set *eps);

/** pl_reap() - frees the previous plan's teams if they have drained. Call it after notify(). Never
 * blocks for long. */
void pl_reap(struct pl_pipeline *p);
/** pl_switching() - Return: whether the previous plan is still draining. */
bool pl_switching(const struct pl_pipeline *p);

const struct pl_plan *pl_current_plan(const struct pl_pipeline *p);
/** pl_current_eps() - Return: the EPs that pl_current_plan() refers to. Both are borrowed until
 * pl_switch(). */
const struct pl_ep_set *pl_current_eps(const struct pl_pipeline *p);
uint32_t pl_epoch(const struct pl_pipeline *p);
size_t pl_in_flight(const struct pl_pipeline *p);
/** pl_frame_count() - Return: most frames in flight under the present plan. */
size_t pl_frame_count(const struct pl_pipeline *p);
/** pl_arena_bytes() - Return: bytes of all arenas used so far. */
size_t pl_arena_bytes(const struct pl_pipeline *p);
/** pl_depth() - Return: the frames in flight that keep the present plan busy: one for each team,
 * and one that waits for each stage; more would only wait longer (bench/results/peers.md).
 *
 * A team that takes several frames at once counts twice as many, since the next ones gather
 * meanwhile. Where teams share the frames of a stage, one more waits, since a frame is dispatched
 * before a team is free; and in a stage of unequal teams a faster one counts several times, since
 * answers in order wait for the slowest. A client needs at least as many credits. */
size_t pl_depth(const struct pl_pipeline *p);

/** pl_team_count(), pl_team_stats(), pl_unit_stats() - consistent samples of the present plan, of a
 * unit over all teams of its stage; reading them does not disturb a team. */
size_t pl_team_count(const struct pl_pipeline *p);
void pl_team_stats(const struct pl_pipeline *p, size_t team, struct pl_team_stats *ret);
void pl_unit_stats(const struct pl_pipeline *p, size_t unit, struct pl_series *ret);
/* What a unit took under all plans so far. */
struct pl_unit_total {
    uint64_t frames;
    double ns; /* sum of times that are cut as in struct pl_series; never falls */
};
/** pl_unit_total() - adds up the clocks of @unit over all teams of all plans so far. */
void pl_unit_total(const struct pl_pipeline *p, size_t unit, struct pl_unit_total *ret);
/** pl_team_unit_stats() - statistics of one unit on one team; a cost table needs them if the teams
 * of a stage are on different EPs. Return: false if the team does not run @unit (@ret is then
 * empty). */
bool pl_team_unit_stats(const struct pl_pipeline *p, size_t team, size_t unit,
                        struct pl_series *ret);

/** pl_stalled_ns() - Return: the longest time without progress of any team that has a frame (held
 * or waiting); 0 if all teams are idle. */
uint64_t pl_stalled_ns(const struct pl_pipeline *p, uint64_t now_ns);
