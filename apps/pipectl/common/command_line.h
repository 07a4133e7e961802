/* SPDX-License-Identifier: Apache-2.0 */
/** command_line.h - exit codes, messages, and how a command reads its arguments */
#pragma once

#include <jansson.h>

#include "apps/pipectl/common/options.h"
#include "base/base.h"
#include "base/cli/cli_print.h"
#include "base/cli/cli_take.h"
#include "base/cli/shown_print.h"

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

static inline void ctl_close_file(FILE **f)
{
    if (*f) {
        fclose(*f);
        *f = NULL;
    }
}
/* Closes the file when the variable leaves its scope. */
#define ctl_autoclose_file base_cleanup(ctl_close_file)

/* Says something on stderr, with the program's name; ctl_fail() is CTL_FAILED, and ctl_usage(), of
 * what is wrong with the command line, CTL_USAGE. */
#define ctl_say(...) shown_say("pipectl", __VA_ARGS__)
#define ctl_fail(...) shown_refuse(CTL_FAILED, "pipectl", __VA_ARGS__)
#define ctl_usage(command, ...) cli_usage(&ctl_program, command, __VA_ARGS__)
/** ctl_unreachable() - prints @why and what to do about it. @path: of the socket. Return:
 * CTL_UNREACHABLE. */
int ctl_unreachable(const char *why, int error, const char *path);
/** ctl_not_started() - prints @why the service failed to start, and what to do. Return:
 * CTL_UNREACHABLE. */
int ctl_not_started(const char *why);

/** ctl_take() - cli_take() of the command argv[0]. Return: CTL_DONE or CTL_USAGE. */
int ctl_take(int argc, char **argv, struct ctl_options *to, json_t *parameters);
/** ctl_take_all() - the same, and refuses arguments. */
int ctl_take_all(int argc, char **argv, struct ctl_options *to, json_t *parameters);
/** ctl_model_argument() - takes what is left: "model", if no option set it. Return: CTL_DONE or
 * CTL_USAGE. */
int ctl_model_argument(int argc, char **argv, json_t *parameters);

/** ctl_load_json() - Return: the object that a file holds, the caller's reference; NULL: the reason
 * was printed. */
json_t *ctl_load_json(const char *path);
/** ctl_save_json() - writes a file, or says why not. @flags: of json_dumps(). Return: an exit
 * code. */
int ctl_save_json(const char *path, const json_t *v, size_t flags);
/** ctl_save_page() - writes the page @path, which may be a pipe, once @write made all of it of
 * @data, and says if it has no charts. Return: an exit code. */
int ctl_save_page(const char *path, void (*write)(FILE *to, const json_t *data),
                  const json_t *data);
