/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/lib/conv_f32_dnnl.h - describes a convolution of floats to oneDNN; for
 * conv_f32_nhwc_dnnl.c only. Threads: any; allocates inside the library.
 */
#pragma once

#include "kernels/lib/onednn_team.h"

enum krn_dnnl_flavour { KRN_DNNL_DIRECT, KRN_DNNL_WINOGRAD, KRN_DNNL_BF16 };

struct krn_dnnl_f32 {
    const struct mdl_model *m; /* borrowed, as op */
    const struct mdl_op *op;
    enum krn_dnnl_flavour flavour;
    struct krn_conv c;
    struct krn_img res; /* the residual */
    bool res_in_place;  /* it has the same address and strides as y */
    bool x_dense, y_dense;
    struct krn_dnnl_team team;
    struct krn_dnnl_md weights; /* as packed; {0}: not packed yet */
};

/* What the library's primitive includes; the epilogue does the rest. */
enum krn_dnnl_fused { KRN_DNNL_FUSED_ALL, KRN_DNNL_FUSED_BIAS };

/** krn_dnnl_is_dense() - Return: whether the image has no gaps between its pixels. */
bool krn_dnnl_is_dense(const struct krn_img *i);

/** krn_dnnl_f32_weights_md() - describes the weights: @plain as krn_conv_pack() writes them in
 * [group][output][channel][tap], else in the library's preferred layout. Return: 0, -ENOMEM,
 * -EOPNOTSUPP. */
int krn_dnnl_f32_weights_md(const struct krn_conv *c, bool plain, struct krn_dnnl_md *ret);

/** krn_dnnl_f32_pd() - describes the convolution of shape @s, with the whole epilogue if the
 * library supports it, else with the bias only; *ret_fused says which. Return: owned; NULL: the
 * library only has its reference. */
dnnl_primitive_desc_t krn_dnnl_f32_pd(const struct krn_dnnl_f32 *p, const struct krn_dnnl_shape *s,
                                      int *ret_fused);
