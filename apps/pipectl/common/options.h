/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/pipectl/common/options.h - the table of pipectl's commands and their options
 *
 * Plain data; main.c says which function runs a command. A new command or option is a row here, its
 * code, and its lines in pipectl(1), which a lint test compares with this table.
 */
#pragma once

#include "base/cli/cli.h"

#define CTL_CLIENTS_MAX 256 /* of bench */

/* The options of every command, as given; NULL: not given. */
struct ctl_common {
    const char *socket, *timeout;
    bool json;
};

/* What the other options say that become no parameter of a call. Each command has those of its
 * rows; who reads them sets defaults. */
struct ctl_options {
    const char *model, *output, *page, *write, *calibrate, *sort, *lost;
    bool all, once, trials, live, cancel, front;
    double seconds, interval_s, wait_s, bound;
    const char *save_to, *sample; /* doctor */
    /* infer, bench */
    const char *raw, *expect, *draw, *video, *size;
    struct cli_texts lists;
    unsigned top, clients, in_flight, pixfmt, policy;
    bool inline_frames, verify, autodice;
    uint64_t frames, seed;
    double rate, deadline_ms, reconnect_s;
    /* models, board */
    const char *plan, *folder, *catalogue, *state_dir, *runtime_dir;
    struct cli_texts shapes;
    bool save, write_sidecar, force, replace;
    unsigned ring_kib; /* trace */
};

extern const struct cli_program ctl_program;

/** ctl_print_help() - prints the help of a command. Return: 0. */
int ctl_print_help(const struct cli_command *command);
