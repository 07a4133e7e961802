/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/pipesim/subject.h - what commands share: messages, reading options, the problem that most
 * of them are about, and tables
 */
#pragma once

#include <jansson.h>

#include "base/cli/cli.h"
#include "tuner/pipesim/platform.h"

struct psim_subject {
    const char *model, *platform, *problem_path; /* as given, borrowed */
    bool layers, json;
    double fps, latency_ms;     /* bounds; 0: none */
    unsigned objective;         /* enum tun_objective */
    struct tun_problem problem; /* the truth, owned */
};

#define PSIM_DONE 0
#define PSIM_FAILED 1
#define PSIM_USAGE 2
#define PSIM_GO (-1) /* no exit code: go on */

/* Where the value of an option goes: @to is a bool (set), a const char * (borrowed), an unsigned
 * (the number of its word, or a whole number), a uint64_t (whole) or a double; numbers within
 * @least..@most.
 */
enum psim_take_as { PSIM_FLAG, PSIM_TEXT, PSIM_WORD, PSIM_UNSIGNED, PSIM_WHOLE, PSIM_REAL };
struct psim_take {
    int id; /* of its row in pipesim_options.c */
    enum psim_take_as as;
    void *to;
    double least, most;
};
#define PSIM_WHOLE_MAX 9007199254740992.0 /* 2^53: doubles hold every whole number up to it */

/* The rows of the options that all commands about a subject share. */
#define PSIM_TAKES_SUBJECT(s)                                                                      \
    {'m', PSIM_TEXT, &(s)->model}, {'p', PSIM_TEXT, &(s)->platform},                               \
        {'P', PSIM_TEXT, &(s)->problem_path}, {'l', PSIM_FLAG, &(s)->layers},                      \
        {'j', PSIM_FLAG, &(s)->json}, {'o', PSIM_WORD, &(s)->objective},                           \
        {'f', PSIM_REAL, &(s)->fps, 1e-6, 1e6},                                                    \
    {                                                                                              \
        'L', PSIM_REAL, &(s)->latency_ms, 1e-6, 1e9                                                \
    }

/** psim_options() - reads all options of the command argv[0]. @takes: a row for each that it has
 * but --help. Return: PSIM_GO, or an exit code after having said what is wrong (an argument where
 * it takes none, too) or printed its help. */
int psim_options(int argc, char **argv, const struct psim_take *takes);

/** psim_subject_load() - the problem that was asked for. Return: PSIM_GO or an exit code. */
int psim_subject_load(struct psim_subject *s, const char *command);
void psim_subject_deinit(struct psim_subject *s);

/** psim_option_number() - value of an option. Return: false after having said what is wrong. */
bool psim_option_number(const char *command, const char *option, const char *text,
                        const struct cli_range *range, double *ret);

/** psim_help() - usage and options of @command. */
void psim_help(FILE *to, const char *command);
/** psim_say() - one line to stderr; printf-like. */
void psim_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/** psim_usage() - psim_say(), with the usage line behind it. Return: PSIM_USAGE. */
int psim_usage(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
/** psim_plan_text() - @ret: [PL_PLAN_TEXT_MAX]. */
void psim_plan_text(const struct tun_problem *p, const struct pl_plan *plan, char *ret);

/** psim_print_json() - to stdout; takes @v. Return: exit code. */
int psim_print_json(json_t *v);

/* A table for a terminal: rows are lists of texts. */
/** psim_row() - cells separated by tabs; printf-like. */
void psim_row(json_t *rows, const char *format, ...) __attribute__((format(printf, 2, 3)));
/** psim_print_rows() - the first row is the head; @align: 'l' or 'r' for each column. Takes @rows.
 */
void psim_print_rows(json_t *rows, const char *align);
