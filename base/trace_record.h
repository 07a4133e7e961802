/* SPDX-License-Identifier: Apache-2.0 */
/**
 * trace_record.h - the records of a trace: what teams and streams write, and pipectl reads
 *
 * A record is a number of 32-bit words. Word 0 is its kind, shifted by 24, plus its words, itself
 * included. Numbers of 64 bits take two words, the low one first. Times are CLOCK_MONOTONIC in
 * nanoseconds. In a reply of the method Trace, words are little-endian, and docs/trace.md describes
 * the same layout; words may be added at the end of a record, before those of its units.
 *
 * For pipeline/, daemon/frames/ and apps/pipectl/. Header-only. Threads: any.
 */
#pragma once

#include <stdint.h>

/* Kinds. */
enum trace_kind {
    TRACE_TEAM = 1,   /* a team has held a frame */
    TRACE_STREAM = 2, /* a stream whose answers follow */
    TRACE_ANSWER = 3, /* a client's frame was answered */
};
#define TRACE_WORDS_MAX 0xffffffu /* of one record */

/* Words of TRACE_TEAM. Those from TRACE_TEAM_UNITS on are the times of the team's units in ns,
 * cut to 32 bits, or missing if the frame was passed on without computing it. With TRACE_TEAM_TAKEN
 * there are as many words more: what other tasks took of each. */
enum {
    TRACE_TEAM_STATUS = 1,  /* enum pl_frame_status */
    TRACE_TEAM_FLAGS = 2,   /* the three below */
    TRACE_TEAM_WAITING = 3, /* frames that wait for the team at its end */
    TRACE_TEAM_NUMBER = 4,  /* 64 bits: of admission to the pipeline */
    TRACE_TEAM_TAG = 6,     /* 64 bits: the client's number of the frame */
    TRACE_TEAM_GIVEN = 8,   /* 64 bits: when the frame was given to the team */
    TRACE_TEAM_START = 10,  /* 64 bits: when the team took it */
    TRACE_TEAM_END = 12,    /* 64 bits: when the team had computed its last unit */
    TRACE_TEAM_UNITS = 14,
};
#define TRACE_TEAM_SLEPT 1u /* the team slept before it took the frame */
#define TRACE_TEAM_GAP 2u   /* records before this one were lost */
#define TRACE_TEAM_TAKEN 4u /* other tasks took the core for a part of the time */

/* Words of TRACE_STREAM. */
enum {
    TRACE_STREAM_TRACK = 1, /* its number in this trace */
    TRACE_STREAM_ID = 2,    /* the client's number of it */
    TRACE_STREAM_PID = 3,
    TRACE_STREAM_NAME = 4, /* the client's name: bytes, the last word filled up with NUL */
};

/* Words of TRACE_ANSWER. Times are 0 where the frame did not get so far. */
enum {
    TRACE_ANSWER_TRACK = 1,
    TRACE_ANSWER_STATUS = 2,   /* enum ipc_status */
    TRACE_ANSWER_PIPELINE = 3, /* that computed it; 0: none on this board */
    TRACE_ANSWER_EPOCH = 4,
    TRACE_ANSWER_FRAME = 5,     /* 64 bits: the client's number of it */
    TRACE_ANSWER_NUMBER = 7,    /* 64 bits: of admission to that pipeline */
    TRACE_ANSWER_ARRIVED = 9,   /* 64 bits: its message had arrived */
    TRACE_ANSWER_ADMITTED = 11, /* 64 bits: it went into the pipeline */
    TRACE_ANSWER_DONE = 13,     /* 64 bits: the last stage had computed it */
    TRACE_ANSWER_ANSWERED = 15, /* 64 bits: its answer was written */
    TRACE_ANSWER_WORDS = 17,
};

static inline uint32_t trace_head(enum trace_kind kind, uint32_t words)
{
    return (uint32_t)kind << 24 | words;
}
static inline uint32_t trace_kind_of(uint32_t head)
{
    return head >> 24;
}
static inline uint32_t trace_words_of(uint32_t head)
{
    return head & TRACE_WORDS_MAX;
}
static inline uint64_t trace_u64(const uint32_t *words)
{
    return words[0] | (uint64_t)words[1] << 32;
}
