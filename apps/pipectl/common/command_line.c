/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl: messages, options and arguments. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "apps/pipectl/common/command_line.h"
#include "apps/pipectl/common/options.h"
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

/* The value of the option @o is none of its words. */
static int bad_word(const char *command, const struct cli_option *o, const char *hint)
{
    char words[CLI_WRONG_BYTES] = "";

    for (const char *at = o->words; at && *at; at += strspn(at, " ,")) {
        size_t n = strlen(words), bytes = strcspn(at, " ,");

        snprintf(words + n, sizeof(words) - n, "%s%.*s", n ? ", " : "", (int)bytes, at);
        at += bytes;
    }
    return ctl_usage(command, "--%s needs one of %s, not '%s'%s", o->name, words, optarg, hint);
}

int ctl_option(int argc, char **argv, int *rc, const struct cli_option **ret_row)
{
    const struct cli_command *command = cli_find(ctl_program.commands, argv[0]);
    const struct cli_option *row;
    char wrong[CLI_WRONG_BYTES], hint[NEAR_WORD_HINT_BYTES];
    int c;

    if (*rc != CTL_DONE) {
        return -1;
    }
    c = cli_getopt(command, argc, argv, &row);
    if (c == ':' || c == '?') {
        *rc = ctl_usage(argv[0], "%s", cli_wrong_of(command, c, argv, wrong));
        return -1;
    }
    if (row && !cli_takes(row, optarg, hint)) {
        *rc = bad_word(argv[0], row, hint);
        return -1;
    }
    if (ret_row) {
        *ret_row = row;
    }
    return c;
}

int ctl_no_more(int argc, char **argv)
{
    return optind < argc ? ctl_usage(argv[0], "unexpected argument '%s'", argv[optind]) : CTL_DONE;
}

bool ctl_number(const char *text, double least, double most, double *ret)
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

int ctl_set_text(const char *command, const char *what, json_t *parameters, const char *key,
                 const char *text)
{
    return json_object_set_new(parameters, key, json_string(text)) < 0
               ? ctl_usage(command, "%s is not UTF-8", what)
               : CTL_DONE;
}

int ctl_model_argument(int argc, char **argv, json_t *parameters)
{
    int rc = CTL_DONE;

    if (optind < argc && !json_object_get(parameters, "model")) {
        rc = ctl_set_text(argv[0], "the model's name", parameters, "model", argv[optind++]);
    }
    return rc ? rc : ctl_no_more(argc, argv);
}

int ctl_set(const char *command, const struct ctl_setting *settings, const char *option,
            const char *text, json_t *parameters)
{
    const struct ctl_setting *s = settings;
    double number;

    while (strcmp(s->option, option) != 0) {
        s++;
    }
    if (s->type == CTL_FLAG) {
        json_object_set_new(parameters, s->parameter, json_true());
        return CTL_DONE;
    }
    if (s->type == CTL_TEXT) {
        return ctl_set_text(command, s->option, parameters, s->parameter, text);
    }
    if (!ctl_number(text, s->least, s->most, &number) ||
        (s->type == CTL_WHOLE && number != (double)(json_int_t)number)) {
        return ctl_usage(command, "--%s needs a %snumber from %.15g to %.15g, not '%s'", s->option,
                         s->type == CTL_WHOLE ? "whole " : "", s->least, s->most, text);
    }
    json_object_set_new(parameters, s->parameter,
                        s->type == CTL_WHOLE ? json_integer((json_int_t)number)
                                             : json_real(number));
    return CTL_DONE;
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
