/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/pipesim/subject.h"

#include <stdarg.h>

#include "base/base.h"
#include "base/cli/cli_print.h"
#include "base/cli/cli_rows.h"
#include "base/cli/shown_print.h"
#include "base/json_text.h"
#include "tuner/pipesim/pipesim_options.h"

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

int psim_option(int argc, char **argv)
{
    const struct cli_option *row;

    return cli_getopt(cli_find(psim_program.commands, argv[0]), argc, argv, &row);
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

int psim_bad_option(const char *command, int id, char **argv)
{
    char wrong[CLI_WRONG_BYTES];

    return psim_usage(command, "%s",
                      cli_wrong_of(cli_find(psim_program.commands, command), id, argv, wrong));
}

bool psim_option_number(const char *command, const char *option, const char *text, double least,
                        double most, double *ret)
{
    char *end;
    double v = strtod(text, &end);

    if (end == text || *end || !(v >= least && v <= most)) {
        psim_usage(command, "--%s needs a number from %.15g to %.15g, not '%s'", option, least,
                   most, text);
        return false;
    }
    *ret = v;
    return true;
}

/* ---- the subject ---- */

static bool set_objective(struct psim_subject *s, const char *command, const char *text)
{
    static const char *const names[] = {
        [TUN_THROUGHPUT] = "throughput", [TUN_LATENCY] = "latency", [TUN_POWER] = "power"};

    for (size_t i = 0; i < base_array_count(names); i++) {
        if (strcmp(names[i], text) == 0) {
            s->objective = (enum tun_objective)i;
            return true;
        }
    }
    psim_usage(command, "--objective needs throughput, latency or power, not '%s'", text);
    return false;
}

int psim_subject_option(struct psim_subject *s, const char *command, int option, char **argv)
{
    bool ok = true;

    switch (option) {
    case 'm':
        s->model = optarg;
        break;
    case 'p':
        s->platform = optarg;
        break;
    case 'P':
        s->problem_path = optarg;
        break;
    case 'l':
        s->layers = true;
        break;
    case 'j':
        s->json = true;
        break;
    case 'o':
        ok = set_objective(s, command, optarg);
        break;
    case 'f':
        ok = psim_option_number(command, "fps", optarg, 1e-6, 1e6, &s->fps);
        break;
    case 'L':
        ok = psim_option_number(command, "latency", optarg, 1e-6, 1e9, &s->latency_ms);
        break;
    case 'h':
        psim_help(stdout, command);
        return PSIM_DONE;
    default:
        return psim_bad_option(command, option, argv);
    }
    return ok ? PSIM_GO : PSIM_USAGE;
}

static int load_described(struct psim_subject *s)
{
    char error[PSIM_ERROR_MAX] = "";
    struct psim_network network;
    struct psim_platform platform;
    int result;

    if (psim_platform_load(s->platform, error, &platform) < 0 ||
        psim_network_load(s->model, s->layers, error, &network) < 0) {
        psim_say("%s", error);
        return PSIM_FAILED;
    }
    result = psim_problem(&network, &platform, &s->problem);
    psim_network_deinit(&network);
    if (result) {
        psim_say("%s on %s: %s", s->model, s->platform, strerror(-result));
        return PSIM_FAILED;
    }
    return PSIM_GO;
}

int psim_subject_load(struct psim_subject *s, const char *command)
{
    char error[PSIM_ERROR_MAX] = "";
    int result = PSIM_GO;

    if (s->problem_path ? s->model || s->platform || s->layers : !s->model || !s->platform) {
        return psim_usage(command, "give --model and --platform, or --problem alone");
    }
    if (s->objective == TUN_POWER && s->fps == 0) {
        return psim_usage(command, "--objective power needs --fps, the rate to hold");
    }
    if (s->problem_path) {
        if (psim_problem_load(s->problem_path, error, &s->problem) < 0) {
            psim_say("%s", error);
            result = PSIM_FAILED;
        }
    } else {
        result = load_described(s);
    }
    s->problem.objective = s->objective;
    s->problem.bounds.period_max_ns = s->fps > 0 ? (double)BASE_NS_PER_S / s->fps : 0;
    s->problem.bounds.latency_max_ns = s->latency_ms * (double)BASE_NS_PER_MS;
    return result;
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
