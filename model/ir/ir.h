/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/ir/ir.h - the compiler's own representation, between the graph and the model
 *
 * A graph is lowered node by node, in topological order, to *values* (logical tensors with type and
 * dimensions, but no place in memory yet) and *IR ops*: model operators plus two that cost nothing,
 * VIEW and CONCAT. The rooms keep one invariant: ops are in topological order, and every value is
 * written by exactly one op (value.op).
 *
 * This is the room's contract, together with build.h (makes ops) and strides.h (orders of elements
 * in memory). For model/ only.
 *
 * Everything is allocated from ir.pool and freed with it; compile/emit.c copies what the model
 * keeps into the model's pool. A failure leaves by longjmp() what is tried (ir.leave): while a
 * node is lowered, model/lower/lower.c goes on with the next one; else compile/compile.c ends. So
 * nothing here returns after a failure, and nobody keeps what must be freed.
 */
#pragma once

#include <setjmp.h>

#include "model/common/graph.h"
#include "model/common/private.h"

/* IR-only kinds, beside enum mdl_op_kind */
#define MDL_IR_VIEW ((int)MDL_OP_COUNT)
#define MDL_IR_CONCAT ((int)MDL_OP_COUNT + 1)

/* passes are quadratic at worst; real networks have hundreds of operators and a few inputs */
#define MDL_IR_OPS_MAX 20000u
#define MDL_IR_RUN_MAX (2 * MDL_IR_OPS_MAX) /* includes the copies that layout adds */
#define MDL_IR_INPUTS_MAX 1000u

struct mdl_ir_value {
    const char *name;
    enum mdl_dtype dtype;
    size_t rank;
    size_t dim[MDL_RANK_MAX];
    const void *data; /* constants: row-major, dense, any alignment; else NULL */
    bool in_file;     /* data points into the file mapping */
    bool output;      /* a model output */
    bool named;       /* name came from the file */
    size_t input;     /* index of the model input, or MDL_NONE */
    size_t op;        /* IR op that writes it, or MDL_NONE */
    size_t uses;      /* readers, see mdl_ir_count_uses() */
    /* ir/rows.c: how many of the rows along rows_dim are valid, an i64 value of one element; the
     * dim is a bound. MDL_NONE: all are. Used until the model's outputs are made */
    size_t rows, rows_dim;
    /* ir/bounds.c: constants of the same shape, the least and most that each element of this
     * integer value can be; MDL_NONE: not known */
    size_t least, most;
    enum mdl_narrow narrow; /* which integers it holds, where its type is wider */
    /* of a sequence: its values; it has no dims, and never becomes a tensor of the model */
    bool sequence;
    const size_t *items;
    size_t item_count;
    /* compile/layout.c */
    size_t storage; /* index into ir.storages, or MDL_NONE */
    ptrdiff_t stride[MDL_RANK_MAX];
    size_t offset;                 /* bytes into the storage */
    size_t order[MDL_RANK_MAX];    /* of a value that owns its storage: dims from outer to inner */
    size_t concat;                 /* value of the concat that this is part of, or MDL_NONE ... */
    size_t concat_axis, concat_at; /* ... along this dim, from this element */
    size_t channels_last;          /* value with a channels-last copy of it, or MDL_NONE */
    size_t tensor;                 /* compile/emit.c: index in the model, or MDL_NONE */
};

enum mdl_view_kind { MDL_VIEW_PERMUTE, MDL_VIEW_SLICE, MDL_VIEW_EXPAND, MDL_VIEW_RESHAPE };

struct mdl_ir_view {
    enum mdl_view_kind kind;
    size_t perm[MDL_RANK_MAX];    /* PERMUTE: y.dim[i] = x.dim[perm[i]] */
    size_t start[MDL_RANK_MAX];   /* SLICE: y[i] = x[start + i * step], y.dim gives the count */
    ptrdiff_t step[MDL_RANK_MAX]; /* may be negative */
    size_t rows_at; /* RESHAPE: 1 + the dim that x's counted one becomes, or 0: sizes tell it */
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
    struct mdl_storage mem; /* as the model will have it */
    bool in_file;
    size_t alias;        /* storage that contains this one, or MDL_NONE ... */
    size_t alias_offset; /* ... at this byte */
    bool used;
    size_t final; /* compile/emit.c: index in the model */
};

/* The source of a name in the graph: exactly one of node, initializer, input. Sorted by name. */
struct mdl_ir_name {
    const char *name;
    size_t node, initializer, input;
    bool branch;  /* made in a branch of an If, or in the body of a Loop */
    bool failed;  /* of a node that is refused, or needs the result of one */
    size_t value; /* MDL_NONE until lowered */
};

struct mdl_ir;

