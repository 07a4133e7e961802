/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/ref/ref.h - shared by the references: the tensors of a call, its team, its epilogue
 *
 * References are written to be readable and correct. They take any strides (negative and zero too),
 * any alignment, empty tensors, and every type that makes sense for the operator. They sum in
 * double; integers in int64, wrapping like two's complement. For kernels/ref/ only.
 *
 * All pointers are borrowed from the call. Threads: any of the team.
 */
#pragma once

#include "kernels/common/planned.h"

/* ---- elements of a tensor of any type ----
 *
 * Indices count elements from element 0 and may be negative.
 */

static inline bool ref_is_int(enum mdl_dtype t)
{
    return t != MDL_F32;
}

static inline float ref_f32(const void *p, ptrdiff_t i)
{
    return ((const krn_any_f32 *)p)[i];
}
static inline void ref_set_f32(void *p, ptrdiff_t i, double v)
{
    ((krn_any_f32 *)p)[i] = (float)v;
}

/** ref_i64() - an integer or boolean element, widened. ref_f64() - any element. */
static inline int64_t ref_i64(const void *p, enum mdl_dtype t, ptrdiff_t i)
{
    const uint8_t *b = p;

    switch (t) {
    case MDL_I32:
        return (int32_t)((const krn_any_u32 *)p)[i];
    case MDL_I64:
        return (int64_t)((const krn_any_u64 *)p)[i];
    case MDL_I8:
        return (int8_t)b[i];
    case MDL_U8:
        return b[i];
    default:
        return b[i] != 0;
    }
}
static inline double ref_f64(const void *p, enum mdl_dtype t, ptrdiff_t i)
{
    return t == MDL_F32 ? (double)ref_f32(p, i) : (double)ref_i64(p, t, i);
}

/** ref_set_i64() - stores the low bits (BOOL: v != 0; F32: rounded). */
static inline void ref_set_i64(void *p, enum mdl_dtype t, ptrdiff_t i, int64_t v)
{
    uint8_t *b = p;

    switch (t) {
    case MDL_F32:
        ((krn_any_f32 *)p)[i] = (float)v;
        break;
    case MDL_I32:
        ((krn_any_u32 *)p)[i] = (uint32_t)(uint64_t)v;
        break;
    case MDL_I64:
        ((krn_any_u64 *)p)[i] = (uint64_t)v;
        break;
    case MDL_BOOL:
        b[i] = v != 0;
        break;
    default:
        b[i] = (uint8_t)(uint64_t)v;
        break;
    }
}

/** ref_lowest(), ref_highest() - Return: what an integer or boolean type holds. */
int64_t ref_lowest(enum mdl_dtype t);
int64_t ref_highest(enum mdl_dtype t);
/** ref_set_f64() - stores a real value. For integers it is truncated toward zero and saturated, and
 * NaN becomes 0 (ONNX leaves out-of-range values undefined). */
void ref_set_f64(void *p, enum mdl_dtype t, ptrdiff_t i, double v);

/* ---- walks, calls and windows ---- */

/* A walk over some shape in row-major order, with the element offsets of up to five operands. */
#define REF_WALK_MAX 5u
struct ref_walk {
    size_t rank, operands;
    size_t dim[MDL_RANK_MAX], index[MDL_RANK_MAX];
    ptrdiff_t stride[REF_WALK_MAX][MDL_RANK_MAX];
    ptrdiff_t at[REF_WALK_MAX];
};

/** ref_walk_start() - starts at element @linear of @shape's dims, without operands. */
void ref_walk_start(struct ref_walk *w, const struct mdl_tensor *shape, size_t linear);
/** ref_walk_add() - adds operand w->operands++; dims align from the right, size 1 is repeated. */
void ref_walk_add(struct ref_walk *w, const struct mdl_tensor *t);
/** ref_walk_call() - starts at element @linear of output 0, which is operand 0; the first @inputs
 * inputs and the residual follow. An operand that is absent stays at 0. */
