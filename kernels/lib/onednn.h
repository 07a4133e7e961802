/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/lib/onednn.h - shared by the table's primitives over oneDNN
 *
 * oneDNN compiles its primitives at run time and threads them by OpenMP. Here every oneDNN
 * primitive is made for one thread and runs on the caller's thread: each member of a team runs one.
 * A primitive is immutable, but the memory objects with its tensors' addresses are not. So each
 * primitive keeps a few sets of them, which runs take and return without a lock. A run that finds
 * no set makes one. So nothing is allocated here unless more runs than ever before overlap (oneDNN
 * itself allocates some small objects in every run).
 *
 * Versions 2 and 3 have different interfaces: descriptions of tensors are structs in one and
 * objects in the other, primitives are described in two steps or in one. The functions that differ
 * are below the line "by either interface"; the build compiles onednn_v2.c or onednn_v3.c for them.
 */
#pragma once

#include <oneapi/dnnl/dnnl.h>
#include <stdatomic.h>

#include "base/base.h"
#include "kernels/common/conv_common.h"

#define KRN_DNNL_ARGS_MAX 6u
#define KRN_DNNL_IDLE 8u /* sets that are kept */
/* What must be free before the library makes something: 2.6 takes up to 25 MiB for a primitive. */
#define KRN_DNNL_ROOM_BYTES ((size_t)64 << 20)
#define KRN_DNNL_SET_BYTES ((size_t)1 << 20)
#ifdef __x86_64__
#define KRN_DNNL_CONV_NEEDS KRN_CPU_AVX2 /* without: 2.6 adds wrong residuals to 1x1 windows */
#else
#define KRN_DNNL_CONV_NEEDS 0
#endif

/**
 * krn_dnnl_engine() - Return: the CPU engine; NULL if run-time code is forbidden (as by
 * MemoryDenyWriteExecute), or the library fails or cannot be restricted to PIPED_CPU. Call it
 * before any other function of the library. Threads: any.
 */
dnnl_engine_t krn_dnnl_engine(void);

/** krn_dnnl_alone() - restricts oneDNN's work for the calling thread to that thread. Return:
 * whether that succeeded. */
bool krn_dnnl_alone(void);

/* The description of a tensor. {0}: none. Deinitialise it after use. KRN_DNNL_MD(): as functions of
 * the library take it. */
struct krn_dnnl_md {
    dnnl_memory_desc_t d;
};
#if DNNL_VERSION_MAJOR == 2
#define KRN_DNNL_MD(md) (&(md)->d)
#else
#define KRN_DNNL_MD(md) ((md)->d)
#endif
#define krn_dnnl_auto_md base_cleanup(krn_dnnl_md_deinit) struct krn_dnnl_md

/* scratch and packed weights lie at multiples of this */
static inline size_t krn_dnnl_align(size_t bytes)
{
    return base_align_up(bytes, BASE_CACHE_LINE_BYTES);
}

struct krn_dnnl_set; /* memory objects and a stream for one run */

struct krn_dnnl {
    dnnl_primitive_t primitive; /* owned; NULL: none */
    size_t count;
    int arg[KRN_DNNL_ARGS_MAX]; /* DNNL_ARG_...; the last is the scratchpad */
    struct krn_dnnl_md md[KRN_DNNL_ARGS_MAX];
    _Atomic(struct krn_dnnl_set *) idle[KRN_DNNL_IDLE];
};

/**
 * krn_dnnl_init() - makes the primitive of @pd, with the scratchpad as an additional argument
 * @args: its other arguments, @count < KRN_DNNL_ARGS_MAX; their descriptions are @pd's
 * Return: 0, -ENOMEM, -EOPNOTSUPP.
 */
int krn_dnnl_init(struct krn_dnnl *d, const_dnnl_primitive_desc_t pd, size_t count,
                  const int *args);
void krn_dnnl_deinit(struct krn_dnnl *d);

/** krn_dnnl_reorder() - makes a primitive that copies @from to @to: args FROM, TO. Return: as
 * krn_dnnl_init(). */
