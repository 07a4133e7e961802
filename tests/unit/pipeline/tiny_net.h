/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/unit/pipeline/tiny_net.h - a small real network, built by hand, and its answers
 *
 * A chain of 3x3 convolutions (clip, residual from the one before the last), one per unit, with a
 * layout change in the first and the last unit. Three arena ranges are used in turn, so a unit that
 * is skipped, run twice or run on another frame's memory changes the answer.
 */
#pragma once

#include <stdint.h>

#include "kernels/kernels.h"

#define TINY_INPUTS 8u

struct tiny_net {
    struct mdl_model model;
    struct krn_net *net;
    size_t elements;             /* of input and output */
    float *inputs[TINY_INPUTS];  /* random */
    float *answers[TINY_INPUTS]; /* computed by one thread that runs all ops in order */
    uint8_t *image;              /* RGB24, size x size; only with 3 channels */
    size_t image_side;
    float *image_answer;
};

/* Of images on which a unit of 16 channels takes tens of milliseconds. */
#ifdef __SANITIZE_THREAD__
#define TINY_NET_SLOW_SIDE 16
#else
#define TINY_NET_SLOW_SIDE 64
#endif

/** tiny_net_init() - @units convolutions of @channels on @side x @side. Exits the test on failure.
 */
void tiny_net_init(struct tiny_net *t, size_t units, size_t channels, size_t side);
void tiny_net_deinit(struct tiny_net *t);