void ref_walk_call(struct ref_walk *w, const struct krn_call *c, size_t inputs, size_t linear);

static inline void ref_walk_next(struct ref_walk *w)
{
    for (size_t d = w->rank; d-- > 0;) {
        bool wraps = ++w->index[d] == w->dim[d];

        for (size_t k = 0; k < w->operands; k++) {
            w->at[k] += wraps ? w->stride[k][d] * (1 - (ptrdiff_t)w->dim[d]) : w->stride[k][d];
        }
        if (!wraps) {
            return;
        }
        w->index[d] = 0;
    }
}

/** ref_offset() - element offset of a multi-index. */
static inline ptrdiff_t ref_offset(const struct mdl_tensor *t, const size_t *index)
{
    ptrdiff_t at = 0;

    for (size_t d = 0; d < t->rank; d++) {
        at += (ptrdiff_t)index[d] * t->stride[d];
    }
    return at;
}

/** ref_line() - @t with dimension @axis seen as 1 long: a walk visits each line along it once. */
static inline struct mdl_tensor ref_line(const struct mdl_tensor *t, size_t axis)
{
    struct mdl_tensor r = *t;

    r.dim[axis] = 1;
    return r;
}

/* Input or output @i of a call. */
static inline const struct mdl_tensor *ref_in(const struct krn_call *c, size_t i)
{
    return &c->model->tensors[c->op->in[i]];
}
static inline const struct mdl_tensor *ref_out(const struct krn_call *c, size_t i)
{
    return &c->model->tensors[c->op->out[i]];
}
/* The residual, or output 0 if there is none. */
static inline const struct mdl_tensor *ref_residual(const struct krn_call *c)
{
    return c->op->residual == MDL_RESIDUAL_NONE ? ref_out(c, 0)
                                                : &c->model->tensors[c->op->residual_in];
}
static inline enum mdl_dtype ref_in_dtype(const struct mdl_model *m, const struct mdl_op *op,
                                          size_t i)
{
    return op->in[i] == MDL_NONE ? MDL_DTYPE_COUNT : m->tensors[op->in[i]].dtype;
}
static inline enum mdl_dtype ref_out_dtype(const struct mdl_model *m, const struct mdl_op *op)
{
    return m->tensors[op->out[0]].dtype;
}

/** ref_share() - calls body(c, begin, end) for disjoint ranges that cover 0..n-1, on the team. */
typedef void ref_body_fn(const struct krn_call *c, size_t begin, size_t end);
void ref_share(const struct krn_call *c, size_t n, ref_body_fn *body);

