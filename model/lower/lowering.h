/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/lower/lowering.h - helpers of the functions that lower a node; for model/lower/ only
 *
 * To add an operator, write a function in the file for its kind and add a row to that file's table:
 * the row says which inputs must be there, and of which type; the function what is special. Its
 * first refusal ends it, and all that called it (ir.leave).
 */
#pragma once

#include <limits.h>

#include "model/ir/build.h"
#include "model/ir/rows.h"

struct mdl_lower_row;

/* A node being lowered. */
struct mdl_lower {
    struct mdl_ir *ir;
    const struct mdl_gnode *node;
    int64_t opset;
    size_t in_count, out_count;
    const size_t *in; /* values; MDL_NONE: absent */
    size_t *out;      /* those after the first are to be filled; MDL_NONE: not computed */
    /* the row of an operator of ONNX's own, or NULL; for mdl_lower_as() */
    const struct mdl_lower_row *(*find)(const char *op_type);
    /* lowers a branch of the node, whose inputs are the values @in; @ret_out: its outputs */
    void (*branch)(struct mdl_lower *l, const struct mdl_gbranch *b, const size_t *in,
                   size_t *ret_out);
};

/* Return: the first output. */
typedef size_t (*mdl_lower_fn)(struct mdl_lower *l, int arg);
#define MDL_LOWER_ALL UCHAR_MAX /* all inputs, and at least one */
/* What an operator does with integers that are kept wider than they are (narrow.c). */
enum mdl_narrow_rule {
    MDL_NARROW_NOT,   /* it does not take them where a result has their type */
    MDL_NARROW_KEEPS, /* the result's elements are some of the inputs', or lie between them */
    MDL_NARROW_WRAPS, /* the result may need more bits, and its lower ones are right */
    MDL_NARROW_OWN,   /* it says itself which type its outputs have */
};
struct mdl_lower_row {
    const char *op_type;
    mdl_lower_fn fn;
    unsigned char needs;  /* so many inputs must be there, but for @spared ... */
    unsigned char floats; /* ... and so many must be f32, where they are there */
    int arg;
    const char *domain; /* NULL: ONNX's own; MDL_LOWER_BOTH: that or com.microsoft */
    /* The operator sets whose meaning of it is known: from @since (0: the first) up to @until (0:
     * MDL_OPSET_KNOWN). For ONNX's own operators only. */
    short since, until;
    bool sequences; /* it takes sequences, too */
    enum mdl_narrow_rule narrow;
    unsigned char like; /* the input that has the results' narrow type */
    unsigned spared;    /* inputs that may be absent, a bit each */
};

/* The last operator set that was compared with what is done here. */
#define MDL_OPSET_KNOWN 26
#define MDL_LOWER_MICROSOFT "com.microsoft"
#define MDL_LOWER_BOTH "*"
/* X(name) of each file's table, mdl_lower_<name>[]; it ends with a row without op_type. */
#define MDL_LOWER_TABLES(X)                                                                        \
    X(spatial)    /* convolutions.c */                                                             \
    X(products)   /* products.c */                                                                 \
    X(elements)   /* elements.c */                                                                 \
    X(shapes)     /* shapes_of.c */                                                                \
    X(slices)     /* slices.c */                                                                   \
    X(indexed)    /* indexed.c */                                                                  \
    X(selections) /* selections.c */                                                               \
    X(resizes)    /* resizes.c */                                                                  \
    X(reduces)    /* reductions.c */                                                               \
    X(consts)     /* constants.c */                                                                \
    X(quants)     /* quantized_ops.c */                                                            \
    X(samples)    /* samples.c */                                                                  \
    X(recurrents) /* recurrences.c */                                                              \
    X(quantizes)  /* quantize.c */                                                                 \
    X(microsofts) /* microsoft.c */                                                                \
    X(functions)  /* element_functions.c */                                                        \
    X(masks)      /* masks.c */                                                                    \
    X(einsum)     /* einsum.c */                                                                   \
    X(norms)      /* norms.c */                                                                    \
    X(attentions) /* attention.c */                                                                \
    X(bodies)     /* bodies.c */                                                                   \
    X(sequences)  /* sequences.c */
