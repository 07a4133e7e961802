/* SPDX-License-Identifier: Apache-2.0 */
/** apps/http/reply.h - answers: bodies that grow, errors in the protocol's form, and sending */
#pragma once

#include <jansson.h>

#include "apps/http/web.h"

/* A text that grows. */
struct web_text {
    char *data; /* owned */
    size_t used, size;
    bool failed; /* no memory: data is incomplete */
};

void web_text_add(struct web_text *t, const void *bytes, size_t count);
void web_text_printf(struct web_text *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/** web_text_json() - adds a JSON value, compact. Takes the reference. */
void web_text_json(struct web_text *t, json_t *value);

/** web_reply_forget() - frees what was answered so far, for another answer. */
void web_reply_forget(struct web_reply *r);
/** web_fail() - {"error": "..."}. Return: false. */
bool web_fail(struct web_reply *r, unsigned status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/** web_claim() - memory for a request, until it is over. @r: NULL: the caller answers. Return: as
 * web_memory_claim(); false: @r is the error. */
bool web_claim(struct web_request *q, size_t bytes, struct web_reply *r);
/** web_claim_less() - gives some of it back before. */
void web_claim_less(struct web_request *q, size_t bytes);
/** web_fail_memory() - a claim did not fit (memory.h). Return: false. */
bool web_fail_memory(struct web_reply *r, const struct web *w);
/** web_fail_frame() - an error of the daemon. @status: enum piped_status. */
void web_fail_frame(struct web_reply *r, int status, const char *text);
/** web_fail_open() - an error of piped_connect(), or of piped_stream_open() (@connected). @rc:
 * -errno. */
void web_fail_open(struct web_reply *r, int rc, bool connected, const char *text);
/** web_reply_text() - takes @t's bytes. */
void web_reply_text(struct web_reply *r, const char *type, struct web_text *t);
/** web_reply_json() - takes the reference; without a value an error. */
void web_reply_json(struct web_reply *r, json_t *value);

/** web_send() - hands the answer to libmicrohttpd, and frees it. */
enum MHD_Result web_send(struct web_request *q, struct web_reply *r);
