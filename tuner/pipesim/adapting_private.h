/* SPDX-License-Identifier: Apache-2.0 */
/** tuner/pipesim/adapting_private.h - a scenario that is played: what happens (adapting.c) in the
 * world as it is at a moment (adapting_world.c). Only these include it. */
#pragma once

#include "tuner/adapt/turns.h"
#include "tuner/pipesim/adapting.h"
#include "tuner/search/random.h"

struct psim_play {
    const struct psim_adapting *how;
    struct psim_adapted *out;
    struct tun_adapt *adapt; /* owned */
    struct tun_record truth; /* owned: its problem, betas and factors are the world's */
    struct pl_plan plan;
    struct psim_world world;
    double noise[PL_STAGE_MAX][PL_GROUP_MAX];
    struct tun_random random;
    double t_s;
    /* plans in turns: the decision that is to be proved, with what it was made from; owned */
    bool turning, challenger; /* challenger: it served the last window */
    struct tun_turns turns;
    struct tun_record record;
    struct tun_decision decision;
    bool alarmed[PL_TEAM_MAX]; /* by watch */
};

/** psim_play_world() - the world is as the scenario says at p->t_s. */
void psim_play_world(struct psim_play *p);
/** psim_play_eps() - what sensors show. @ret: [EPs]. */
void psim_play_eps(const struct psim_play *p, struct tun_ep_seen *ret);
/** psim_play_teams() - what the serving plan's teams show in a window. @ret: [PL_TEAM_MAX]. Return:
 * how many. */
size_t psim_play_teams(struct psim_play *p, struct tun_team_seen *ret);
/** psim_play_spike() - log of a factor on a measurement; mostly 0. */
double psim_play_spike(struct psim_play *p);
/** psim_play_bottleneck() - time per frame of the serving plan, ns. */
double psim_play_bottleneck(const struct psim_play *p);
/** psim_play_problem() - the cost table of the world as it is now; see tun_correct(). */
int psim_play_problem(const struct psim_play *p, struct tun_problem *ret, size_t *ret_eps);
/** psim_play_ratio() - throughput of the serving plan as a share of the best for the world. */
double psim_play_ratio(const struct psim_play *p);
