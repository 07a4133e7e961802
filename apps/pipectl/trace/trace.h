/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/pipectl/trace/trace.h - the parts of pipectl trace
 *
 * What the daemon sends is kept as it comes, then read, and written to a file as tracks and events.
 */
#pragma once

#include "base/json_text.h"

/*
 * ---- spool.c: keeps a trace as it comes, to be converted afterwards ----
 *
 * Converting takes many times as long as keeping, and the cores may be those that are traced. What
 * comes goes into temporary files beside the trace's, which nobody sees and which go with the
 * program.
 */

struct trace_spool;
/** trace_spool_new() - @beside: the file whose folder it uses. Return: NULL with errno set. */
struct trace_spool *trace_spool_new(const char *beside);
struct trace_spool *trace_spool_free(struct trace_spool *s);
/** trace_spool_add() - keeps @batch, borrowed. Return: 0 or an errno. */
int trace_spool_add(struct trace_spool *s, const json_t *batch);
/** trace_spool_receive() - keeps the records that @sock has now; does not wait. @ret_end: no more
 * will come. Return: 0 or an errno. */
int trace_spool_receive(struct trace_spool *s, int sock, bool *ret_end);

/** trace_spool_rewind() - what follows gives out what was kept. Return: 0 or an errno. */
int trace_spool_rewind(struct trace_spool *s);
/** trace_spool_batch() - Return: the next batch, borrowed until the next call; NULL: there are no
 * more. */
const json_t *trace_spool_batch(struct trace_spool *s);
/** trace_spool_records() - the next block of records, little-endian, borrowed until the next call.
 * Return: its words; 0: there are no more. */
size_t trace_spool_records(struct trace_spool *s, uint32_t *ret_track, const uint32_t **ret);

/*
 * ---- file.c: writes tracks and events to a file for ui.perfetto.dev ----
 *
 * Names are numbered once (trace_name()), so that an event costs a few bytes. Slices of a track are
 * begun and ended in order of time; a slice that begins before another ends encloses it. Errors of
 * writing are kept until trace_file_close().
 */

enum trace_track_kind { TRACE_GROUP, TRACE_SLICES, TRACE_INSTANTS, TRACE_COUNTER };

struct trace_track {
    enum trace_track_kind kind;
    uint32_t parent; /* a group; 0: none */
    const char *name;
    const char *unit; /* of a counter */
    int rank;         /* order among its siblings */
};

struct trace_arg {
    uint32_t name;
    enum { TRACE_ARG_NUMBER, TRACE_ARG_REAL, TRACE_ARG_TEXT } type;
    uint64_t number;
    double real;
    const char *text;
};
#define TRACE_ARGS_MAX 12u

enum trace_flow { TRACE_FLOW_NONE, TRACE_FLOW_BEGIN, TRACE_FLOW_STEP, TRACE_FLOW_END };

struct trace_event {
    enum { TRACE_BEGIN, TRACE_END, TRACE_INSTANT, TRACE_VALUE } type;
    uint32_t track;
    uint64_t at_ns;
    uint32_t name; /* of BEGIN and INSTANT */
    double value;  /* of VALUE */
    const struct trace_arg *args;
    size_t arg_count;
    enum trace_flow flow; /* of BEGIN: an arrow from the flow's slice before it */
    uint64_t flow_id;
};

/* A track and what the format knows of it. */
struct trace_known_track {
    enum trace_track_kind kind;
    bool begun;
    uint64_t last_ns; /* no event of it may be earlier, if it has slices */
    uint8_t *names;   /* owned; a bit a name that its sequence knows */
    size_t name_bytes;
};

struct trace_file {
    FILE *to;
    uint64_t began_ns, realtime_ns;
    int pid;
    struct trace_known_track *tracks; /* owned; [0] is none */
    size_t track_count, track_room;
    char **names; /* owned; [0] is none */
    size_t name_count, name_room;
    int error; /* errno; 0: none */
};

/** trace_file_open() - makes the file @path. Return: NULL with errno set. */
struct trace_file *trace_file_open(const char *path, uint64_t began_ns, uint64_t realtime_ns,
                                   int pid);
/** trace_file_close() - completes and frees it. @ret_bytes: of the file. Return: 0 or an errno. */
int trace_file_close(struct trace_file *f, uint64_t *ret_bytes);
/** trace_name() - Return: the number of @text; 0: out of memory. */
uint32_t trace_name(struct trace_file *f, const char *text);
/** trace_add_track() - Return: its number; 0: out of memory, whose events are left out. */
uint32_t trace_add_track(struct trace_file *f, const struct trace_track *is);
void trace_put(struct trace_file *f, const struct trace_event *e);

/*
 * ---- read.c, records.c: turn the batches of Trace into tracks and events of a file ----
 *
 * docs/trace.md says what a batch holds and what its records become. A record that makes no sense
 * is counted and left out.
 */

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
