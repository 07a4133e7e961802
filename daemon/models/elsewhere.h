/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/models/elsewhere.h - a place other than its pipeline that computes frames of a model
 *
 * A model may have one (dmn_model.elsewhere). Whoever submits its frames offers them there first. A
 * frame that was taken comes back exactly once, by done(), or not at all if the place ends with its
 * model. One that comes back undone is for the model's own pipeline.
 *
 * Threads: the loop thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "pipeline/frame.h"

struct dmn_model;
struct dmn_elsewhere;
struct piped_frame;

struct dmn_far_answer {
    bool undone; /* it was not computed; nothing else is set */
    enum pl_frame_status status;
    uint32_t epoch;      /* number of the route */
    uint64_t service_ns; /* 0: unknown */
    uint64_t done_ns;
};

/* One frame; embedded in the submitter's struct for it. */
struct dmn_far_frame {
    /* set by the submitter; borrowed until done(). Tensors back to back, as dmn_model.in_offset and
     * out_offset say; or an image of pixel format pixfmt, which takes() agreed to */
    const uint8_t *input;
    const struct krn_image *image; /* NULL: tensors */
    unsigned pixfmt;
    uint8_t *output;
    uint64_t deadline_ns; /* monotonic; 0: none */
    void (*done)(struct dmn_far_frame *f, struct dmn_model *m, const struct dmn_far_answer *a);
    /* set by the place */
    struct dmn_elsewhere *at; /* NULL: nowhere */
    struct piped_frame *slot;
    bool cancelled;
    TAILQ_ENTRY(dmn_far_frame) linked;
};

enum dmn_offer {
    DMN_OFFER_TAKEN,
    DMN_OFFER_FULL, /* later: dmn_models_listener.room tells when */
    DMN_OFFER_NONE, /* it takes no frames now: the pipeline computes them */
};

struct dmn_elsewhere {
    /* Return: an image of pixel format @pixfmt goes there as it is; else only as the tensor that it
     * becomes. */
    bool (*takes)(const struct dmn_elsewhere *e, unsigned pixfmt, const struct krn_image *image);
    enum dmn_offer (*offer)(struct dmn_elsewhere *e, struct dmn_far_frame *f);
    /* The frame still comes back, later, usually as PL_FRAME_CANCELLED. */
    void (*cancel)(struct dmn_elsewhere *e, struct dmn_far_frame *f);
    /* Return: frames in flight that keep it busy; 0: it takes none now. */
    size_t (*depth)(const struct dmn_elsewhere *e);
};
