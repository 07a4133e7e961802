/* SPDX-License-Identifier: Apache-2.0 */
/** apps/http/options.h - the command line of piped-http, in one table, and what it says */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define WEB_LISTEN_MAX 8u
#define WEB_EXIT_USAGE 2
#define WEB_EXIT_CONFIG 6 /* trying again does not help */

struct web_options {
    const char *listen[WEB_LISTEN_MAX];
    size_t listen_count;
    const char *group, *socket, *control, *token_file, *tls_cert, *tls_key, *tls_client_ca, *policy;
    double connections, per_address, per_user, request_s, body_mb, memory_mb, image_mpixels;
    double streams, streams_total, queue, answer_s, reconnect_s, drain_s, deadline_ms;
    char frames_path[108], control_path[108]; /* of socket and control, or the defaults */
};

/** web_log() - what piped-http says of itself: a line on standard error. Threads: any. */
void web_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
/** web_refuse() - the same, of why it does not serve. Return: @code. */
int web_refuse(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** web_options_take() - Return: 0; WEB_EXIT_USAGE, with a message; -1: help or the version was
 * printed. */
int web_options_take(int argc, char **argv, struct web_options *ret);
