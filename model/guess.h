/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/guess.h - guesses how pictures become input 0 of a network, for people who must confirm it
 */
#pragma once

#include "base/picture_fit.h"
#include "model/common/graph.h"

struct mdl_guess {
    bool picture; /* input 0 looks like a picture */
    bool nhwc;
    size_t height, width, channels; /* height, width 0: the file leaves it open */
    bool open_size;
    float scale, mean[3], std[3];
    bool bgr;
    enum picture_fit fit;
    int pad;       /* of the bars of a letterbox; -1: the mean */
    bool shown;    /* the graph itself shows the range of its pixels */
    bool doubtful; /* pictures in floats of three channels, and the graph shows nothing */
    char why[640]; /* sentences */
};

/** mdl_guess() - looks at input 0 and at what reads it first; what these do not show is as in a
 * sidecar that says nothing. recipes.h guesses that by the kind of network. Threads: any. */
void mdl_guess(const struct mdl_graph *g, struct mdl_guess *ret);
/** mdl_guess_say() - appends a sentence to why. */
void mdl_guess_say(struct mdl_guess *to, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** mdl_guess_nhwc() - Return: whether input 0 is [N][H][W][C] beyond doubt: three channels at the
 * end and none in front, or one at the end of an image of 16 x 16 or more. Open dimensions do not
 * count as channels. */
bool mdl_guess_nhwc(const struct mdl_graph *g);
