/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cli/cli.h"

#include "base/append.h"
#include "base/base.h"

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

/* The same of the options. @given: as typed. A word after one dash is meant if it is a name. */
static const char *cli_option_hint(const struct option *options, const char *given,
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

const char *cli_wrong_option(const struct option *options, int got, char **argv,
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

const char *cli_wrong_word(const struct cli_option *o, const char *value, char ret[CLI_WRONG_BYTES])
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
