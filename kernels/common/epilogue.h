/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/common/epilogue.h - shift, residual and activation, applied to a result while it is in
 * cache
 *
 * t = y + shift[c];  residual before: t = act(t + r);  after: t = act(t) + r.
 * Output and residual are read pixel by pixel; either pixel stride may exceed the channels.
 */
#pragma once

#include "kernels/common/nhwc.h"
#include "kernels/primitive.h"

struct krn_epilogue {
    const float *shift; /* per channel, or NULL */
    const float *res;   /* residual at pixel 0, channel 0, or NULL */
    size_t res_pixel;   /* pixel stride of the residual, in elements */
    enum mdl_act act;
    enum mdl_residual residual;
    float a, b;
};

/** krn_op_is_plain() - Return: whether @op writes its result as it is: without an element function,
 * residual, scale and shift */
bool krn_op_is_plain(const struct mdl_op *op);
/** krn_epilogue_supports() - Return: whether the fast epilogue can finish @op on the flat image @y
 */
bool krn_epilogue_supports(const struct mdl_model *m, const struct mdl_op *op,
                           const struct krn_img *y);
/** krn_epilogue_aliased() - Return: whether the residual shares memory with y. If so, read the
 * residual before y is stored. */
static inline bool krn_epilogue_aliased(const struct mdl_model *m, const struct mdl_op *op)
{
    return op->residual != MDL_RESIDUAL_NONE &&
           m->tensors[op->residual_in].storage == m->tensors[op->out[0]].storage;
}
/** krn_epilogue_without() - Return: the epilogue of @op without the address of the residual */
struct krn_epilogue krn_epilogue_without(const struct mdl_op *op);
/** krn_epilogue_of() - Return: the epilogue of a call whose op krn_epilogue_supports(); its
 * pointers are borrowed from the call. */
struct krn_epilogue krn_epilogue_of(const struct krn_call *c);
/** krn_epilogue_empty() - Return: whether the epilogue changes nothing */
bool krn_epilogue_empty(const struct krn_epilogue *e);

/**
 * krn_epilogue_run() - applies the epilogue in place, with the CPU's widest vectors
 * @y: channel @channel of pixel @first     @y_pixel: elements between pixels
 * @pixels, @channels: size of the block
 * Element functions have the errors stated in kernels/common/vec.h. Threads: any; never allocates.
 */
void krn_epilogue_run(const struct krn_epilogue *e, float *y, size_t y_pixel, size_t first,
                      size_t pixels, size_t channel, size_t channels);

/* A piece of an NCHW image. */
struct krn_epilogue_planes {
    float *y;                 /* its first pixel in its first channel */
    size_t plane;             /* elements between channels */
    size_t first, pixels;     /* pixels, contiguous in every channel; counted over all images */
    size_t channel, channels; /* of y */
    float *room;              /* scratch, [channels][pixels]; used only if there is a residual */
};

/** krn_epilogue_planes_run() - applies the epilogue to a piece of an NCHW image; the residual is
 * NHWC */
void krn_epilogue_planes_run(const struct krn_epilogue *e, const struct krn_epilogue_planes *p);

/* the same for one instruction set: kernels/common/epilogue_vec.c */
typedef void krn_epilogue_fn(const struct krn_epilogue *e, float *y, size_t y_pixel, size_t first,
                             size_t pixels, size_t channel, size_t channels);
krn_epilogue_fn krn_epilogue_run__vec, krn_epilogue_run__avx2, krn_epilogue_run__avx512;
typedef void krn_epilogue_planes_fn(const struct krn_epilogue *e,
                                    const struct krn_epilogue_planes *p);
krn_epilogue_planes_fn krn_epilogue_planes_run__vec, krn_epilogue_planes_run__avx2,
    krn_epilogue_planes_run__avx512;
