/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/plans/planner.h - a model's costs on these cores, the plans that follow from them, and
 * what is kept of both for the next start
 *
 * A model's struct tun_problem holds its units, the daemon's EPs in their order, a time for each
 * unit on each (EP, width) with source and uncertainty, and the cost of a hand-off. It starts with
 * saved costs, the profile's predictions and guesses by weight; the clocks of the serving plan then
 * correct it.
 *
 * tuner/solve/solve.h finds plans on a copy of it, on a work thread where possible. Threads: the
 * loop thread, unless a function says otherwise.
 */
#pragma once

#include "pipeline/pipeline.h"
#include "tuner/search/search.h"
#include "tuner/solve/solve.h"

struct dmn_config;
struct dmn_load;
struct dmn_machine;
struct dmn_model;
struct dmn_plans;

/* What a plan is optimised for. */
struct dmn_goal {
    enum tun_objective objective;
    double fps;        /* least throughput; 0: no bound. POWER needs it */
    double latency_ms; /* greatest latency of a frame; 0: no bound */
};
/** dmn_goal_config() - Return: the goal of the configuration. */
struct dmn_goal dmn_goal_config(const struct dmn_config *config);
/** dmn_planner_algorithm() - Return: the search of the configuration; static. */
const struct tun_algorithm *dmn_planner_algorithm(const struct dmn_config *config);
/** dmn_planner_searches() - Return: the algorithm is not exact: shifts of the machine start its
 * search. */
bool dmn_planner_searches(const struct dmn_config *config);

/**
 * dmn_planner_prepare() - makes l->planning of a loaded model: its problem with units, EPs, and a
 * saved, profiled or guessed figure in every cell
 *
 * Sets l->first and l->origin if the configuration or an earlier run has a plan. @on: whose EPs to
 * plan for. @config: whose goal to use. Blocks on the state file.
 *
 * Return: 0; -EINVAL (a configured plan that does not fit, more cores than PL_CPU_MAX) or -ENOMEM,
 * with l->error set.
 */
int dmn_planner_prepare(struct dmn_plans *plans, const struct dmn_machine *on,
                        const struct dmn_config *config, struct dmn_load *l);
/** dmn_planner_first() - finds the first plan, unless l->first is set, for the goal that
 * dmn_planner_prepare() read: exact's, or with planner.start the seed of planner.algorithm. If no
 * plan keeps the bounds, takes the fastest. Threads: any that owns @l. May take tens of ms. Return:
 * 0, or -errno with l->error set. */
int dmn_planner_first(struct dmn_load *l);
/** dmn_planner_deinit() - frees m->planning; refuses whoever waits for a switch. */
void dmn_planner_deinit(struct dmn_model *m);
/** dmn_planner_clocks_free() - drops the mark; learning restarts with the present plan. */
void dmn_planner_clocks_free(struct dmn_model *m);

/** dmn_costs_swap() - puts @costs, a table for the same EPs, in the place of the model's table, and
 * that into @costs. Learning restarts. */
void dmn_costs_swap(struct dmn_model *m, struct tun_problem *costs);
/** dmn_costs_held() - Return: what must not be learned or saved of @m now (plans.h). */
struct dmn_costs_hold dmn_costs_held(const struct dmn_model *m);

/** dmn_planner_ep_watts() - Return: watts of a busy core of an EP above idle: as measured, else as
 * configured; 0: neither. */
double dmn_planner_ep_watts(const struct dmn_machine *on, size_t ep, bool *ret_measured);
/** dmn_planner_watts() - sets them in @p, a problem on the machine's EPs. Those that are neither
 * measured nor configured follow from the speeds: speed^1.5, times what the known ones have over
 * theirs on average. */
void dmn_planner_watts(const struct dmn_machine *on, struct tun_problem *p);

/** dmn_planner_guessed() - Return: the figure was made of the unit's weight alone. Threads: any. */
bool dmn_planner_guessed(const struct tun_cell *c);
/** dmn_planner_guess() - makes the guesses by weight again, from the times measured since. Old
 * guesses beside measured times would misjudge every EP that has not run. Threads: any. */
void dmn_planner_guess(struct tun_problem *p);

