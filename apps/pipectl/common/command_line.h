/* SPDX-License-Identifier: Apache-2.0 */
/** command_line.h - exit codes, messages, and how a command reads its arguments */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <string.h>

#include "base/cli/cli.h"

enum ctl_exit {
    CTL_DONE = 0,
    CTL_FAILED = 1,
    CTL_USAGE = 2,
    CTL_UNREACHABLE = 3,
    CTL_DEGRADED = 4,
};

/** ctl_slash() - Return: what joins a folder and a name in it: "/", or "" where @folder ends so. */
static inline const char *ctl_slash(const char *folder)
{
    size_t n = strlen(folder);

    return n && folder[n - 1] == '/' ? "" : "/";
}

/** ctl_say() - prints a message on stderr, with the program's name and a newline. */
void ctl_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/** ctl_usage() - prints what is wrong with the command line, and the usage. Return: CTL_USAGE. */
int ctl_usage(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
/** ctl_unreachable() - prints @why and what to do about it. @path: of the socket. Return:
 * CTL_UNREACHABLE. */
int ctl_unreachable(const char *why, int error, const char *path);
/** ctl_not_started() - prints @why the service failed to start, and what to do. Return:
 * CTL_UNREACHABLE. */
int ctl_not_started(const char *why);

/**
 * ctl_option() - the next option of the command argv[0] (pipectl_options.h)
 *
 * @rc: CTL_DONE, or why to stop. If the option is wrong, this says so and sets CTL_USAGE.
 * @ret_row: its row; may be NULL. Return: its id; -1: there are no more, or @rc says to stop.
 */
int ctl_option(int argc, char **argv, int *rc, const struct cli_option **ret_row);
/** ctl_no_more() - refuses arguments that are left. Return: CTL_DONE or CTL_USAGE. */
int ctl_no_more(int argc, char **argv);
/** ctl_model_argument() - takes what is left: "model", if no option set it. Return: CTL_DONE or
 * CTL_USAGE. */
int ctl_model_argument(int argc, char **argv, json_t *parameters);
/** ctl_number() - reads @text as a number from @least to @most. Return: true if it is one. */
bool ctl_number(const char *text, double least, double most, double *ret);

/* An option of id CTL_SETTING, and the parameter of the command's call that it becomes. */
struct ctl_setting {
    const char *option, *parameter;
    enum { CTL_TEXT, CTL_WHOLE, CTL_REAL, CTL_FLAG } type;
    double least, most; /* of numbers */
};
/** ctl_set() - sets the parameter of @option, which must be in @settings. Return: CTL_DONE or
 * CTL_USAGE. */
int ctl_set(const char *command, const struct ctl_setting *settings, const char *option,
            const char *text, json_t *parameters);
/** ctl_set_text() - sets a text; @what names it in a message. Return: CTL_DONE or CTL_USAGE. */
int ctl_set_text(const char *command, const char *what, json_t *parameters, const char *key,
                 const char *text);

/** ctl_load_json() - Return: the object that a file holds, the caller's reference; NULL: the reason
 * was printed. */
json_t *ctl_load_json(const char *path);
/** ctl_save_json() - writes a file, or says why not. @flags: of json_dumps(). Return: an exit
 * code. */
int ctl_save_json(const char *path, const json_t *v, size_t flags);
