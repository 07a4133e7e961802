/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/pipectl/common/pipectl.h - what the commands share
 *
 * A command prints its result to stdout, or the reason for failing to stderr, and returns the
 * program's exit code. It prints no part of a result before it has all of it.
 */
#pragma once

#include "apps/pipectl/common/options.h"
#include "apps/pipectl/common/output.h"
#include "base/cli/cli_take.h"
#include "ipc/piped.h"

/* ---- command_line.c: exit codes, messages, and how a command reads its arguments ---- */

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

/* Says something on stderr, with the program's name; ctl_refuse() is @code, ctl_fail() CTL_FAILED,
 * and ctl_usage(), of what is wrong with the command line, CTL_USAGE. */
#define ctl_say(...) shown_say("pipectl", __VA_ARGS__)
#define ctl_refuse(code, ...) shown_refuse(code, "pipectl", __VA_ARGS__)
#define ctl_fail(...) ctl_refuse(CTL_FAILED, __VA_ARGS__)
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

/* ---- service_state.c: what systemd knows of a daemon that cannot be reached ---- */

#define CTL_SERVICE_TEXT_MAX 1024u

/**
 * ctl_service_words() - says in words why nobody answers
 *
 * @shown: what `systemctl show -p Id -p ActiveState -p Result -p StatusText -p NRestarts` printed
 * for the service and its sockets. @ret: the reason, one line. @ret_next: one line more, what to do
 * then, constant; NULL: nothing. Return: whether it says anything. Threads: any.
 */
bool ctl_service_words(const char *shown, char ret[CTL_SERVICE_TEXT_MAX], const char **ret_next);
/** ctl_service_state() - asks systemd, if it is there and @socket is the service's. Blocks. Return:
 * as above. */
bool ctl_service_state(const char *socket, char ret[CTL_SERVICE_TEXT_MAX], const char **ret_next);

/* ---- calls ---- */

#define CTL_TIMEOUT_DEFAULT (-1) /* as the command needs */
struct ctl {
    bool json;
    bool page;      /* what is received goes to a page, not to a terminal */
    int timeout_ms; /* to wait for an answer; 0: for ever; CTL_TIMEOUT_DEFAULT */
    char control_path[108], frames_path[108];
    bool quiet;        /* no word about a daemon that is away or late: another call follows */
    bool *not_started; /* set where the service failed to start; NULL: nobody asks */
};

/* control_call.c: a connection to the control socket. Functions return an exit code and have
 * printed the reason. */

struct ctl_control;
int ctl_control_open(const struct ctl *ctl, struct ctl_control **ret);
struct ctl_control *ctl_control_free(struct ctl_control *c);
/** ctl_control_send() - @parameters: borrowed. More than 2 KiB may still be on its way after it.
 * @fds: @count descriptors that go with the call. */
int ctl_control_send(struct ctl_control *c, const char *method, json_t *parameters, bool more,
                     const int *fds, size_t count);
/** ctl_control_receive() - waits for one reply. @ret: its parameters, the caller's reference. */
int ctl_control_receive(struct ctl_control *c, json_t **ret, bool *ret_continues);
/** ctl_control_fd() - for poll(2): readable when a part of a reply has arrived. Replies that came
 * with an earlier one do not show there, but in ctl_control_more(): there is a whole one. */
int ctl_control_fd(const struct ctl_control *c);
bool ctl_control_more(const struct ctl_control *c);

/** ctl_call() - calls io.piped.METHOD and waits for the reply. Takes the reference @parameters. */
int ctl_call(const struct ctl *ctl, const char *method, json_t *parameters, json_t **ret);
/** ctl_call_fds() - the same; sends @count descriptors along, at most CTL_MODEL_FILES_MAX. */
int ctl_call_fds(const struct ctl *ctl, const char *method, json_t *parameters, const int *fds,
                 size_t count, json_t **ret);
/** ctl_show() - calls, then prints the reply: with --json its @field (NULL: all of it), else by
 * @print. */
int ctl_show(const struct ctl *ctl, const char *method, json_t *parameters, const char *field,
             void (*print)(const json_t *reply));
/** ctl_ask() - calls, and takes one field of the reply. @ret: a new reference; NULL where the call
 * fails or the reply has no such field. Return: an exit code. */
int ctl_ask(const struct ctl *ctl, const char *method, json_t *parameters, const char *field,
            json_t **ret);