/** REF_RUN() - defines WHAT_run(), which calls WHAT_body() for the elements of the output */
#define REF_RUN(what)                                                                              \
    static void what##_run(const struct krn_call *c)                                               \
    {                                                                                              \
        ref_share(c, mdl_elements(ref_out(c, 0)), what##_body);                                    \
    }

/** REF_EACH_ELEMENT() - defines WHAT_run(), which calls WHAT_at(c, w) for each element of the
 * output; @w: by ref_walk_call() with @inputs. */
#define REF_EACH_ELEMENT(what, inputs)                                                             \
    static void what##_body(const struct krn_call *c, size_t begin, size_t end)                    \
    {                                                                                              \
        struct ref_walk w;                                                                         \
                                                                                                   \
        ref_walk_call(&w, c, inputs, begin);                                                       \
        for (size_t i = begin; i < end; i++, ref_walk_next(&w)) {                                  \
            what##_at(c, &w);                                                                      \
        }                                                                                          \
    }                                                                                              \
    REF_RUN(what)

/** REF_EACH_LINE() - defines WHAT_run(), which calls WHAT_line(c, axis, at) for each line of output
 * 0 along dim AXIS, a member of c->op->attr; at: where the line begins in each of the tensors that
 * follow. */
#define REF_EACH_LINE(what, axis, ...)                                                             \
    static void what##_body(const struct krn_call *c, size_t begin, size_t end)                    \
    {                                                                                              \
        const struct mdl_tensor *const t[] = {__VA_ARGS__};                                        \
        struct mdl_tensor line = ref_line(ref_out(c, 0), c->op->attr.axis);                        \
        struct ref_walk w;                                                                         \
                                                                                                   \
        ref_walk_start(&w, &line, begin);                                                          \
        for (size_t i = 0; i < base_array_count(t); i++) {                                         \
            line = ref_line(t[i], c->op->attr.axis);                                               \
            ref_walk_add(&w, &line);                                                               \
        }                                                                                          \
        for (size_t i = begin; i < end; i++, ref_walk_next(&w)) {                                  \
            what##_line(c, c->op->attr.axis, w.at);                                                \
        }                                                                                          \
    }                                                                                              \
    static void what##_run(const struct krn_call *c)                                               \
    {                                                                                              \
        struct mdl_tensor lines = ref_line(ref_out(c, 0), c->op->attr.axis);                       \
                                                                                                   \
        ref_share(c, mdl_elements(&lines), what##_body);                                           \
    }

/** ref_same_dims() - Return: whether the ranks are equal, and the first @count dims. */
static inline bool ref_same_dims(const struct mdl_tensor *a, const struct mdl_tensor *b,
                                 size_t count)
{
    return a->rank == b->rank && memcmp(a->dim, b->dim, count * sizeof(a->dim[0])) == 0;
}

/* The taps of a window of the output at @p, one after the other, row-major. */
struct ref_taps {
    const struct mdl_window *win;
    const struct mdl_tensor *x;
    const struct mdl_tensor *w; /* the weights, or NULL */
    const size_t *pad_end;      /* what counts behind x, or NULL */
    const size_t *p;
    bool back; /* of an x that windows wrote to y: those that reach @p */
    size_t seen, k[3];
    /* of this tap */
    size_t i[3];    /* in x */
    ptrdiff_t at;   /* element offset inside the image and channel of x */
    ptrdiff_t w_at; /* inside the weights */
    bool inside;    /* in x */
    bool in_extent; /* in x or in the padding that counts */
};

/** ref_next_tap() - Return: false: no more. At first only what the caller sets may not be 0. */
static inline bool ref_next_tap(struct ref_taps *t)
{
    const struct mdl_window *win = t->win;
    size_t d = win->rank;

    while (t->seen > 0 && d-- > 0 && ++t->k[d] == win->kernel[d]) {
        t->k[d] = 0;
        if (d == 0) {
            return false;
        }
    }
    t->seen++;
    t->at = t->w_at = 0;
    t->inside = t->in_extent = true;
    for (d = 0; d < win->rank; d++) {
        size_t shift = t->k[d] * win->dilation[d], padded = t->p[d] * win->stride[d] + shift;
        size_t reach = t->p[d] + win->pad_begin[d];

        if (!t->back) {
            t->i[d] = padded - win->pad_begin[d]; /* wraps to a huge number below zero */
        } else {
            bool reached = reach >= shift && (reach - shift) % win->stride[d] == 0;

            t->i[d] = reached ? (reach - shift) / win->stride[d] : SIZE_MAX;
        }
        t->inside &= t->i[d] < t->x->dim[2 + d];
        t->in_extent &= t->pad_end && padded < win->pad_begin[d] + t->x->dim[2 + d] + t->pad_end[d];
        t->at += (ptrdiff_t)t->i[d] * t->x->stride[2 + d];
        t->w_at += t->w ? (ptrdiff_t)t->k[d] * t->w->stride[2 + d] : 0;
    }
    return true;
}

/** ref_window_ok() - Return: whether @win slides over images @x, as many as @y has. */
bool ref_window_ok(const struct mdl_window *win, const struct mdl_tensor *x,
                   const struct mdl_tensor *y);

/** ref_act() - enum mdl_act on one value; formulas at MDL_ACTS(). NaN stays NaN. */
double ref_act(enum mdl_act act, double a, double b, double x);

/** ref_finish() - the epilogue of one f32 result @t: residual (element @residual_at) and
 * activation. */
static inline double ref_finish(const struct krn_call *c, double t, ptrdiff_t residual_at)
{
    const struct mdl_op *op = c->op;

    if (op->residual == MDL_RESIDUAL_BEFORE_ACT) {
        t += (double)ref_f32(c->residual, residual_at);
    }
    t = ref_act(op->act, (double)op->act_a, (double)op->act_b, t);
    if (op->residual == MDL_RESIDUAL_AFTER_ACT) {
        t += (double)ref_f32(c->residual, residual_at);
    }
    return t;
}

/** ref_plain() - Return: whether the op has no epilogue, as integer results require.
 * ref_epilogue_ok() - Return: whether it has no epilogue, or one on f32 with an f32 residual of y's
 * shape. */
bool ref_plain(const struct mdl_op *op);
bool ref_epilogue_ok(const struct mdl_model *m, const struct mdl_op *op);
/** ref_all_f32() - Return: whether all inputs and outputs are f32. */
bool ref_all_f32(const struct mdl_model *m, const struct mdl_op *op);

/* Ops on quantised values (struct mdl_quant): exact integer sums, then the steps of struct
 * mdl_quant one by one in f32. The build forbids the compiler to contract them, so that every
 * primitive can give the same bits.
 * krn_ref_quant_ok() - Return: whether an op with quant has types and an epilogue that are possible
 * krn_ref_quant_product_ok() - the same of a product, whose weights are bytes, too
 * krn_ref_quant_real() - stores a result, @t before the epilogue; krn_ref_quant_sum() - @sum of a
 * product without its bias; krn_ref_quant_add() - elements @w->at[1] and [2] of a sum */
bool krn_ref_quant_ok(const struct mdl_model *m, const struct mdl_op *op);
bool krn_ref_quant_product_ok(const struct mdl_model *m, const struct mdl_op *op);
void krn_ref_quant_real(const struct krn_call *c, float t, ptrdiff_t y_at, ptrdiff_t residual_at);
void krn_ref_quant_sum(const struct krn_call *c, uint32_t sum, size_t channel, ptrdiff_t y_at,
                       ptrdiff_t residual_at);
void krn_ref_quant_add(const struct krn_call *c, const struct ref_walk *w);

/* ---- runs of elements that are dense in two tensors ---- */

/* The last dims of two tensors, as one run of memory. */
struct ref_run {
    size_t dims;     /* how many */
    size_t elements; /* their product; 1 if dims is 0 */
};

/** ref_run_of() - the longest run, of at most @most last dims; these are equal in @a and @b. */
static inline struct ref_run ref_run_of(const struct mdl_tensor *a, const struct mdl_tensor *b,
                                        size_t most)
{
    struct ref_run r = {.elements = 1};

    while (r.dims < most) {
        size_t i = a->rank - 1 - r.dims, k = b->rank - 1 - r.dims;
        ptrdiff_t dense = (ptrdiff_t)r.elements;

        if (a->dim[i] != 1 && (a->stride[i] != dense || b->stride[k] != dense)) {
            break;
        }
        r.elements *= a->dim[i];
        r.dims++;
    }
    return r;
}

/** ref_heads() - @t with its last @dims dims seen as 1 long: a walk visits each run once. */
static inline struct mdl_tensor ref_heads(const struct mdl_tensor *t, size_t dims)
{
    struct mdl_tensor r = *t;

    for (size_t d = t->rank - dims; d < t->rank; d++) {
        r.dim[d] = 1;
    }
    return r;
}

/** REF_EACH_RUN() - defines WHAT_run(), which calls WHAT_at(c, w, elements) for each run of output
 * 0 that WHAT_run_of(c) says: operand 0 of @w is at its first element, operand 1 at that of input 0
 */
#define REF_EACH_RUN(what)                                                                         \
    static void what##_body(const struct krn_call *c, size_t begin, size_t end)                    \
    {                                                                                              \
        struct ref_run run = what##_run_of(c);                                                     \
        struct mdl_tensor heads = ref_heads(ref_out(c, 0), run.dims);                              \
        struct ref_walk w;                                                                         \
                                                                                                   \
        ref_walk_start(&w, &heads, begin);                                                         \
        ref_walk_add(&w, &heads);                                                                  \
        ref_walk_add(&w, ref_in(c, 0));                                                            \
        for (size_t i = begin; i < end; i++, ref_walk_next(&w)) {                                  \
            what##_at(c, &w, run.elements);                                                        \
        }                                                                                          \
    }                                                                                              \
    static void what##_run(const struct krn_call *c)                                               \
    {                                                                                              \
        struct mdl_tensor heads = ref_heads(ref_out(c, 0), what##_run_of(c).dims);                 \
                                                                                                   \
        ref_share(c, mdl_elements(&heads), what##_body);                                           \
    }

/** ref_move() - copies @elements from element @from of @x to element @to of @y, of one type. */
static inline void ref_move(void *y, ptrdiff_t to, const void *x, ptrdiff_t from, size_t elements,
                            enum mdl_dtype t)
{
    ptrdiff_t bytes = (ptrdiff_t)mdl_dtype_bytes(t);

    memcpy((char *)y + to * bytes, (const char *)x + from * bytes, elements * (size_t)bytes);
}

/** ref_zero() - writes zeros. */
static inline void ref_zero(void *y, ptrdiff_t to, size_t elements, enum mdl_dtype t)
{
    ptrdiff_t bytes = (ptrdiff_t)mdl_dtype_bytes(t);

    memset((char *)y + to * bytes, 0, elements * (size_t)bytes);
}

/** ref_clamped() - an index that came with the frame, as one of 0..n-1 (n > 0): below zero it
 * counts from the end; outside, it becomes the nearest. */
static inline ptrdiff_t ref_clamped(int64_t k, size_t n)
{
    int64_t end = (int64_t)n;

    return (ptrdiff_t)(k < -end ? 0 : k < 0 ? k + end : k >= end ? end - 1 : k);
}

/** ref_rows() - how many rows of @bound are valid: the count in input @i, or all if absent. */
static inline size_t ref_rows(const struct krn_call *c, size_t i, size_t bound)
{
    int64_t n;

    if (c->op->in[i] == MDL_NONE) {
        return bound;
    }
    n = ref_i64(c->in[i], MDL_I64, 0);
    return n < 0 ? 0 : (uint64_t)n > bound ? bound : (size_t)n;
}

/** ref_is_count() - Return: whether input @i is absent or one i64. */
static inline bool ref_is_count(const struct mdl_model *m, const struct mdl_op *op, size_t i)
{
    return op->in[i] == MDL_NONE ||
           (ref_in_dtype(m, op, i) == MDL_I64 && mdl_elements(&m->tensors[op->in[i]]) == 1);
}

/** REF_PRIMITIVE() - defines the table entry of operator WHAT */
#define REF_PRIMITIVE(what, kind, can, does)                                                       \
    KRN_PRIMITIVE(what##__ref, kind, .reference = true, .supports = can, .run = does)

/** REF_OPERATOR() - the same of WHAT_supports() and of the WHAT_run() that EACH defines: REF_RUN,
 * REF_EACH_ELEMENT, REF_EACH_LINE or REF_EACH_RUN, with its arguments after WHAT */
#define REF_OPERATOR(what, kind, EACH, ...)                                                        \
    EACH(what, ##__VA_ARGS__)                                                                      \
    REF_PRIMITIVE(what, kind, what##_supports, what##_run)