/* What a new value's rows and rows_dim will be. */
struct mdl_rows {
    size_t rows, dim;
};

/* Called around each new op. before(): may give it other inputs, or refuse it; @rank, @dim: of the
 * result. after(): the op's outputs exist. */
struct mdl_ir_hooks {
    struct mdl_rows (*before)(struct mdl_ir *ir, struct mdl_ir_op *op, size_t rank,
                              const size_t *dim);
    void (*after)(struct mdl_ir *ir, const struct mdl_ir_op *op, struct mdl_rows rows);
};

struct mdl_ir {
    const struct mdl_graph *g;
    const struct mdl_load_options *options;
    const struct mdl_ir_hooks *hooks;
    char *error;            /* MDL_ERROR_MAX */
    jmp_buf *leave;         /* where a failure goes on ... */
    int failure;            /* ... with this code */
    struct mdl_pool *pool;  /* owned by the caller of the passes */
    size_t value_bytes_max; /* limit for one value */
    size_t fold_bytes_left; /* bytes that constant folding may still allocate ... */
    double fold_work_left;  /* ... and elements that it may still compute */
    double unfolded_work;   /* of constant ops that are too much to fold, so far */
    struct mdl_ir_value *values;
    size_t value_count, value_cap;
    struct mdl_ir_op *ops;
    size_t op_count, op_cap;
    struct mdl_ir_name *names;
    size_t name_count;
    size_t *order; /* live nodes, topological */
    size_t order_count;
    unsigned char *lowered;       /* of each node of the graph: enum in lower/lower.c */
    size_t branch_depth;          /* of branches of If and bodies of Loop being lowered */
    size_t unrolled;              /* nodes that bodies of Loop became, so far */
    struct mdl_reasons *reasons;  /* why the model is refused, so far */
    const struct mdl_gnode *node; /* node being lowered, for messages */
    const char *node_name;
    size_t *inputs;          /* value of each graph input (even if unused) */
    size_t *outputs;         /* value of each graph output */
    size_t *output_rows;     /* of each: 1 + the output with its valid rows, or 0: all ... */
    size_t *output_rows_dim; /* ... along this dim */
    double run_time_bytes;   /* bytes of all values that nodes compute at run time */
    /* from compile/layout.c on: the ops that will run, and where tensors live */
    struct mdl_ir_op *run;
    size_t run_count, run_cap;
    struct mdl_ir_storage *storages;
    size_t storage_count, storage_cap;
    size_t *output_values;   /* tensor of each output, in its OUTPUT storage */
    struct mdl_model *model; /* compile/emit.c; owned by the caller of the passes */
};

/* ---- ir.c: values, ops, messages ---- */

