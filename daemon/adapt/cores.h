/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/adapt/cores.h - changes of cores: new EPs, new cost tables, new plans
 *
 * A change waits until no search or switch is in progress (it cancels searches). Then the EPs are
 * found again, learned costs are carried over by core, and queued work decides on every model's
 * plan. The loop moves all models at once, so that EPs, tables and plans always match. If the cores
 * change again meanwhile, the change starts over.
 *
 * An EP that is split because a core of it is slowed, or joined again (split.c), is such a change,
 * too; but a split that makes no model's plan better is dropped. So is a join if the plan that
 * would return is not as good: they take turns while the EP is still split, since on the joined EP
 * the serving plan would run on other cores.
 *
 * The files: a change from start to end, with the EPs (cores.c), a model's plan on them
 * (cores_plan.c), its move and the event (cores_apply.c). Threads: the loop thread, except
 * dmn_change_solve().
 */
#pragma once

#include "daemon/adapt/adapter_private.h"
#include "pipeline/plan_move.h"

/* One model's part of a change. */
struct dmn_change_part {
    char model[64];
    uint64_t loaded_ns;         /* with the name: identifies the model */
    struct tun_problem problem; /* owned; for the new EPs */
    struct pl_plan same;        /* the serving plan translated to the new EPs, if it fits */
    struct pl_plan known;       /* saved for this state */
    struct dmn_origin known_as; /* DMN_FROM_NOBODY: no plan is saved */
    bool fits, pinned, old_eps;
    bool search;  /* a search follows, or a plan for all models: the serving plan stays if it fits,
                     whatever exact gains */
    double *slow; /* owned: [EPs][units] of problem; known slowdown of EPs whose cores stay */
    bool contended[PL_EP_MAX], slowed, unverified;
    double before_ns, after_ns; /* of the previous plan, if it fits, and of the chosen one */
    struct tun_record record;   /* owned; without units: solved without a record */
    struct tun_decision decision;
    struct tun_solution *solution; /* owned */
    int result;
    struct dmn_turns_result *turns; /* owned; NULL: none: the plan of a join that was proved */
};

enum dmn_change_phase {
    DMN_CHANGE_WAITS,    /* until nothing else changes a plan */
    DMN_CHANGE_AT_WORK,  /* decided about, as queued work */
    DMN_CHANGE_IN_TURNS, /* a join: the plan that would return takes turns */
    DMN_CHANGE_PROVED,   /* that plan is as good: waits again, then is applied */
};

struct dmn_adapt_change {
    struct dmn_job work;
    struct dmn_adapt *adapt; /* NULL: detached */
    enum dmn_change_phase phase;
    bool again;           /* the cores changed while it was at work */
    bool must;            /* a join that is not to be proved */
    enum tun_cause cause; /* hotplug, cpuset, or contention where parting */
    char text[192];
    struct gov_cpuset usable;
    struct gov_topology *topology; /* owned */
    struct pl_ep_set eps;
    struct pl_ep_set whole; /* the same before cores were split off; count 0: none is */
    struct dmn_split split; /* cores to be split off */
    bool parting;           /* EPs are split or joined; else cores came or went */
    uint64_t began_ns;
    struct dmn_change_part *parts; /* owned */
    size_t count;
};

/* cores_plan.c */
/** dmn_change_prepare() - collects all inputs for the decision about @m. @p: zeroed. Return: 0;
 * -errno, with what was made so far in @p. */
int dmn_change_prepare(struct dmn_model *m, const struct dmn_adapt_change *c,
                       struct dmn_change_part *p);
/** dmn_change_solve() - decides, if there is a decision to make. Threads: a work thread. */
void dmn_change_solve(struct dmn_change_part *p);
/** dmn_change_returns() - Return: the plan saved for these cores was made without interference. */
bool dmn_change_returns(const struct dmn_change_part *p);
/** dmn_change_choose() - chooses the plan and its origin. Return: a plan was found. */
bool dmn_change_choose(const struct dmn_model *m, const struct dmn_adapt_change *c,
                       const struct dmn_change_part *p, struct pl_plan *ret,
                       struct dmn_origin *ret_origin);

/** dmn_change_pays() - Return: a change of parts is worth it: they are joined, or a model has a
 * better plan on them, or looks for one. */
bool dmn_change_pays(const struct dmn_adapt_change *c);

/* cores_apply.c */
/** dmn_change_prove() - begins turns if the plan that returns with a join has to show that it is as
 * good. @over: gets @c. Return: they go on. */
bool dmn_change_prove(struct dmn_adapt_change *c, const struct dmn_change_part *p,
                      struct dmn_model *m, dmn_turns_fn *over);
/** dmn_change_apply() - moves @m to the new EPs, or leaves it unchanged and logs that. Adds an
 * event either way. */
void dmn_change_apply(struct dmn_adapt_change *c, struct dmn_change_part *p, struct dmn_model *m);
/** dmn_change_tell_nothing() - adds an event: the cores changed, the plan did not. @turns: that
 * showed why; NULL: none. */
void dmn_change_tell_nothing(struct dmn_model *m, const struct dmn_adapt_change *c, const char *why,
                             const struct dmn_turns_result *turns, enum dmn_event_outcome outcome);
