/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/lower/lowering.h - helpers of the functions that lower a node; for model/lower/ only
 *
 * To add an operator, write a function in the file for its kind and add a row to that file's table.
 */
#pragma once

#include "model/ir/build.h"
#include "model/ir/constant.h"

/* A node being lowered. */
struct mdl_lower {
    struct mdl_ir *ir;
    const struct mdl_gnode *node;
    int64_t opset;
    size_t in_count, out_count;
    const size_t *in; /* values; MDL_NONE: absent */
    size_t *out;      /* to be filled; MDL_NONE: not computed */
    int error;        /* set by the attribute helpers, sticky */
};

typedef int (*mdl_lower_fn)(struct mdl_lower *l, int arg);
struct mdl_lower_row {
    const char *op_type;
    mdl_lower_fn fn;
    int arg;
    const char *domain; /* NULL: ONNX's own; MDL_LOWER_BOTH: that or com.microsoft */
};
#define MDL_LOWER_BOTH "*"
/* A table ends with a row without op_type, the list of all tables with NULL. */
extern const struct mdl_lower_row *const mdl_lower_tables[];
extern const struct mdl_lower_row mdl_lower_spatial[];    /* convolutions.c */
extern const struct mdl_lower_row mdl_lower_products[];   /* products.c */
extern const struct mdl_lower_row mdl_lower_norms[];      /* norms.c */
extern const struct mdl_lower_row mdl_lower_gates[];      /* gates.c */
extern const struct mdl_lower_row mdl_lower_attentions[]; /* attention.c */
extern const struct mdl_lower_row mdl_lower_elements[];   /* elements.c */
extern const struct mdl_lower_row mdl_lower_shapes[];     /* shapes_of.c */
extern const struct mdl_lower_row mdl_lower_pads[];       /* pads.c */
extern const struct mdl_lower_row mdl_lower_slices[];     /* slices.c */
extern const struct mdl_lower_row mdl_lower_resizes[];    /* resizes.c */
extern const struct mdl_lower_row mdl_lower_reduces[];    /* reductions.c */
extern const struct mdl_lower_row mdl_lower_quants[];     /* quantized_ops.c */
extern const struct mdl_lower_row mdl_lower_consts[];     /* constants.c */

/** mdl_lower_conv_of() - window, groups, inputs and macs of a convolution of @x by @w, of any
 * types, from the node's attributes; @ret_dim: of its result. */
int mdl_lower_conv_of(struct mdl_lower *l, size_t x, size_t w, struct mdl_ir_op *ret_op,
                      size_t ret_dim[MDL_RANK_MAX]);
/** mdl_lower_product() - makes x times w by numpy's rules; @like: the op's other fields; @dtype: of
 * y. */
int mdl_lower_product(struct mdl_lower *l, size_t x, size_t w, const struct mdl_ir_op *like,
                      enum mdl_dtype dtype, size_t *ret);

/* ---- attributes.c: attributes and constant inputs ---- */
size_t mdl_l_in(const struct mdl_lower *l, size_t i); /* MDL_NONE where absent */
const struct mdl_ir_value *mdl_l_value(const struct mdl_lower *l, size_t v);
/** mdl_l_need() - refuses the node unless inputs 0..@count-1 are present. */
int mdl_l_need(struct mdl_lower *l, size_t count);
/** mdl_l_f32() - refuses an input that is not f32. */
int mdl_l_f32(struct mdl_lower *l, size_t i);
const struct mdl_gattr *mdl_l_attr(const struct mdl_lower *l, const char *name);
int64_t mdl_l_int(struct mdl_lower *l, const char *name, int64_t fallback);
float mdl_l_float(struct mdl_lower *l, const char *name, float fallback);
const char *mdl_l_string(struct mdl_lower *l, const char *name, const char *fallback);
/** mdl_l_ints() - reads *ret_count values into @dst; more than @max are refused. Return: false if
 * absent. */
bool mdl_l_ints(struct mdl_lower *l, const char *name, int64_t *dst, size_t max, size_t *ret_count);
/** mdl_l_const_ints() - the same from constant input @i (i32 or i64). */
bool mdl_l_const_ints(struct mdl_lower *l, size_t i, int64_t *dst, size_t max, size_t *ret_count);
bool mdl_l_const_float(struct mdl_lower *l, size_t i, float *ret);
/** mdl_l_axis() - maps @axis to 0..@rank-1 (0..@rank with @past_end). */
int mdl_l_axis(struct mdl_lower *l, int64_t axis, size_t rank, bool past_end, size_t *ret);
