/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pipeline/trace.h - a trace: for each team that is traced a ring of records, one a frame
 *
 * pl_trace_attach() (pipeline.h) gives every team of a pipeline a ring, also those of plans that
 * follow, until pl_trace_detach(). A ring outlives its team until it was read empty. All memory is
 * there before a team writes to it, and there is a limit for all rings together: a team that finds
 * no room in it is not traced, and counted.
 *
 * Threads: the loop thread, for all of it; a team writes its own ring. The loop takes a ring away
 * by a hand-shake: it clears pl_team.trace, then looks whether the team is writing (pl_team.
 * tracing); the team sets `tracing`, then looks at `trace` again. Both have a full fence between
 * the two, so at least one sees the other.
 */
#pragma once

#include "pipeline/plan.h"
#include "pipeline/trace_ring.h"

struct pl_team;

/* A traced team, as it was when its plan began. */
struct pl_trace_team {
    uint32_t track;    /* number of its ring in this trace, from 1 */
    uint32_t pipeline; /* as pl_trace_attach() was told */
    uint32_t epoch;
    uint16_t stage, width, replica, first_unit, last_unit;
    uint16_t cpus[PL_CPU_MAX];
    char ep[PL_EP_NAME_MAX + 1];
};

struct pl_trace_entry {
    struct pl_trace_entry *next;
    struct pl_trace_team team;
    struct pl_trace_ring ring;
    bool ended;     /* no team writes to it any more */
    bool announced; /* the reader's own */
};

struct pl_trace {
    size_t ring_bytes, limit_bytes;
    size_t bytes;                   /* of all rings now */
    size_t most_bytes;              /* so far */
    uint32_t tracks;                /* rings made so far */
    uint64_t lost;                  /* records of rings that are freed */
    uint64_t untraced;              /* teams for which there was no room */
    struct pl_trace_entry *entries; /* owned, newest first */
};

/** pl_trace_new() - a trace without rings. @ring_bytes: of each ring. Return: 0, -EINVAL,
 * -ENOMEM. */
int pl_trace_new(size_t ring_bytes, size_t limit_bytes, struct pl_trace **ret);
/** pl_trace_free() - frees all rings; no pipeline is attached. Accepts NULL. Return: NULL. */
struct pl_trace *pl_trace_free(struct pl_trace *t);
/** pl_trace_trim() - frees the rings that have ended and are read empty. */
void pl_trace_trim(struct pl_trace *t);
/** pl_trace_lost_all() - Return: records that found no room, over all rings. */
uint64_t pl_trace_lost_all(const struct pl_trace *t);

/* for pipeline.c and stage_set.c only */

/** pl_trace_add_team() - gives @team a ring, if there is room for one. */
void pl_trace_add_team(struct pl_trace *t, struct pl_team *team, const char *ep, uint32_t epoch,
                       uint32_t pipeline);
/** pl_trace_drop_team() - takes the ring of @team away. @joined: its thread has ended. Return:
 * true; false: it is writing just now, ask again. A team without a ring has none to take. */
bool pl_trace_drop_team(struct pl_team *team, bool joined);