int krn_dnnl_reorder(struct krn_dnnl *d, const struct krn_dnnl_md *from,
                     const struct krn_dnnl_md *to);
/** krn_dnnl_reorder_once() - copies @src, laid out as @from, to @dst, laid out as @to. Blocks,
 * allocates. Return: as krn_dnnl_init(). */
int krn_dnnl_reorder_once(const struct krn_dnnl_md *from, void *src, const struct krn_dnnl_md *to,
                          void *dst);

/** krn_dnnl_scratch() - bytes of its scratchpad */
size_t krn_dnnl_scratch(const struct krn_dnnl *d);

/** krn_dnnl_run() - runs it once. @handles: addresses of its arguments in order, the scratchpad
 * (64-byte aligned) last. Threads: any, several at once. */
void krn_dnnl_run(struct krn_dnnl *d, void *const *handles);

/** krn_dnnl_attr() - makes the attributes of every primitive here: the scratchpad is an argument;
 * post-ops are @post (may be NULL). Return: owned, or NULL. */
dnnl_primitive_attr_t krn_dnnl_attr(const_dnnl_post_ops_t post, dnnl_fpmath_mode_t mode);

/** krn_dnnl_if_fast() - Return: @pd, or NULL if the library only has its reference for it, and @pd
 * is freed. @pd: or NULL */
dnnl_primitive_desc_t krn_dnnl_if_fast(dnnl_primitive_desc_t pd);

/** krn_dnnl_error() - 0, -ENOMEM or -EOPNOTSUPP for a status */
int krn_dnnl_error(dnnl_status_t s);

/* ---- by either interface; functions that return int: 0, -ENOMEM, -EOPNOTSUPP ---- */

/** krn_dnnl_md_tag() / krn_dnnl_md_strides() - describe a tensor by a format tag, or by strides in
 * elements */
int krn_dnnl_md_tag(struct krn_dnnl_md *ret, int rank, const dnnl_dims_t dims,
                    dnnl_data_type_t type, dnnl_format_tag_t tag);
int krn_dnnl_md_strides(struct krn_dnnl_md *ret, int rank, const dnnl_dims_t dims,
                        dnnl_data_type_t type, const dnnl_dims_t strides);
/** krn_dnnl_md_arg() - describes argument @arg (DNNL_ARG_...) of @pd */
int krn_dnnl_md_arg(struct krn_dnnl_md *ret, const_dnnl_primitive_desc_t pd, int arg);
size_t krn_dnnl_md_bytes(const struct krn_dnnl_md *md);
void krn_dnnl_md_deinit(struct krn_dnnl_md *md);

/** krn_dnnl_append_eltwise() - appends an element function, with version 2's parameters;
 * krn_dnnl_append_sum(): adds what the destination held. Return: whether it was appended. */
bool krn_dnnl_append_eltwise(dnnl_post_ops_t post, dnnl_alg_kind_t kind, float alpha, float beta);
bool krn_dnnl_append_sum(dnnl_post_ops_t post);

/* The tensors of a convolution or a product; @bias may be NULL. */
struct krn_dnnl_tensors {
    const struct krn_dnnl_md *x, *weights, *bias, *y;
};
struct krn_dnnl_window {
    dnnl_dims_t strides, dilates, pad_begin, pad_end; /* dilates: 0: none */
};
/** krn_dnnl_conv_pd() and the next functions - Return: a description of the forward primitive,
 * owned, or NULL */
dnnl_primitive_desc_t krn_dnnl_conv_pd(dnnl_alg_kind_t kind, const struct krn_dnnl_tensors *t,
                                       const struct krn_dnnl_window *w,
                                       const_dnnl_primitive_attr_t attr);
dnnl_primitive_desc_t krn_dnnl_inner_product_pd(const struct krn_dnnl_tensors *t,
                                                const_dnnl_primitive_attr_t attr);
dnnl_primitive_desc_t krn_dnnl_matmul_pd(const struct krn_dnnl_tensors *t,
                                         const_dnnl_primitive_attr_t attr);
