/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/plans/retune_private.h - a retune in progress: its steps (retune.c), what comes next
 * with its search (retune_next.c), what it leaves (retune_event.c)
 *
 * Only these files and their unit tests include it. A job owns the search. The loop thread reads
 * the search only while the job is idle. If a retune ends while its job works, it leaves the job,
 * which is freed when the work is done.
 */
#pragma once

#include "daemon/models/models.h"
#include "daemon/plans/retune.h"
#include "daemon/plans/trial.h"
#include "daemon/service/work.h"

/* ---- the search, as queued work: retune_next.c ---- */

struct dmn_retune_job {
    struct dmn_job work;
    void (*done)(struct dmn_model *m); /* called on the loop when the work is done */
    struct dmn_model *model;           /* borrowed */
    const struct tun_algorithm *algorithm;
    struct tun_problem problem; /* owned, until the search has copied it */
    struct tun_options options;
    struct pl_plan from;       /* of the options */
    struct tun_search *search; /* owned */
    bool tell;                 /* tell `trial` to the search before asking it */
    struct tun_trial trial;
    struct tun_sample *samples; /* owned */
    struct pl_plan plan;        /* the plan that the search asked for, if result is 0 */
    int result;                 /* of new, tell or ask */
    char error[TUN_ERROR_MAX];
};

/** dmn_retune_job_start() - makes the search, or tells it @t (NULL: nothing), then asks it; calls
 * @on_done at the end. @samples: taken. */
void dmn_retune_job_start(struct dmn_retune_job *j, struct dmn_model *m,
                          void (*on_done)(struct dmn_model *m), const struct tun_trial *t,
                          struct tun_sample *samples);
/** dmn_retune_job_leave() - frees the job now, or when its work is done. Takes NULL. Return:
 * NULL. */
struct dmn_retune_job *dmn_retune_job_leave(struct dmn_retune_job *j);

/*
 * ---- synthetic.c: synthetic frames, to measure a plan while nobody uses the model ----
 *
 * They only use what clients leave free: none is submitted while a client's frame is in the
 * pipeline, waits for it, or came out moments ago. There are just enough to keep the plan busy, so
 * the next client finds a short queue. All share one zeroed input; each has its own output.
 * Threads: the loop thread.
 */
#define DMN_SYNTHETIC_MAX 512u

struct dmn_synthetic {
    struct dmn_frame_owner owner; /* of every synthetic frame; the frame's tag is its index */
    uint8_t *input, *outputs;     /* owned */
    size_t places, outstanding;
    bool taken[DMN_SYNTHETIC_MAX];
};

/** dmn_synthetic_init() - Return: 0 or -ENOMEM. */
int dmn_synthetic_init(struct dmn_synthetic *f, const struct dmn_model *m);
void dmn_synthetic_deinit(struct dmn_synthetic *f);
/** dmn_synthetic_idle() - Return: no client has used the model in the last moments. */
bool dmn_synthetic_idle(const struct dmn_model *m, uint64_t now_ns);
/** dmn_synthetic_fill() - submits as many frames as are wanted now. */
void dmn_synthetic_fill(struct dmn_synthetic *f, struct dmn_model *m);

/*
 * ---- shapes.c: shapes of team that the cost table does not know, and plans to measure
 * them ----
 *
 * A shape is (EP, width), with widths 1, 2, 4, ... and all cores of the EP; other widths are
 * predicted from these. A one-stage plan with teams on all cores measures several shapes at once,
 * so frames come out at nearly the pace of one worker per core. Shapes that the table already puts
 * far behind are skipped. Pure functions; any thread.
 */
/* An EP with less than this share of the network's total rate is not worth using. */
#define DMN_SHAPES_RATE_MIN 0.02
/* Where throughput is wanted, a wide team must promise this share of its cores' single-threaded
 * rate. */
#define DMN_SHAPES_YIELD_MIN 0.7

struct dmn_shapes {
    unsigned tried[PL_EP_MAX]; /* bit i: width min(2^i, cores) */
};

/**
 * dmn_shapes_next() - a one-stage plan with the narrowest shapes that are neither known nor tried;
 * marks them as tried
 *
 * If only throughput is wanted and all widths of 1 are known, no wide team is shown once the
 * serving plan, or one worker on each core, is within the slack of tun_bound_ns(): even perfect
 * scaling would gain nothing. @p: every cell has a figure. @present_ns: measured bottleneck of the
 * serving plan; 0: unknown. Return: true with @ret set; false: there is none left.
 */
bool dmn_shapes_next(struct dmn_shapes *s, const struct tun_problem *p, double present_ns,
                     struct pl_plan *ret);

/* ---- the state ---- */

