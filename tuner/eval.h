/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/eval.h - what a plan should do by a cost table: the one place with these formulas; and what
 * running it showed
 *
 * For units i..j on a team of EP k and width w that takes n frames at once (n = 1: one):
 *     T = handoff_ns + (i > 0 ? handoff_ns_per_byte * in_bytes[i] : 0)
 *         + sum_{u=i..j} cost[k][w][u] * f[k][u](n)         time a frame; f: tuner/problem.h
 *     L = n > 1 ? batch_wait_ns + n T : T                   how long a frame stays in the team
 * and of a team over several EPs t(u) of tuner/span.h in place of cost[k][w][u].
 * A cost is the unit's time while nobody else moves memory. In a plan, teams that share memory make
 * T longer: tuner/memory.h.
 * A stage with teams t has the period 1 / sum_t 1/T_t (frames are dispatched by speed). Stages that
 * are given the same cores share them: with c_ks the cores of EP k that stage s has, a frame keeps
 * them busy for B_k = sum_s c_ks / (cores_k sum_t 1/T_t). The plan's bottleneck is its longest
 * period or B_k; throughput is 1 / bottleneck (Pipe-it eq. 9, 11). The latency
 * of the worst frame meets the slowest team of every stage: sum over stages of max_t L_t; a frame
 * of several waits for company and then for all of them. The energy of a frame is  sum over stages
 * of  sum_t share_t * T_t * w_t * watts[k_t]  with share_t proportional to 1/T_t, in nJ. In a plan
 * of several routes a stage's period, B_k and energy count with its route's part of the frames, and
 * the latency is that of the slowest route. Over
 * several boards see tuner/eval_boards.h.
 */
#pragma once

#include "tuner/problem.h"

enum { TUN_E_UNKNOWN = 1 }; /* of tun_eval(): a cost that the plan needs is not known */

/* What the bottleneck is: a stage's teams, a link, or a board's port. */
enum tun_limit { TUN_LIMIT_TEAMS, TUN_LIMIT_LINK, TUN_LIMIT_PORT };

struct tun_outcome {
    double bottleneck_ns, latency_ns, energy_nj;
    size_t stage_count;
    double stage_ns[PL_STAGE_MAX];              /* period of the stage, its teams counted */
    double team_ns[PL_STAGE_MAX][PL_GROUP_MAX]; /* T of one team of the group */

    /* With several boards; otherwise 0. */
    enum tun_limit limit;
    size_t limit_stage;          /* TEAMS; LINK: the stage behind the link, stage_count: the head */
    size_t limit_from, limit_to; /* boards of the link; the port's board twice */
    double memory_bytes[TUN_BOARD_MAX];       /* that the board's segments take */
    double board_energy_nj[TUN_BOARD_MAX];    /* a frame of the stream, links included */
    double most_memory_bytes, most_energy_nj; /* the largest of a board */
};

/* ---- what running a plan showed: plain data, for searches and cost tables ---- */

/* One unit timed on one team shape during a trial. */
struct tun_sample {
    uint16_t ep, width;
    uint32_t unit;
    double ns;    /* mean */
    double sigma; /* relative standard error of that mean */
    /* that the team took at once, on average; then ns is a frame's part. 0 and 1: one */
    double frames;
    struct pl_also also[PL_ALSO_MAX]; /* of a team over several EPs: the others */
};

/* What running a plan showed. */
struct tun_trial {
    struct pl_plan plan;
    struct tun_outcome measured; /* energy_nj 0 and latency_ns 0: not measured */
    double predicted_ns; /* bottleneck by the table before it ran; 0: unknown. Set by tell() */
    double spent_ns;     /* time the trial took, all told */
    uint64_t frames;
    bool stopped; /* given up early because clearly worse: measured is a lower bound */
    bool failed;  /* could not be run; measured is void */
    const struct tun_sample *samples; /* borrowed during tell(); NULL in the log */
    size_t sample_count;
};

/* ---- figures of teams (eval.c) ---- */

