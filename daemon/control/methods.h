/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/control/methods.h - the methods of io.piped, and their shared helpers
 *
 * Each method reads the parameters, which methods.c has checked, calls a room, and answers the call
 * now or later. Threads: the loop thread.
 */
#pragma once

#include <stdbool.h>

#include "daemon/control/parameters.h"

struct dmn_examples;
struct dmn_hot_swap;
struct dmn_model;
struct pl_plan;

/** dmn_control_dispatch() - finds the method of the call and runs it, or replies with an error. */
void dmn_control_dispatch(struct dmn_call *c);

typedef void dmn_method_fn(struct dmn_call *c);
dmn_method_fn dmn_method_status, dmn_method_models, dmn_method_load, dmn_method_unload,
    dmn_method_get_plan, dmn_method_set_plan, dmn_method_get_mapping, dmn_method_set_mapping,
    dmn_method_auto_plan, dmn_method_retune, dmn_method_cancel_retune, dmn_method_costs,
    dmn_method_plan_front, dmn_method_plan_explain, dmn_method_profile, dmn_method_optimise,
    dmn_method_quantise, dmn_method_history, dmn_method_units, dmn_method_metrics,
    dmn_method_config, dmn_method_reload, dmn_method_subscribe, dmn_method_trace,
    dmn_method_link_report, dmn_method_link_routes;
/** dmn_link_search() - a method of piped-link was called, and nobody is known to be that user: asks
 * the user database on a work thread, then calls @again. Return: false: not now; @c is the
 * caller's. */
bool dmn_link_search(struct dmn_call *c, void (*again)(struct dmn_call *c));
/** dmn_link_routes_changed() - tells piped-link the routes. @control: struct dmn_control. */
void dmn_link_routes_changed(void *control);
/** dmn_method_may_switch() - Return: true; false: a search or change of plan is in progress, and
 * the call was answered with Busy. */
bool dmn_method_may_switch(const struct dmn_model *m, struct dmn_call *c);
/** dmn_method_cannot_plan() - answers with what kept a plan from being made: @error, -errno. */
void dmn_method_cannot_plan(struct dmn_call *c, int error);
/** dmn_method_switch() - switches to @plan; answers the call when the old plan has drained. A plan
 * of a user then serves instead of a route; by any other origin routes are planned again. */
void dmn_method_switch(struct dmn_model *m, struct dmn_call *c, const struct pl_plan *plan,
                       struct dmn_origin origin);

/* A call that is answered when a hot swap has ended: the first member of what a method keeps in
 * dmn_hot_swap.of. */
struct dmn_swap_call {
    struct dmn_call *call;
    struct dmn_examples *examples; /* owned; NULL: none */
};

/**
 * dmn_swap_call_new() - prepares a hot swap of @m for call @c
 *
 * @bytes: of the method's struct, which starts with a struct dmn_swap_call. It is zeroed, has its
 * `call` set, and belongs to the hot swap.
 *
 * Sets failed(), which answers the call. Return: NULL: not possible now, and the call was answered.
 */
struct dmn_hot_swap *dmn_swap_call_new(struct dmn_call *c, struct dmn_model *m,
                                       enum dmn_cause cause, size_t bytes);
