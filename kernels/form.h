/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/form.h - images as channel planes: [N][C][H][W], dense, in place of what the model lays
 * out
 *
 * A tensor in a frame's memory is as the model lays it out wherever anybody may look. Rows of the
 * planes form (krn_variant.planes_in, planes_out) take and leave input 0 and output 0 as planes
 * instead; who runs them converts before and behind, or leaves between two of them what nobody else
 * reads as it is.
 */
#pragma once

#include "kernels/kernels.h"

/** krn_form_bytes() - of tensor @t as planes, a multiple of 64. */
size_t krn_form_bytes(const struct mdl_model *m, size_t t);

/** krn_form_between() - does op @op + 1 alone read, as its input 0, what op @op leaves in the
 * arena? */
bool krn_form_between(const struct mdl_model *m, size_t op);
/** krn_form_may_stay() - krn_form_between(), of an f32 image that lies dense at the begin of its
 * storage: it may stay there as planes. */
bool krn_form_may_stay(const struct mdl_model *m, size_t op);

/**
 * krn_form_to_planes() - tensor @t from where the model has it into planes
 * krn_form_from_planes() - and back
 * @value: element 0 of the tensor; @planes: krn_form_bytes(), no overlap. Shared among the team.
 * Threads: the team's leader; never allocates.
 */
void krn_form_to_planes(const struct mdl_model *m, size_t t, const void *value, void *planes,
                        const struct krn_exec *exec);
void krn_form_from_planes(const struct mdl_model *m, size_t t, const void *planes, void *value,
                          const struct krn_exec *exec);
