/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/plans/retune.h - a search over plans on live frames
 *
 * It works with any algorithm of tuner/search/search.h. Its steps run on the loop thread and never
 * block:
 * - measure the serving plan, and the one kept for this state of the machine if there is one;
 * - if the algorithm reads the cost table, briefly run every shape of team that the table does not
 *   know (shapes.c);
 * - ask, switch, measure, tell, until the search is done;
 * - switch to the best plan. If it gained less than a tenth, or seems to have lost, the previous
 *   plan and the best one are first measured again, one after the other.
 *
 * ask() and tell() run as queued work on the search's own copy of the problem. Clients' frames are
 * served meanwhile; synthetic frames run only while no client uses the model
 * (synthetic.c).
 *
 * Over several boards (dmn_retune_over) the same steps search plans of these, and a measurement is
 * of the route that a plan becomes; plans of this board alone run in the pipeline as ever.
 *
 * Every retune leaves an event in the history. The state "tuning" ends with its answer, so whoever
 * reads the answer may start the next one. Threads: the loop thread.
 */
#pragma once

#include "daemon/models/done.h"
#include "daemon/plans/history.h"
#include "daemon/plans/planner.h"
#include "daemon/plans/trial.h"

struct dmn_model;
struct dmn_retune;
struct dmn_tried;

/* @o: NULL: the retune is over, and @event (borrowed) describes it; else why it failed. */
typedef void (*dmn_retune_done_fn)(void *ctx, const struct dmn_outcome *o,
                                   struct dmn_history_event *event);

/* How plans over several boards serve and are measured; daemon/boards/ knows. Each function gets
 * .ctx, which the retune owns from dmn_retune_begin() on, whatever that returns. */
struct dmn_retune_over {
    void *ctx;
    /* @plan is to serve, and to be measured. Return: 0; DMN_OVER_ALONE: it is one of this board
     * alone, which the pipeline runs from now on; -errno: it cannot serve. */
    int (*begin)(void *ctx, const struct pl_plan *plan, const struct dmn_trial_limits *limits);
    /* Time passed. Return: the measurement that began is over. */
    bool (*over)(void *ctx, uint64_t now_ns);
    /* What it showed, as dmn_trial_result() says. Return: 0 or -ENOMEM. */
    int (*result)(void *ctx, const struct tun_problem *p, struct tun_trial *ret,
                  struct tun_sample **ret_samples, double *ret_ci);
    /* @plan for people. */
    void (*text)(void *ctx, const struct tun_problem *p, const struct pl_plan *plan,
                 char ret[PL_PLAN_TEXT_MAX]);
    /* Called when the search ends: @plan serves from now on. @found: the search changed it. */
    void (*adopt)(void *ctx, const struct pl_plan *plan, bool found);
    /* Return: frames of its own are still away. */
    bool (*busy)(void *ctx);
    /* Return: how many of its own came back done. */
    uint64_t (*done)(void *ctx);
    void (*free)(void *ctx);
};
enum { DMN_OVER_ALONE = 1 };

struct dmn_retune_request {
    const struct tun_algorithm *algorithm;
    struct dmn_goal goal;
    struct tun_options options; /* zeros: the algorithm's defaults. from: not NULL: walks go on from
                                   the serving plan */
    enum dmn_cause cause;       /* of the history event */
    const char *why;            /* what happened, for the event; NULL: somebody asked */
    const struct pl_plan *known;       /* another plan to measure first; NULL: none */
    const struct tun_problem *problem; /* the costs as they are now; NULL: the model's table */
    struct dmn_retune_over over;       /* ctx NULL: on this board alone */
    const struct pl_plan *before;      /* of `over`: what serves now; NULL: the pipeline's plan */
    struct dmn_decided *decided;       /* the decision that started it, for the event; NULL: none */
    dmn_retune_done_fn done;           /* called at the end; NULL: nobody waits */
    void *done_ctx;
};
/** dmn_retune_configured() - Return: a request for what the configuration says, for now without a
 * reason. */
struct dmn_retune_request dmn_retune_configured(const struct dmn_config *config,
                                                enum dmn_cause cause);

/** dmn_retune_begin() - starts a retune; only then q->done() is called. @q: copied, with what it
 * points to. Return: 0; -EBUSY: another retune or a change of plan is in progress;
 * -EINVAL: POWER without fps; -ENODATA: its pipeline sleeps, so nothing runs here; -ENOMEM. */
int dmn_retune_begin(struct dmn_model *m, const struct dmn_retune_request *q);
/** dmn_retune_step() - goes on as far as possible; called when frames came out or time passed. */
void dmn_retune_step(struct dmn_model *m);
/** dmn_retune_collected() - a frame came out, a client's or a synthetic one; stays the caller's. */
void dmn_retune_collected(struct dmn_model *m, const struct pl_frame *f);
/** dmn_retune_cancel() - returns to the previous plan; whoever waits gets the event. Return: there
 * was a retune to cancel. */
bool dmn_retune_cancel(struct dmn_model *m);
/** dmn_retune_abort() - as dmn_retune_cancel(), but whoever waits gets @why. For a model or daemon
 * that ends. */
void dmn_retune_abort(struct dmn_model *m, const char *why);
/** dmn_retune_free() - frees the retune of a model that is being destroyed. */
void dmn_retune_free(struct dmn_model *m);

/*
 * ---- what the last retune measured, for who plans by predictions later ----
 *
 * A prediction adds up units, so it cannot know how stages slow each other. Where a retune has
 * measured a plan, that figure is better than any prediction. The costs may have changed since, by
 * heat for example; a measured time t is then moved by what the cost table says now and said then:
 * t * T_now / T_then.
 */

/**
 * dmn_tried_best() - which plan should serve: @predicted, or one that the last retune measured
 *
 * The plan that the retune chose yields only to one that is better by more than a trial may be off
 * (DMN_TRIAL_UNCERTAINTY). Trials for another goal do not count. @t: NULL: nothing was measured.
 * @p: the costs now, with @goal's objective and bounds. @origin: of @predicted; set to the
 * retune's algorithm for another plan. Return: borrowed of @t or @predicted.
 */
const struct pl_plan *dmn_tried_best(const struct dmn_tried *t, const struct tun_problem *p,
                                     const struct dmn_goal *goal,
                                     const struct tun_solution *predicted,
                                     struct dmn_origin *origin);
