/* SPDX-License-Identifier: Apache-2.0 */
/**
 * cli.h - the commands and options of a program, in one table
 *
 * For pipectl and pipesim. Usage, --help, getopt_long(), shell completions and the check of man
 * pages all read this table. Nothing here allocates or keeps state.
 */
#pragma once

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "near_word.h"

#define CLI_OPTIONS_MAX 32u

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
    const char *old;   /* a former name that still works but is not shown, or NULL */
    const char *group; /* heading in --help above this row and those after it; NULL: none begins */
};
struct cli_program {
    const char *name;
    const struct cli_option *common;    /* of every command; ends with a NULL name */
    const struct cli_command *commands; /* ends with a NULL name */
};

/** cli_find() - Return: the command with this name, spelling or former name; NULL: none. */
static inline const struct cli_command *cli_find(const struct cli_command *commands,
                                                 const char *name)
{
    for (const struct cli_command *c = commands; c->name; c++) {
        if (strcmp(c->name, name) == 0 || (c->also && strcmp(c->also, name) == 0) ||
            (c->old && strcmp(c->old, name) == 0)) {
            return c;
        }
    }
    return NULL;
}

/** cli_command_hint() - Return: @ret: near_word_hint() of the commands for @given. */
static inline const char *cli_command_hint(const struct cli_program *program, const char *given,
                                           char ret[NEAR_WORD_HINT_BYTES])
{
    struct near_word n = {.given = given};

    for (const struct cli_command *c = program->commands; c->name; c++) {
        near_word_try(&n, c->name);
    }
    return near_word_hint(&n, ret);
}

/** cli_option_hint() - the same of the command's options. @given: as typed, "--name" or
 * "--name=value"; others get no hint. */
static inline const char *cli_option_hint(const struct cli_command *command, const char *given,
                                          char ret[NEAR_WORD_HINT_BYTES])
{
    char name[NEAR_WORD_MAX + 1], dashed[NEAR_WORD_MAX + 3];
    struct near_word n = {.given = name};

    *ret = '\0';
    if (strncmp(given, "--", 2) != 0 || strcspn(given + 2, "=") > NEAR_WORD_MAX) {
        return ret;
    }
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(given + 2, "="), given + 2);
    for (const struct cli_option *o = command->options; o->name; o++) {
        near_word_try(&n, o->name);
    }
    if (n.word) {
        snprintf(dashed, sizeof(dashed), "--%s", n.word);
        n.word = dashed;
    }
    return near_word_hint(&n, ret);
}

/** cli_getopt() - reads the next option with getopt_long(), prints nothing. @ret_row: its row, or
 * NULL for ':', '?' and -1. Return: its id; ':': the value is missing; '?': unknown; -1: no
 * more. */
static inline int cli_getopt(const struct cli_command *command, int argc, char **argv,
                             const struct cli_option **ret_row)
{
    struct option options[CLI_OPTIONS_MAX + 1] = {{0}};
    char letters[2 * CLI_OPTIONS_MAX + 2] = ":";
    int index = -1, id;

    for (size_t i = 0; i < CLI_OPTIONS_MAX && command->options[i].name; i++) {
        options[i] = (struct option){
            command->options[i].name,
            command->options[i].value ? required_argument : no_argument,
            NULL,
            command->options[i].id,
        };
        if (command->options[i].letter) {
            const char of[3] = {command->options[i].letter, command->options[i].value ? ':' : '\0'};

            strcat(letters, of);
        }
    }
    opterr = 0;
    id = getopt_long(argc, argv, letters, options, &index);
    for (int i = 0; index < 0 && id != '?' && id != ':' && i < (int)CLI_OPTIONS_MAX &&
                    command->options[i].name;
         i++) {
        if (command->options[i].letter && command->options[i].letter == id) {
            index = i;
            id = command->options[i].id;
        }
    }
    *ret_row = id == ':' || id == '?' || index < 0 ? NULL : &command->options[index];
    return id;
}
