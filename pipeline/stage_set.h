/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pipeline/stage_set.h - a set: the teams and rings of one plan, built beside the set that it
 * replaces
 *
 * One ring connects each team of a stage to each team of the next. The loop has a ring to every
 * team of a route's first stage; every team of its last stage has a ring to the loop. Every ring
 * has room for all frames of the pipeline, so no push fails and no stage waits for the next.
 *
 * A set is closed once. Its first stages then get no more frames, and its teams end stage by stage
 * as their rings drain. When the last has ended, the threads are joined and everything is freed.
 * All of it but the teams' own parts belongs to the loop thread.
 */
#pragma once

#include "pipeline/team.h"

struct pl_set_config {
    const struct pl_plan *plan;
    const struct pl_ep_set *eps;
    size_t frames; /* most frames in flight */
    uint32_t epoch;
    const struct krn_net *net;
    const struct pl_options *options; /* copied */
    const uint8_t *pieces;            /* per unit: in how many it may be run; NULL: none is cut */
};

struct pl_route {
    size_t stage;             /* its first one */
    double part;              /* of all frames, that it is to get */
    double credit;            /* frames that it is behind its part; loop's own */
    struct pl_team *teams;    /* of its first stage; in pl_set.teams */
    struct pl_ring **entries; /* their rings, in ring_pointers */
    struct pl_ring **exits;   /* completion rings, one per team of its last stage */
    size_t entry_count, exit_count;
    size_t batch_most; /* frames that any of its teams takes at once */
};

struct pl_set {
    struct pl_plan plan;
    struct pl_ep_set eps;
    uint32_t epoch;
    struct pl_team_common common;
    size_t team_count, ring_count;
    size_t stage_first[PL_STAGE_MAX + 1]; /* index of each stage's first team; then team_count */
    struct pl_team *teams;                /* owned */
    struct pl_ring *rings;                /* owned */
    struct pl_ring **ring_pointers;       /* owned; the teams' inputs and outputs point into this
                                           * array */
    size_t route_count;
    struct pl_route routes[PL_ROUTE_MAX];
};

/** pl_set_new() - builds and starts all teams; they wait for frames. Return: 0, -ENOMEM, -EAGAIN;
 * nothing is left behind on failure. Blocks until every team is ready (about a millisecond). */
int pl_set_new(const struct pl_set_config *c, struct pl_set **ret);

/** pl_set_free() - stops teams that still run, joins all, frees everything. Accepts NULL. Return:
 * NULL. */
struct pl_set *pl_set_free(struct pl_set *s);

/** pl_set_room() - Return: of the routes whose first stage can take another frame without making it
 * wait too long, the one that is furthest behind its part; NULL: none can. */
struct pl_route *pl_set_room(struct pl_set *s, uint64_t now_ns);
/** pl_set_admit() - dispatches a frame to a team of the first stage of @to. */
void pl_set_admit(struct pl_set *s, struct pl_route *to, struct pl_frame *f, uint64_t now_ns);
/** pl_set_finished() - Return: a frame that has left the last stage, in any order, or NULL. */
struct pl_frame *pl_set_finished(struct pl_set *s);

/** pl_set_close() - declares that no frame will follow; the teams end when they have drained. */
void pl_set_close(struct pl_set *s);
/** pl_set_ended() - Return: whether all teams have ended; if so, pl_set_free() will not wait. */
bool pl_set_ended(const struct pl_set *s);

/** pl_set_trace() - gives every team a ring in @t, see pl_trace_attach(). */
void pl_set_trace(struct pl_set *s, struct pl_trace *t, uint32_t id);
/** pl_set_untrace() - takes the rings away. @joined: no thread runs. Return: true; false: a team is
 * writing just now, ask again. */
bool pl_set_untrace(struct pl_set *s, bool joined);

/** pl_set_depth() - Return: the frames in flight that keep all teams busy. */
size_t pl_set_depth(const struct pl_set *s);
/** pl_set_frames() - Return: how many there are room for if teams go on as was measured: with those
 * that wait for an answer before theirs, one for each team and two more. */
size_t pl_set_frames(const struct pl_set *s);
uint64_t pl_set_stalled_ns(const struct pl_set *s, uint64_t now_ns);

/* ---- set_routes.c, for stage_set.c ---- */

/** pl_routes_count() - finds the routes of the plan, and counts teams and rings. */
void pl_routes_count(struct pl_set *s);
/** pl_routes_connect() - gives the teams their rings. */
void pl_routes_connect(struct pl_set *s);