/** tun_handoff_ns() - what a team spends on a frame besides units from @first on. */
static inline double tun_handoff_ns(const struct tun_problem *p, size_t first)
{
    return p->handoff_ns + (first > 0 ? p->handoff_ns_per_byte * p->units[first].in_bytes : 0);
}
/**
 * tun_group_ns() - T of one team of @group, a frame, if it takes its batch of frames at once
 * T(n) above; < 0 if a cost is unknown.
 */
double tun_group_ns(const struct tun_problem *p, size_t first, size_t last,
                    const struct pl_group *group);
/** tun_frames_ns() - as tun_group_ns() (< 0: unknown), for @frames at once; also an average, at
 * least 1. */
double tun_frames_ns(const struct tun_problem *p, size_t first, size_t last, size_t ep,
                     size_t width, double frames);
/** tun_latency_of() - Return: how long a frame stays in a team that takes @frames at once, each
 * of which needs @ns: L above. */
double tun_latency_of(const struct tun_problem *p, size_t frames, double ns);
/** tun_team_ns() - T of one team, one frame at a time, for units first..last; < 0 if a cost is
 * unknown. */
double tun_team_ns(const struct tun_problem *p, size_t first, size_t last, size_t ep, size_t width);

struct tun_teams_sum {
    double rate;  /* frames per ns */
    double watts; /* of their cores */
};
/** tun_sum_teams() - the teams of stage @s: sets its team_ns and stage_ns in @o, and adds its
 * slowest team to latency_ns
 * @slowed: [groups], by how much each is slower than alone; NULL: not at all.
 * @sums: [boards], zeroed: the teams of each; one with one board. Return: 0 or TUN_E_UNKNOWN. */
int tun_sum_teams(const struct tun_problem *p, const struct pl_plan *plan, size_t s,
                  const double *slowed, struct tun_outcome *o, struct tun_teams_sum *sums);

/** tun_busy_ns() - adds to @busy_ns [eps] for how long a frame keeps the EPs of a group busy
 * @rate: of the stage's teams on that board. @share: of the frames, that they take. Return: the
 * longest sum of these EPs, a little less, so that rounding does not make it longer than a stage
 * with all cores.
 */
double tun_busy_ns(const struct tun_problem *p, const struct pl_group *group, double rate,
                   double share, double *busy_ns);

/* ---- figures of a plan (eval_plan.c) ---- */

/**
 * tun_eval() - @plan: valid for the problem (pl_plan_check with tun_eps)
 * Return: 0, or TUN_E_UNKNOWN when a cost that the plan needs is unknown. Pure; any thread.
 */
int tun_eval(const struct tun_problem *p, const struct pl_plan *plan, struct tun_outcome *ret);
/** tun_plan_busy() - for how long a frame keeps all cores of each EP busy. @p: of one board.
 * @ret_ns: [ep_count]. Return: as tun_eval(). */
int tun_plan_busy(const struct tun_problem *p, const struct pl_plan *plan, double *ret_ns);

/** tun_fits() - the plan gives out no more cores than there are and keeps within the bounds that
 * concern its shape (stages_max, one_ep_stages). A board that it comes back to after another one
 * has its cores again: its visits share them. */
bool tun_fits(const struct tun_problem *p, const struct pl_plan *plan);

/** tun_figure() - Return: what the objective asks for: bottleneck, latency or energy. */
double tun_figure(const struct tun_problem *p, const struct tun_outcome *o);

/** tun_keeps() - Return: the outcome keeps the bounds on period and latency. */
bool tun_keeps(const struct tun_problem *p, const struct tun_outcome *o);

/** tun_missed() - Return: by how much the outcome misses the bounds, relatively, those of boards on
 * energy included; 0: it keeps them. */
double tun_missed(const struct tun_problem *p, const struct tun_outcome *o);

/**
 * tun_better() - Return: the problem's objective prefers outcome @a to @b
 *
 * THROUGHPUT compares bottlenecks alone (slack is the solver's, see tuner/solve/solve.h); LATENCY
 * and POWER prefer what keeps the bounds, then the lower figure, then the lower bottleneck.
 */
bool tun_better(const struct tun_problem *p, const struct tun_outcome *a,
                const struct tun_outcome *b);
