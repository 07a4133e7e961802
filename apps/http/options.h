/* SPDX-License-Identifier: Apache-2.0 */
/** apps/http/options.h - the command line of piped-http, in one table, and what it says */
#pragma once

#include "base/cli/cli.h"
#include "base/cli/shown_print.h"

#define WEB_PROGRAM "piped-http"
#define WEB_LISTEN_MAX 8u
#define WEB_EXIT_USAGE 2
#define WEB_EXIT_CONFIG 6 /* trying again does not help */

struct web_options {
    struct cli_texts listen;
    const char *group, *socket, *control, *token_file, *tls_cert, *tls_key, *tls_client_ca, *policy;
    unsigned connections, per_address, per_user, streams, streams_total, queue;
    double request_s, body_mb, memory_mb, image_mpixels, answer_s, reconnect_s, drain_s,
        deadline_ms;
    char frames_path[108], control_path[108]; /* of socket and control, or the defaults */
};

/* What piped-http says of itself, a line on standard error; web_refuse() is @code, and says why it
 * does not serve. Threads: any. */
#define web_log(...) shown_say(WEB_PROGRAM, __VA_ARGS__)
#define web_refuse(code, ...) shown_refuse(code, WEB_PROGRAM, __VA_ARGS__)

/** web_options_take() - Return: 0; WEB_EXIT_USAGE, with a message; -1: help or the version was
 * printed. */
int web_options_take(int argc, char **argv, struct web_options *ret);
