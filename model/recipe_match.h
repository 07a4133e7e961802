/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/recipe_match.h - does a network have outputs of these names and shapes?
 *
 * A pattern has an item for each output, and ends in " ..." if more may follow:
 *
 *     "boxes:[n,4]f scores:[n]f classes:[n]i"      in any order, whatever their names
 *     "scores:cls_8[1,n,1] scores:cls_16[1,m,1]"   of these names, in any order
 *
 * The word before the colon is a role of the sidecar's key tensors; without one it is boxes. Behind
 * the dimensions, f is for floats and i for integers. Open dimensions of outputs fit, if of all
 * outputs the file says one dimension behind the batch, or a name; a shape of which the file says
 * nothing fits a name. Letters stand for sizes, equal where the letter is:
 *
 *     h w      height and width of the picture
 *     g r t    all cells of several strides, with one, two or three anchors each
 *     k        four, and one for each name of a class in the metadata
 *     others   any
 */
#pragma once

#include "base/output_keys.h"
#include "model/signs.h"

struct mdl_match {
    size_t count; /* items */
    struct {
        unsigned role; /* enum output_role */
        size_t output;
    } of[MDL_SIGN_OUTPUTS_MAX];
    /* Of g, r or t; stride_count 0: there is none, or the picture's size is open. */
    size_t stride[OUTPUT_LEVELS_MAX], stride_count;
    size_t cells_dim; /* which dimension of the first item they are; 0: there is none */
};

/** mdl_match_outputs() - Threads: any. Return: whether all fit; then @ret says how. */
bool mdl_match_outputs(const struct mdl_signs *s, const char *pattern, struct mdl_match *ret);
/** mdl_match_input() - whether the picture is "[channels,height,width]"; an open size is 0, which
 * fits 0 and letters only. */
bool mdl_match_input(const struct mdl_signs *s, const char *pattern);
