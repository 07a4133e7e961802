/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/select/mixed.h - the data type of each op as part of the path
 *
 * The nodes of the path (kernels/select/path.h) are the primitives of the f32 model's ops, and,
 * where the quantised model has the same op, those on bytes. Bytes are a layout: an edge from f32
 * to bytes costs a quantisation of the value, one from bytes to f32 the way back. An op on bytes
 * costs accuracy: errors of single ops add up, since those of rounding are nearly independent. What
 * a path costs is ns + weight * bytes, and its fronts are over that and the error. A primitive in
 * NCHW always pays for both its changes of layout here.
 *
 * Source: M. de Prado et al. (QS-DNN), table I (data type) and section IV-C3: of what Q-learning
 * finds, what is at most 25 % slower than the fastest is judged by examples. Here the exact front
 * proposes as well.
 */
#pragma once

#include "kernels/select/choose.h"

struct krn_mixed {
    const struct krn_times *real, *bytes; /* borrowed; of the f32 and of the quantised model */
    /* [real->op_count], borrowed, as is what follows: the same op of the quantised model; SIZE_MAX:
     * it has none, or one on f32 */
    const size_t *of;
    const bool *takes, *leaves;             /* that op's input 0 and output 0 are bytes */
    const double *error;                    /* >= 0: what that op costs alone; any unit */
    const double *to_bytes_ns, *to_real_ns; /* of input 0 */
    bool inexact;                           /* INEXACT primitives, too ... */
    double inexact_error;                   /* ... at this error for each op */
};

struct krn_mixed_choice {
    bool *on_bytes;          /* [op_count], owned: the op runs on bytes */
    double ns, bytes, error; /* as the path has them */
};

/**
 * krn_mixed_front() - proposes data types: choices of which none is better in ns, bytes and error
 * @search: KRN_PATH_Q_LEARNING: the paths of its episodes that are at most 25 % slower than the
 * fastest; else the exact fronts, with and without a weight of bytes. @max: most choices to return;
 * if there are more, the best in each of the three, and an even spread by ns. @ret: [@max], the
 * fastest first, no two with the same data types; krn_mixed_choice_deinit(). Return: 0, -EINVAL,
 * -ENOMEM.
 */
int krn_mixed_front(const struct krn_mixed *x, const struct krn_path_options *search, size_t max,
                    struct krn_mixed_choice *ret, size_t *ret_count);
void krn_mixed_choice_deinit(struct krn_mixed_choice *c);
