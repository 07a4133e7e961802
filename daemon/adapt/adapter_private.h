/* SPDX-License-Identifier: Apache-2.0 */
/** daemon/adapt/adapter_private.h - shared by the files of adapt: watching (adapter.c), its input
 * (inputs.c), decisions (decisions.c), changes of cores (cores*.c), what is known of a model
 * (watched.c), one plan for all models (together.c), events (told.c, machine_changes.c), plans in
 * turns (live_turns.c), EPs that are split (split.c). Only these include it. */
#pragma once

#include <uv.h>

#include "daemon/adapt/adapter.h"
#include "daemon/machine/machine.h"
#include "daemon/plans/planner.h"
#include "daemon/plans/plans.h"
#include "daemon/plans/profile.h"
#include "daemon/plans/retune.h"
#include "daemon/plans/switch.h"
#include "governor/snapshot.h"
#include "tuner/adapt/decided.h"

/* Counters of the machine between the last two snapshots; all 0 before the first. */
struct dmn_felt {
    struct tun_felt now;
    uint64_t sequence, at_ns, periods, throttles, waited_us;
};

struct dmn_adapt_change; /* of cores, in progress: cores.c */

#define DMN_SPLIT_MAX 8u /* cores that are split off at a time */

/* Cores that are split off their EPs, and how many times slower than their siblings they were. */
struct dmn_split {
    size_t count;
    struct tun_slow_core cores[DMN_SPLIT_MAX];
};

struct dmn_together_job; /* together.c */

/* One plan for all models: dmn_plans.mix, where there is one. */
struct dmn_together {
    struct dmn_together_job *job; /* owned; in progress, or NULL */
    uint64_t solved_ns;           /* the last one */
    enum tun_cause moved;         /* why models were moved to other EPs since it was taken; NONE */
    bool parts_lost;              /* it found that to split an EP does not pay */
};

/* The last known state of the cpufreq policies. */
struct dmn_adapt_machine {
    uint64_t sequence; /* of the snapshot; 0: none yet */
    size_t count;
    struct dmn_adapt_policy {
        uint32_t number;
        char governor[GOV_NAME_MAX]; /* "": unknown */
        uint64_t limit_khz;          /* 0: unknown */
        bool by_heat;
    } policies[GOV_POLICY_MAX];
};

struct dmn_adapt {
    /* borrowed */
    struct dmn_machine *machine;
    struct dmn_models *models;
    struct dmn_plans *plans;
    uv_timer_t timer;
    uint64_t period_ms;
    uint64_t looked_ns;  /* the last look, or the start */
    unsigned void_looks; /* so many windows hold times in which the process did not run */
    struct dmn_adapt_machine known;
    struct dmn_adapt_change *change; /* owned; NULL: none in progress */
    struct dmn_split split;          /* in force; changed by cores.c alone */
    struct dmn_split lost;           /* that no plan was better on */
    uint64_t split_ns;               /* when it last changed */
    uint64_t refused_ns;             /* when a split was last found not to pay; 0: never */
    unsigned hasty;                  /* splits in a row that did not last */
    unsigned stays;                  /* joins of the present split that turns refuted */
    uint64_t stays_ns;               /* the last one */
    struct dmn_together together;
    struct dmn_felt felt;
    /* of the machine at the newest snapshot; id 0: not computed yet */
    struct {
        uint64_t sequence, id;
        double quota; /* of the control group; 0: none */
    } state;
    struct dmn_gpio_listener lines;
    struct dmn_models_listener hears;
};

/* inputs.c */
/** dmn_adapt_felt() - updates the counters. @s: the newest snapshot, NULL: none. */
void dmn_adapt_felt(struct dmn_felt *f, const struct gov_snapshot *s);
/** dmn_adapt_eps() - what the sensors show of the EPs. @ret: one for each EP. */
void dmn_adapt_eps(const struct dmn_machine *m, struct tun_ep_seen *ret);
/** dmn_adapt_window() - what the teams did since the last call. @ret: [PL_TEAM_MAX]. Return: how
 * many groups of teams were written; 0 for the first call under a plan. */