#define MDL_LOWER_DECLARE(name) extern const struct mdl_lower_row mdl_lower_##name[];
MDL_LOWER_TABLES(MDL_LOWER_DECLARE)
#undef MDL_LOWER_DECLARE
/* ends with NULL */
extern const struct mdl_lower_row *const mdl_lower_tables[];

/** mdl_lower_conv_of() - window, groups, inputs and macs of a convolution of @x by @w, of any
 * types, from the node's attributes; @ret_dim: of its result. */
void mdl_lower_conv_of(struct mdl_lower *l, size_t x, size_t w, struct mdl_ir_op *ret_op,
                       size_t ret_dim[MDL_RANK_MAX]);
/** mdl_lower_bias() - the bias of a convolution, input @i of the node: with constant weights a
 * constant one becomes op.shift, else it is in[2]. */
void mdl_lower_bias(struct mdl_lower *l, size_t i, struct mdl_ir_op *op, size_t channels);
/** mdl_lower_gemm_of() - transpositions, alpha and macs of a product of the matrices @x and @w, of
 * any types, from the node's attributes; @ret_dim: of its result. */
void mdl_lower_gemm_of(struct mdl_lower *l, size_t x, size_t w, struct mdl_op *op,
                       size_t ret_dim[2]);
/** mdl_lower_product() - makes x times w by numpy's rules; @like: the op's other fields; @dtype: of
 * y. */
size_t mdl_lower_product(struct mdl_lower *l, size_t x, size_t w, const struct mdl_ir_op *like,
                         enum mdl_dtype dtype);
/** mdl_lower_whole_pool() - a pool of @x, an image, with one window over all of it. */
size_t mdl_lower_whole_pool(struct mdl_lower *l, int kind, size_t x);

/** mdl_lower_concat_of() - @in, which must fit each other, one after the other along @axis. */
size_t mdl_lower_concat_of(struct mdl_lower *l, const size_t *in, size_t count, int64_t axis);
/** mdl_lower_new_axis() - @x with a dim of 1 at @axis (0 to its rank). */
size_t mdl_lower_new_axis(struct mdl_lower *l, size_t x, size_t axis);
/** mdl_lower_parts() - cuts @x into @count views along @axis; @size: their lengths, of which none
 * is below 0, and which add up to its. */
void mdl_lower_parts(struct mdl_lower *l, size_t x, size_t axis, const int64_t *size, size_t count,
                     size_t *ret);
/** mdl_lower_flatten() - input 0 as a matrix, whose columns are its dims from @axis on. */
size_t mdl_lower_flatten(struct mdl_lower *l, size_t axis);
/** mdl_lower_count_to() - the integers 0 .. @n - 1, a constant. */
size_t mdl_lower_count_to(struct mdl_lower *l, size_t n);
/** mdl_lower_beside() - the elements of @v as dim @at of @rank, the others being 1. */
size_t mdl_lower_beside(struct mdl_lower *l, size_t v, size_t rank, size_t at);

/* Scale and zero point of a quantised value; zero may be MDL_NONE. axis: along which there is one
 * of them for each slice; block: or for each so many slices, else 0. */
struct mdl_lower_param {
    size_t scale, zero;
    int64_t axis, block;
};
/** mdl_lower_quantize(), mdl_lower_dequantize() - as ONNX's operators; without a zero point the
 * former gives u8 */
size_t mdl_lower_quantize(struct mdl_lower *l, size_t x, const struct mdl_lower_param *p);
size_t mdl_lower_dequantize(struct mdl_lower *l, size_t x, const struct mdl_lower_param *p);

