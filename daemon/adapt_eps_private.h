/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/adapt_eps_private.h - other cores: new execution places, a table for them, a plan on them
 *
 * A change waits until no search and no switch is under way (searches are cancelled), then the
 * places are found anew, what was learned is carried over by core, and every model's plan is
 * decided on as queued work. On the loop all models move at once, so that places, tables and plans
 * always belong together; a change that comes meanwhile begins again.
 *
 * What the files of that share: a change from its beginning to its end (adapt_eps.c), the places
 * (adapt_eps_places.c), a model's plan on them (adapt_eps_plan.c), its move and what is told of it
 * (adapt_eps_apply.c). All of it runs on the loop but dmn_change_solve().
 */
#pragma once

#include "daemon/adapt_private.h"

/* What a model does on the new places. */
struct dmn_change_part {
    char model[64];
    uint64_t loaded_ns;         /* with the name: which model it is */
    struct tun_problem problem; /* owned; on the new places */
    struct pl_plan same;        /* the serving plan on the new places, if it fits */
    struct pl_plan known;       /* kept for this state, if known_as */
    const char *known_as;       /* static; NULL: none */
    bool fits, pinned, old_kinds;
    double *slow; /* owned: [kinds][units] of problem, what is known of kinds whose cores stay */
    bool contended[PL_EP_MAX], slowed, doubted;
    double before_ns, after_ns; /* of the plan before, if it fits, and of the chosen one */
    struct tun_record record;   /* owned; without units: solved without one */
    struct tun_decision decision;
    struct tun_solution *solution; /* owned */
    int result;
};

struct dmn_adapt_change {
    uv_work_t work;
    struct dmn_daemon *daemon; /* NULL: nobody waits for it any more */
    bool at_work, again;
    const char *cause; /* static */
    char text[192];
    struct gov_cpuset usable;
    struct gov_topology *topology; /* owned */
    struct pl_ep_set eps;
    uint64_t began_ns;
    struct dmn_change_part *parts; /* owned */
    size_t count;
};

/* adapt_eps_places.c */
/** dmn_places_find() - topology and places of @c, with the cores that can be used. Return: 0, or
 * -errno with the reason logged. */
int dmn_places_find(struct dmn_adapt_change *c);
/** dmn_places_served() - are @eps those of the daemon and of every model already. */
bool dmn_places_served(const struct dmn_daemon *d, const struct pl_ep_set *eps);
/** dmn_places_of() - the place of @eps that has most cores of @ep; SIZE_MAX: none has any. */
size_t dmn_places_of(const struct pl_ep_set *eps, const struct pl_ep *ep);
/** dmn_places_only_less() - do the new places have only cores of the old ones, each of one of them.
 */
bool dmn_places_only_less(const struct pl_ep_set *old, const struct pl_ep_set *new);
/** dmn_places_carry() - what was learned of the same cores on other places. */
void dmn_places_carry(const struct tun_problem *from, const struct pl_ep_set *from_eps,
                      struct tun_problem *to, const struct pl_ep_set *to_eps);
/** dmn_places_translate() - a plan on other places. Return: does it fit there. */
bool dmn_places_translate(const struct pl_plan *plan, const struct pl_ep_set *from,
                          const struct pl_ep_set *to, size_t unit_count, struct pl_plan *ret);

/* adapt_eps_plan.c */
/** dmn_change_prepare() - all that @m's plan is decided from; @p: zeroed. Return: 0 or -errno, with
 * what was made so far in @p. */
int dmn_change_prepare(struct dmn_model *m, const struct dmn_adapt_change *c,
                       struct dmn_change_part *p);
/** dmn_change_solve() - decides, if there is something to decide. On a worker thread. */
void dmn_change_solve(struct dmn_change_part *p);
/** dmn_change_returns() - the plan kept for these cores is one for when nothing foreign is on them.
 */
bool dmn_change_returns(const struct dmn_change_part *p);
/** dmn_change_slowed() - the table with what is known of its kinds: @slow, [kinds][units]. Return:
 * 0 or -ENOMEM. */
int dmn_change_slowed(const struct tun_problem *problem, const double *slow,
                      struct tun_problem *ret);
/** dmn_change_choose() - which plan it is to be. Return: where it is from, NULL: none was found. */
const char *dmn_change_choose(const struct dmn_model *m, const struct dmn_adapt_change *c,
                              const struct dmn_change_part *p, struct pl_plan *ret);

/* adapt_eps_apply.c */
/** dmn_change_apply() - @m moves to the new places, or stays as it is, which is logged; an event
 * either way. */
void dmn_change_apply(struct dmn_adapt_change *c, struct dmn_change_part *p, struct dmn_model *m);
/** dmn_change_tell_nothing() - cores changed and the plan did not: an event too. */
void dmn_change_tell_nothing(struct dmn_model *m, const struct dmn_adapt_change *c, const char *why,
                             const char *outcome);