size_t dmn_adapt_window(struct dmn_model *m, uint64_t now_ns, struct tun_team_seen *ret,
                        uint64_t *ret_start_ns);
/** dmn_adapt_measured() - Return: every stage of the plan has computed at least @frames. */
bool dmn_adapt_measured(const struct dmn_model *m, uint64_t frames);
/** dmn_adapt_pace_ns() - Return: time between departures of late; 0: unknown, or frames were
 * missing. */
double dmn_adapt_pace_ns(const struct dmn_model *m);
/** dmn_adapt_fps() - Return: departures per second over the last @windows; < 0: unknown. */
double dmn_adapt_fps(const struct dmn_adapt_model *a, size_t windows);

/* watched.c */
/** dmn_adapt_searches() - Return: shifts of the machine start a search for @m: planner.algorithm is
 * not exact, and the plan is not a user's. */
bool dmn_adapt_searches(const struct dmn_model *m);
/** dmn_together() - Return: @m is served by its part of one plan for all models. */
bool dmn_together(const struct dmn_model *m);
/** dmn_adapt_free_to_act() - Return: nothing else is changing the plan of @m. */
bool dmn_adapt_free_to_act(const struct dmn_model *m);
/** dmn_adapt_comparable() - Return: frames a second say which of two plans is better, and enough
 * frames come in to tell. @p: the problem that the plans are for. */
bool dmn_adapt_comparable(const struct dmn_model *m, const struct tun_problem *p);
/** dmn_adapt_held() - dmn_plans.held. */
struct dmn_costs_hold dmn_adapt_held(const struct dmn_model *m);
/** dmn_adapt_leave_job() - the decision in progress, if there is one, is not wanted any more. */
void dmn_adapt_leave_job(struct dmn_adapt_model *a);
/** dmn_adapt_follow() - the plan that serves now is the one to be watched; its windows begin. */
void dmn_adapt_follow(struct dmn_adapt_model *a, const struct dmn_model *m, uint64_t now_ns);
/** dmn_adapt_forget() - restarts the watch; it begins once the serving plan is measured. */
void dmn_adapt_forget(struct dmn_model *m);

/** dmn_adapt_slow() - how many times longer the unit takes there than the table says, as far as is
 * known; until the watch begins, as carried over. @ret_contended: other programs are why. */
double dmn_adapt_slow(const struct dmn_model *m, size_t ep, size_t unit, bool *ret_contended);
/** dmn_adapt_costs() - dmn_plans.costs. */
int dmn_adapt_costs(const struct dmn_model *m, struct tun_problem *ret);
/** dmn_adapt_slowed() - a copy of @problem with the slowdown of its EPs. @slow: [EPs][units].
 * @ret: owned. Return: 0 or -ENOMEM. */
int dmn_adapt_slowed(const struct tun_problem *problem, const double *slow,
                     struct tun_problem *ret);
/** dmn_adapt_carry_over() - the watch of @to restarts for another plan on the same EPs, with what
 * that of @from knows of slowed cores: the same model, or the one that @to replaces. */
void dmn_adapt_carry_over(const struct dmn_model *from, struct dmn_model *to);

/** dmn_adapt_take_learned() - has the watch expect what was learned since the plan serves. Return:
 * it does; false: more is known than the table says (tun_adapt_learned()), or out of memory. */
bool dmn_adapt_take_learned(struct dmn_model *m);
/** dmn_adapt_solve_again() - once a second, for a plan that is watched: tells the watch of costs
 * that were measured since, and asks for a decision (TUN_EVENT_COSTS). */
void dmn_adapt_solve_again(struct dmn_model *m, uint64_t now_ns);

/** dmn_adapt_prefer_known() - for a decision about clocks or a changed quota: puts the plan kept
 * for the present state into @d, whatever the gain and the cool-down. It does not if the table
 * says that this plan is slower than the alternative by more than two measurements of one plan
 * differ. Return: it did. */
