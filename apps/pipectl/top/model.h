/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/pipectl/top/model.h - what pipectl top shows: rates and series from one status to the next
 *
 * Pure: no terminal, no socket, no clock of its own. A rate is unknown (NAN) if a counter began
 * again between two answers: the daemon was restarted, the model was loaded again, or its route
 * changed. Nothing negative is ever shown.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOP_SECONDS 60u /* of a series */
#define TOP_MODELS_MAX 64u

/* Counters of a model, and of its route over boards. */
enum top_counter {
    TOP_ADMITTED,
    TOP_ANSWERED,
    TOP_DROPPED,
    TOP_FAILED,
    TOP_ROUTE_SENT,     /* to other boards */
    TOP_ROUTE_RESENT,   /* sent again, after a board went away */
    TOP_ROUTE_RETURNED, /* computed here after all */
    TOP_ROUTE_HERE,     /* all that were wholly computed here */
    TOP_COUNTERS,
};

/* Where a counter is in a model's status. */
struct top_counter_place {
    const char *object, *key;
};
extern const struct top_counter_place top_counters[TOP_COUNTERS];

/* One second of the clock: how much of it was seen, and how many frames were answered in it. */
struct top_second {
    uint64_t second;
    double seen, answered;
};

struct top_model {
    char *name;                                     /* owned */
    double count[TOP_COUNTERS], rate[TOP_COUNTERS]; /* NAN: unknown; rates: a second */
    struct top_second seconds[TOP_SECONDS];         /* second S is at S % TOP_SECONDS */
    bool there;                                     /* in the newest status */
};

struct top {
    json_t *status; /* owned: the newest; NULL: none yet */
    uint64_t at_ns; /* of the newest */
    struct top_model models[TOP_MODELS_MAX];
    size_t model_count;
};
#define TOP_NULL ((struct top){0})

/** top_deinit() - frees all; may be called twice. */
void top_deinit(struct top *t);
/**
 * top_take() - takes the next status
 *
 * @status: of the method Status, read at @now_ns, later than the last one; a new reference is
 * taken. Rates are by the daemon's own clock, uptime_s: answers may be late. A model that was away
 * for a series' length is forgotten.
 */
void top_take(struct top *t, json_t *status, uint64_t now_ns);
/** top_find() - Return: what is known of the model; NULL: nothing. */
const struct top_model *top_find(const struct top *t, const char *name);
/** top_status_of() - Return: the model in the newest status, borrowed; NULL: it is not there. */
const json_t *top_status_of(const struct top *t, const char *name);
/** top_series() - frames answered in each of the last TOP_SECONDS seconds, oldest first; NAN:
 * unknown. @m: NULL for all unknown. */
void top_series(const struct top_model *m, uint64_t now_ns, double ret[TOP_SECONDS]);
/** top_off() - by which share @measured is above @expected; NAN: one of them is unknown. */
double top_off(double measured, double expected);

enum top_sort { TOP_BY_ORDER, TOP_BY_LOAD, TOP_BY_TIME, TOP_SORTS };
/**
 * top_sorted() - the objects of an array in another order, highest first
 *
 * @list: an array of objects, or NULL. @load, @time: the keys to sort by; "a.b" is key b of the
 * object a. Unknown values are last; equal ones keep their order. Return: a new array.
 */
json_t *top_sorted(const json_t *list, enum top_sort by, const char *load, const char *time);
