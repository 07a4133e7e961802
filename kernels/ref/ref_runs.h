/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/ref/ref_runs.h - moves runs of elements that are dense in two tensors
 *
 * Any thread.
 */
#pragma once

#include "kernels/ref/ref.h"

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
