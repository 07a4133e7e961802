/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/lib/conv_i8_dnnl.h - describes a convolution or product of bytes to oneDNN; for
 * conv_i8_nhwc_dnnl.c only
 *
 * Sums pass through f32 before they are stored. So for exact results, 255 times the sum of an
 * output's weights of either sign must be at most 2^24. Without a dot product instruction, two
 * products are added in 16 bits with saturation. 255 (64 + 64) fits, so no weight may exceed 64, as
 * 7-bit weights never do.
 */
#pragma once

#include "kernels/lib/onednn.h"

struct krn_dnnl_i8 {
    const struct mdl_model *m;
    const struct mdl_op *op;
    struct krn_conv c;
    ptrdiff_t w_o, w_c;   /* strides of the weights; taps lie side by side */
    uint8_t flip, zero;   /* xor that makes an input byte unsigned; the byte for 0 after it */
    bool pixels;          /* y's pixels are x's; bands consist of pixels, all in one row */
    bool gathered;        /* the copy skips pixels that a 1x1 window skips */
    bool direct;          /* x is read in place */
    size_t images, units; /* images; rows or pixels per image */
};

/* The primitive for one width, and its bands. */
struct krn_dnnl_i8_split {
    size_t units, bands; /* units per band; bands per image */
    struct krn_dnnl conv;
    size_t x_bytes, sum_bytes, part_bytes; /* scratch of one part: x, sums, scratchpad */
};

/** krn_dnnl_i8_problem() - describes @op in *@ret. Return: whether it can. */
bool krn_dnnl_i8_problem(const struct mdl_model *m, const struct mdl_op *op,
                         struct krn_dnnl_i8 *ret);
/** krn_dnnl_i8_weight() - Return: w - w_zero of an output, channel and tap. */
int8_t krn_dnnl_i8_weight(const struct krn_dnnl_i8 *p, const uint8_t *w, size_t o, size_t c,
                          size_t t);
/** krn_dnnl_i8_is_exact() - Return: whether every sum is exact. @dot: computed by dot product
 * instructions. */
bool krn_dnnl_i8_is_exact(const struct krn_dnnl_i8 *p, bool dot);
int krn_dnnl_i8_weights_md(const struct krn_dnnl_i8 *p, dnnl_format_tag_t tag,
                           struct krn_dnnl_md *ret);
/** krn_dnnl_i8_packed_md() - describes the layout of the packed weights. Return: whether a team of
 * one can run the op. */
bool krn_dnnl_i8_packed_md(const struct krn_dnnl_i8 *p, struct krn_dnnl_md *ret);

size_t krn_dnnl_i8_band_width(const struct krn_dnnl_i8 *p);
size_t krn_dnnl_i8_band_height(const struct krn_dnnl_i8 *p, size_t units);
/** krn_dnnl_i8_bands() - sets the bands for a team of @width. */
void krn_dnnl_i8_bands(const struct krn_dnnl_i8 *p, size_t width, struct krn_dnnl_i8_split *s);
/** krn_dnnl_i8_pd() - sets the sizes of @s, whose bands are already set. @weights: as packed.
 * Return: the description, owned, or NULL. */
dnnl_primitive_desc_t krn_dnnl_i8_pd(const struct krn_dnnl_i8 *p, const struct krn_dnnl_md *weights,
                                     struct krn_dnnl_i8_split *s);
/** krn_dnnl_i8_has_dot() - Return: whether it uses dot product instructions, judged by the
 * implementation's name. */
bool krn_dnnl_i8_has_dot(const_dnnl_primitive_desc_t pd);