enum dmn_retune_phase {
    DMN_RETUNE_BEFORE, /* measures the serving plan */
    DMN_RETUNE_KNOWN,  /* measures the plan kept for this state of the machine */
    DMN_RETUNE_SHAPES, /* measures shapes of team that the table does not know */
    DMN_RETUNE_SEARCH, /* measures what the search asks for */
    DMN_RETUNE_AGAIN,  /* measures the previous plan, then the best one, again */
    DMN_RETUNE_LAST,   /* switches to the plan that will serve */
    DMN_RETUNE_OVER,   /* waits for the last synthetic frames */
};

/* A trial for the event's list. */
struct dmn_retune_note {
    struct pl_plan plan;
    struct dmn_history_trial trial; /* its plan text is written at the end */
};

struct dmn_retune {
    struct dmn_retune_request q; /* q.done: NULL once called; q.decided: a reference */
    enum dmn_retune_phase phase;
    bool measuring, elsewhere; /* elsewhere: by q.over, not in the pipeline */
    struct pl_plan serves;     /* what is measured, or was last */
    struct dmn_trial trial;    /* in progress */
    struct dmn_synthetic synthetic;
    struct dmn_shapes shapes;
    struct dmn_retune_job *job; /* owned; NULL before the search begins */
    struct tun_problem rule;    /* only objective and bounds, for tun_better() */
    struct tun_problem problem; /* owned; no units: the model's table holds */
    char happened[256];         /* "": somebody asked */
    struct pl_plan known;       /* no stages: none */
    struct pl_plan before, after;
    struct tun_trial first; /* the newest trial of the previous plan */
    struct tun_trial best;  /* of the search; frames 0: none yet */
    struct tun_trial shape; /* best plan of the phases KNOWN and SHAPES; frames 0: none */
    struct tun_trial last;  /* the newest measurement */
    double last_ci;
    struct tun_sample *samples;     /* owned, of last */
    const struct tun_trial *chosen; /* which plan will serve: &first, &result, or NULL */
    struct tun_trial result;        /* the candidate to replace the previous plan */
    bool fresh; /* `result` was measured right before `first` was measured again */
    size_t trials, shape_trials, failures;
    enum dmn_event_outcome outcome;
    char why[TUN_ERROR_MAX]; /* of a failure */
    bool idle;               /* no client used the model when it began */
    struct dmn_origin origin_before;
    uint64_t began_ns, collected, answered, failed; /* the model's counts when it began */
    char plan_before[PL_PLAN_TEXT_MAX];
    struct dmn_retune_note *notes; /* owned, grows */
    size_t note_count, note_room;
    struct dmn_history_event *event; /* owned reference, for whoever waits */
};

/* ---- retune_next.c: decides what comes next. Changes the retune alone (phase, chosen, after,
 * trials), never the plan that serves ---- */

/* The next step. */
struct dmn_retune_next {
    enum {
        DMN_NEXT_MEASURE, /* measure `plan` */
        DMN_NEXT_THINK,   /* start the search's job; `tell`: with the last trial */
        DMN_NEXT_CONCLUDE,
    } what;
    struct pl_plan plan;
    bool tell;
    enum dmn_event_outcome outcome; /* of the conclusion; NONE: the measurements decide */
};

/** dmn_retune_measured() - r->last is a new measurement. Return: the next step. */
struct dmn_retune_next dmn_retune_measured(struct dmn_model *m);
/** dmn_retune_refused() - @plan could not be built for its measurement. Return: the next step. */
struct dmn_retune_next dmn_retune_refused(struct dmn_model *m, const struct pl_plan *plan);
/** dmn_retune_thought() - the job is done. Return: the next step. */
struct dmn_retune_next dmn_retune_thought(struct dmn_model *m);
/** dmn_retune_stop_ns() - Return: a bottleneck that is clearly worse than the best; 0: unknown. */
double dmn_retune_stop_ns(const struct dmn_retune *r);
/** dmn_retune_conclude() - chooses the plan that will serve: sets r->chosen and r->after. */
void dmn_retune_conclude(struct dmn_retune *r, enum dmn_event_outcome outcome);

/* ---- retune_event.c ---- */

/** dmn_retune_note_trial() - adds the last measurement to the event, and counts it. @ci: relative.
 * @predicted_ns: 0: unknown. Return: the measurement. */
struct dmn_history_trial dmn_retune_note_trial(struct dmn_model *m, enum dmn_trial_role role,
                                               double ci, double predicted_ns);
/** dmn_retune_note_predicted() - adds the search's own prediction to the newest trial. */
void dmn_retune_note_predicted(struct dmn_retune *r);
/** dmn_retune_plan_text() - a plan of the search for people. */
void dmn_retune_plan_text(const struct dmn_model *m, const struct pl_plan *plan,
                          char ret[PL_PLAN_TEXT_MAX]);
/** dmn_retune_keep_tried() - keeps the completed trials as m->planning->tried, in place of older
 * ones. The plan that will serve is chosen. */
void dmn_retune_keep_tried(struct dmn_model *m);
/** dmn_retune_write_event() - writes history and log, once; the pipeline may be gone. */
void dmn_retune_write_event(struct dmn_model *m);
