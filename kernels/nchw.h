/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/nchw.h - images in dense NCHW, [N][C][H][W], instead of the model's layout
 *
 * A tensor in a frame's memory has the model's layout whenever other code may read it. Primitives
 * of the NCHW layout (krn_primitive.nchw_in, nchw_out) read input 0 and write output 0 as NCHW.
 * Their caller converts before and after. Between two of them, it leaves a value that nothing else
 * reads in NCHW.
 */
#pragma once

#include "kernels/common/parallel.h"
#include "model/model.h"

/** krn_nchw_bytes() - Return: bytes of tensor @t in NCHW, a multiple of 64. */
size_t krn_nchw_bytes(const struct mdl_model *m, size_t t);

/** krn_nchw_between() - Return: whether only op @op + 1 reads op @op's output in the arena, as its
 * input 0. */
bool krn_nchw_between(const struct mdl_model *m, size_t op);
/** krn_nchw_may_stay() - Return: whether krn_nchw_between() holds for an f32 image that is dense at
 * the start of its storage; it may stay there in NCHW. */
bool krn_nchw_may_stay(const struct mdl_model *m, size_t op);

/**
 * krn_nchw_to() - converts tensor @t from the model's layout to NCHW
 * krn_nchw_from() - and back
 * @value: element 0 of the tensor; @nchw: krn_nchw_bytes(), no overlap. Shared among the team.
 * Threads: the team's leader; never allocates.
 */
void krn_nchw_to(const struct mdl_model *m, size_t t, const void *value, void *nchw,
                 const struct krn_exec *exec);
void krn_nchw_from(const struct mdl_model *m, size_t t, const void *nchw, void *value,
                   const struct krn_exec *exec);
