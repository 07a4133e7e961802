/* SPDX-License-Identifier: Apache-2.0 */
/**
 * cli.h - the commands and options of a program, in one table, and how programs print
 *
 * For piped, pipectl, pipesim, piped-http and piped-link. Usage, --help, cli_take(), shell
 * completions and the check of man pages all read this table. Nothing here keeps state.
 */
#pragma once

#include "base/base.h"
#include "base/near_word.h"

#define CLI_OPTIONS_MAX 32u
#define CLI_TEXTS_MAX 64u
#define CLI_WRONG_BYTES 512u             /* of a text that says what is wrong with an option */
#define CLI_WHOLE_MAX 9007199254740992.0 /* 2^53: doubles hold every whole number up to it */

/* What the value of an option is, and the type of the field that gets it. */
enum cli_kind {
    CLI_TEXT,     /* const char *, borrowed from argv; without a value: the option's name */
    CLI_TEXTS,    /* struct cli_texts: one more of them */
    CLI_FLAG,     /* bool: true */
    CLI_NO_FLAG,  /* bool: false */
    CLI_WORD,     /* unsigned: the number of the word */
    CLI_UNSIGNED, /* unsigned: a whole number */
    CLI_WHOLE,    /* uint64_t: a whole number */
    CLI_REAL,     /* double */
    CLI_SECONDS,  /* double */
    CLI_HELP,     /* none: help is printed */
    CLI_VERSION,  /* none: the version is printed */
};
struct cli_texts {
    const char *text[CLI_TEXTS_MAX];
    size_t count;
};

/* `words` lists the allowed values, separated by spaces or commas. A word that begins with '@'
 * names what the shell completes: @file, @folder, @none (nothing), or what
 * etc/completions/dynamic.* finds: @models, @networks, @platforms. */
struct cli_option {
    const char *name;  /* without the dashes */
    const char *value; /* as usage prints it; NULL: the option takes no value */
    const char *words; /* allowed values; NULL: anything */
    const char *help;  /* one line */
    enum cli_kind kind;
    size_t at;          /* of its field in the struct that cli_take() fills */
    double least, most; /* of a number */
    const char
        *parameter; /* of the call that it becomes, as JSON, instead of a field; NULL: none */
    bool many;      /* may be repeated, or its value is a list with commas */
    char letter;    /* -o means the same; 0: there is none */
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
    const struct cli_option *common; /* of every command; ends with a NULL name */
    const struct cli_command
        *commands; /* ends with a NULL name; if it has just one, nobody says it */
};

/** cli_find() - Return: the command with this name or spelling; NULL: none. */
const struct cli_command *cli_find(const struct cli_command *commands, const char *name);

/** cli_command_hint() - Return: @ret: near_word_hint() of the commands for @given. */
const char *cli_command_hint(const struct cli_program *program, const char *given,
                             char ret[NEAR_WORD_HINT_BYTES]);

/** cli_read_number() - reads @text as a number from @least to @most. Return: true if it is one. */
bool cli_read_number(const char *text, double least, double most, double *ret);

/** cli_number() - reads the value of an option. @kind: of a number; the limits of a whole one fit
 * int64_t. Return: NULL; else @ret_wrong, which says what the option takes. */
const char *cli_number(const char *option, const char *text, enum cli_kind kind, double least,
                       double most, double *ret, char ret_wrong[CLI_WRONG_BYTES]);

/* ---- usage, help and the table, printed ---- */

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

/*
 * ---- shown_print.c: prints texts from outside, without what a terminal obeys: shown_text.h ----
 *
 * All that programs print with %s goes through these functions; the style test looks for what does
 * not. Threads: any.
 */

#define SHOWN_LINE_MAX 8192u

/** shown_vfprintf() - vfprintf(), with one '?' for each hidden character but "\n" and "\t". */
void shown_vfprintf(FILE *to, const char *format, va_list args);

/** shown_fprintf() - the same, as fprintf(). */
__attribute__((format(printf, 2, 3))) void shown_fprintf(FILE *to, const char *format, ...);

/** shown_printf() - the same, as printf(). */
__attribute__((format(printf, 1, 2))) void shown_printf(const char *format, ...);

/** shown_text_print() - prints @text on stdout, as a part of a line: "\n" and "\t" are hidden. */
void shown_text_print(const char *text);

/** shown_vsay() - writes "PROGRAM: TEXT" on stderr, always as one line, of at most SHOWN_LINE_MAX
 * bytes of text, after what was printed on stdout. Needs no memory. */
void shown_vsay(const char *program, const char *format, va_list args);

/** shown_say() - the same. */
__attribute__((format(printf, 2, 3))) void shown_say(const char *program, const char *format, ...);

/** shown_refuse() - the same, of why something cannot be done. Return: @code. */
__attribute__((format(printf, 3, 4))) int shown_refuse(int code, const char *program,
                                                       const char *format, ...);

/** shown_begin() - takes the numbers 0, 1 and 2 where the program was started without them, before
 * a pipe or socket gets them: reading and writing them goes on failing. First in each main(). */
void shown_begin(void);

/** shown_end() - sends what was printed on stdout, and says it if a part of that is lost, now or
 * before; also between two results of a long run. Return: @code; 1: the output is not whole, and
 * @code is 0. */
int shown_end(const char *program, int code);
