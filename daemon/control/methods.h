/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/control/methods.h - the methods of io.piped, and their shared helpers
 *
 * Each method reads the parameters, which methods.c has checked, calls a room, and answers the call
 * now or later. Threads: the loop thread.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "daemon/control/control.h"
#include "kernels/int8cal/examples.h"

struct dmn_examples;
struct dmn_hot_swap;
struct dmn_model;
struct pl_plan;

/** dmn_control_dispatch() - finds the method of the call and runs it, or replies with an error. */
void dmn_control_dispatch(struct dmn_call *c);

typedef void dmn_method_fn(struct dmn_call *c);
dmn_method_fn dmn_method_status, dmn_method_models, dmn_method_load, dmn_method_unload,
    dmn_method_profile, dmn_method_history, dmn_method_metrics, dmn_method_config,
    dmn_method_reload, dmn_method_subscribe, dmn_method_plan_mix, dmn_method_trace,
    dmn_method_link_report, dmn_method_link_routes;
/* @m: that the parameter "model" names, else the default model */
typedef void dmn_model_method_fn(struct dmn_call *c, struct dmn_model *m);
dmn_model_method_fn dmn_method_get_plan, dmn_method_set_plan, dmn_method_get_mapping,
    dmn_method_set_mapping, dmn_method_auto_plan, dmn_method_retune, dmn_method_cancel_retune,
    dmn_method_costs, dmn_method_plan_front, dmn_method_plan_explain, dmn_method_optimise,
    dmn_method_quantise, dmn_method_units, dmn_method_set_wishes;
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
 * Sets failed(), which answers the call, and end(), which frees the examples. Return: NULL: not
 * possible now, and the call was answered.
 */
struct dmn_hot_swap *dmn_swap_call_new(struct dmn_call *c, struct dmn_model *m,
                                       enum dmn_cause cause, size_t bytes);

/* parameters.c: the checks are pure. Those who read leave *ret as it is where a parameter is absent
 * or null, and answer the call where it has no value that fits. */

#define DMN_PARAMETER_MAX 64u

/** dmn_parameters_of() - Return: where @interface declares the parameters of @method (without the
 * interface's name), borrowed from it; NULL: there is no such method. */
const char *dmn_parameters_of(const char *interface, const char *method);

/**
 * dmn_parameters_bad() - finds a parameter that is missing, unknown or not of its type
 *
 * A type with "?" may be absent or null; a float may be written as an integer. Texts with a zero
 * byte are bad. @declared: from dmn_parameters_of(). @given: an object. @ret: DMN_PARAMETER_MAX
 * bytes, written for one that is missing. Return: the first one, a key of @given or @ret; NULL: all
 * are good.
 */
const char *dmn_parameters_bad(const char *declared, json_t *given, char *ret);

/** dmn_call_text() - Return: a string, borrowed from the call; NULL: it is not given. */
const char *dmn_call_text(const struct dmn_call *c, const char *key);
/** dmn_call_asks() - Return: it is given, and true. */
bool dmn_call_asks(const struct dmn_call *c, const char *key);
/** dmn_call_number() - reads a number. Return: true; false: it is not within @least to @most, and
 * the call was answered. */
bool dmn_call_number(struct dmn_call *c, const char *key, double least, double most, double *ret);
/** dmn_call_integer() - the same of an integer. */
bool dmn_call_integer(struct dmn_call *c, const char *key, json_int_t least, json_int_t most,
                      json_int_t *ret);
/** dmn_call_invalid() - answers that the value of @key is invalid. Return: false. */
bool dmn_call_invalid(struct dmn_call *c, const char *key);
/** dmn_call_model() - Return: the model named by @key, else the default model; NULL: there is none,
 * and the call was answered. */
struct dmn_model *dmn_call_model(struct dmn_call *c, const char *key);

#define DMN_EXAMPLES_BYTES_MAX (2ull << 30)

/* The examples sent with a call. The daemon often may not read the user's folder, so the client
 * sends the files: a sealed memfd holds their bytes one after the other, and the parameter
 * "examples" their names and sizes ([{name, bytes}]). */
struct dmn_examples {
    struct krn_examples set; /* borrows from the map */
    void *map;
    size_t map_bytes;
};

/** dmn_examples_take() - takes the examples of @c. Return: owned; NULL: the call was answered.
 * Threads: the loop thread. */
struct dmn_examples *dmn_examples_take(struct dmn_call *c);
/** dmn_examples_free() - takes NULL. Return: NULL. Threads: any. */
struct dmn_examples *dmn_examples_free(struct dmn_examples *e);