bool dmn_adapt_prefer_known(struct dmn_model *m, const struct tun_record *r,
                            struct tun_decision *d);

/* decisions.c */
/** dmn_adapt_decide() - queues the decision. @r: taken. Without memory, tells the watch. */
void dmn_adapt_decide(struct dmn_model *m, struct tun_record *r);
/** dmn_adapt_back() - switches back to the previous plan. */
void dmn_adapt_back(struct dmn_model *m, uint64_t now_ns);
/** dmn_adapt_verify() - evaluates one window of a change that is being verified. */
void dmn_adapt_verify(struct dmn_model *m, uint64_t now_ns);
/** dmn_adapt_await() - starts to measure the change of plan in @event, which the result completes.
 * @event: gets another reference; may be NULL. */
void dmn_adapt_await(struct dmn_model *m, struct dmn_history_event *event);
/** dmn_adapt_decided() - tells the watch what became of the decision @d on @r (NULL: it failed).
 * @switched: its plan serves. */
void dmn_adapt_decided(struct dmn_model *m, const struct tun_record *r,
                       const struct tun_decision *d, bool switched);
/** dmn_adapt_unlearn() - restores the table of a second or two ago: what was learned after
 * interference began is not a cost of these cores. */
void dmn_adapt_unlearn(struct dmn_model *m);
/** dmn_adapt_job_free() - for a job whose work is done. Takes NULL. Return: NULL. */
struct dmn_adapt_job *dmn_adapt_job_free(struct dmn_adapt_job *j);

/* cores.c */
/** dmn_adapt_cores_changed() - the listener for daemon/machine/hotplug.c. */
void dmn_adapt_cores_changed(void *ctx, const struct dmn_hotplug_change *change);
/** dmn_adapt_change_step() - goes on with a change of cores as soon as nothing prevents it. */
void dmn_adapt_change_step(struct dmn_adapt *adapt);
void dmn_adapt_change_leave(struct dmn_adapt *a);

/** dmn_adapt_parts_begin() - begins a change of EPs of our own: cores are split off, or all are
 * joined again. Call if none is in progress. @split: wanted; copied. @text: what happened. @must: a
 * join that does not have to prove that it costs nothing. */
void dmn_adapt_parts_begin(struct dmn_adapt *adapt, const struct dmn_split *split, const char *text,
                           bool must);
/** dmn_adapt_parting() - Return: such a change is in progress. */
bool dmn_adapt_parting(const struct dmn_adapt *adapt);

/* together.c */
/** dmn_together_step() - after all models' windows: makes one plan for all models, or makes it
 * again, if that is due. */
void dmn_together_step(struct dmn_adapt *adapt, uint64_t now_ns);
/** dmn_together_leave() - nothing is planned any more; what serves stays. */
void dmn_together_leave(struct dmn_adapt *adapt);

/* split.c */
/** dmn_split_see() - one window of @m, after dmn_adapt_window(). */
void dmn_split_see(struct dmn_adapt *adapt, struct dmn_model *m, uint64_t start_ns,
                   uint64_t now_ns);
/** dmn_split_see_turns() - as dmn_split_see(), while plans take turns. */
void dmn_split_see_turns(const struct dmn_adapt *adapt, struct dmn_model *m, uint64_t start_ns);
/** dmn_split_step() - after all models' windows: begins to split or to join if that is due. */
void dmn_split_step(struct dmn_adapt *adapt, uint64_t now_ns);
/** dmn_split_end() - begins to join what is split; nothing is watched any more. */
void dmn_split_end(struct dmn_adapt *adapt);

/*
 * ---- live_turns.c: compares two plans on live frames, in turns, and keeps the better one ----
 *
 * tuner/adapt/turns.h decides which plan serves next and which one wins; docs/adaptation.md tells
 * of the figures. A turn is one window, measured like a trial of a retune (daemon/plans/trial.h):
 * frames that pass while one plan drains and the other fills are left out.
 *
 * While plans take turns, nothing is learned, saved or decided for the model. A plan that a user or
 * a search sets ends the turns. One model at a time takes turns: two would disturb each other.
 */
