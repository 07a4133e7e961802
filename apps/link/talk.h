/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/link/talk.h - what piped-link tells the daemon of boards and routes, and the routes that it
 * hears from it
 *
 * Two connections: reports go at every change and once a second, one at a time; routes come as the
 * daemon decides. While the daemon is away, the routes stay as they are. Threads: the loop.
 */
#pragma once

#include <poll.h>

#include "apps/link/common/link.h"

int talk_new(struct link *l, struct talk **ret);
struct talk *talk_free(struct talk *t);
/** talk_poll() - Return: how many of @ret, at most two. */
size_t talk_poll(const struct talk *t, struct pollfd ret[2]);
void talk_go(struct link *l, uint64_t now_ns);
