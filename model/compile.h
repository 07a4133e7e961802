/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/compile.h - the compiler's own representation, between the graph and the model; for
 * model/ only
 *
 * A graph is lowered node by node, in topological order, to *values* (logical tensors: type and
 * dimensions, not yet a place in memory) and *IR ops*: model operators plus two that cost nothing,
 * VIEW and CONCAT. Whatever has only constant inputs is evaluated on the spot, so exporters' shape
 * plumbing never becomes an op. Then: fusion (fuse.c), layout (layout.c: strides, copies, views),
 * memory (memory.c), units (units.c). The passes keep one invariant: ops are in topological order,
 * and every value is written by exactly one op (value.op).
 *
 * Everything lives in ir.pool and dies with it; what the model keeps is copied into the model's
 * own pool by emit.c. Functions return 0 or a negative errno with the text already in ir.error.
 */
#pragma once

#include "model/common/graph.h"
#include "model/model.h"
#include "model/common/pool.h"
#include "model/private.h"

/* IR-only kinds, beside enum mdl_op_kind */
#define MDL_IR_VIEW ((int)MDL_OP_COUNT)
#define MDL_IR_CONCAT ((int)MDL_OP_COUNT + 1)

/* passes are quadratic at worst; real networks have hundreds of operators and a few inputs */
#define MDL_IR_OPS_MAX 20000u
#define MDL_IR_RUN_MAX (2 * MDL_IR_OPS_MAX) /* with the copies that layout adds */
#define MDL_IR_INPUTS_MAX 1000u

struct mdl_ir_value {
    const char *name;
    enum mdl_dtype dtype;
    size_t rank;
    size_t dim[MDL_RANK_MAX];
    const void *data; /* constants: row-major, dense, maybe unaligned; else NULL */
    bool in_file;     /* data points into the file mapping */
    bool output;      /* a model output */
    bool named;       /* name came from the file */
    size_t input;     /* index of the model input, or MDL_NONE */
    size_t op;        /* IR op that writes it, or MDL_NONE */
    size_t uses;      /* readers, see mdl_ir_count_uses() */
    /* layout.c */
    size_t storage; /* index into ir.storages, or MDL_NONE */
    ptrdiff_t stride[MDL_RANK_MAX];
    size_t offset;                 /* bytes into the storage */
    size_t order[MDL_RANK_MAX];    /* of a value that owns its storage: dims from outer to inner */
    size_t concat;                 /* value of the concat whose part this is, or MDL_NONE ... */
    size_t concat_axis, concat_at; /* ... along this dim, from this element on */
    size_t channels_last;          /* value that holds a channels-last copy of it, or MDL_NONE */
    size_t tensor;                 /* emit.c: index in the model, or MDL_NONE */
};

enum mdl_view_kind { MDL_VIEW_PERMUTE, MDL_VIEW_SLICE, MDL_VIEW_EXPAND, MDL_VIEW_RESHAPE };

struct mdl_ir_view {
    enum mdl_view_kind kind;
    size_t perm[MDL_RANK_MAX];    /* PERMUTE: y.dim[i] = x.dim[perm[i]] */
    size_t start[MDL_RANK_MAX];   /* SLICE: y[i] = x[start + i * step], y.dim gives the count */
    ptrdiff_t step[MDL_RANK_MAX]; /* may be negative */
};

struct mdl_ir_op {
    int kind;         /* enum mdl_op_kind, or MDL_IR_VIEW, MDL_IR_CONCAT */
    struct mdl_op op; /* in, out and residual_in are values here */
    bool dead;
    struct mdl_ir_view view;
    size_t concat_axis, concat_count;
    size_t *concat_in; /* values; from the pool */
};

struct mdl_ir_storage {
    enum mdl_home home;
    size_t bytes, offset, index;
    const void *data;
    bool in_file;
    size_t alias;        /* storage that holds this one, or MDL_NONE ... */
    size_t alias_offset; /* ... from this byte on */
    size_t first_op, last_op;
    bool used;
    bool merged;  /* something else lives in it: leave it where it is */
    size_t final; /* emit.c: index in the model */
};

/* Who makes a name of the graph: exactly one of node, initializer, input. Sorted by name. */
struct mdl_ir_name {
    const char *name;
    size_t node, initializer, input;
    size_t value; /* MDL_NONE until lowered */
};