/* ---- attributes.c: attributes, constant inputs, other operators ---- */
size_t mdl_l_in(const struct mdl_lower *l, size_t i); /* MDL_NONE where absent */
const struct mdl_ir_value *mdl_l_value(const struct mdl_lower *l, size_t v);
/** mdl_l_wants() - Return: whether output @i has a name. */
bool mdl_l_wants(const struct mdl_lower *l, size_t i);
/** mdl_l_give() - sets output @i, if the node has it. */
void mdl_l_give(struct mdl_lower *l, size_t i, size_t v);
/** mdl_l_refuse() - as mdl_ir_refuse(). */
#define mdl_l_refuse(l, ...) mdl_ir_refuse((l)->ir, __VA_ARGS__)
/* Refuses the node if @condition: as malformed, as not supported, as too large. */
#define mdl_l_refuse_if(l, condition, ...)                                                         \
    do {                                                                                           \
        if (condition) {                                                                           \
            mdl_l_refuse(l, __VA_ARGS__);                                                          \
        }                                                                                          \
    } while (0)
#define mdl_bad_if(l, condition, ...) mdl_l_refuse_if(l, condition, -EBADMSG, __VA_ARGS__)
#define mdl_unserved_if(l, condition, ...) mdl_l_refuse_if(l, condition, -EOPNOTSUPP, __VA_ARGS__)
#define mdl_large_if(l, condition, ...) mdl_l_refuse_if(l, condition, -E2BIG, __VA_ARGS__)
/** mdl_l_run() - lowers the node as @row says, after checks of its inputs. */
void mdl_l_run(struct mdl_lower *l, const struct mdl_lower_row *row);
/** mdl_l_op() - an op that reads the first @count inputs, as far as they are there. */
struct mdl_ir_op mdl_l_op(const struct mdl_lower *l, int kind, size_t count);
/** mdl_l_need() - refuses the node unless inputs 0..@count-1 are present, but for those of @spared.
 */
void mdl_l_need(struct mdl_lower *l, size_t count, unsigned spared);
/** mdl_l_f32() - refuses an input that is not f32. */
void mdl_l_f32(struct mdl_lower *l, size_t i);

const struct mdl_gattr *mdl_l_attr(const struct mdl_lower *l, const char *name);
/** mdl_l_typed() - the same; refused if it has another type. */
const struct mdl_gattr *mdl_l_typed(struct mdl_lower *l, const char *name, enum mdl_attr_type type);
int64_t mdl_l_int(struct mdl_lower *l, const char *name, int64_t fallback);
float mdl_l_float(struct mdl_lower *l, const char *name, float fallback);
const char *mdl_l_string(struct mdl_lower *l, const char *name, const char *fallback);
struct mdl_l_word {
    const char *name;
    int value;
};
/** mdl_l_word() - a string attribute as one of @words, which end with a row of zeros; others are
 * refused. Return: its value. */
int mdl_l_word(struct mdl_lower *l, const char *name, const char *fallback,
               const struct mdl_l_word *words);
/** mdl_l_ints() - reads *ret_count values into @dst; more than @max are refused. Return: false if
 * absent. */
bool mdl_l_ints(struct mdl_lower *l, const char *name, int64_t *dst, size_t max, size_t *ret_count);
/** mdl_l_const_ints() - the same from constant input @i (i32 or i64). */
bool mdl_l_const_ints(struct mdl_lower *l, size_t i, int64_t *dst, size_t max, size_t *ret_count);
/* Dims of a result, given as an input. */
struct mdl_l_dims {
    int64_t dim[MDL_RANK_MAX];
    size_t count;
    size_t rows, rows_at; /* dim[rows_at] is a bound, this value has the length; or MDL_NONE */
};
/** mdl_l_dims() - reads input @i (i32 or i64): a constant, or computed from lengths that have a
 * bound; at most one of them may depend on the data. */
