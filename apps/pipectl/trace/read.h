/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/pipectl/trace/read.h - turns the batches of Trace into tracks and events of a file
 *
 * docs/trace.md says what a batch holds and what its records become. A record that makes no sense
 * is counted and left out.
 */
#pragma once

#include <jansson.h>

#include "apps/pipectl/trace/file.h"

struct trace_counts {
    uint64_t teams, frames, streams, answers, instants, values, bad;
};

struct trace_reader;
/** trace_reader_new() - writes to @f, which is borrowed. Return: NULL: out of memory. */
struct trace_reader *trace_reader_new(struct trace_file *f);
struct trace_reader *trace_reader_free(struct trace_reader *r);
/** trace_reader_batch() - writes what one batch holds, but its records. */
void trace_reader_batch(struct trace_reader *r, const json_t *batch);

/** trace_reader_records() - writes the records of a team's ring, or of the clients' (@track 0).
 * @words: little-endian. */
void trace_reader_records(struct trace_reader *r, uint32_t track, const uint32_t *words,
                          size_t count);

/* ---- for records.c ---- */

struct trace_pipeline {
    uint32_t model;         /* name */
    uint32_t group, *units; /* its model's; owned: names */
    size_t unit_count;
};
struct trace_team {
    uint32_t track, queue, pipeline, epoch, first_unit;
    uint64_t last_ns; /* the end of its last frame; 0: none yet */
};
struct trace_stream {
    char name[160]; /* with its number, as one client may have several of the same id */
    size_t lane_count;
    struct {
        uint32_t track;
        uint64_t until_ns;
    } * lanes; /* owned; one for each frame at once */
};
struct trace_group {
    const char *model; /* borrowed from the file's names */
    uint32_t group, instants;
};
struct trace_counter {
    uint32_t of, name; /* names */
    uint32_t track;
};

/* Names that are often used: X(NUMBER, TEXT). */
/* clang-format off */
#define TRACE_WORDS(X) \
    X(WORD_FRAME, "frame") X(WORD_PASSED_ON, "frame passed on") \
    X(WORD_WAITS, "waits for a frame") X(WORD_WAKES, "wakes up") X(WORD_OTHERS, "other tasks") \
    X(WORD_TAKES, "takes the next frame") X(WORD_LOST, "records lost") \
    X(WORD_ROOM, "waits for room") X(WORD_PIPELINE, "in the pipeline") \
    X(WORD_TURN, "waits for its turn") X(WORD_MODEL, "model") X(WORD_NUMBER, "number") \
    X(WORD_EPOCH, "epoch") X(WORD_STATUS, "status") X(WORD_QUEUED, "queued_ns") \
    X(WORD_SLEPT, "slept")
/* clang-format on */
#define TRACE_NUMBER(number, text) number,
enum trace_word { TRACE_WORDS(TRACE_NUMBER) WORD_COUNT };

struct trace_reader {
    struct trace_file *f;
    struct trace_counts counts;
    uint32_t words[WORD_COUNT];
    uint32_t clients; /* group */
    struct trace_pipeline *pipelines;
    struct trace_team *teams;
    struct trace_stream *streams;
    struct trace_group *groups;
    struct trace_counter *counters;
    uint32_t *record; /* owned: the present one */
    size_t record_room;
    size_t pipeline_count, team_count, stream_count, group_count, counter_count;
};

/** trace_room() - makes @index a member of an array of @count members of @bytes, zeroed. Return:
 * false: out of memory, or too many. */
bool trace_room(void **array, size_t *count, size_t index, size_t bytes);
