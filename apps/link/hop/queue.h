/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/link/hop/queue.h - frames that wait for a slot of their segment, in the order in which they
 * came
 *
 * A route has more frames on their way than a board's daemon takes at once; those of the slowest
 * hop wait here. Bounded in frames and bytes. Threads: the loop.
 */
#pragma once

#include <sys/queue.h>

#include "apps/link/common/link.h"

struct hop_waiting {
    TAILQ_ENTRY(hop_waiting) linked;
    uint64_t place; /* number of the hop's place */
    uint64_t came_ns;
    size_t bytes;
    struct lnk_message message; /* a FRAME; its tail and parts are in here, too */
    struct lnk_bytes part[LNK_PARTS_MAX];
    uint8_t data[]; /* of the tail, then of the parts */
};
struct hop_queue {
    TAILQ_HEAD(, hop_waiting) frames;
    size_t bytes;
    uint32_t count;
};

void hop_queue_init(struct hop_queue *q);
/** hop_queue_deinit() - frees what waits. */
void hop_queue_deinit(struct hop_queue *q);
/** hop_queue_add() - copies a FRAME. Return: 0; -ENOSPC, -ENOMEM. */
int hop_queue_add(struct hop_queue *q, uint64_t place, const struct lnk_message *m);
/** hop_queue_drop() - takes it out and frees it. */
void hop_queue_drop(struct hop_queue *q, struct hop_waiting *w);
