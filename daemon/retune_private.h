/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/retune_private.h - a retune under way: its steps (retune.c), its search as queued work
 * (retune_job.c), and what the history says of it (retune_event.c). Only these include it.
 *
 * A job owns the search. It is at work or at rest; the loop thread reads the search only while it
 * is at rest. A retune that ends while its job is at work leaves it to itself: it is freed when the
 * work is done.
 */
#pragma once

#include <jansson.h>
#include <uv.h>

#include "daemon/feed.h"
#include "daemon/retune.h"
#include "daemon/shapes.h"
#include "daemon/plans/trial.h"

struct dmn_retune_job {
    uv_work_t work;
    struct dmn_model *model; /* NULL: nobody waits for it any more */
    bool at_work;
    const struct tun_algorithm *algorithm;
    struct tun_problem problem; /* owned, until the search has its copy */
    struct tun_options options;
    struct tun_search *search; /* owned */
    bool tell;                 /* trial goes to the search before it is asked */
    struct tun_trial trial;
    struct tun_sample *samples; /* owned */
    struct pl_plan plan;        /* what it asked for, if result is 0 */
    int result;                 /* of new, tell and ask */
    char error[TUN_ERROR_MAX];
};

/** dmn_retune_job_new() - @p: taken on success. Return: 0 or -ENOMEM. */
int dmn_retune_job_new(struct dmn_model *m, const struct tun_algorithm *a, struct tun_problem *p,
                       const struct tun_options *o, struct dmn_retune_job **ret);
/** dmn_retune_job_start() - makes the search or tells it @t (NULL: nothing), and asks it; then
 * dmn_retune_job_done() is called. @samples: taken. Return: 0 or -errno of libuv. */
int dmn_retune_job_start(struct dmn_retune_job *j, const struct tun_trial *t,
                         struct tun_sample *samples);
/** dmn_retune_job_leave() - now, or when its work is done. Takes NULL. Return: NULL. */
struct dmn_retune_job *dmn_retune_job_leave(struct dmn_retune_job *j);
/** dmn_retune_job_done() - retune.c: the job of @m rests again. */
void dmn_retune_job_done(struct dmn_model *m);

enum dmn_retune_phase {
    DMN_RETUNE_BEFORE, /* the plan that serves is measured */
    DMN_RETUNE_SHAPES, /* shapes of team that the table knows nothing of are */
    DMN_RETUNE_SEARCH, /* what the search asks for is */
    DMN_RETUNE_AGAIN,  /* the plan before, and then the best one, are once more */
    DMN_RETUNE_LAST,   /* on the way to the plan that is to serve */
    DMN_RETUNE_OVER,   /* the last synthetic frames come out */
};

struct dmn_retune {
    struct dmn_retune_request q; /* q.call: NULL once answered */
    enum dmn_retune_phase phase;
    bool measuring;
    struct dmn_trial trial; /* under way */
    struct dmn_feed feed;
    struct dmn_shapes shapes;
    struct dmn_retune_job *job; /* owned, NULL before the search begins */
    struct tun_problem rule;    /* objective and bounds alone, for tun_better() */
    struct pl_plan before, after;
    struct tun_trial first; /* of the plan before, the newest */
    struct tun_trial best;  /* of the search; frames 0: none yet */
    struct tun_trial shape; /* the best plan of the shapes; frames 0: none */
    struct tun_trial last;  /* measured last */
    double last_ci;
    struct tun_sample *samples;     /* owned, of last */
    const struct tun_trial *chosen; /* what is to serve: first, result, or NULL */
    struct tun_trial result;        /* what is nominated to serve instead of the plan before */
    bool fresh;                     /* result was measured right before first is again */
    size_t trials, shape_trials, failures;
    const char *outcome;
    char why[TUN_ERROR_MAX]; /* of a failure */
    bool idle;               /* no client when it began */
    const char *algorithm_before;
    uint64_t began_ns, collected, answered, failed; /* the model's counts when it began */
    char plan_before[PL_PLAN_TEXT_MAX];
    json_t *trials_json; /* owned */
    json_t *event;       /* owned: what the call is answered with */
};

/** dmn_retune_note_trial() - the trial that was measured last goes into the event. @ci: relative.
 * @predicted_ns: 0: unknown. */
void dmn_retune_note_trial(struct dmn_model *m, const char *role, double ci, double predicted_ns);
/** dmn_retune_note_predicted() - what the search's own table had said of the newest trial. */
void dmn_retune_note_predicted(struct dmn_retune *r);
/** dmn_retune_write_event() - history and log, once; the pipeline may be gone. */
void dmn_retune_write_event(struct dmn_model *m);
