/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/plans/synthetic.h - synthetic frames, to measure a plan while nobody uses the model
 *
 * They only use what clients leave free: none is submitted while a client's frame is in the
 * pipeline, waits for it, or came out moments ago. There are just enough to keep the plan busy, so
 * the next client finds a short queue. All share one zeroed input; each has its own output.
 * Threads: the loop thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/models/models.h"

#define DMN_SYNTHETIC_MAX 512u

struct dmn_synthetic {
    struct dmn_frame_owner owner; /* of every synthetic frame; the frame's tag is its index */
    uint8_t *input, *outputs;     /* owned */
    size_t places, outstanding;
    bool taken[DMN_SYNTHETIC_MAX];
};

/** dmn_synthetic_init() - Return: 0 or -ENOMEM. */
int dmn_synthetic_init(struct dmn_synthetic *f, const struct dmn_model *m);
void dmn_synthetic_deinit(struct dmn_synthetic *f);
/** dmn_synthetic_idle() - Return: no client has used the model in the last moments. */
bool dmn_synthetic_idle(const struct dmn_model *m, uint64_t now_ns);
/** dmn_synthetic_fill() - submits as many frames as are wanted now. */
void dmn_synthetic_fill(struct dmn_synthetic *f, struct dmn_model *m);
