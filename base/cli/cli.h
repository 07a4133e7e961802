/* SPDX-License-Identifier: Apache-2.0 */
/**
 * cli.h - the commands and options of a program, in one table
 *
 * For pipectl, pipesim and piped-http. Usage, --help, getopt_long(), shell completions and the
 * check of man pages all read this table. Nothing here allocates or keeps state.
 */
#pragma once

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/near_word.h"

#define CLI_OPTIONS_MAX 32u
#define CLI_WRONG_BYTES 512u /* of a text that says what is wrong with an option */

/* `words` lists the allowed values, separated by spaces or commas. A word that begins with '@'
 * names what the shell completes: @file, @folder, @none (nothing), or what
 * etc/completions/dynamic.* finds: @models, @networks, @platforms. */
struct cli_option {
    const char *name;  /* without the dashes */
    int id;            /* what getopt_long() returns */
    const char *value; /* as usage prints it; NULL: the option takes no value */
    const char *words; /* allowed values; NULL: anything */
    const char *help;  /* one line */
    bool many;         /* may be repeated, or its value is a list with commas */
    char letter;       /* -o means the same; 0: there is none */
};
struct cli_argument {
    const char *after; /* "": the first argument; "*": any; a word: the argument after it */
    const char *words;
};
struct cli_command {
    const char *name, *also;              /* also: another spelling, or NULL */
    const char *usage;                    /* arguments after the options, or "" */
    const char *help;                     /* one line */
    const struct cli_option *options;     /* ends with a NULL name */
    const struct cli_argument *arguments; /* NULL: nothing to complete */
    const char *group; /* heading in --help above this row and those after it; NULL: none begins */
};
struct cli_program {
    const char *name;
    const struct cli_option *common;    /* of every command; ends with a NULL name */
    const struct cli_command *commands; /* ends with a NULL name */
};

/** cli_find() - Return: the command with this name or spelling; NULL: none. */
const struct cli_command *cli_find(const struct cli_command *commands, const char *name);

/** cli_command_hint() - Return: @ret: near_word_hint() of the commands for @given. */
const char *cli_command_hint(const struct cli_program *program, const char *given,
                             char ret[NEAR_WORD_HINT_BYTES]);

/** cli_wrong_option() - what is wrong with the option at which getopt_long() stopped. opterr is 0,
 * and ":" is the first of the letters. @got: ':' or '?'. Return: @ret, without a full stop. */
const char *cli_wrong_option(const struct option *options, int got, char **argv,
                             char ret[CLI_WRONG_BYTES]);

/* @ret: as getopt_long() reads them. */
void cli_long_options(const struct cli_command *command, struct option ret[CLI_OPTIONS_MAX + 1]);

/** cli_wrong_word() - Return: NULL: @value is one of the words of @o, or it has none; else @ret,
 * which says what it takes, with the word that is near. */
const char *cli_wrong_word(const struct cli_option *o, const char *value,
                           char ret[CLI_WRONG_BYTES]);

/** cli_read_number() - reads @text as a number from @least to @most. Return: true if it is one. */
bool cli_read_number(const char *text, double least, double most, double *ret);

struct cli_range {
    double least, most;
    bool whole;       /* fractions are refused; the limits fit int64_t */
    const char *what; /* what is counted, such as "seconds"; NULL: a number */
};
/** cli_number() - reads the value of an option. Return: NULL; else @ret_wrong, which says what the
 * option takes. */
const char *cli_number(const char *option, const char *text, const struct cli_range *range,
                       double *ret, char ret_wrong[CLI_WRONG_BYTES]);

/** cli_getopt() - reads the next option with getopt_long(), prints nothing. @ret_row: its row, or
 * NULL for ':', '?' and -1. Return: its id; ':': the value is missing; '?': unknown; -1: no
 * more. */
int cli_getopt(const struct cli_command *command, int argc, char **argv,
               const struct cli_option **ret_row);
