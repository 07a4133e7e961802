/* SPDX-License-Identifier: Apache-2.0 */
/** pipeline/frame.h - one frame: the submitter's fields and the pipeline's answer */
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
    uint64_t deadline_ns; /* monotonic; 0: none */
    /* set by the pipeline */
    enum pl_frame_status status;
    uint32_t epoch;
    uint64_t number; /* of admission, over all epochs */
    uint64_t admitted_ns, started_ns,
        done_ns;         /* submitted; taken by stage 0; last stage finished */
    uint64_t busy_ns;    /* sum of the times that teams held it, without what others took of their
                          * cores in runs whose CPU clocks were read */
    uint64_t image_ns;   /* part of it in which its image was converted */
    _Atomic bool cancel; /* writer: loop. Teams then pass the frame on without computing */
    struct pl_frame_private *private;
};
