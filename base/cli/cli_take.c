/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cli/cli_take.h"

#include <getopt.h>

#define FIRST 256 /* what getopt_long() returns of the first row; the next ones follow */

static const struct cli_command *command_of(const struct cli_program *program, const char *name)
{
    const struct cli_command *command = cli_find(program->commands, name);

    return command ? command : program->commands;
}

/* A command's options as getopt_long() takes them. */
struct getopt_table {
    char letters[2 * CLI_OPTIONS_MAX + 2];
    struct option options[CLI_OPTIONS_MAX + 1];
};

static void make_table(const struct cli_option *rows, struct getopt_table *ret)
{
    *ret = (struct getopt_table){.letters = ":"};
    for (size_t count = 0; count < CLI_OPTIONS_MAX && rows[count].name; count++) {
        const char of[3] = {rows[count].letter, rows[count].value ? ':' : '\0'};

        ret->options[count] = (struct option){
            rows[count].name,
            rows[count].value ? required_argument : no_argument,
            NULL,
            FIRST + (int)count,
        };
        strcat(ret->letters, rows[count].letter ? of : "");
    }
}

/* Return: the row of what getopt_long() returned; NULL: none. */
static const struct cli_option *row_of(const struct cli_option *rows, int got)
{
    for (int i = 0; i < (int)CLI_OPTIONS_MAX && rows[i].name; i++) {
        if (got == FIRST + i || (rows[i].letter && got == rows[i].letter)) {
            return &rows[i];
        }
    }
    return NULL;
}

/* Return: @ret: near_word_hint() of the options for @given, as typed. A word after one dash is
 * meant if it is a name. */
static const char *option_hint(const struct option *options, const char *given,
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

/* What is wrong with the option at which getopt_long() stopped. @got: ':' or '?'. Return: @ret,
 * without a full stop. */
static const char *wrong_option(const struct option *options, int got, char **argv,
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
                 optopt, option_hint(options, given, hint));
    } else if (got == ':') {
        snprintf(ret, CLI_WRONG_BYTES, "%.400s needs a value", given);
    } else if (optopt) {
        snprintf(ret, CLI_WRONG_BYTES, "%.400s: this option takes no value", given);
    } else {
        snprintf(ret, CLI_WRONG_BYTES, "unknown option %.300s%s", given,
                 option_hint(options, given, hint));
    }
    return ret;
}

/* Return: NULL: @value is one of the words of @o, or it has none; else @ret, which says what it
 * takes, with the word that is near. */
static const char *wrong_word(const struct cli_option *o, const char *value,
                              char ret[CLI_WRONG_BYTES])
{
    char word[NEAR_WORD_MAX + 1], best[NEAR_WORD_MAX + 1], hint[NEAR_WORD_HINT_BYTES];
    struct near_word n = {.given = value};

    if (!o->value || !o->words || o->words[0] == '@' || o->many) {
        return NULL;
    }
    snprintf(ret, CLI_WRONG_BYTES, "--%s needs one of", o->name);
    for (const char *at = o->words; *at; at += strcspn(at, " ,"), at += strspn(at, " ,")) {
        size_t distance = n.distance;
        bool any = n.word != NULL;

        snprintf(word, sizeof(word), "%.*s", (int)strcspn(at, " ,"), at);
        if (strcmp(word, value) == 0) {
            return NULL;
        }
        near_word_try(&n, word);
        if (n.word && (!any || n.distance < distance)) {
            memcpy(best, word, sizeof(best));
            n.word = best;
        }
        base_append(ret, CLI_WRONG_BYTES, "%s %s", at == o->words ? "" : ",", word);
    }
    base_append(ret, CLI_WRONG_BYTES, ", not '%s'%s", value, near_word_hint(&n, hint));
    return ret;
}

/* Return: the number of the word @given, which is one of @words. */
static unsigned word_of(const char *words, const char *given)
{
    unsigned number = 0;

    for (size_t n = strlen(given); strncmp(words, given, n) != 0 || words[n] > ' '; number++) {
        words += strcspn(words, " ") + 1;
    }
    return number;
}

