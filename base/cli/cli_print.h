/* SPDX-License-Identifier: Apache-2.0 */
/** base/cli/cli_print.h - prints usage, help and the table of cli.h */
#pragma once

#include <stdarg.h>
#include <stdio.h>

#include "base/cli/cli.h"

#define CLI_COLUMNS 80 /* columns of a terminal */

/** cli_width() - Return: columns of @s: its characters, not bytes, since names may be UTF-8. */
int cli_width(const char *s);

/** cli_print_wrapped() - prints text and a newline, from @column on. Breaks lines at CLI_COLUMNS,
 * after a space or a "|"; further lines begin at @indent. */
void cli_print_wrapped(FILE *to, const char *text, int column, int indent);

/** cli_usage() - says on stderr what is wrong with the command line: "PROGRAM COMMAND: ..." and the
 * command's usage; "PROGRAM: ...; see --help" of a program that has one command. Return: 2. */
int cli_usage(const struct cli_program *program, const char *command, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** cli_print_entry() - prints "  NAME    what it is", wrapped. */
void cli_print_entry(FILE *to, const char *name, const char *what);

/** cli_print_help() - prints usage, what the command does, and one line per option. Of a program
 * that has one command, usage does not list the options. */
void cli_print_help(FILE *to, const struct cli_program *program, const struct cli_command *command);

/** cli_print_commands() - prints one line per command, below the heading of its group. */
void cli_print_commands(FILE *to, const struct cli_program *program);

/** cli_print_table() - prints the table as lines of cells separated by tabs, for the scripts that
 * make completions and check man pages. */
void cli_print_table(FILE *to, const struct cli_program *program);
