/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/guess.h - guesses how pictures become input 0 of a network, for people who must confirm it
 */
#pragma once

#include "model/common/graph.h"

struct mdl_guess {
    bool picture; /* input 0 looks like a picture */
    bool nhwc;
    size_t height, width, channels;
    bool open_size; /* the file leaves height or width open: they are guessed, too */
    float scale, mean[3], std[3];
    bool bgr, letterbox, crop;
    bool shown;    /* the graph itself shows the range of its pixels */
    bool doubtful; /* pictures in floats of three channels, and the graph shows nothing */
    char why[640]; /* sentences */
};

/** mdl_guess() - looks at input 0, what reads it first, outputs and the producer. Threads: any. */
void mdl_guess(const struct mdl_graph *g, struct mdl_guess *ret);

/** mdl_guess_size() - Return: the height or width of the picture if that is what dimension @dim of
 * input @input is; else 0. */
size_t mdl_guess_size(const struct mdl_guess *g, size_t input, size_t dim);

/** mdl_guess_nhwc() - Return: whether input 0 is [N][H][W][C] beyond doubt: three channels at the
 * end and none in front, or one at the end of an image of 16 x 16 or more. Open dimensions do not
 * count as channels. */
bool mdl_guess_nhwc(const struct mdl_graph *g);
