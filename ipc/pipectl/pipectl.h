/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/pipectl/pipectl.h - what the commands share
 *
 * A command returns the program's exit code. It has printed its result to stdout, or why there is
 * none to stderr. Nothing of a result is printed when a command fails before it has one.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base.h"
#include "ipc/piped.h"

enum ctl_exit {
    CTL_DONE = 0,
    CTL_FAILED = 1,
    CTL_USAGE = 2,
    CTL_UNREACHABLE = 3,
    CTL_DEGRADED = 4,
};

struct ctl {
    bool json;
    char control_path[108], frames_path[108];
};

struct ctl_command {
    const char *name;
    const char *usage; /* behind the name */
    const char *help;
    int (*run)(const struct ctl *ctl, int argc, char **argv); /* argv[0] is the command */
};
extern const struct ctl_command ctl_commands[];

/* messages on stderr, with the program's name and a newline */
void ctl_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/** ctl_usage() - says what is wrong with the command line and how the command is used. */
int ctl_usage(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* getopt_long() with the command's long options; ctl_no_more() refuses further arguments. */
struct option;
int ctl_option(int argc, char **argv, const struct option *options);
bool ctl_number(const char *text, double least, double most, double *ret);

/* control.c: a connection to the control socket */
struct ctl_control;
int ctl_control_open(const struct ctl *ctl, struct ctl_control **ret); /* exit code */
struct ctl_control *ctl_control_free(struct ctl_control *c);
int ctl_control_send(struct ctl_control *c, const char *method, json_t *parameters, bool more);
/** ctl_control_receive() - the parameters of one reply, the caller's reference. Return: exit code.
 */
int ctl_control_receive(struct ctl_control *c, json_t **ret, bool *ret_continues);
/** ctl_control_fd() - readable when something came; for poll(2) before a reply. */
int ctl_control_fd(const struct ctl_control *c);
/** ctl_call() - one call of io.piped.METHOD; @parameters: reference is taken. Return: exit code;
 * the reason was said. */
int ctl_call(const struct ctl *ctl, const char *method, json_t *parameters, json_t **ret);
/** ctl_call_fd() - the same; a descriptor @fd goes with the call (-1: none). */
int ctl_call_fd(const struct ctl *ctl, const char *method, json_t *parameters, int fd,
                json_t **ret);
/** ctl_model_parameter() - {} or {"model": model}. */
json_t *ctl_model_parameter(const char *model);

/* output.c */
void ctl_print_json(const json_t *v);
/** ctl_print_wrapped() - text and a newline; lines behind the first start at column @indent and
 * none passes CTL_COLUMNS if it can be broken behind a space or a '|'. */
#define CTL_COLUMNS 80
void ctl_print_wrapped(const char *text, int indent);
/* Rows of cells, columns as wide as needed; a NULL heading ends the columns. Cells are text. */
struct ctl_table {
    size_t columns;
    const char *const *headings;
    const char *align; /* one char a column: 'l', 'r', or for the last one 'w': wrapped */
    int indent;        /* of the whole table */
    json_t *rows;      /* owned: arrays of strings, and notes */
};
void ctl_table_init(struct ctl_table *t, const char *const *headings, const char *align);
void ctl_table_add(struct ctl_table *t, const char *format, ...)
    __attribute__((format(printf, 2, 3))); /* cells separated by '\t' */
/** ctl_table_note() - a line below the row before it, @indent columns in, wrapped. */
void ctl_table_note(struct ctl_table *t, int indent, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void ctl_table_print(struct ctl_table *t); /* and frees */
/* Fields of replies, whatever they hold. */
const char *ctl_text(const json_t *object, const char *key);
double ctl_real(const json_t *object, const char *key);
/** ctl_any() - a field as text in @ret: numbers and lists too, "-" when absent. Return @ret. */
const char *ctl_any(const json_t *object, const char *key, char *ret, size_t bytes);

/** ctl_known() - a number in @ret by @format, one %f; "-" when it is none. Return @ret. */
const char *ctl_known(const json_t *object, const char *key, const char *format, char *ret,
                      size_t bytes) __attribute__((format(printf, 3, 0)));

/* status_machine.c */
/** ctl_print_machine() - cores and sensors of a status reply; nothing for what is unknown. */
void ctl_print_machine(const json_t *status);

/* frames.c: libpiped with pipectl's messages */
/* @reconnect_ms: 0 as the library does */
int ctl_connect(const struct ctl *ctl, uint32_t reconnect_ms, struct piped **ret);
int ctl_open_stream(struct piped *p, const struct piped_stream_options *o,
                    struct piped_stream **ret);
bool ctl_pixfmt(const char *name, uint32_t *ret);
size_t ctl_tensor_count(const struct piped_tensor *t);
double ctl_tensor_value(const struct piped_tensor *t, const void *data, size_t i);

/* examples.c */
/**
 * ctl_call_examples() - ctl_call() with the pictures (JPEG, PPM, PGM) and raw tensors (.f32) of a
 * folder, NULL: without: sets @parameters.examples; their bytes go along in a sealed memfd. Files
 * that cannot be read are said and left out. @parameters: taken. Return: exit code; the reason was
 * said.
 */
int ctl_call_examples(const struct ctl *ctl, const char *method, const char *folder,
                      json_t *parameters, json_t **ret);

/** ctl_front_svg() - what Optimise answers as "front", drawn into a file. Return: an exit code. */
int ctl_front_svg(const char *path, const json_t *front);

/* commands */
int ctl_status(const struct ctl *ctl, int argc, char **argv);
int ctl_infer(const struct ctl *ctl, int argc, char **argv);
int ctl_bench(const struct ctl *ctl, int argc, char **argv);
int ctl_plan(const struct ctl *ctl, int argc, char **argv);
int ctl_models(const struct ctl *ctl, int argc, char **argv);
int ctl_retune(const struct ctl *ctl, int argc, char **argv);
int ctl_history(const struct ctl *ctl, int argc, char **argv);
int ctl_costs(const struct ctl *ctl, int argc, char **argv);
int ctl_calibrate(const struct ctl *ctl, int argc, char **argv);
int ctl_optimise(const struct ctl *ctl, int argc, char **argv);
int ctl_quantize(const struct ctl *ctl, int argc, char **argv);
/** ctl_print_trials() - an event's trials as a table; only the best @most when there are more. */
void ctl_print_trials(const json_t *event, size_t most);
/** ctl_trial_note() - " (stopped: worse)" and the like, or "". */
const char *ctl_trial_note(const json_t *trial);
/** ctl_gain() - "+12.3 %" from an event's fps before and after; "-" when one is not known. */
const char *ctl_gain(const json_t *event, char *ret, size_t bytes);
int ctl_metrics(const struct ctl *ctl, int argc, char **argv);
int ctl_config(const struct ctl *ctl, int argc, char **argv);
int ctl_reload(const struct ctl *ctl, int argc, char **argv);
int ctl_units(const struct ctl *ctl, int argc, char **argv);
int ctl_subscribe(const struct ctl *ctl, int argc, char **argv);
