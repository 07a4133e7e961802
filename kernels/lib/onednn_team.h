/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/onednn_team.h - how a team shares a convolution over oneDNN
 *
 * Members share output rows, or pixels where the window is one pixel, or images where there are
 * several; each share is a convolution of its own shape and padding, run by primitives of its own
 * (shares of one shape have the same). All read the weights that were packed once. Shares for a
 * width are made when a team of that width is built, and stay.
 */
#pragma once

#include <pthread.h>

#include "kernels/lib/onednn.h"

#define KRN_DNNL_WIDTH_MAX 64u /* wider teams run the shares of that many members */

/* What differs between shares. */
struct krn_dnnl_shape {
    struct krn_img x, y;
    size_t top, bottom, left, right;
};

/* What one share runs, one after the other; in and out copy and may be none. */
struct krn_dnnl_pieces {
    struct krn_dnnl in, conv, out;
    int fused;                          /* for the row's own use */
    size_t x_bytes, y_bytes, pad_bytes; /* scratch: copy of x, of y, scratchpad */
};

struct krn_dnnl_share {
    struct krn_range at; /* of the outermost dim: pixels, images or rows */
    size_t x;            /* element of its first input */
    struct krn_dnnl_shape shape;
    struct krn_dnnl_pieces *pieces; /* borrowed from the share that owns them */
    bool owner;
};

struct krn_dnnl_split {
    size_t count, share_bytes; /* scratch of one share */
    struct krn_dnnl_share shares[];
};

struct krn_dnnl_team {
    struct krn_conv conv;
    bool pointwise;     /* y's pixels are x's, whose rows and images have no gaps between them */
    size_t shares_max;  /* pixels, images or rows */
    size_t pixels_each; /* in one of them */
    /* makes the pieces of one share. @of: as given. Return: 0, -ENOMEM, -EOPNOTSUPP */
    int (*make)(const void *of, const struct krn_dnnl_shape *shape, struct krn_dnnl_pieces *ret);
    pthread_mutex_t lock;                                            /* of making splits */
    _Atomic(struct krn_dnnl_split *) splits[KRN_DNNL_WIDTH_MAX + 1]; /* [width], owned */
};

/** krn_dnnl_team_init() - for convolution @c; nothing is made yet */
void krn_dnnl_team_init(struct krn_dnnl_team *t, const struct krn_conv *c,
                        int (*make)(const void *of, const struct krn_dnnl_shape *shape,
                                    struct krn_dnnl_pieces *ret));
void krn_dnnl_team_deinit(struct krn_dnnl_team *t);

/** krn_dnnl_team_whole() - the shape of the whole convolution, as one share. Return: false if its
 * windows see nothing but padding. */
bool krn_dnnl_team_whole(const struct krn_dnnl_team *t, struct krn_dnnl_shape *ret);

/** krn_dnnl_team_prepare() - makes the shares for @width unless they are there. Threads: any;
 * blocks, allocates. Return: 0, -ENOMEM, -EOPNOTSUPP. */
int krn_dnnl_team_prepare(struct krn_dnnl_team *t, const void *of, size_t width);

/** krn_dnnl_team_scratch() - bytes of a team's scratch. The shares are made for that and forgotten,
 * as this is asked before anything is prepared. */
size_t krn_dnnl_team_scratch(const struct krn_dnnl_team *t, const void *of, size_t width);

/** krn_dnnl_team_split() - the shares for @width, or those of one member where that was not
 * prepared */
const struct krn_dnnl_split *krn_dnnl_team_split(const struct krn_dnnl_team *t, size_t width);

/** krn_dnnl_pieces_done() - sets the size of the scratchpad; where @r < 0 frees what was made.
 * The end of every make(). Return: @r. */
int krn_dnnl_pieces_done(struct krn_dnnl_pieces *p, int r);