struct mdl_ir {
    const struct mdl_graph *g;
    const struct mdl_load_options *options;
    char *error;            /* MDL_ERROR_MAX */
    struct mdl_pool *pool;  /* owned by the caller of the passes */
    size_t value_bytes_max; /* cap of any one value */
    size_t fold_bytes_left; /* what constant folding may still make ... */
    double fold_work_left;  /* ... and how many elements it may still touch */
    struct mdl_ir_value *values;
    size_t value_count, value_cap;
    struct mdl_ir_op *ops;
    size_t op_count, op_cap;
    struct mdl_ir_name *names;
    size_t name_count;
    size_t *order; /* live nodes, topological */
    size_t order_count;
    const struct mdl_gnode *node; /* being lowered, for messages */
    const char *node_name;
    size_t *inputs;        /* value of each graph input (even when nobody reads it) */
    size_t *outputs;       /* value of each graph output */
    double run_time_bytes; /* sum over values that nodes compute at run time */
    /* from layout.c on: the ops that will run, and where tensors live */
    struct mdl_ir_op *run;
    size_t run_count, run_cap;
    struct mdl_ir_storage *storages;
    size_t storage_count, storage_cap;
    size_t *output_values; /* tensor of each output, in its OUTPUT storage */
};

/* ---- ir.c: values, ops, messages ---- */