struct dmn_turns_result {
    bool left; /* something else changed the plan, or it was called off: nothing is known */
    enum tun_verdict verdict; /* better: the challenger serves, else the incumbent */
    struct tun_turns_shown shown;
    struct pl_plan incumbent, challenger;
    uint64_t frames[2]; /* measured, of the incumbent and of the challenger */
    uint64_t failed;    /* frames that failed meanwhile */
};

/** dmn_turns_fn - @m: NULL: the model is unloaded or no longer watched; free @ctx. */
typedef void dmn_turns_fn(struct dmn_model *m, void *ctx, const struct dmn_turns_result *r);

/* Which plans, and who is told of the end. */
struct dmn_turns_request {
    const struct pl_plan *incumbent, *challenger; /* on the EPs of the pipeline; copied */
    bool returns;       /* the challenger is the previous plan: the incumbent has to prove itself */
    double expected_ns; /* time per frame of the challenger; 0: unknown */
    dmn_turns_fn
        *over; /* called once, not from dmn_turns_begin(); m->adapt->turns is NULL by then */
    void *ctx;
};
/** dmn_turns_begin() - sets m->adapt->turns. The incumbent serves, or is being switched to. Return:
 * 0 or -ENOMEM. */
int dmn_turns_begin(struct dmn_model *m, const struct dmn_turns_request *q);
/** dmn_turns_call_off() - ends them soon, with the incumbent serving. Takes NULL. */
void dmn_turns_call_off(struct dmn_turns *t);
/** dmn_turns_end() - ends them soon, with the incumbent serving: what made the challenger better is
 * over. */
void dmn_turns_end(struct dmn_turns *t);
/** dmn_turns_any() - Return: plans of a model take turns. */
bool dmn_turns_any(const struct dmn_models *models);
/** dmn_turns_collected() - counts a frame that came out of the pipeline. */
void dmn_turns_collected(struct dmn_turns *t, struct dmn_model *m, const struct pl_frame *f);
/** dmn_turns_leave() - ends them now, with the incumbent if it can be switched to. Takes NULL.
 * Return: NULL. */
struct dmn_turns *dmn_turns_leave(struct dmn_turns *t);
/** dmn_turns_take_ns() - about how long turns take at the present pace until a plan is better; 0:
 * the pace is unknown. */
uint64_t dmn_turns_take_ns(const struct dmn_model *m);

/* told.c */
/** dmn_adapt_tell() - writes history and log. @e: of the model; plan_before NULL: the plan that
 * serves, as plan_after is, which is set here. @turns: that led to it; NULL: none. Return: the
 * event, borrowed until the next one; NULL: out of memory. */
struct dmn_history_event *dmn_adapt_tell(struct dmn_model *m, struct dmn_history_event e,
                                         const struct dmn_turns_result *turns);
/** dmn_adapt_detail() - writes one sentence about a decision to @ret. */
void dmn_adapt_detail(const struct tun_record *r, const struct tun_decision *d, char *ret,
                      size_t bytes);

/* machine_changes.c */
/** dmn_adapt_machine_see() - compares the newest snapshot (NULL: none) with the last known state.
 * Each model keeps the changes until an event reports them. */
void dmn_adapt_machine_see(struct dmn_adapt *adapt, const struct gov_snapshot *s, uint64_t now_ns);
/** dmn_adapt_machine_told() - an event of @cause was added. Return: a change was waiting for it. */
bool dmn_adapt_machine_told(struct dmn_adapt_model *a, enum tun_cause cause);
/** dmn_adapt_machine_tell() - adds an event for each change that no decision has reported in
 * time. */
void dmn_adapt_machine_tell(struct dmn_model *m, uint64_t now_ns);
/** dmn_adapt_may_tell() - takes one of the rationed events about measurements that led to nothing.
 * Return: there was one left. */
bool dmn_adapt_may_tell(struct dmn_adapt_model *a, uint64_t now_ns);
