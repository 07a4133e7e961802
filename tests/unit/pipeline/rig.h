/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/unit/pipeline/rig.h - a minimal loop thread: wakes up like libuv's async handle, owns the
 * frames' buffers, checks every answer
 *
 * Threads: all functions are for the test's thread but rig_notify(), which teams call.
 */
#pragma once

#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/pipeline.h"
#include "tests/unit/pipeline/tiny_net.h"

#define RIG_FRAMES 256u

/* A coalescing wake-up like uv_async_send(): a relaxed load of the flag, then an exchange. */
struct rig_wake {
    _Atomic int pending;
    sem_t sem;
};

struct rig_job {
    float *out;
    bool image, cancelled_before, cancelled, expired_before;
    uint64_t tag;
};

struct rig {
    struct tiny_net *net; /* borrowed */
    struct rig_wake wake;
    struct pl_pipeline *p;           /* owned; made by the test */
    struct rig_job jobs[RIG_FRAMES]; /* in flight: tag % RIG_FRAMES */
    struct pl_frame *frames[RIG_FRAMES];
    uint64_t sent, got, ok;
    uint32_t epoch;
    bool wrong; /* an answer was; the reason is printed */
};

/** rig_notify() - wakes the test's thread. @arg: its struct rig_wake. Threads: any. */
void rig_notify(void *arg);
/** rig_wait() - waits for a wake-up. Return: false after two minutes without one: it was lost. */
bool rig_wait(struct rig_wake *w);

void rig_init(struct rig *r, struct tiny_net *net);
/** rig_deinit() - frees the pipeline, too. */
void rig_deinit(struct rig *r);
/** rig_options() - of a pipeline that notifies @r. */
struct pl_options rig_options(struct rig *r);
/** rig_eps() - the CPUs that this process may use, as one EP, or split into two ("little" is
 * declared slower). */
void rig_eps(struct pl_ep_set *eps, bool split);

/** rig_plan() - of its text. Exits the test if it is none. */
struct pl_plan rig_plan(const char *text, const struct pl_ep_set *eps, size_t units);

/* Options of a frame. */
enum { RIG_CANCELLED = 1, RIG_EXPIRED = 2, RIG_DEADLINE = 4, RIG_IMAGE = 8 };

/** rig_submit() - sends one frame. Return: false if there was no frame or no room. */
bool rig_submit(struct rig *r, unsigned flags);
/** rig_collect() - takes one finished frame and checks it. Return: false if none is finished. */
bool rig_collect(struct rig *r);
/** rig_drain() - collects all that is in flight. Return: false if a wake-up was lost. */
bool rig_drain(struct rig *r);
/** rig_stream() - sends @frames, as many at once as there is room for, and collects them. Return:
 * false if an answer was wrong or a wake-up was lost. */
bool rig_stream(struct rig *r, uint64_t frames, unsigned flags);
