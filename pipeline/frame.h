/* SPDX-License-Identifier: Apache-2.0 */
/** pipeline/frame.h - what a pipeline is given: frames, with its answer to each, and how to work */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"

enum pl_frame_status {
    PL_FRAME_OK,
    PL_FRAME_EXPIRED, /* its deadline passed before the next stage would have started it */
    PL_FRAME_CANCELLED,
};

#define PL_FRAME_IO_MAX 16u

struct pl_frame {
    /* set by the submitter between pl_frame_get() and pl_submit() */
    uint64_t tag;                        /* the submitter's own */
    void *owner;                         /* the submitter's own */
    const void *inputs[PL_FRAME_IO_MAX]; /* one per model input, borrowed until collected; not read
                                          * if has_image */
    void *outputs[PL_FRAME_IO_MAX];      /* one per model output, borrowed until collected */
    bool has_image; /* input 0 is image, which unit 0 converts or reads directly */
    struct krn_image image;
    uint64_t came_ns;     /* monotonic; from then on its client's deadline counts; 0: pl_submit() */
    uint64_t deadline_ns; /* monotonic; 0: none */
    /* set by the pipeline */
    enum pl_frame_status status;
    uint32_t epoch;
    uint64_t due_ns; /* by the claim of its client (pipeline/seats.h); 0: never */
    uint64_t number; /* of admission, over all epochs; set before the first push */
    uint64_t admitted_ns, started_ns,
        done_ns;         /* submitted; taken by stage 0; last stage finished */
    uint64_t busy_ns;    /* sum of the times that teams held it, without what others took of their
                          * cores in runs whose CPU clocks were read */
    uint64_t image_ns;   /* part of it in which its image was converted */
    _Atomic bool cancel; /* writer: loop. Teams then pass the frame on without computing */
    struct pl_frame_private *private;
};

/* How a pipeline and its teams work. */
struct pl_options {
    size_t frames; /* most frames in flight; 0: enough for any plan on these cores (2 per core + 2,
                    * more if cores are unequal or were measured to be, or if teams take several
                    * frames at once) */
    uint64_t spin_ns; /* time that a team spins for work before it sleeps; may be 0 */
    /* how long a team that takes several frames at once waits for more of them, from when it was
     * given the first; 0: it takes those that are there */
    uint64_t batch_wait_ns;
    /* called by a team when a frame can be collected or a set has drained; it may only wake the
     * loop */
    void (*notify)(void *arg); /* may be NULL */
    void *notify_arg;
    struct pl_client *client; /* of seats, borrowed; NULL: teams compute when they like */
    bool no_pin;              /* pin no thread, for machines that forbid it; status shows it */
    bool no_clocks;           /* no per-unit clocks; only bench/ and tests/ set it */
    bool asleep;              /* its teams hold no weights, and no frame is admitted, by any plan */
};
