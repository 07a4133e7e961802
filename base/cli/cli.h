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

#include "base/near_word.h"

#define CLI_OPTIONS_MAX 32u
#define CLI_WRONG_BYTES 512u /* of a text of cli_wrong_option() */

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

/* The same of the options. @given: as typed. A word after one dash is meant if it is a name. */
static inline const char *cli_option_hint(const struct option *options, const char *given,
                                          char ret[NEAR_WORD_HINT_BYTES])
{
    char name[NEAR_WORD_MAX + 1], dashed[NEAR_WORD_MAX + 3];
    struct near_word n = {.given = name};
    bool is_long = strncmp(given, "--", 2) == 0;
    int bytes;

    given += is_long ? 2 : 1;
    bytes = (int)strcspn(given, "=");
    *ret = '\0';
    if (bytes > (int)NEAR_WORD_MAX) {
        return ret;
    }
    snprintf(name, sizeof(name), "%.*s", bytes, given);
    for (const struct option *o = options; o->name; o++) {
        near_word_try(&n, o->name);
    }
    if (n.word && (is_long || n.distance == 0)) {
        snprintf(dashed, sizeof(dashed), "--%s", n.word);
        n.word = dashed;
        near_word_hint(&n, ret);
    }
    return ret;
}

/** cli_wrong_option() - what is wrong with the option at which getopt_long() stopped. opterr is 0,
 * and ":" is the first of the letters. @got: ':' or '?'. Return: @ret, without a full stop. */
static inline const char *cli_wrong_option(const struct option *options, int got, char **argv,
                                           char ret[CLI_WRONG_BYTES])
{
    const char *given = argv[optind - 1], *next = argv[optind];
    char hint[NEAR_WORD_HINT_BYTES];

    /* within letters after one dash, optind is still at them */
    if (got == '?' && optopt && next && next[0] == '-' && next[1] != '-' && strchr(next, optopt)) {
        given = next;
    }
    if (strncmp(given, "--", 2) != 0) {
        snprintf(ret, CLI_WRONG_BYTES, got == ':' ? "-%c needs a value" : "unknown option -%c%s",
                 optopt, cli_option_hint(options, given, hint));
    } else if (got == ':') {
        snprintf(ret, CLI_WRONG_BYTES, "%.400s needs a value", given);
    } else if (optopt) {
        snprintf(ret, CLI_WRONG_BYTES, "%.400s: this option takes no value", given);
    } else {
        snprintf(ret, CLI_WRONG_BYTES, "unknown option %.300s%s", given,
                 cli_option_hint(options, given, hint));
    }
    return ret;
}

/* @ret: as getopt_long() reads them. */
static inline void cli_long_options(const struct cli_command *command,
                                    struct option ret[CLI_OPTIONS_MAX + 1])
{
    memset(ret, 0, (CLI_OPTIONS_MAX + 1) * sizeof(*ret));
    for (size_t i = 0; i < CLI_OPTIONS_MAX && command->options[i].name; i++) {
        ret[i] = (struct option){
            command->options[i].name,
            command->options[i].value ? required_argument : no_argument,
            NULL,
            command->options[i].id,
        };
    }
}

/** cli_takes() - Return: @value is one of the words of @o, or it has none. If not, @ret is
 * near_word_hint(). */
static inline bool cli_takes(const struct cli_option *o, const char *value,
                             char ret[NEAR_WORD_HINT_BYTES])
{
    char word[NEAR_WORD_MAX + 1], best[NEAR_WORD_MAX + 1];
    struct near_word n = {.given = value};

    if (!o->value || !o->words || o->words[0] == '@' || o->many) {
        return true;
    }
    for (const char *at = o->words; *at; at += strcspn(at, " ,"), at += strspn(at, " ,")) {
        size_t distance = n.distance;
        bool any = n.word != NULL;

        snprintf(word, sizeof(word), "%.*s", (int)strcspn(at, " ,"), at);
        if (strcmp(word, value) == 0) {
            return true;
        }
        near_word_try(&n, word);
        if (n.word && (!any || n.distance < distance)) {
            memcpy(best, word, sizeof(best));
            n.word = best;
        }
    }
    near_word_hint(&n, ret);
    return false;
}

/** cli_getopt() - reads the next option with getopt_long(), prints nothing. @ret_row: its row, or
 * NULL for ':', '?' and -1. Return: its id; ':': the value is missing; '?': unknown; -1: no
 * more. */
static inline int cli_getopt(const struct cli_command *command, int argc, char **argv,
                             const struct cli_option **ret_row)
{
    struct option options[CLI_OPTIONS_MAX + 1];
    char letters[2 * CLI_OPTIONS_MAX + 2] = ":";
    int index = -1, id;

    cli_long_options(command, options);
    for (size_t i = 0; i < CLI_OPTIONS_MAX && command->options[i].name; i++) {
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