/** ctl_tell() - prints what a command did: with --json @v, else the text. */
void ctl_tell(const struct ctl *ctl, const json_t *v, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/** ctl_model_parameter() - Return: {}, or {"model": model}. */
json_t *ctl_model_parameter(const char *model);

/* frame_stream.c */

/** ctl_own_model() - Return: a model of this name comes with piped; @ret_path is its file. */
bool ctl_own_model(const char *name, char *ret_path, size_t bytes);

/* status.c */

/** ctl_print_failed() - prints the models that could not be loaded, and why; nothing for none. */
void ctl_print_failed(const json_t *failed);

/** ctl_print_segments() - prints what this board computes for others, of a folded status or reply
 * of Models (apps/show/fold_segments.h); nothing for none. */
void ctl_print_segments(const json_t *owner);

/* frame_stream.c: libpiped with pipectl's messages */

/* @reconnect_ms: 0: --timeout, else the library's default */
int ctl_connect(const struct ctl *ctl, uint32_t reconnect_ms, struct piped **ret);
/** ctl_say_trouble() - prints why libpiped waits for a daemon, once until it is connected again.
 * @said: false at first. */
void ctl_say_trouble(const struct piped *p, bool *said);
/* @tensors: how this command is given tensors instead, for a model that takes no pictures */
int ctl_open_stream(struct piped *p, const struct piped_stream_options *o, const char *tensors,
                    struct piped_stream **ret);
bool ctl_pixfmt(const char *name, uint32_t *ret);
size_t ctl_tensor_count(const struct piped_tensor *t);
double ctl_tensor_value(const struct piped_tensor *t, const void *data, size_t i);

/*
 * ---- call_progress.c: one line on a terminal that says how far a call is that takes long ----
 *
 * While a call waits for its answer, a second connection is subscribed to the daemon's events. Each
 * that tells of the call's model overwrites the line on stderr. Where stderr is no terminal there
 * is no second connection and no line. What fails here is not told: the call itself says it.
 */

struct ctl_progress;

/** ctl_progress_new() - @parameters: of the call; they name its model. Return: NULL: nothing is
 * shown. ctl_progress_free() takes the line away, and takes NULL. */
struct ctl_progress *ctl_progress_new(const struct ctl *ctl, const json_t *parameters);
struct ctl_progress *ctl_progress_free(struct ctl_progress *p);
/** ctl_progress_fd() - Return: for poll(2): when it is readable, ctl_progress_show(); -1: never. */
int ctl_progress_fd(const struct ctl_progress *p);
void ctl_progress_show(struct ctl_progress *p);

/** ctl_line_show() - overwrites the line. @text: what a terminal must not get becomes '?', and what
 * does not fit is left out. Nothing where stderr is no terminal. */
void ctl_line_show(char *text);
/** ctl_line_wipe() - takes the line away; nothing if there is none. */
void ctl_line_wipe(void);

/* call_examples.c */

/**
 * ctl_call_examples() - ctl_call() with the examples of a folder. @parameters: borrowed.
 *
 * Lists the pictures (JPEG, PPM, PGM) and raw tensors (.f32) of @folder in @parameters.examples and
 * sends their bytes in a sealed memfd. Names files that it cannot read, and skips them. @folder:
 * NULL for none.
 */
int ctl_call_examples(const struct ctl *ctl, const char *method, const char *folder,
                      json_t *parameters, json_t **ret);

/* plan_explain.c */

void ctl_print_explanation(const json_t *reply);
/** ctl_plan_mix() - prints one plan for all models. @applies: has them served by it. @front: and
 * what parts of the wishes cost. Return: an exit code. */
int ctl_plan_mix(const struct ctl *ctl, bool applies, bool front);
/** ctl_print_wishes_kept() - says whether all rates and deadlines of models can be kept. @mix: of
 * PlanMix. */
void ctl_print_wishes_kept(const json_t *mix);
/** ctl_plan_origin() - where the explained plan is from, as a sentence. */
struct ctl_words ctl_plan_origin(const json_t *explanation);
/** ctl_plan_costs() - where the times of its units are from, as a sentence. */
struct ctl_words ctl_plan_costs(const json_t *explanation);

/* units.c */

/** ctl_add_shares() - gives each unit "ms", and "share" of the time of all; null: unknown. */
void ctl_add_shares(json_t *units);

/* X(NAME): ctl_NAME() runs the command of that name in options.c. */
/* clang-format off */
#define CTL_COMMANDS(X)                                                                            \
    X(status) X(health) X(doctor) X(report) X(top) X(infer) X(bench) X(plan) X(models) X(retune)   \
    X(history) X(costs) X(profile) X(optimise) X(quantize) X(units) X(board) X(metrics)            \
    X(config) X(reload) X(subscribe) X(trace)
/* clang-format on */
#define CTL_DECLARE(name) int ctl_##name(const struct ctl *ctl, int argc, char **argv);
CTL_COMMANDS(CTL_DECLARE)
#undef CTL_DECLARE