static json_t *json_of(enum cli_kind kind, const char *text, double number)
{
    switch (kind) {
    case CLI_FLAG:
    case CLI_NO_FLAG:
        return json_boolean(kind == CLI_FLAG);
    case CLI_UNSIGNED:
    case CLI_WHOLE:
        return json_integer((json_int_t)number);
    case CLI_REAL:
    case CLI_SECONDS:
        return json_real(number);
    default:
        return json_string(text);
    }
}

/* Return: false: the text is not UTF-8. */
static bool set_parameter(json_t *parameters, const struct cli_option *o, json_t *value)
{
    json_t *list = json_object_get(parameters, o->parameter);

    if (value && o->kind == CLI_TEXTS) {
        list = list ? json_incref(list) : json_array();
        json_array_append_new(list, value);
        value = list;
    }
    return json_object_set_new(parameters, o->parameter, value) == 0;
}

/* Return: false: there are too many. */
static bool set_field(void *at, const struct cli_option *o, const char *text, double number)
{
    struct cli_texts *texts = at;

    switch (o->kind) {
    case CLI_TEXT:
        *(const char **)at = text;
        break;
    case CLI_TEXTS:
        if (texts->count == CLI_TEXTS_MAX) {
            return false;
        }
        texts->text[texts->count++] = text;
        break;
    case CLI_FLAG:
    case CLI_NO_FLAG:
        *(bool *)at = o->kind == CLI_FLAG;
        break;
    case CLI_WORD:
        *(unsigned *)at = word_of(o->words, text);
        break;
    case CLI_UNSIGNED:
        *(unsigned *)at = (unsigned)number;
        break;
    case CLI_WHOLE:
        *(uint64_t *)at = (uint64_t)number;
        break;
    default:
        *(double *)at = number;
    }
    return true;
}

int cli_put(const struct cli_program *program, const char *command, const struct cli_option *o,
            const char *value, void *to, json_t *parameters)
{
    const char *text = value ? value : o->name;
    char wrong[CLI_WRONG_BYTES];
    double number = 0;

    if (wrong_word(o, value, wrong) ||
        (o->kind >= CLI_UNSIGNED &&
         cli_number(o->name, value, o->kind, o->least, o->most, &number, wrong))) {
        return cli_usage(program, command, "%s", wrong);
    }
    if (o->parameter) {
        return set_parameter(parameters, o, json_of(o->kind, text, number))
                   ? 0
                   : cli_usage(program, command, "the %s is not UTF-8", o->name);
    }
    return set_field((char *)to + o->at, o, text, number)
               ? 0
               : cli_usage(program, command, "--%s: at most %u", o->name, CLI_TEXTS_MAX);
}

int cli_take(const struct cli_program *program, int argc, char **argv, void *to, json_t *parameters)
{
    const struct cli_command *command = command_of(program, argv[0]);
    struct getopt_table table;
    int got, rc = 0;

    make_table(command->options, &table);
    opterr = 0;
    while (rc == 0 && (got = getopt_long(argc, argv, table.letters, table.options, NULL)) != -1) {
        const struct cli_option *row = row_of(command->options, got);
        char wrong[CLI_WRONG_BYTES];

        if (row && row->kind == CLI_HELP) {
            cli_print_help(stdout, program, command);
            return CLI_ENDED;
        }
        if (row && row->kind == CLI_VERSION) {
            shown_printf("%s %s\n", program->name, PIPED_VERSION);
            return CLI_ENDED;
        }
        if (row) {
            rc = cli_put(program, command->name, row, optarg, to, parameters);
        } else {
            rc = cli_usage(program, command->name, "%s",
                           wrong_option(table.options, got, argv, wrong));
        }
    }
    return rc;
}

int cli_no_more(const struct cli_program *program, int argc, char **argv)
{
    return optind < argc ? cli_usage(program, command_of(program, argv[0])->name,
                                     "unexpected argument '%s'", argv[optind])
                         : 0;
}
