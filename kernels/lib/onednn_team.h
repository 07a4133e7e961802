/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/lib/onednn_team.h - how a team shares a convolution over oneDNN
 *
 * Members share output rows, or pixels if the window is 1x1, or images if there are several. Each
 * share is a convolution with its own shape and padding, run by its own primitives; shares of equal
 * shape use the same ones. All read the same packed weights. The shares for a width are made when a
 * team of that width is built, and are kept.
 */
#pragma once

#include <pthread.h>

#include "kernels/lib/onednn.h"

#define KRN_DNNL_WIDTH_MAX 64u /* wider teams use the object for this width */

/* Objects that a primitive makes for each width of a team: when a team of that width is built. All
 * teams of that width share it, and it is kept until deinit. */
struct krn_dnnl_widths {
    pthread_mutex_t lock;                         /* of making */
    _Atomic(void *) made[KRN_DNNL_WIDTH_MAX + 1]; /* [width], owned; NULL: nothing yet */
};

/** krn_dnnl_width() - Return: the width whose object a team of @width uses: 1 ..
 * KRN_DNNL_WIDTH_MAX. */
size_t krn_dnnl_width(size_t width);

void krn_dnnl_widths_init(struct krn_dnnl_widths *w);
/** krn_dnnl_widths_deinit() - frees every object by @free_one. No team may be running. */
void krn_dnnl_widths_deinit(struct krn_dnnl_widths *w, void (*free_one)(void *made));

/**
 * krn_dnnl_widths_prepare() - makes the object for @width unless it exists
 * @make: called with @of; returns 0 and an object, -ENOMEM or -EOPNOTSUPP
 *
 * Return: as @make. Threads: any, also while others run; allocates, blocks.
 */
int krn_dnnl_widths_prepare(struct krn_dnnl_widths *w, size_t width,
                            int (*make)(const void *of, size_t width, void **ret), const void *of);

/** krn_dnnl_widths_get() - Return: the object for @width, else that for width 1, else NULL.
 * Threads: any. */
void *krn_dnnl_widths_get(struct krn_dnnl_widths *w, size_t width);

/* The fields that differ between shares. */
struct krn_dnnl_shape {
    struct krn_img x, y;
    size_t top, bottom, left, right;
};

/* The primitives that one share runs in order; in and out copy and may be absent. */
struct krn_dnnl_pieces {
    struct krn_dnnl in, conv, out;
    int fused;                          /* for the primitive's own use */
    size_t x_bytes, y_bytes, pad_bytes; /* scratch: copy of x, of y, scratchpad (set after make) */
};

struct krn_dnnl_share {
    struct krn_range at; /* range of the shared dim: pixels, images or rows */
    size_t x;            /* element of its first input */
    struct krn_dnnl_shape shape;
    struct krn_dnnl_pieces *pieces; /* borrowed from the owning share */
    bool owner;
};

struct krn_dnnl_split {
    size_t count, share_bytes; /* scratch of one share */
    struct krn_dnnl_share shares[];
};

struct krn_dnnl_team {
    struct krn_conv conv;
    bool pointwise;     /* y's pixels are x's, without gaps between rows and images */
    size_t shares_max;  /* pixels, images or rows */
    size_t pixels_each; /* in one of them */
    /* makes the pieces of one share, {0} before. Return: 0, -ENOMEM, -EOPNOTSUPP */
    int (*make)(const struct krn_dnnl_team *t, const struct krn_dnnl_shape *shape,
                struct krn_dnnl_pieces *ret);
    struct krn_dnnl_widths widths; /* of struct krn_dnnl_split */
};

/** krn_dnnl_team_init() - sets up @t for convolution @c; makes no shares yet */
void krn_dnnl_team_init(struct krn_dnnl_team *t, const struct krn_conv *c,
                        int (*make)(const struct krn_dnnl_team *t,
                                    const struct krn_dnnl_shape *shape,
                                    struct krn_dnnl_pieces *ret));
void krn_dnnl_team_deinit(struct krn_dnnl_team *t);

/** krn_dnnl_team_whole() - the shape of the whole convolution as one share. Return: false if its
 * windows contain only padding. */
bool krn_dnnl_team_whole(const struct krn_dnnl_team *t, struct krn_dnnl_shape *ret);

/** krn_dnnl_team_prepare() - makes the shares for @width unless they exist. Threads: any; blocks,
 * allocates. Return: 0, -ENOMEM, -EOPNOTSUPP. */
int krn_dnnl_team_prepare(struct krn_dnnl_team *t, size_t width);

/**
 * krn_dnnl_team_next() - the largest share that begins with part @part of @split
 * @io_end: the end of the parts that it may take; then of those that it takes
 *
 * It is one of @split, or of a width of 2, 4, ... that was prepared, too: two shares of a width are
 * one of half that width. Its scratch is that of the parts that it takes. Return: borrowed from the
 * team. Threads: any.
 */
const struct krn_dnnl_share *krn_dnnl_team_next(struct krn_dnnl_team *t,
                                                const struct krn_dnnl_split *split, size_t part,
                                                size_t *io_end);

/** krn_dnnl_team_scratch() - Return: bytes of a team's scratch. Makes the shares to find out and
 * discards them, since this is called before anything is prepared. */
size_t krn_dnnl_team_scratch(const struct krn_dnnl_team *t, size_t width);
