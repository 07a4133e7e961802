/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pipeline/stage_set.h - the teams and rings of one plan: a set, built beside the one it replaces
 *
 * Between team i of a stage and team j of the next there is one ring, in front of every team of
 * stage 0 one from the loop, behind every team of the last stage one to the loop. Every ring has
 * room for all frames of the pipeline, so no push ever fails and no stage ever waits for the next.
 *
 * A set is closed once: its stage 0 gets no more frames, its teams end one stage after the other as
 * their rings run dry, and when the last has ended the threads are joined and all is freed.
 * Everything here belongs to the loop thread, the teams' parts excepted.
 */
#pragma once

#include "pipeline/team.h"

struct pl_set_config {
    const struct pl_plan *plan;
    const struct pl_ep_set *eps;
    size_t frames; /* most frames in flight */
    uint32_t epoch;
    const struct krn_net *net;
    uint64_t spin_ns;
    void (*notify)(void *arg);
    void *notify_arg;
    bool no_pin, no_clocks;
};

struct pl_set {
    struct pl_plan plan;
    struct pl_ep_set eps;
    uint32_t epoch;
    bool closed;
    struct pl_team_common common;
    size_t team_count, ring_count, pointer_count;
    size_t stage_first[PL_STAGE_MAX + 1]; /* index of each stage's first team; then team_count */
    struct pl_team *teams;                /* owned */
    struct pl_ring *rings;                /* owned */
    struct pl_ring **ring_pointers;       /* owned; the teams' inputs and outputs point in here */
    struct pl_team **team_pointers;       /* owned; &teams[i] */
    struct pl_ring **entries;             /* rings of stage 0, one per team; in ring_pointers */
    struct pl_ring **exits;               /* completion rings, one per team of the last stage */
    size_t entry_count, exit_count;
};

/** pl_set_new() - builds and starts all teams; they wait for frames. Return: 0, -ENOMEM, -EAGAIN;
 * nothing is left behind on failure. Blocks until every team is set up (about a millisecond). */
int pl_set_new(const struct pl_set_config *c, struct pl_set **ret);

/** pl_set_free() - ends the teams at once if they have not ended, joins them, frees everything.
 * Takes NULL. Return: NULL. */
struct pl_set *pl_set_free(struct pl_set *s);

/** pl_set_room() - stage 0 can take another frame before those waiting make it wait too long. */
bool pl_set_room(const struct pl_set *s, uint64_t now_ns);
/** pl_set_admit() - deals a frame to a team of stage 0. */
void pl_set_admit(struct pl_set *s, struct pl_frame *f, uint64_t now_ns);
/** pl_set_finished() - a frame that left the last stage, in any order, or NULL. */
struct pl_frame *pl_set_finished(struct pl_set *s);

/** pl_set_close() - no frame will follow; the teams end when they have run dry. */
void pl_set_close(struct pl_set *s);
/** pl_set_ended() - all teams have ended: pl_set_free() will not wait. */
bool pl_set_ended(const struct pl_set *s);

/** pl_set_depth() - frames that keep all teams busy. */
size_t pl_set_depth(const struct pl_set *s);
uint64_t pl_set_stalled_ns(const struct pl_set *s, uint64_t now_ns);
