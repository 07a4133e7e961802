/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/image.h - how an image becomes input 0 of a model, and who may read it in that one's
 * place
 *
 * An image is converted (krn_preprocess()) into the result of the input's entry op, which is then
 * not run, or, where there is none, into the arena's room for input 0, before op 0. Where a single
 * op reads what would be written there and its pixels are the image's own, a row whose from_image()
 * says so converts rows of the image as it reads them: the same arithmetic, and the values are
 * never in memory. For net.c and rows only.
 */
#pragma once

#include "kernels/kernels.h"

/** krn_image_entry() - the op that an image takes the place of, MDL_NONE: there is none. */
static inline size_t krn_image_entry(const struct mdl_model *m)
{
    return m->input_count > 0 ? m->inputs[0].entry_op : MDL_NONE;
}

/** krn_image_place() - the op before or in place of which an image is read. */
static inline size_t krn_image_place(const struct mdl_model *m)
{
    return krn_image_entry(m) == MDL_NONE ? 0 : krn_image_entry(m);
}

/**
 * krn_image_reader() - the op whose in[0] is what an image is converted into, and which alone reads
 * that: the op behind the entry op, or op 0 where there is none
 * Its in[0] has the dims and strides of that tensor, as [N][C][H][W]. Return: MDL_NONE: there is no
 * such op.
 */
size_t krn_image_reader(const struct mdl_model *m);

/** krn_image_is_plain() - does each pixel of the input come from one pixel of @img, unresized? */
bool krn_image_is_plain(const struct mdl_model *m, const struct krn_image *img);

/** krn_image_convert() - krn_preprocess() of mem->image to where it belongs. Threads: the team's
 * leader; never allocates. */
void krn_image_convert(const struct mdl_model *m, const struct krn_mem *mem,
                       const struct krn_exec *exec);
