/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/pipesim/subject.h"

#include <stdarg.h>

#include "base/base.h"
#include "base/cli/cli_print.h"
#include "base/cli/cli_rows.h"
#include "base/cli/shown_print.h"
#include "base/json_text.h"
#include "tuner/pipesim/pipesim.h"

#define COLUMNS_MAX 16u

/* ---- words ---- */

void psim_say(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    cli_print_message(&psim_program, NULL, format, args);
    va_end(args);
}

void psim_help(FILE *to, const char *command)
{
    cli_print_help(to, &psim_program, cli_find(psim_program.commands, command));
}

int psim_usage(const char *command, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    cli_print_message(&psim_program, command, format, args);
    va_end(args);
    cli_print_usage(stderr, &psim_program, cli_find(psim_program.commands, command));
    return PSIM_USAGE;
}

bool psim_option_number(const char *command, const char *option, const char *text,
                        const struct cli_range *range, double *ret)
{
    char wrong[CLI_WRONG_BYTES];

    if (cli_number(option, text, range, ret, wrong)) {
        psim_usage(command, "%s", wrong);
        return false;
    }
    return true;
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

static bool take_number(const char *command, const struct cli_option *row,
                        const struct psim_take *t)
{
    const struct cli_range range = {t->least, t->most, t->as != PSIM_REAL, NULL};
    double v;

    if (!psim_option_number(command, row->name, optarg, &range, &v)) {
        return false;
    }
    if (t->as == PSIM_REAL) {
        *(double *)t->to = v;
    } else if (t->as == PSIM_UNSIGNED) {
        *(unsigned *)t->to = (unsigned)v;
    } else {
        *(uint64_t *)t->to = (uint64_t)v;
    }
    return true;
}

static bool take(const char *command, const struct cli_option *row, const struct psim_take *t)
{
    char wrong[CLI_WRONG_BYTES];

    if (cli_wrong_word(row, optarg, wrong)) {
        psim_usage(command, "%s", wrong);
        return false;
    }
    switch (t->as) {
    case PSIM_FLAG:
        *(bool *)t->to = true;
        return true;
    case PSIM_TEXT:
        *(const char **)t->to = optarg;
        return true;
    case PSIM_WORD:
        *(unsigned *)t->to = word_of(row->words, optarg);
        return true;
    default:
        return take_number(command, row, t);
    }
}

int psim_options(int argc, char **argv, const struct psim_take *takes)
{
    const struct cli_command *command = cli_find(psim_program.commands, argv[0]);
    const struct cli_option *row;
    char wrong[CLI_WRONG_BYTES];
    int id;

    while ((id = cli_getopt(command, argc, argv, &row)) != -1) {
        const struct psim_take *t = takes;

        if (id == ':' || id == '?') {
            return psim_usage(argv[0], "%s", cli_wrong_of(command, id, argv, wrong));
        }
        if (id == 'h') {
            psim_help(stdout, argv[0]);
            return PSIM_DONE;
        }
        while (t->id != id) {
            t++;
        }
        if (!take(argv[0], row, t)) {
            return PSIM_USAGE;
        }
    }
    if (!*command->usage && optind < argc) {
        return psim_usage(argv[0], "unexpected argument '%s'", argv[optind]);
    }
    return PSIM_GO;
}

/* ---- the subject ---- */

int psim_subject_load(struct psim_subject *s, const char *command)
{
    char error[PSIM_ERROR_MAX] = "";
    struct psim_case c;
    int result;

    if (s->problem_path ? s->model || s->platform || s->layers : !s->model || !s->platform) {
        return psim_usage(command, "give --model and --platform, or --problem alone");
    }
    if (s->objective == TUN_POWER && s->fps == 0) {
        return psim_usage(command, "--objective power needs --fps, the rate to hold");
    }
    if (s->problem_path) {
        result = psim_problem_load(s->problem_path, error, &s->problem);
    } else {
        result =
            psim_case_init(s->model, s->layers ? PSIM_LAYERS : PSIM_UNITS, s->platform, error, &c);
        if (!result) {
            psim_network_deinit(&c.network);
            s->problem = c.truth;
        }
    }
    if (result) {
        psim_say("%s", error);
        return PSIM_FAILED;
    }
    s->problem.objective = (enum tun_objective)s->objective;
    s->problem.bounds.period_max_ns = s->fps > 0 ? (double)BASE_NS_PER_S / s->fps : 0;
    s->problem.bounds.latency_max_ns = s->latency_ms * (double)BASE_NS_PER_MS;
    return PSIM_GO;
}

void psim_subject_deinit(struct psim_subject *s)
{
    tun_problem_deinit(&s->problem);
}

/* ---- output ---- */

void psim_plan_text(const struct tun_problem *p, const struct pl_plan *plan, char *ret)
{
    struct pl_ep_set eps;

    tun_eps(p, &eps);
    if (pl_plan_format(plan, &eps, ret, PL_PLAN_TEXT_MAX) < 0) {
        snprintf(ret, PL_PLAN_TEXT_MAX, "(too long)");
    }
}

int psim_print_json(json_t *v)
{
    int result = json_text_print(v, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));

    putchar('\n');
    json_decref(v);
    return result < 0 ? PSIM_FAILED : PSIM_DONE;
}

void psim_row(json_t *rows, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    cli_add_row(rows, format, args);
    va_end(args);
}

void psim_print_rows(json_t *rows, const char *align)
{
    size_t columns = base_min(strlen(align), COLUMNS_MAX), i;
    int width[COLUMNS_MAX] = {0};
    json_t *row;

    json_array_foreach(rows, i, row)
    {
        for (size_t c = 0; c < columns; c++) {
            width[c] = base_max(width[c], (int)strlen(cli_cell(row, c)));
        }
    }
    json_array_foreach(rows, i, row)
    {
        for (size_t c = 0; c < columns; c++) {
            bool last = c + 1 == columns;

            shown_printf("%*s%s",
                         align[c] == 'r' ? width[c]
                         : last          ? 0
                                         : -width[c],
                         cli_cell(row, c), last ? "\n" : "  ");
        }
    }
    json_decref(rows);
}
