/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/image/image.h - an image from a client, and how it becomes input 0 of a model
 *
 * Every source pixel becomes 8-bit RGB (or 8-bit luma, for a model of one channel) by integer
 * arithmetic; then rows are resized in f32; then x = (p - mean) / std, rounded twice as written.
 * So without a resize the result is exact, and a constant image stays constant at any size.
 *
 * Source rows are never copied. Scratch depends only on the model's input, so images of any size
 * work with the scratch allocated when the model was loaded.
 */
#pragma once

#include "kernels/common/frame_mem.h"
#include "kernels/common/parallel.h"
#include "model/model.h"

enum krn_pixfmt {
    KRN_PIX_RGB24,
    KRN_PIX_BGR24,
    KRN_PIX_GRAY8,
    KRN_PIX_NV12,
    KRN_PIX_YUYV,
    KRN_PIX_COUNT
};

struct krn_image {
    enum krn_pixfmt format;
    uint32_t width, height; /* pixels; NV12 and YUYV: even */
    /* Bytes from row to row of the first plane. The UV plane of NV12 follows at stride * height,
     * with the same stride. */
    uint32_t stride;
    const uint8_t *data; /* borrowed */
};

/** krn_pixfmt() - Return: the format with number @f in pixfmt.h; KRN_PIX_COUNT if there is no such
 * image format. Threads: any. */
enum krn_pixfmt krn_pixfmt(unsigned f);

/** krn_image_bytes() - Return: the bytes that @img occupies, from its shape; 0 if the shape is
 * invalid (overflow, or a stride shorter than a row). Does not read data. Threads: any. */
size_t krn_image_bytes(const struct krn_image *img);

/**
 * krn_preprocess_ok() - checks whether an image can be converted into this tensor
 * @pre, @shape: as for krn_preprocess()
 * Rank 4 ([N][C][H][W] or, with pre->nhwc, [N][H][W][C]) or rank 3 (without N), f32 or u8, no
 * empty dimension. Every n gets the same image. Channels past the third get 0; letterbox bars
 * are pre->pad. Return: whether krn_preprocess() will write anything.
 */
bool krn_preprocess_ok(const struct mdl_preproc *pre, const struct mdl_tensor *shape);

/** krn_preprocess_scratch_bytes() - Return: scratch for input 0 of @m and a team of @width;
 * krn_net_scratch_bytes() includes it. */
size_t krn_preprocess_scratch_bytes(const struct mdl_model *m, size_t width);

/** krn_preprocess_rows() - Return: rows of the tensor, over all its images. @pre, @shape:
 * krn_preprocess_ok(). Threads: any. */
size_t krn_preprocess_rows(const struct mdl_preproc *pre, const struct mdl_tensor *shape);

/**
 * krn_preprocess() - converts, resizes and normalises an image
 * @pre, @shape: krn_preprocess_ok(), else nothing is written. @dst: element 0 of that tensor.
 * @exec: rows are shared among the team; the scratch has krn_preprocess_scratch_bytes()
 *
 * Resizing is bilinear with half-pixel centres, or by area if it shrinks more than 2x. A model of
 * one channel gets luma (BT.601). NV12 and YUYV are BT.601 of limited range.
 * Threads: the team's leader. Never allocates.
 */
void krn_preprocess(const struct krn_image *img, const struct mdl_preproc *pre,
                    const struct mdl_tensor *shape, void *dst, const struct krn_exec *exec);

/** krn_preprocess_slice() - as krn_preprocess(), of rows @begin up to but not including @end, which
 * is at most krn_preprocess_rows(). Slices that cover all rows make the same tensor. */
void krn_preprocess_slice(const struct krn_image *img, const struct mdl_preproc *pre,
                          const struct mdl_tensor *shape, void *dst, size_t begin, size_t end,
                          const struct krn_exec *exec);

/* ---- input 0 of a model ----
 *
 * An image is converted (krn_preprocess()) into the output of the input's entry op, which then does
 * not run. Without an entry op, it is converted into the arena's space for input 0, before op 0.
 *
 * If a single op reads that value, and no resizing is needed, a primitive whose from_image() agrees
 * converts rows of the image as it reads them. The arithmetic is the same, but the value is never
 * stored. For net*.c only; any thread unless said otherwise.
 */

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

/** krn_image_is_plain() - Return: whether pixel (x, y) of each image of the input is that of @img,
 * unresized. If so, krn_pixels_copy_row() makes its rows. */
bool krn_image_is_plain(const struct mdl_model *m, const struct krn_image *img);

/** krn_image_convert() - converts mem->image to its place by krn_preprocess(), and adds the time to
 * mem->image_ns. Threads: the team's leader; never allocates. */
void krn_image_convert(const struct mdl_model *m, const struct krn_mem *mem,
                       const struct krn_exec *exec);
