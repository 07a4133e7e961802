/* SPDX-License-Identifier: Apache-2.0 */
/**
 * base/cli/cli_take.h - turns options into fields and parameters, by the table of base/cli/cli.h
 *
 * Threads: the main thread, at its start: it uses getopt_long().
 */
#pragma once

#include <jansson.h>

#include "base/cli/cli.h"

#define CLI_USAGE 2
#define CLI_ENDED (-1) /* what was asked for is printed: the program ends with 0 */

/**
 * cli_take() - takes the options of the command argv[0], up to its arguments, which begin at optind
 *
 * @to: a struct, at whose `at` each option without a parameter is put. @parameters: of the call;
 * NULL: no option becomes one. Says what is wrong. Return: 0; CLI_USAGE; CLI_ENDED.
 */
int cli_take(const struct cli_program *program, int argc, char **argv, void *to,
             json_t *parameters);
/** cli_put() - takes one @value; NULL: the option has none. Return: 0; CLI_USAGE. */
int cli_put(const struct cli_program *program, const char *command, const struct cli_option *o,
            const char *value, void *to, json_t *parameters);
/** cli_no_more() - refuses arguments that are left. Return: 0; CLI_USAGE. */
int cli_no_more(const struct cli_program *program, int argc, char **argv);
