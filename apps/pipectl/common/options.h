/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/pipectl/common/options.h - the table of pipectl's commands and their options
 *
 * Plain data; main.c says which function runs a command. A new command or option is a row here, its
 * code, and its lines in pipectl(1), which a lint test compares with this table.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/cli/cli.h"

/* Ids of the options of every command. */
#define CTL_SOCKET 257
#define CTL_TIMEOUT 258
#define CTL_JSON 259

extern const struct cli_program ctl_program;

/** ctl_print_help() - prints the help of a command. Return: false if there is no such command. */
bool ctl_print_help(FILE *to, const char *command);
