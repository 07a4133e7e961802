/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/image/image_input.h - where an image becomes input 0 of a model, or is read by a
 * primitive instead
 *
 * An image is converted (krn_preprocess()) into the output of the input's entry op, which then does
 * not run. Without an entry op, it is converted into the arena's space for input 0, before op 0.
 *
 * If a single op reads that value, and no resizing is needed, a primitive whose from_image() agrees
 * converts rows of the image as it reads them. The arithmetic is the same, but the value is never
 * stored. For net*.c and primitives only; any thread unless said otherwise.
 */
#pragma once

#include "kernels/common/frame_mem.h"
#include "kernels/common/parallel.h"
#include "kernels/image/image.h"

/** krn_image_entry() - Return: the op that an image replaces, or MDL_NONE. */
static inline size_t krn_image_entry(const struct mdl_model *m)
{
    return m->input_count > 0 ? m->inputs[0].entry_op : MDL_NONE;
}

/** krn_image_place() - Return: the op before which, or in place of which, an image is read. */
static inline size_t krn_image_place(const struct mdl_model *m)
{
    return krn_image_entry(m) == MDL_NONE ? 0 : krn_image_entry(m);
}

/**
 * krn_image_reader() - finds the only op that reads, as in[0], the value that an image is converted
 * into: the op after the entry op, or op 0 without an entry op
 * Its in[0] has the dims and strides of that tensor, as [N][C][H][W]. Return: that op, or MDL_NONE.
 */
size_t krn_image_reader(const struct mdl_model *m);

/** krn_image_is_plain() - Return: whether each pixel of the input is one pixel of @img,
 * unresized. */
bool krn_image_is_plain(const struct mdl_model *m, const struct krn_image *img);

/** krn_image_convert() - converts mem->image to its place by krn_preprocess(), and adds the time to
 * mem->image_ns. Threads: the team's leader; never allocates. */
void krn_image_convert(const struct mdl_model *m, const struct krn_mem *mem,
                       const struct krn_exec *exec);
