/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/kernels/fused_pair.h - two ops that a primitive runs as one: their model, random values,
 * and a comparison with the references of both, one after the other
 */
#pragma once

#include "tests/kernels/one_op.h"

struct fused_case {
    size_t n, c, h, w, o, k, stride, pad;
    bool dw_first;
    bool planes; /* a change of layout from NCHW, then a convolution of k x k */
    bool pool;   /* a convolution of k x k, then a max pooling: */
    size_t pool_k, pool_stride, pool_pad;
    size_t x_pixel, y_pixel; /* 0: dense */
    size_t x_row;            /* elements between two rows of x that are no pixels */
    enum mdl_act act[2];
    enum mdl_residual residual; /* of the second */
    bool in_place;              /* the residual lies where the result is written */
};

/* The model: tensors, and two ops beside each other as krn_primitive.supports() sees them. */
struct fused_pair {
    struct one_op *o;
    struct mdl_op ops[2];
    float *scale[2], *shift[2];
};

/** fused_pair_init() - makes the model of @k with random values; fused_pair_deinit() frees it */
void fused_pair_init(struct fused_pair *p, const struct fused_case *k);
void fused_pair_deinit(struct fused_pair *p);

/** fused_passes() - Return: whether every primitive that takes the pair is right, alone and as a
 * team, and one that is made for such pairs is among them; prints what is wrong */
bool fused_passes(const struct fused_case *k);

/** fused_exercised() - Return: how often the primitive @index of krn_primitives() ran */
size_t fused_exercised(size_t index);