void mdl_l_dims(struct mdl_lower *l, size_t i, struct mdl_l_dims *ret);
/** mdl_l_limit() - @y with the rows of @d, whose dims align with it from the right. */
size_t mdl_l_limit(struct mdl_lower *l, size_t y, const struct mdl_l_dims *d);
bool mdl_l_const_float(struct mdl_lower *l, size_t i, float *ret);
/** mdl_l_dtype() - reads attribute dtype; @fallback: where it is absent. (constants.c) */
enum mdl_dtype mdl_l_dtype(struct mdl_lower *l, enum mdl_dtype fallback);
/** mdl_l_axis() - Return: @axis as 0..@rank-1 (0..@rank with @past_end). */
size_t mdl_l_axis(struct mdl_lower *l, int64_t axis, size_t rank, bool past_end);
/** mdl_l_marked() - marks the @count axes in @mark[@rank], the others not. */
void mdl_l_marked(struct mdl_lower *l, const int64_t *axes, size_t count, size_t rank, bool *mark);

/* Inputs and outputs in place of those of the node. */
struct mdl_lower_values {
    int64_t opset;
    const size_t *in;
    size_t in_count, out_count;
    size_t *out;
};
/** mdl_lower_as() - lowers ONNX's operator @op_type with the attributes of this node. Return: its
 * first output. */
size_t mdl_lower_as(struct mdl_lower *l, const char *op_type, const struct mdl_lower_values *v);

/* ---- window.c: kernel, stride, dilation and padding of convolutions and pools ---- */

/**
 * mdl_window_read() - reads and checks the attributes: 1..2^31-1 for kernels, strides and
 * dilations, 0..2^31-1 for pads
 * @spatial: number of spatial dims, 1..3
 * @kernel: the weights' kernel dims, or NULL for a pool (kernel_shape is then required)
 * @ret_auto: SAME_UPPER 1, SAME_LOWER 2, VALID 3, else 0.
 */
void mdl_window_read(struct mdl_lower *l, size_t spatial, const size_t *kernel,
                     struct mdl_window *ret, int *ret_auto);

/** mdl_window_of() - the same, with the pads of input dims @in; @ret_out: output size of each dim.
 * @ret_end: pads at the end before ceil_mode, or NULL. Refuses a kernel larger than the padded
 * input. */
void mdl_window_of(struct mdl_lower *l, size_t spatial, const size_t *kernel, bool ceil_mode,
                   const size_t *in, struct mdl_window *ret, size_t *ret_out, size_t *ret_end);
/** mdl_window_pool() - window and dims of a pool of input 0, an image. Refuses windows that lie in
 * the pads. */
void mdl_window_pool(struct mdl_lower *l, struct mdl_ir_op *op, size_t *ret_dim);
/** mdl_window_image() - refuses an input 0 that is not of rank @least to @most. */
void mdl_window_image(struct mdl_lower *l, size_t least, size_t most);
enum { MDL_PAD_NOTSET, MDL_PAD_SAME_UPPER, MDL_PAD_SAME_LOWER, MDL_PAD_VALID };

/* ---- narrow.c: integers of 16 bits, which are kept in 32, and of 4, in bytes ----
 *
 * A value says which of them its elements are (value.narrow), and its elements are always in the
 * range of that type. So what moves or compares elements needs no care; what may leave the range
 * wraps, as the narrow type would; everything else is refused. */

/** mdl_narrow_outputs() - gives the outputs of a node, which exist, the narrow type that they have
 * by its inputs, as @row says. */
void mdl_narrow_outputs(struct mdl_lower *l, const struct mdl_lower_row *row);
/** mdl_narrow_cast() - @x as @dtype, and in it as @to. */
size_t mdl_narrow_cast(struct mdl_lower *l, size_t x, enum mdl_dtype dtype, enum mdl_narrow to);
/** mdl_narrow_name() - Return: ONNX's name for the type. */
const char *mdl_narrow_name(enum mdl_narrow n);
