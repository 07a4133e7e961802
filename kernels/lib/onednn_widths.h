/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/lib/onednn_widths.h - objects that a primitive over oneDNN makes for each width of a team
 *
 * An object is made when a team of its width is built, shared by all teams of that width, and kept
 * until deinit.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#define KRN_DNNL_WIDTH_MAX 64u /* wider teams use the object for this width */

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
