/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/onednn.h - primitives of oneDNN for rows of the table
 *
 * oneDNN compiles its primitives at run time and threads them by OpenMP. Here every primitive is
 * made for one thread and run by whoever calls: a team runs one of its own per member. A primitive
 * is immutable; the memory objects that tell it where its tensors are are not, so each has a few
 * sets of them, taken and given back without a lock. A set is made by the first run that finds
 * none: with as many runs of a primitive at once as ever before, nothing is allocated here (oneDNN
 * itself allocates some small things in every run).
 */
#pragma once

#include <oneapi/dnnl/dnnl.h>
#include <stdatomic.h>

#include "kernels/conv_common.h"

#define KRN_DNNL_ARGS_MAX 6u
#define KRN_DNNL_IDLE 8u /* sets that are kept */

/**
 * krn_dnnl_engine() - the CPU, or NULL where run-time code cannot be written (as under
 * MemoryDenyWriteExecute) or the library refuses. Threads: any.
 */
dnnl_engine_t krn_dnnl_engine(void);

/** krn_dnnl_has_bf16() - whether bf16 is faster than f32 on this CPU */
bool krn_dnnl_has_bf16(void);

/** krn_dnnl_alone() - from now on what oneDNN does in the calling thread, it does in this thread
 * alone. Return: whether that is so. */
bool krn_dnnl_alone(void);

struct krn_dnnl_set; /* memory objects and a stream for one run */

struct krn_dnnl {
    dnnl_primitive_t primitive; /* owned; NULL: none */
    size_t count;
    int arg[KRN_DNNL_ARGS_MAX]; /* DNNL_ARG_...; the last is the scratchpad */
    dnnl_memory_desc_t md[KRN_DNNL_ARGS_MAX];
    _Atomic(struct krn_dnnl_set *) idle[KRN_DNNL_IDLE];
};

/**
 * krn_dnnl_init() - makes the primitive of @pd, with the scratchpad as an argument more
 * @args, @mds: its other arguments, @count < KRN_DNNL_ARGS_MAX
 * Return: 0, -ENOMEM, -EOPNOTSUPP.
 */
int krn_dnnl_init(struct krn_dnnl *d, const_dnnl_primitive_desc_t pd, size_t count, const int *args,
                  const dnnl_memory_desc_t *const *mds);
void krn_dnnl_deinit(struct krn_dnnl *d);

/** krn_dnnl_reorder() - a primitive that copies @from to @to: args FROM, TO. As krn_dnnl_init(). */
int krn_dnnl_reorder(struct krn_dnnl *d, const dnnl_memory_desc_t *from,
                     const dnnl_memory_desc_t *to);

/** krn_dnnl_scratch() - bytes of its scratchpad */
size_t krn_dnnl_scratch(const struct krn_dnnl *d);

/** krn_dnnl_run() - one run. @handles: where its arguments are, in order, the scratchpad (64-byte
 * aligned) last. Threads: any, several at once. */
void krn_dnnl_run(struct krn_dnnl *d, void *const *handles);

/** krn_dnnl_image() - @i as a descriptor in its own strides */
void krn_dnnl_image(const struct krn_img *i, dnnl_memory_desc_t *ret);
/** krn_dnnl_error() - 0, -ENOMEM or -EOPNOTSUPP for a status */
int krn_dnnl_error(dnnl_status_t s);
