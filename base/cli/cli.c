/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cli/cli.h"

#include "base/shown_text.h"

const struct cli_command *cli_find(const struct cli_command *commands, const char *name)
{
    for (const struct cli_command *c = commands; c->name; c++) {
        if (strcmp(c->name, name) == 0 || (c->also && strcmp(c->also, name) == 0)) {
            return c;
        }
    }
    return NULL;
}

const char *cli_command_hint(const struct cli_program *program, const char *given,
                             char ret[NEAR_WORD_HINT_BYTES])
{
    struct near_word n = {.given = given};

    for (const struct cli_command *c = program->commands; c->name; c++) {
        near_word_try(&n, c->name);
    }
    return near_word_hint(&n, ret);
}

bool cli_read_number(const char *text, double least, double most, double *ret)
{
    char *end;
    double v;

    errno = 0;
    v = strtod(text, &end);
    if (errno || end == text || *end || !(v >= least && v <= most)) {
        return false;
    }
    *ret = v;
    return true;
}

const char *cli_number(const char *option, const char *text, enum cli_kind kind, double least,
                       double most, double *ret, char ret_wrong[CLI_WRONG_BYTES])
{
    bool whole = kind == CLI_UNSIGNED || kind == CLI_WHOLE;
    double v;

    if (cli_read_number(text, least, most, &v) && (!whole || v == (double)(int64_t)v)) {
        *ret = v;
        return NULL;
    }
    snprintf(ret_wrong, CLI_WRONG_BYTES, "--%s needs %s from %.15g to %.15g, not '%s'", option,
             kind == CLI_SECONDS ? "seconds"
             : whole             ? "a whole number"
                                 : "a number",
             least, most, text);
    return ret_wrong;
}

/* ---- printed ---- */

int cli_width(const char *s)
{
    int n = 0;

    for (; *s; s++) {
        n += ((unsigned char)*s & 0xc0) != 0x80;
    }
    return n;
}

void cli_print_wrapped(FILE *to, const char *text, int column, int indent)
{
    bool begun = false;
    int gap = 0;

    while (*text) {
        size_t n = strcspn(text, " |");
        char *word = strndup(text, n + (text[n] == '|'));

        if (!word) {
            break;
        }
        if (begun && column + gap + cli_width(word) > CLI_COLUMNS) {
            fprintf(to, "\n%*s", indent, "");
            column = indent;
            gap = 0;
        }
        shown_fprintf(to, "%*s%s", gap, "", word);
        column += gap + cli_width(word);
        begun = true;
        free(word);
        text += n + (text[n] == '|');
        gap = (int)strspn(text, " ");
        text += gap;
    }
    fputc('\n', to);
}

/* Prints " [--option VALUE]", on a new line if it does not fit. Return: the column after it. */
static int cli_print_option(FILE *to, int column, const struct cli_option *o)
{
    const char *value = o->value ? o->value : "", *gap = o->value ? " " : "";
    int n = 5 + (int)(strlen(o->name) + strlen(gap) + strlen(value)) + 3 * o->many;
    bool fits = column + n <= CLI_COLUMNS;

    fprintf(to, "%s [--%s%s%s]%s", fits ? "" : "\n       ", o->name, gap, value,
            o->many ? "..." : "");
    return fits ? column + n : 7 + n;
}

static void cli_print_usage(FILE *to, const struct cli_program *program,
                            const struct cli_command *command)
{
    int column = fprintf(to, "usage: %s", program->name);

    for (const struct cli_option *o = program->common; o->name; o++) {
        column = cli_print_option(to, column, o);
    }
    column += fprintf(to, " %s", command->name);
    for (const struct cli_option *o = command->options; o->name; o++) {
        column = cli_print_option(to, column, o);
    }
    if (*command->usage && column + 1 + (int)strlen(command->usage) > CLI_COLUMNS) {
        fprintf(to, "\n       ");
    }
    fprintf(to, "%s%s\n", *command->usage ? " " : "", command->usage);
}

static bool is_single(const struct cli_program *program)
{
    return !program->commands[1].name;
}

int cli_usage(const struct cli_program *program, const char *command, const char *format, ...)
{
    char text[2 * CLI_WRONG_BYTES], who[64];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (is_single(program)) {
        return shown_refuse(2, program->name, "%s%s", text,
                            base_ends_with(text, "?") ? "" : "; see --help");
    }
    snprintf(who, sizeof(who), "%s %s", program->name, command);
    shown_say(who, "%s", text);
    cli_print_usage(stderr, program, cli_find(program->commands, command));
    return 2;
}

void cli_print_entry(FILE *to, const char *name, const char *what)
{
    cli_print_wrapped(to, what, fprintf(to, "  %-20s ", name), 23);
}

void cli_print_help(FILE *to, const struct cli_program *program, const struct cli_command *command)
{
    if (is_single(program)) {
        fprintf(to, "usage: %s [OPTIONS]\n\n", program->name);
    } else {
        cli_print_usage(to, program, command);
    }
    fprintf(to, "%s\n%s", command->help, command->options->name ? "\n" : "");
    for (const struct cli_option *o = command->options; o->name; o++) {
        char text[48], letter[] = {'-', o->letter, ',', ' ', '\0'};

        snprintf(text, sizeof(text), "%s--%s%s%s", o->letter ? letter : "", o->name,
                 o->value ? " " : "", o->value ? o->value : "");
        cli_print_entry(to, text, o->help);
    }
}

void cli_print_commands(FILE *to, const struct cli_program *program)
{
    for (const struct cli_command *c = program->commands; c->name; c++) {
        if (c->group) {
            fprintf(to, "%s%s:\n", c == program->commands ? "" : "\n", c->group);
        }
        fprintf(to, "  %-10s %s\n", c->name, c->help);
    }
}

static void cli_print_row(FILE *to, const char *what, const struct cli_option *o)
{
    fprintf(to, "%s\t%s\t%s\t%s\t%s\t%d\n", what, o->name, o->value ? o->value : "",
            o->words ? o->words : "", o->help, o->many);
}

void cli_print_table(FILE *to, const struct cli_program *program)
{
    fprintf(to, "program\t%s\n", program->name);
    for (const struct cli_option *o = program->common; o->name; o++) {
        cli_print_row(to, "common", o);
    }
    for (const struct cli_command *c = program->commands; c->name; c++) {
        fprintf(to, "command\t%s\t%s\t%s\t%s\t%s\n", c->name, c->also ? c->also : "", c->usage,
                c->help, c->group ? c->group : "");
        for (const struct cli_option *o = c->options; o->name; o++) {
            cli_print_row(to, "option", o);
        }
        for (const struct cli_argument *a = c->arguments; a && a->after; a++) {
            fprintf(to, "argument\t%s\t%s\n", a->after, a->words);
        }
    }
}
