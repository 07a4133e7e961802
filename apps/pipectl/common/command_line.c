/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl: messages, options and arguments. */
#include <stdarg.h>

#include "apps/page/page.h"
#include "apps/pipectl/common/command_line.h"
#include "apps/pipectl/common/options.h"
#include "apps/pipectl/common/output.h"
#include "apps/pipectl/common/service_state.h"
#include "base/cli/cli_print.h"
#include "base/json_text.h"

void ctl_say(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    cli_print_message(&ctl_program, NULL, format, args);
    va_end(args);
}

int ctl_usage(const char *command, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    cli_print_message(&ctl_program, command, format, args);
    va_end(args);
    cli_print_usage(stderr, &ctl_program, cli_find(ctl_program.commands, command));
    return CTL_USAGE;
}

int ctl_not_started(const char *why)
{
    ctl_say("%s", why);
    ctl_say("mend that; the next client starts it");
    return CTL_UNREACHABLE;
}

int ctl_unreachable(const char *why, int error, const char *path)
{
    char state[CTL_SERVICE_TEXT_MAX];
    const char *next;

    ctl_say("%s", why);
    if (error == EACCES) {
        ctl_say("only members of the socket's group may connect; the service's is piped-clients: "
                "sudo adduser $USER piped-clients, then log in again");
    } else if (ctl_service_state(path, state, &next)) {
        ctl_say("systemd says: %s", state);
        if (next) {
            ctl_say("%s", next);
        }
    } else if (error == ETIMEDOUT) {
        ctl_say("it is starting, stopped (SIGSTOP), or its cores are overloaded; --timeout S waits "
                "longer");
    } else {
        ctl_say("is it running? Try systemctl status piped, or --socket PATH for a daemon that was "
                "started with --runtime-dir");
    }
    return CTL_UNREACHABLE;
}

/* The next option of the command argv[0]. @rc: CTL_DONE, or why to stop; if the option is wrong,
 * this says so and sets CTL_USAGE. Return: its row; NULL: there are no more, or @rc says to
 * stop. */
static const struct cli_option *next_option(int argc, char **argv, int *rc)
{
    const struct cli_command *command = cli_find(ctl_program.commands, argv[0]);
    const struct cli_option *row;
    char wrong[CLI_WRONG_BYTES];
    int c;

    if (*rc != CTL_DONE) {
        return NULL;
    }
    c = cli_getopt(command, argc, argv, &row);
    if (c == ':' || c == '?') {
        *rc = ctl_usage(argv[0], "%s", cli_wrong_of(command, c, argv, wrong));
    } else if (row && cli_wrong_word(row, optarg, wrong)) {
        *rc = ctl_usage(argv[0], "%s", wrong);
    }
    return *rc ? NULL : row;
}

static int set_text(const char *command, const char *option, json_t *parameters, const char *key,
                    const char *text)
{
    return json_object_set_new(parameters, key, json_string(text)) < 0
               ? ctl_usage(command, "%s is not UTF-8",
                           strcmp(option, "model") == 0 ? "the model's name" : option)
               : CTL_DONE;
}

static int take_number(const char *command, const struct ctl_take *t, json_t *parameters)
{
    const struct cli_range range = {t->least, t->most, t->type == CTL_WHOLE, t->text};
    char wrong[CLI_WRONG_BYTES];
    double v;

    if (cli_number(t->option, optarg, &range, &v, wrong)) {
        return ctl_usage(command, "%s", wrong);
    }
    v *= t->scale > 0 ? t->scale : 1;
    if (t->parameter) {
        json_object_set_new(parameters, t->parameter,
                            t->type == CTL_REAL ? json_real(v) : json_integer((json_int_t)v));
    } else if (t->type == CTL_REAL) {
        *(double *)t->to = v;
    } else if (t->type == CTL_U32) {
        *(uint32_t *)t->to = (uint32_t)v;
    } else {
        *(uint64_t *)t->to = (uint64_t)v;
    }
    return CTL_DONE;
}

/* Takes the value of an option, in optarg. */
static int take_value(const char *command, const struct ctl_take *t, json_t *parameters)
{
    const char *text = optarg ? optarg : t->text;

    if (t->take) {
        return t->take(optarg, t->to);
    }
    if (t->type > CTL_TEXT) {
        return take_number(command, t, parameters);
    }
    if (t->type == CTL_TEXT && t->to) {
        *(const char **)t->to = text;
    } else if (t->to) {
        *(bool *)t->to = true;
    }
    if (t->type == CTL_TEXT && t->parameter) {
        return set_text(command, t->option, parameters, t->parameter, text);
    }
    if (t->parameter) {
        json_object_set_new(parameters, t->parameter, json_true());
    }
    return CTL_DONE;
}

int ctl_take(int argc, char **argv, const struct ctl_take *rows, json_t *parameters)
{
    const struct cli_option *row;
    int rc = CTL_DONE;

    while ((row = next_option(argc, argv, &rc)) != NULL) {
        const struct ctl_take *t = rows;

        while (strcmp(t->option, row->name) != 0) {
            t++;
        }
        rc = take_value(argv[0], t, parameters);
    }
    return rc;
}

int ctl_take_all(int argc, char **argv, const struct ctl_take *rows, json_t *parameters)
{
    int rc = ctl_take(argc, argv, rows, parameters);

    return rc ? rc : ctl_no_more(argc, argv);
}

int ctl_no_more(int argc, char **argv)
{
    return optind < argc ? ctl_usage(argv[0], "unexpected argument '%s'", argv[optind]) : CTL_DONE;
}

int ctl_model_argument(int argc, char **argv, json_t *parameters)
{
    int rc = CTL_DONE;

    if (optind < argc && !json_object_get(parameters, "model")) {
        rc = set_text(argv[0], "model", parameters, "model", argv[optind++]);
    }
    return rc ? rc : ctl_no_more(argc, argv);
}

json_t *ctl_load_json(const char *path)
{
    json_error_t e;
    json_t *v = json_text_load(path, JSON_REJECT_DUPLICATES, &e);

    if (json_is_object(v)) {
        return v;
    }
    if (v) {
        ctl_say("%s: is not an object", path);
    } else if (e.line < 0) {
        ctl_say("%s: %s", path, e.text);
    } else {
        ctl_say("%s: line %d: %s", path, e.line, e.text);
    }
    json_decref(v);
    return NULL;
}

int ctl_save_json(const char *path, const json_t *v, size_t flags)
{
    int r = json_text_save(v, path, flags);

    if (r < 0) {
        ctl_say("cannot write %s: %s", path, strerror(-r));
    }
    return r < 0 ? CTL_FAILED : CTL_DONE;
}

/* The file is opened once the page is complete. It may be a pipe, so it is written in place. */
int ctl_save_page(const char *path, void (*write)(FILE *to, const json_t *data), const json_t *data)
{
    base_autofree char *page = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&page, &bytes);
    bool well = to != NULL;

    if (to) {
        write(to, data);
        well = fclose(to) == 0;
    }
    to = well ? fopen(path, "we") : NULL;
    if (to) {
        well = fwrite(page, 1, bytes, to) == bytes;
        well = fclose(to) == 0 && well;
    }
    if (!to || !well) {
        ctl_say("cannot write %s: %m", path);
        return CTL_FAILED;
    }
    if (!page_has_charts()) {
        ctl_say("%s", PAGE_NO_CHARTS);
    }
    return CTL_DONE;
}