/** mdl_ir_begin() - makes @n the node that messages name. */
void mdl_ir_begin(struct mdl_ir *ir, const struct mdl_gnode *n);
/** mdl_ir_say() - writes "node <name> (<op>): <text>" to ir.error. Return: @code. */
int mdl_ir_say(const struct mdl_ir *ir, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/** mdl_ir_leave() - ends what is tried with @code; ir.error has the text. Does not return. */
_Noreturn void mdl_ir_leave(struct mdl_ir *ir, int code);
/* mdl_ir_say(), then mdl_ir_leave() */
#define mdl_ir_refuse(ir, ...) mdl_ir_leave(ir, mdl_ir_say(ir, __VA_ARGS__))
_Noreturn void mdl_ir_nomem(struct mdl_ir *ir);
/** mdl_ir_called_off() - leaves with -ECANCELED if the load is no longer wanted. */
void mdl_ir_called_off(struct mdl_ir *ir);
/** mdl_ir_alloc(), mdl_ir_memdup() - as those of the pool, but never NULL. */
void *mdl_ir_alloc(struct mdl_ir *ir, size_t count, size_t size);
void *mdl_ir_memdup(struct mdl_ir *ir, const void *data, size_t bytes);
/** mdl_ir_at() - Return: value @v; a scalar where that is MDL_NONE. */
const struct mdl_ir_value *mdl_ir_at(const struct mdl_ir *ir, size_t v);
size_t mdl_ir_value_new(struct mdl_ir *ir, enum mdl_dtype dtype, size_t rank, const size_t *dim);
size_t mdl_ir_const_new(struct mdl_ir *ir, enum mdl_dtype dtype, size_t rank, const size_t *dim,
                        const void *data, bool in_file);
/** mdl_ir_fold_alloc() - allocates a folded constant, zeros; counts against the budget. */
void *mdl_ir_fold_alloc(struct mdl_ir *ir, size_t bytes);
/** mdl_ir_fold_work() - takes @elements from the budget of work. Return: false if too little is
 * left. */
bool mdl_ir_fold_work(struct mdl_ir *ir, double elements);
size_t mdl_ir_elements(const struct mdl_ir_value *v);
size_t mdl_ir_bytes(const struct mdl_ir_value *v);
bool mdl_ir_is_const(const struct mdl_ir *ir, size_t v);
/** mdl_ir_op_add() - appends a copy of @op; its outputs must exist and get op as their writer. */
void mdl_ir_op_add(struct mdl_ir *ir, const struct mdl_ir_op *op);
/** mdl_ir_take_ops() - takes all ops out, so that they are added anew; no value has a writer then.
 * Return: the pool's, @ret_count of them. */
struct mdl_ir_op *mdl_ir_take_ops(struct mdl_ir *ir, size_t *ret_count);
struct mdl_ir_op mdl_ir_op_make(const struct mdl_ir *ir, int kind);
/** mdl_ir_writer() - Return: the live op that writes @v, or NULL. */
struct mdl_ir_op *mdl_ir_writer(const struct mdl_ir *ir, size_t v);
/** mdl_ir_input() - walks over all that @op reads: inputs, residual, parts of a concat. @at: 0 at
 * first. Return: where the next value stands in @op; NULL: there are no more. mdl_ir_reads() - the
 * same; Return: the value, or MDL_NONE. */
size_t *mdl_ir_input(struct mdl_ir_op *op, size_t *at);
size_t mdl_ir_reads(const struct mdl_ir_op *op, size_t *at);
void mdl_ir_grow(struct mdl_ir *ir, void **array, size_t *cap, size_t count, size_t size);
/** mdl_ir_absorb() - removes op @k; @into, an earlier one, writes its output. */
void mdl_ir_absorb(struct mdl_ir *ir, struct mdl_ir_op *into, size_t k);
void mdl_ir_count_uses(struct mdl_ir *ir);
void mdl_ir_drop_dead(struct mdl_ir *ir);
/** mdl_ir_is_spatial() - Return: whether @op reads its first input and writes its outputs
 * channels-last. */
bool mdl_ir_is_spatial(const struct mdl_ir *ir, const struct mdl_ir_op *op);
bool mdl_ir_same_dims(const struct mdl_ir_value *a, const struct mdl_ir_value *b);

/* ---- ir.c, too: elements of constants, of any type and alignment ---- */

/** mdl_const_int(), mdl_const_real() - Return: element @i as an integer (saturated; NaN gives 0),
 * or as a real number. mdl_const_store() - writes element @i of an array of @dtype: @real if @dtype
 * is f32, else @integer. */
int64_t mdl_const_int(const struct mdl_ir_value *v, size_t i);
double mdl_const_real(const struct mdl_ir_value *v, size_t i);
/** mdl_const_channel() - Return: the real of channel @c; one element is for all. */
double mdl_const_channel(const struct mdl_ir_value *v, size_t c);
void mdl_const_store(void *data, enum mdl_dtype dtype, size_t i, double real, int64_t integer);
/** mdl_const_make() - allocates the data of value @v, which becomes a constant; counts against the
 * folding budget. */
void *mdl_const_make(struct mdl_ir *ir, size_t v);
/** mdl_const_settled() - Return: a constant instead of @v, where by its bounds (rows.h) its
 * elements can have but one value; else @v. */
size_t mdl_const_settled(const struct mdl_ir *ir, size_t v);
/** mdl_const_move() - copies elements of @size bytes, of dims @dim, from the strides of @src to
 * those of @dst. */
void mdl_const_move(size_t size, size_t rank, const size_t *dim, unsigned char *dst,
                    const ptrdiff_t *to, const unsigned char *src, const ptrdiff_t *from);

/* ---- sort.c: the graph's nodes in order, and its names ---- */

/** mdl_ir_sort() - fills ir.order with the nodes that an output needs, in topological order, and
 * ir.names. */
void mdl_ir_sort(struct mdl_ir *ir);
/** mdl_ir_find() - Return: the entry of @name; NULL: it is not in the graph. */
struct mdl_ir_name *mdl_ir_find(const struct mdl_ir *ir, const char *name);

/* ---- refusal.c: collects reasons for a refusal, and says them in one sentence ---- */

/** mdl_ir_reason() - keeps the text in ir.error as a reason. @what: its kind, code and version.
 * @n: the node; NULL: it is an input. @name: of either. */
void mdl_ir_reason(struct mdl_ir *ir, const struct mdl_reason *what, const struct mdl_gnode *n,
                   const char *name);
/** mdl_ir_refuse_all() - leaves with the first reason's code, if there is one, and all in ir.error:
 * the text itself of a single one, else an operator once with the names of some of its nodes. */
void mdl_ir_refuse_all(struct mdl_ir *ir);
