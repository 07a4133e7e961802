/* SPDX-License-Identifier: Apache-2.0 */
/** command_line.h - exit codes, messages, and how a command reads its arguments */
#pragma once

#include <jansson.h>

#include "base/base.h"
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

static inline void ctl_close_file(FILE **f)
{
    if (*f) {
        fclose(*f);
        *f = NULL;
    }
}
/* Closes the file when the variable leaves its scope. */
#define ctl_autoclose_file base_cleanup(ctl_close_file)

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

/* Where the value of an option goes: to @to, or to @parameter; texts and flags also to both. */
struct ctl_take {
    const char *option;
    /* whole: refuses fractions; cut and the integers leave them away */
    enum { CTL_FLAG, CTL_TEXT, CTL_REAL, CTL_WHOLE, CTL_CUT, CTL_U32, CTL_U64 } type;
    void *to;              /* bool, const char *, double, uint32_t, uint64_t; or NULL */
    const char *parameter; /* of the call; or NULL */
    double least, most;    /* of a number */
    double scale;          /* the number is multiplied by it; 0: by 1 */
    const char *text; /* of a text whose option has no value; what a number is, as in "seconds" */
    int (*take)(const char *value, void *to); /* instead of all this. Return: an exit code */
};
/**
 * ctl_take() - takes the options of the command argv[0], up to its arguments (options.h)
 *
 * @rows: one for each option; {0} ends them. @parameters: of the call; NULL: no option becomes one.
 * Says what is wrong. Return: CTL_DONE or CTL_USAGE, or what take() said.
 */
int ctl_take(int argc, char **argv, const struct ctl_take *rows, json_t *parameters);
/** ctl_take_all() - the same, and refuses arguments. */
int ctl_take_all(int argc, char **argv, const struct ctl_take *rows, json_t *parameters);
/** ctl_no_more() - refuses arguments that are left. Return: CTL_DONE or CTL_USAGE. */
int ctl_no_more(int argc, char **argv);
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