/**
 * dmn_planner_problem() - a deep copy with the objective and bounds of @goal and new guesses
 *
 * Bounds: fps as period_max_ns, latency, planner.stages_max. @goal: NULL: the configuration's.
 * @ret: owned (tun_problem_deinit), for any thread. Return: 0; -EINVAL: POWER without fps; -ENOMEM.
 */
int dmn_planner_problem(const struct dmn_model *m, const struct dmn_goal *goal,
                        struct tun_problem *ret);

/** dmn_planner_beside() - makes wider teams of @p dearer, as far as tasks wait for cores now
 * (pressure of proc(5)): a core is there 1 - p of the time, and a team needs all its cores at once
 * (tun_share_factor()). A factor that all widths share changes no plan, and is left out. */
void dmn_planner_beside(const struct dmn_model *m, struct tun_problem *p);

/** dmn_planner_mark() - sets the mark: dmn_planner_trial() counts frames from now on. Without a
 * mark, as out of memory, or after a switch, it counts from the start of the plan. */
void dmn_planner_mark(struct dmn_model *m);

/**
 * dmn_planner_trial() - the clocks of the serving plan since the mark, as a trial
 *
 * measured: mean work of the teams (team_ns; the teams of a group are merged): as samples, without
 * what others took from their cores. Stage periods and the bottleneck, by mean service times.
 * latency_ns is the sum over the stages of their slowest team, times the frames that it took at
 * once on average.
 * energy_nj is 0. A group without a frame has its figures from the table.
 * frames: counted in the last stage. failed: a stage has no frame yet.
 * samples: mean and relative standard error of each (EP, width, unit) with a frame. If the units'
 * own (winsorised) means of a team add up to less than its work, they are scaled up to it.
 * @ret_samples: owned (free); ret->samples points to it; NULL: no samples. Return: 0 or -ENOMEM.
 */
int dmn_planner_trial(const struct dmn_model *m, struct tun_trial *ret,
                      struct tun_sample **ret_samples);

/** dmn_planner_learn() - enters the newest clocks into m->planning->problem, from at least the last
 * 32 frames of each team. Cheap if no frame came. Called once a second and before solving. */
void dmn_planner_learn(struct dmn_model *m);

/** dmn_planner_expect() - evaluates @plan by the table. team_ns and stage_ns are 0 where a unit's
 * figure is made of its weight alone. Return: false if there is such a stage; the sums are then
 * meaningless. */
bool dmn_planner_expect(const struct dmn_model *m, const struct pl_plan *plan,
                        struct tun_outcome *ret);

/* ---- kept.c: what was learned of each model, saved by EPs, governors, frequency limits and quota;
 * the loop thread never blocks on the file ---- */

/** dmn_kept_suits() - Return: the serving plan suits this state of the machine; false: it only
 * suits present interference, for which an EP may be split. */
bool dmn_kept_suits(const struct dmn_model *m);
/** dmn_kept_save() - keeps costs, hand-off, the serving plan and its origin for this state of the
 * machine, and saves them if there is a state folder. Does nothing unless dmn_kept_suits(). The
 * disk's thread writes; it logs a failure. */
void dmn_kept_save(struct dmn_model *m);
/** dmn_kept_read() - reads the file of a loaded model into l->kept. @plans: struct dmn_plans. Any
 * thread that owns the load; blocks on the disk. */
void dmn_kept_read(void *plans, struct dmn_load *l);
/**
 * dmn_kept_load() - loads what l->kept has for this state of the machine, else for one that
 * differs only in limits and quota, into the problem of l->planning (TUN_SAVED)
 *
 * @on: the machine in that state. @ret: the plan; l->origin is the user's if a user set it, else
 * DMN_FROM_SAVED. Return: 0; DMN_E_NO_PLAN: costs, but no plan that fits; -ENOENT: nothing.
 */
enum { DMN_E_NO_PLAN = 1 };
int dmn_kept_load(const struct dmn_machine *on, struct dmn_load *l, struct pl_plan *ret);
/** dmn_kept_plan() - finds the plan that was kept for exactly this state of the machine, unless a
 * user set it. Return: true with @ret set; false: there is none. */
bool dmn_kept_plan(const struct dmn_model *m, struct pl_plan *ret);
