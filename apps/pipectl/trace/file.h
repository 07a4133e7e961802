/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/pipectl/trace/file.h - writes tracks and events to a file for ui.perfetto.dev
 *
 * Names are numbered once (trace_name()), so that an event costs a
 * few bytes. Slices of a track are begun and ended in order of time; a slice that begins before
 * another ends encloses it. Errors of writing are kept until trace_file_close().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

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
