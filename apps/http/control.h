/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/http/control.h - questions to the daemon's control socket
 *
 * All threads share one connection at a time, and an answer is as good for all that ask within
 * WEB_FRESH_MS; so is a failure. However many clients ask, the daemon is asked ten times a second.
 *
 * Threads: any; a call waits at most WEB_QUESTION_MS for the daemon.
 */
#pragma once

#include <jansson.h>

#define WEB_FRESH_MS 100u
#define WEB_QUESTION_MS 5000

enum web_question { WEB_STATUS, WEB_MODELS, WEB_HISTORY, WEB_METRICS, WEB_QUESTIONS };

struct web_control;
struct web_reply;

/** web_control_new() - @path: of the socket, borrowed. Return: NULL: no memory. */
struct web_control *web_control_new(const char *path);
struct web_control *web_control_free(struct web_control *c);
/** web_ask() - @r: NULL: nobody is told. Return: the reply's parameters, the caller's reference;
 * NULL: @r is the error. */
json_t *web_ask(struct web_control *c, enum web_question q, struct web_reply *r);
/** web_ask_units() - the units of a model; not kept for others. Return: as web_ask(). */
json_t *web_ask_units(struct web_control *c, const char *model);
