/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/pipesim/subject.h - what compare and plan are about: the options they share, and tables
 */
#pragma once

#include <jansson.h>

#include "tuner/pipesim/platform.h"

struct psim_subject {
    const char *model, *platform, *problem_path; /* as given, borrowed */
    bool layers, json;
    double fps, latency_ms; /* bounds; 0: none */
    enum tun_objective objective;
    struct tun_problem problem; /* the truth, owned */
};

#define PSIM_DONE 0
#define PSIM_FAILED 1
#define PSIM_USAGE 2
#define PSIM_GO (-1) /* no exit code: go on */

/** psim_subject_option() - Return: PSIM_GO, or an exit code after having said what is wrong (an
 * unknown option too) or printed the help of @command. */
int psim_subject_option(struct psim_subject *s, const char *command, int option, char **argv);

/** psim_subject_load() - the problem that was asked for. Return: PSIM_GO or an exit code. */
int psim_subject_load(struct psim_subject *s, const char *command);
void psim_subject_deinit(struct psim_subject *s);

/** psim_option_number() - value of an option. Return: false after having said what is wrong. */
bool psim_option_number(const char *command, const char *option, const char *text, double least,
                        double most, double *ret);

/** psim_option() - cli_getopt() with the options of the command argv[0] (pipesim_options.h). */
int psim_option(int argc, char **argv);
/** psim_help() - usage and options of @command. */
void psim_help(FILE *to, const char *command);
/** psim_say() - one line to stderr; printf-like. */
void psim_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/** psim_usage() - psim_say(), with the usage line behind it. Return: PSIM_USAGE. */
int psim_usage(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
/** psim_bad_option() - the same of what psim_option() refused: @id is ':' or '?'. */
int psim_bad_option(const char *command, int id, char **argv);

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
