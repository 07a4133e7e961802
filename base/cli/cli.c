/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cli/cli.h"

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
