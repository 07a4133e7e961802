/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/control/tracing.h - the method Trace: one trace at a time
 *
 * Teams and streams write records into rings (pipeline/trace.h, daemon/frames/handlers.c). A
 * timer sends what they hold through a socket that came with the call, as bytes: as JSON they would
 * cost both sides more than recording them. Replies tell the rest in batches: what the teams are,
 * events, decisions, clocks, queues. The reply that ends the call is sent once no team writes any
 * more and every ring is read. Nothing here waits: a client that reads too slowly loses records,
 * which are counted; one that leaves ends the trace.
 *
 * Threads: the loop thread.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <uv.h>

#include "daemon/control/control.h"
#include "pipeline/trace.h"

#define DMN_TRACE_SECONDS 10.0
#define DMN_TRACE_SECONDS_MAX 3600.0
#define DMN_TRACE_RING_BYTES (256u << 10)
#define DMN_TRACE_LIMIT_BYTES ((size_t)64 << 20) /* of all teams' rings together */
#define DMN_TRACE_ANSWERS_BYTES (1u << 20)       /* of the ring of clients' frames */
/* Sent at once: more than a record has, of a model with as many units as there may be. */
#define DMN_TRACE_BATCH_WORDS (96u << 10)

/* What was told last of a model. */
struct dmn_trace_model {
    const struct dmn_model *model; /* only compared */
    size_t waiting, in_flight;
    unsigned decisions;
};

struct dmn_tracing {
    struct dmn_control *control;
    struct dmn_call *call; /* its conn is NULL once the client has gone */
    struct pl_trace *trace;
    struct pl_trace_ring answers; /* of clients' frames */
    uv_timer_t timer;
    int sock;                  /* owned; of the client, for records */
    size_t out_sent, out_used; /* bytes of words[] */
    bool broken;               /* the client has closed the socket */
    uint64_t began_ns, end_ns;
    const char *ended;     /* why nothing is recorded any more; NULL: it is */
    uint64_t stuck_ns;     /* the client reads nothing since then; 0: not looked yet */
    size_t unread, unsent; /* by the client, at the last look; words[] left then */
    bool told_begin;       /* the first batch went out */
    bool quiet;            /* ended, and no team writes any more */
    uint32_t pipelines;    /* attached so far */
    json_t *news;          /* pipelines that no batch has described yet */
    json_t *events;        /* of the next batch */
    uint64_t events_lost;  /* that found no room there */
    uint64_t history;      /* id of the newest event told */
    uint64_t sensors;      /* sequence of the newest snapshot told */
    size_t model_count;    /* of models[] */
    struct dmn_trace_model models[32];
    char who[64];
    uint32_t words[DMN_TRACE_BATCH_WORDS];
};

/** dmn_tracing_model() - @m serves now: a trace that is on follows it, too. */
void dmn_tracing_model(struct dmn_control *control, struct dmn_model *m);
/** dmn_tracing_end() - records no more, and ends the call when all is sent. @why: static. */
void dmn_tracing_end(struct dmn_control *control, const char *why);
/** dmn_tracing_stop() - frees it now; no model is left. Does nothing without a trace. */
void dmn_tracing_stop(struct dmn_control *control);

/* trace_batch.c */

/** dmn_trace_describe() - describes the pipeline of @m for the next batch. */
void dmn_trace_describe(struct dmn_tracing *t, struct dmn_model *m, uint32_t pipeline);
/** dmn_trace_look() - adds events for what has changed and nobody reports. */
void dmn_trace_look(struct dmn_tracing *t);
/** dmn_trace_add_event() - @event: stolen; NULL: out of memory, it is lost. */
void dmn_trace_add_event(struct dmn_tracing *t, uint64_t at_ns, json_t *event);
/** dmn_trace_batch() - Return: the next batch, a new reference. @last: with the totals. */
json_t *dmn_trace_batch(struct dmn_tracing *t, bool last);