/** mdl_ir_refuse() - "node <name> (<op>): <text>" into ir.error. Return: @code. */
int mdl_ir_refuse(const struct mdl_ir *ir, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int mdl_ir_nomem(const struct mdl_ir *ir);
int mdl_ir_value_new(struct mdl_ir *ir, enum mdl_dtype dtype, size_t rank, const size_t *dim,
                     size_t *ret);
int mdl_ir_const_new(struct mdl_ir *ir, enum mdl_dtype dtype, size_t rank, const size_t *dim,
                     const void *data, bool in_file, size_t *ret);
/** mdl_ir_fold_alloc() - memory for a constant made while folding, out of the budget. */
int mdl_ir_fold_alloc(struct mdl_ir *ir, size_t bytes, void **ret);
/** mdl_ir_fold_work() - takes @elements out of the budget of work; false: there is not enough. */
bool mdl_ir_fold_work(struct mdl_ir *ir, double elements);
size_t mdl_ir_elements(const struct mdl_ir_value *v);
size_t mdl_ir_bytes(const struct mdl_ir_value *v);
bool mdl_ir_is_const(const struct mdl_ir *ir, size_t v);
/** mdl_ir_op_add() - appends a copy of @op; its outputs must exist and get op as their writer. */
int mdl_ir_op_add(struct mdl_ir *ir, const struct mdl_ir_op *op);
struct mdl_ir_op mdl_ir_op_make(const struct mdl_ir *ir, int kind);
int mdl_ir_grow(struct mdl_ir *ir, void **array, size_t *cap, size_t count, size_t size);
void mdl_ir_count_uses(struct mdl_ir *ir);
void mdl_ir_drop_dead(struct mdl_ir *ir);
bool mdl_ir_same_dims(const struct mdl_ir_value *a, const struct mdl_ir_value *b);

/* ---- build.c: make ops; constant inputs are folded at once ---- */
int mdl_ir_emit(struct mdl_ir *ir, struct mdl_ir_op *op, enum mdl_dtype dtype, size_t rank,
                const size_t *dim, size_t *ret);
int mdl_ir_permute(struct mdl_ir *ir, size_t x, const size_t *perm, size_t *ret);
int mdl_ir_slice(struct mdl_ir *ir, size_t x, const size_t *start, const ptrdiff_t *step,
                 const size_t *dim, size_t *ret);
int mdl_ir_expand(struct mdl_ir *ir, size_t x, size_t rank, const size_t *dim, size_t *ret);
/** mdl_ir_spread() - @count operands of one op to a common shape: by stride 0, unless all are
 * constant (then the op folds, and they are filled in for it). */
int mdl_ir_spread(struct mdl_ir *ir, const size_t *x, size_t count, size_t rank, const size_t *dim,
                  size_t *ret);
int mdl_ir_reshape(struct mdl_ir *ir, size_t x, size_t rank, const size_t *dim, size_t *ret);
int mdl_ir_concat(struct mdl_ir *ir, const size_t *in, size_t count, size_t axis, size_t *ret);
int mdl_ir_cast(struct mdl_ir *ir, size_t x, enum mdl_dtype dtype, size_t *ret);
/** mdl_ir_binary() - both inputs broadcast to the common shape; types must agree. */
int mdl_ir_binary(struct mdl_ir *ir, enum mdl_binary which, size_t a, size_t b, size_t *ret);
int mdl_ir_unary(struct mdl_ir *ir, enum mdl_act act, float a, float b, size_t x, size_t *ret);
int mdl_ir_reduce(struct mdl_ir *ir, enum mdl_reduce which, size_t x, const bool *axes,
                  bool keep_dims, size_t *ret);
int mdl_ir_scalar(struct mdl_ir *ir, enum mdl_dtype dtype, double value, size_t *ret);
/** mdl_ir_broadcast() - common shape of @count shapes, numpy rules. */
int mdl_ir_broadcast(struct mdl_ir *ir, const size_t *values, size_t count, size_t *ret_rank,
                     size_t ret_dim[MDL_RANK_MAX]);

/* ---- fold.c ---- */
/** mdl_fold_op() - evaluates @op, whose inputs are all constant. *ret_done false: cannot, run it.
 */
int mdl_fold_op(struct mdl_ir *ir, const struct mdl_ir_op *op, bool *ret_done);
int mdl_fold_view(struct mdl_ir *ir, const struct mdl_ir_op *op, bool *ret_done);
int mdl_fold_eval(struct mdl_ir *ir, const struct mdl_ir_op *op, bool *ret_done); /* by kernels */
int mdl_fold_concat(struct mdl_ir *ir, const struct mdl_ir_op *op, bool *ret_done);
/* element @i of a constant, as integer or float whatever its type */
int64_t mdl_const_int(const struct mdl_ir_value *v, size_t i);
double mdl_const_real(const struct mdl_ir_value *v, size_t i);
void mdl_const_store(void *data, enum mdl_dtype dtype, size_t i, double real, int64_t integer);

/* ---- lower*.c: one node ---- */
struct mdl_lower {
    struct mdl_ir *ir;
    const struct mdl_gnode *node;
    int64_t opset;
    size_t in_count, out_count;
    const size_t *in; /* values; MDL_NONE where absent */
    size_t *out;      /* to be filled; MDL_NONE: not computed */
    int error;        /* set by the attribute helpers, sticky */
};

/** mdl_lower_node() - looks the operator up and lowers the node (lower.c). */
int mdl_lower_node(struct mdl_ir *ir, size_t node);

typedef int (*mdl_lower_fn)(struct mdl_lower *l, int arg);
struct mdl_lower_row {
    const char *op_type;
    mdl_lower_fn fn;
    int arg;
};
extern const struct mdl_lower_row mdl_lower_spatial[];  /* lower_conv.c, lower_pool.c */
extern const struct mdl_lower_row mdl_lower_products[]; /* lower_gemm.c, norm */
extern const struct mdl_lower_row mdl_lower_elements[]; /* lower_elem.c */
extern const struct mdl_lower_row mdl_lower_shapes[];   /* lower_shape.c: movement and views */
extern const struct mdl_lower_row mdl_lower_slices[];   /* lower_slice.c */
extern const struct mdl_lower_row mdl_lower_resizes[];  /* lower_resize.c */
extern const struct mdl_lower_row mdl_lower_reduces[];  /* lower_reduce.c */
extern const struct mdl_lower_row mdl_lower_quants[];   /* lower_quant.c */
extern const struct mdl_lower_row mdl_lower_consts[];   /* lower_const.c */

/** mdl_lower_conv_of() - window, groups, inputs and macs of a convolution of @x by @w, of any
 * types, from the node's attributes; @ret_dim: of its result. */
int mdl_lower_conv_of(struct mdl_lower *l, size_t x, size_t w, struct mdl_ir_op *ret_op,
                      size_t ret_dim[MDL_RANK_MAX]);
/** mdl_lower_product() - x times w by numpy's rules; @like: what else the op has; @dtype: of y. */
int mdl_lower_product(struct mdl_lower *l, size_t x, size_t w, const struct mdl_ir_op *like,
                      enum mdl_dtype dtype, size_t *ret);

/* attr.c: attributes and constant inputs */
size_t mdl_l_in(const struct mdl_lower *l, size_t i); /* MDL_NONE where absent */
const struct mdl_ir_value *mdl_l_value(const struct mdl_lower *l, size_t v);
/** mdl_l_need() - refuses unless inputs 0..@count-1 are there. */
int mdl_l_need(struct mdl_lower *l, size_t count);
/** mdl_l_f32() - refuses an input that is not f32. */
int mdl_l_f32(struct mdl_lower *l, size_t i);
const struct mdl_gattr *mdl_l_attr(const struct mdl_lower *l, const char *name);
int64_t mdl_l_int(struct mdl_lower *l, const char *name, int64_t fallback);
float mdl_l_float(struct mdl_lower *l, const char *name, float fallback);
const char *mdl_l_string(struct mdl_lower *l, const char *name, const char *fallback);
/** mdl_l_ints() - *ret_count values into @dst (at most @max, else refused); false: not there. */
bool mdl_l_ints(struct mdl_lower *l, const char *name, int64_t *dst, size_t max, size_t *ret_count);
/** mdl_l_const_ints() - the same from constant input @i (i32 or i64); false: not there. */
bool mdl_l_const_ints(struct mdl_lower *l, size_t i, int64_t *dst, size_t max, size_t *ret_count);
bool mdl_l_const_float(struct mdl_lower *l, size_t i, float *ret);
/** mdl_l_axis() - @axis into 0..@rank-1 (or ..@rank with @past_end). */
int mdl_l_axis(struct mdl_lower *l, int64_t axis, size_t rank, bool past_end, size_t *ret);

/* ---- the passes, in this order ---- */
int mdl_sort(struct mdl_ir *ir);
struct mdl_ir_name *mdl_sort_find(const struct mdl_ir *ir, const char *name);
int mdl_fuse(struct mdl_ir *ir);
int mdl_fuse_patterns(struct mdl_ir *ir); /* SiLU, hard swish: before the rest */
int mdl_quant_sink(struct mdl_ir *ir); /* quant_sink.c: DequantizeLinear behind what only moves */
int mdl_quant_plan(struct mdl_ir *ir); /* quant_plan.c: quantises by options->calibration */
int mdl_quant_fuse(struct mdl_ir *ir); /* quant_fuse.c: DequantizeLinear -> op -> QuantizeLinear */
int mdl_layout(struct mdl_ir *ir);
int mdl_memory(struct mdl_ir *ir, size_t *ret_arena_bytes);
size_t mdl_ir_entry_op(const struct mdl_ir *ir, size_t input); /* memory.c */
int mdl_emit(struct mdl_ir *ir, size_t arena_bytes, struct mdl_model **ret);
int mdl_units(struct mdl_model *m, char *error);

/* layout helpers shared with memory.c and tests (strides.c) */
void mdl_strides_dense(size_t rank, const size_t *dim, const size_t *order, ptrdiff_t *ret_stride);
void mdl_order_rows(size_t rank, size_t *ret_order);
void mdl_order_channels_last(size_t rank, size_t *ret_order);
/** mdl_order_of() - dims from outer to inner as @stride has them; channels-last where it reads so.
 */
void mdl_order_of(size_t rank, const size_t *dim, const ptrdiff_t *stride, size_t *ret_order);
/** mdl_strides_reshape() - strides of a reshaped view, or false where the elements' order in
 * memory does not allow one. */
bool mdl_strides_reshape(size_t rank, const size_t *dim, const ptrdiff_t *stride, size_t new_rank,
                         const size_t *new_dim, ptrdiff_t *ret_stride);
/** mdl_order_reshape() - the order in which a copy of x must be dense so that the reshape becomes a
 * view and layout (channels last) survives where it can. */
void mdl_order_reshape(size_t rank, const size_t *dim, const ptrdiff_t *stride, size_t new_rank,
                       const size_t *new_dim, size_t *ret_order);
bool mdl_strides_equal(size_t rank, const size_t *dim, const ptrdiff_t *a, const ptrdiff_t *b);
bool mdl_strides_nhwc(size_t rank, const size_t *dim, const ptrdiff_t *stride);
bool mdl_strides_rows(size_t rank, const size_t *dim, const ptrdiff_t *stride);
/** mdl_ir_root() - the storage that @storage lives in, *offset grown by where. */
size_t mdl_ir_root(const struct mdl_ir *ir, size_t storage, size_t *offset);
