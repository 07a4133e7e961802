/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/feed.h - synthetic frames, so that a plan can be measured while nobody uses the model
 *
 * They fill what clients leave free: none goes in while a client's frame is in the pipeline, waits
 * for it, or came out a moment ago, and never more than keep the plan busy, so that the next client
 * finds a short queue. One zeroed input serves all; each has an output of its own. Threads: the
 * loop thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/pipeline.h"

struct dmn_model;

#define DMN_FEED_MAX 512u

struct dmn_feed {
    uint8_t *input, *outputs; /* owned */
    size_t places, outstanding;
    bool taken[DMN_FEED_MAX];
};

/** dmn_feed_init() - Return: 0 or -ENOMEM. */
int dmn_feed_init(struct dmn_feed *f, const struct dmn_model *m);
void dmn_feed_deinit(struct dmn_feed *f);
/** dmn_feed_idle() - no client has used the model for a moment. */
bool dmn_feed_idle(const struct dmn_model *m, uint64_t now_ns);
/** dmn_feed_fill() - submits as many as are wanted now. */
void dmn_feed_fill(struct dmn_feed *f, struct dmn_model *m);
/** dmn_feed_back() - a synthetic frame (owner NULL) came out. */
void dmn_feed_back(struct dmn_feed *f, const struct pl_frame *frame);
