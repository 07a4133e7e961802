/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/pipectl/top_feed.h - calls to the daemon that never block, for pipectl top
 *
 * A connection is made at the first call and again after it was lost. Replies come in the order of
 * the calls. Nothing is printed.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/varlink.h"

struct top_feed {
    int sock;
    const char *path; /* borrowed */
    struct ipc_varlink_reader reader;
    size_t expected;       /* replies that have not come */
    uint64_t asked_at_ns;  /* when the oldest of them was last waited for */
    char not_started[512]; /* why the service failed to start; "": it did not */
};

enum { TOP_FEED_E_NONE = 1 };

/** top_feed_init() - @path: of the control socket, borrowed until top_feed_deinit(). */
void top_feed_init(struct top_feed *f, const char *path);
void top_feed_deinit(struct top_feed *f);
/** top_feed_ask() - calls io.piped.METHOD. Takes the reference @parameters. Return: 0; -errno: the
 * daemon is not reachable, and no reply will come to any call. */
int top_feed_ask(struct top_feed *f, const char *method, json_t *parameters, uint64_t now_ns);
/** top_feed_read() - reads what came. Return: 0; -errno, as top_feed_ask(). */
int top_feed_read(struct top_feed *f);
/** top_feed_next() - the next reply. @ret: its parameters, the caller's reference; NULL: the call
 * failed. Return: 0; TOP_FEED_E_NONE: not yet; -EPROTO: it is not a reply; -EHOSTDOWN: not_started
 * says why. */
int top_feed_next(struct top_feed *f, uint64_t now_ns, json_t **ret);
