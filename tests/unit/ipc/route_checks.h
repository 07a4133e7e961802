/* SPDX-License-Identifier: Apache-2.0 */
/** tests/unit/ipc/route_checks.h - what holds of a head's frames whatever boards and links do */
#pragma once

#include "apps/link/route/route_private.h"
#include "tests/unit/ipc/fake_boards.h"

#define MODELS 2u
#define FRAMES 8192u
#define MS BASE_NS_PER_MS

struct frame {
    struct front_frame front;
    uint64_t input[16], output[16]; /* two tensors each */
    size_t model;
    uint32_t stream;
    uint64_t number;            /* of its messages; 0: not sent yet */
    uint32_t route, epoch, way; /* that it was sent on, the last time */
    unsigned withdrawals;
    int answers, status;
    bool failed; /* a board said that it failed for good */
};

extern const char *const names[MODELS];
extern struct frame frame[FRAMES];
/** oldest: no frame before it waits. */
extern size_t frame_count, answered, oldest;
/** How often a model's route was taken back. */
extern unsigned withdrawals[MODELS];

/** forget_all() - before other frames. */
void forget_all(void);
/** sent() - of boards_told: a message went out; checks its frame and its way's window. */
void sent(const struct lnk_frame *m, const struct lnk_bytes *part);
/** failed() - of boards_told: a board said so for good. */
void failed(uint32_t stream, uint64_t number);
/** go() - the head does what there is to do; checks its accounts. */
void go(void);
/** pass() - so much later. */
void pass(uint64_t ns);
