/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/plans/history.h - what happened to plans and why: a ring of events, newest last
 *
 * A holder of a reference may complete an event after it was added. Threads: the loop thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/models/serving.h"
#include "tuner/adapt/turns.h"

#define DMN_DATE_MAX 64u
/* How many of the newest events keep the inputs of their decision, which are large. */
#define DMN_HISTORY_DECISIONS 16u

/* How an event ended. */
enum dmn_event_outcome {
    DMN_OUTCOME_NONE,        /* not known yet */
    DMN_OUTCOME_SERVING,     /* a model began to serve */
    DMN_OUTCOME_SWITCHED,    /* a new plan serves */
    DMN_OUTCOME_KEPT,        /* the previous plan stays */
    DMN_OUTCOME_REVERTED,    /* a search found nothing as good as the previous plan */
    DMN_OUTCOME_ROLLED_BACK, /* the new plan was worse than predicted */
    DMN_OUTCOME_CANCELLED,
    DMN_OUTCOME_DEADLINE,
    DMN_OUTCOME_FAILED,
    DMN_OUTCOME_NOTED,  /* needs no action */
    DMN_OUTCOME_TUNING, /* of a decision: its search began, or ended */
    DMN_OUTCOME_TUNED,
    DMN_OUTCOME_COUNT
};
extern const char *const dmn_event_outcome_names[]; /* by enum dmn_event_outcome; NULL for NONE */

/* Why a plan was measured. */
enum dmn_trial_role {
    DMN_ROLE_SERVING, /* a switch made it serve */
    DMN_ROLE_BEFORE,  /* it served when the search began */
    DMN_ROLE_KNOWN,   /* it was kept for this state of the machine */
    DMN_ROLE_SHAPES,  /* it shows unknown shapes of team */
    DMN_ROLE_SEARCH,  /* the search asked for it */
    DMN_ROLE_AGAIN,   /* it is measured once more, to be sure */
    DMN_ROLE_TURNS,   /* it and another plan served in turns */
};
extern const char *const dmn_trial_role_names[]; /* by enum dmn_trial_role */

struct dmn_history_trial {
    char *plan; /* owned */
    enum dmn_trial_role role;
    double bottleneck_ns, predicted_ns, latency_ns; /* 0: unknown */
    double ci;                                      /* relative half width; 0: unknown */
    double spent_ns;
    uint64_t frames;
    bool kept; /* of a search, this is found out by dmn_history_add() */
    bool stopped, failed;
};

/* A decision with all its inputs, enough to repeat it; shared by reference. */
struct dmn_decided {
    unsigned references;
    struct tun_record record; /* owned */
    bool replan;
    enum tun_cause cause;
    enum tun_hold hold;
    struct pl_plan plan; /* set if replan */
    double gain;
};
/** dmn_decided_new() - @r: taken on success. Return: one reference; NULL: out of memory. */
struct dmn_decided *dmn_decided_new(struct tun_record *r, const struct tun_decision *d);
/** dmn_decided_ref() - adds a reference. Takes NULL. Return: @d. */
struct dmn_decided *dmn_decided_ref(struct dmn_decided *d);
/** dmn_decided_unref() - drops a reference. Takes NULL. Return: NULL. */
struct dmn_decided *dmn_decided_unref(struct dmn_decided *d);

/* dmn_history_add() copies strings, so the caller's are only borrowed. */
struct dmn_history_event {
    unsigned references;
    uint64_t id;
    char at[DMN_DATE_MAX];
    uint64_t at_ns;                       /* the same moment, monotonic */
    const char *model, *detail;           /* detail NULL: "" */
    const char *plan_before, *plan_after; /* before NULL: none */
    enum dmn_cause cause;
    struct dmn_origin origin; /* of plan_after */
    enum dmn_event_outcome outcome;
    double fps_before, fps_after; /* negative: not measured */
    double predicted_gain;        /* INFINITY: the previous plan no longer fitted */
    double duration_ms;
    uint64_t lost;
    struct dmn_history_trial *trials; /* owned, an array */
    size_t trial_count;
    /* of a search */
    bool searched;
    enum tun_objective objective;
    size_t asked;      /* number of trials, listed or not */
    double fps_during; /* answers per second during the search: of clients; without any, its own */
    struct dmn_decided *decided; /* a reference; NULL: none */
    /* of plan_after or the plan that was not taken against plan_before; OPEN: there were none */
    enum tun_verdict verdict;
    struct tun_turns_shown turns;
};

struct dmn_history {
    struct dmn_history_event **events; /* owned; a ring of references */
    size_t size, count, at;
    uint64_t next_id;
};

/** dmn_history_init() - @size: events to keep. Return: 0 or -ENOMEM. */
int dmn_history_init(struct dmn_history *h, size_t size);
void dmn_history_deinit(struct dmn_history *h);
/** dmn_history_now() - writes date and time as in events: UTC, with milliseconds. Threads: any. */
void dmn_history_now(char ret[DMN_DATE_MAX]);
/** dmn_history_add() - adds an event. @e: its trials are always taken; its decision gets another
 * reference. Return: borrowed until the ring drops it; NULL: out of memory. */
struct dmn_history_event *dmn_history_add(struct dmn_history *h, const struct dmn_history_event *e);
/** dmn_history_get() - the event @back places before the newest. Return: borrowed; NULL: none. */
struct dmn_history_event *dmn_history_get(const struct dmn_history *h, size_t back);

/** dmn_history_chosen() - the event that made a model's plan serve. @plan: the present one, as
 * text. Routes over boards, which leave it as it is, do not count. Return: borrowed; NULL: it was
 * dropped, or the plan is on trial. */
const struct dmn_history_event *dmn_history_chosen(const struct dmn_history *h, const char *model,
                                                   const char *plan);
/** dmn_event_chooser() - who chose the plan of an event: "start", "retune", "adaptation", "hand",
 * "config", or "request" for the best known plan. Return: static. */
const char *dmn_event_chooser(const struct dmn_history_event *e);

/** dmn_event_ref() - adds a reference. Takes NULL. Return: @e. */
struct dmn_history_event *dmn_event_ref(struct dmn_history_event *e);
/** dmn_event_unref() - drops a reference. Takes NULL. Return: NULL. */
struct dmn_history_event *dmn_event_unref(struct dmn_history_event *e);
/** dmn_event_measured() - completes @e with the measurement of plan_after. DMN_OUTCOME_ROLLED_BACK
 * means that the previous plan serves again. @fps: negative: not measured. */
void dmn_event_measured(struct dmn_history_event *e, enum dmn_event_outcome outcome, double fps,
                        uint64_t frames, uint64_t lost);
