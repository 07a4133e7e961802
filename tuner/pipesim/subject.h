/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/pipesim/subject.h - what commands share: messages, reading options, the problem that most
 * of them are about, and tables
 */
#pragma once

#include <jansson.h>

#include "base/cli/cli_table.h"
#include "base/cli/cli_take.h"
#include "tuner/pipesim/described.h"
#include "tuner/pipesim/pipesim.h"

#define PSIM_DONE 0
#define PSIM_FAILED 1

/* Says something on stderr, with the program's name; psim_fail() is PSIM_FAILED, and psim_usage(),
 * of what is wrong with the command line, CLI_USAGE. */
#define psim_say(...) shown_say("pipesim", __VA_ARGS__)
#define psim_fail(...) shown_refuse(PSIM_FAILED, "pipesim", __VA_ARGS__)
#define psim_usage(command, ...) cli_usage(&psim_program, command, __VA_ARGS__)

/** psim_options() - cli_take() of the command argv[0]; refuses arguments if it has none. Return: 0;
 * CLI_USAGE; CLI_ENDED. */
int psim_options(int argc, char **argv, struct psim_options *ret);

/** psim_subject() - checks the options, and loads the problem that most commands are about: the
 * truth, with its bounds. Return: 0, or an exit code. */
int psim_subject(const struct psim_options *o, const char *command, struct tun_problem *ret);

/** psim_print_json() - to stdout; takes @v. Return: exit code. */
int psim_print_json(json_t *v);
