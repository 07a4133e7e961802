/* SPDX-License-Identifier: Apache-2.0 */
/** pipeline/options.h - how a pipeline and its teams work */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pl_options {
    size_t frames; /* most frames in flight; 0: enough for any plan on these cores (2 per core + 2,
                    * more if cores are unequal, or if teams take several frames at once) */
    uint64_t spin_ns; /* time that a team spins for work before it sleeps; may be 0 */
    /* how long a team that takes several frames at once waits for more of them, from when it was
     * given the first; 0: it takes those that are there */
    uint64_t batch_wait_ns;
    /* called by a team when a frame can be collected or a set has drained; it may only wake the
     * loop */
    void (*notify)(void *arg); /* may be NULL */
    void *notify_arg;
    bool no_pin;    /* pin no thread, for machines that forbid it; status shows it */
    bool no_clocks; /* no per-unit clocks; only bench/clocks sets it */
    bool asleep;    /* its teams hold no weights, and no frame is admitted, by any plan */
};
