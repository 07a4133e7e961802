/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/pipectl/bench/bench.h - the parts of pipectl bench
 *
 * One thread serves all clients; each is a connection with one stream. A client has a few distinct
 * frames, its patterns. A slot is filled with one pattern once and keeps it, so sending copies
 * nothing.
 */
#pragma once

#include "apps/pipectl/common/pipectl.h"

#define BENCH_STATUS_COUNT 32

struct bench_slot {
    const void *input; /* the slot's memory, which identifies it */
    size_t pattern;
};

struct bench_client {
    struct piped *client;
    struct piped_stream *stream;
    struct bench_slot *slots; /* owned */
    size_t slot_count, in_flight, patterns, under_way;
    uint8_t **reference; /* owned: output per pattern, with verify */
    uint64_t seed;
    uint64_t last_number; /* of the last answer: order is checked here, too */
    uint64_t waits_ns;    /* since when it has waited for an answer; 0: it does not */
    bool gone;
};

struct bench {
    struct ctl_options o;
    unsigned width, height;       /* of --size; 0: as the model needs */
    struct bench_client *clients; /* owned */
    bool said_trouble;            /* of the first one */
    uint64_t sent, answered, ok, wrong, inexact, reordered, duplicated, lost, resent, reconnects;
    uint64_t errors[BENCH_STATUS_COUNT];
    char why[BENCH_STATUS_COUNT][160]; /* the text of the last one */
    double *latency_ms;                /* owned, of every good answer */
    size_t latency_count, latency_size;
    uint64_t start_ns, end_ns; /* of the run, CLOCK_MONOTONIC; end 0: none */
    uint64_t first_ns, last_ns;
    size_t under_way, most_under_way; /* frames of all clients without an answer: now, at most */
    uint64_t pause_ns; /* the longest that a client with frames under way got no answer */
    double joules;     /* of this board during the run, with autodice; NAN: unknown */
};

/* client.c */

/** bench_client_open() - Return: an exit code. */
int bench_client_open(const struct ctl *ctl, struct bench *b, struct bench_client *c,
                      uint64_t seed);
/** bench_is_asked_for() - Return: whether an answer with this status is what the policy or the
 * deadline of the options asks for, and no failure. */
bool bench_is_asked_for(const struct ctl_options *o, int status);
void bench_client_close(struct bench *b, struct bench_client *c);
/** bench_client_send() - sends a frame if a slot is free and the pipeline needs one more, or
 * --in-flight allows it. @time_ns: when it was due. Return: true
 * if it was sent. */
bool bench_client_send(struct bench *b, struct bench_client *c, uint64_t time_ns);
/** bench_client_collect() - takes the answers that have come. Return: their number. */
size_t bench_client_collect(struct bench *b, struct bench_client *c);

#define BENCH_AUTODICE_RUNS 20

/* report.c */

/** bench_report() - prints the summary. @cpu_s: CPU time of this program. */
void bench_report(const struct ctl *ctl, struct bench *b, double cpu_s);
