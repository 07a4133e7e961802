/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/primitive.h - what a primitive is: one implementation of an operator
 *
 * A primitive has its own library, algorithm, data type and layout. All primitives are entries of
 * one table (krn_primitives()), which dispatch, tests and benches walk.
 *
 * The reference of an operator is the last primitive of its kind. It supports everything that the
 * model compiler emits for that kind. Tests compare the others with it.
 */
#pragma once

#include <pthreadpool.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/common/cpu.h"
#include "model/model.h"

/* Elements of a buffer that a client or a file brought, so of any alignment. Not by memcpy(): each
 * would be a call of ThreadSanitizer's. */
typedef float krn_any_f32 __attribute__((aligned(1), may_alias));
typedef uint32_t krn_any_u32 __attribute__((aligned(1), may_alias));
typedef uint64_t krn_any_u64 __attribute__((aligned(1), may_alias));

struct krn_image; /* kernels/image/image.h */

/* The arguments of run(); all borrowed for the call. in[] and out[] point to element 0 of each
 * tensor, its offset included. */
struct krn_call {
    const struct mdl_model *model;
    const struct mdl_op *op;
    const void *packed; /* what pack() wrote, or NULL */
    void *prepared;     /* what prepare() made, or NULL */
    const void *in[MDL_OP_IN_MAX];
    void *out[MDL_OP_OUT_MAX];
    const void *residual; /* element 0 of the residual tensor, or NULL */
    pthreadpool_t pool;
    size_t width;
    uint8_t *scratch;
    /* For a FUSED primitive, the call of op + 1; else NULL. Its in[0] is this call's out[0] and is
     * never written. Its packed is NULL: this call holds the packed weights of both ops. */
    const struct krn_call *next;
    /* An image to read in place of in[0], or NULL; set only where from_image() allows it. It has
     * that tensor's width and height. run() normalises it as model.preproc says. */
    const struct krn_image *image;
    /* Frames to compute at once, where frames_at_once() allows it; 0 and 1: one. in[0] and out[0]
     * are then one frame after the other: of an image all pixels, at the distance that the tensor
     * has them (krn_img.pixel). */
    size_t frames;
};

/* A library's objects that a primitive keeps beside its packed weights. */
struct krn_prepared {
    void *object; /* owned; NULL: nothing yet */
    size_t bytes; /* of memory that the object owns, as far as known */
};

struct krn_primitive {
    /* "<kind>_<dtype>_<layout>__<library or instruction set>", such as
     * "conv_f32_nhwc_wino4__avx2" */
    const char *name;
    enum mdl_op_kind kind;
    /* CPU features that it needs, enum krn_cpu bits. Nothing else tests for features. */
    uint32_t needs;
    bool reference;
    /* Runs op and op + 1 as one, so that the value between them never leaves the cache. supports()
     * and run() are called only if op + 1 exists, only op + 1 reads op's result, and that result is
     * not an output of the model. A plan that cuts between the two runs each by its own primitive.
     */
    bool fused;
    /* Rounds more coarsely than f32 (computes in bf16); runs only if requested by name. */
    bool inexact;
    /* Most of the work is one part, whatever the width: a team of one core cannot run it in pieces.
     */
    bool whole;
    /* Reads in[0], or writes out[0], as dense NCHW, [N][C][H][W], whatever strides those tensors
     * have. They are images that krn_img_of() accepts; see kernels/common/layout.h. Never set
     * together with fused, or where the result shares memory with input 0. */
    bool nchw_in, nchw_out;

    /* Return: whether it can run @op with its shapes, strides, types and attributes. */
    bool (*supports)(const struct mdl_model *m, const struct mdl_op *op);

    /* The size of the packed weights, and the function that writes them. NULL: this primitive packs
     * nothing. pack() is called once, at load, in any thread. */
    size_t (*packed_bytes)(const struct mdl_model *m, const struct mdl_op *op);
    void (*pack)(const struct mdl_model *m, const struct mdl_op *op, void *dst);

    /**
     * prepare() - makes the library objects that run() needs; NULL: it needs none
     * @packed: [packed_bytes()]; if there is no pack(), the first call writes them
     * @p: owned by the caller, {0} before the first call
     *
     * The first call is for width 1, after pack(). Later calls come before the first run of a team
     * of another width, possibly while other teams run the op. They add what @width needs to
     * p->object, which all teams share. Threads: any, one at a time. Blocks, allocates.
     * Return: 0, -ENOMEM, -EOPNOTSUPP (the library cannot run the op after all). If the first call
     * fails, this primitive cannot run the op. If a later call fails, it still can, with fewer
     * members of the team.
     */
    int (*prepare)(const struct mdl_model *m, const struct mdl_op *op, void *packed, size_t width,
                   struct krn_prepared *p);
    /* Frees p->object; accepts {0}. No team may be running the op. */
    void (*release)(struct krn_prepared *p);

    /* Bytes of scratch for a team of @width; NULL: none. Its contents are undefined when run()
     * starts. */
    size_t (*scratch_bytes)(const struct mdl_model *m, const struct mdl_op *op, size_t width);

    /* Return: whether run() can read an image in place of in[0], with the same result, bit for bit,
     * as after krn_preprocess(). NULL: never. */
    bool (*from_image)(const struct mdl_model *m, const struct mdl_op *op);

    /* Return: whether run() can compute several frames at once, so that it reads the weights once
     * for all of them. Input 0 and output 0 are then flat images (krn_img_flat()) of one batch.
     * NULL: never. */
    bool (*frames_at_once)(const struct mdl_model *m, const struct mdl_op *op);
    /* Bytes of scratch for a team of @width and up to @frames frames at once; NULL: as for one. */
    size_t (*frames_scratch_bytes)(const struct mdl_model *m, const struct mdl_op *op, size_t width,
                                   size_t frames);

    /* Runs the whole op, epilogue included, sharing the work among the team by krn_parallel().
     * Threads: the team's leader. Never allocates, cannot fail. */
    void (*run)(const struct krn_call *c);
};

/** krn_primitives() - Return: the table, in static order of preference; immutable. Threads: any. */
const struct krn_primitive *krn_primitives(size_t *ret_count);

/**
 * krn_usable() - Return: whether primitive @v can run op @op of @m on this CPU
 *
 * A FUSED primitive must be able to run op and op + 1 together: nothing else reads the value
 * between them, that value is not an output of the model, and the second op does not overwrite what
 * the first still reads. Only the reference runs an op with an empty input.
 * Threads: any.
 */
bool krn_usable(const struct krn_primitive *v, const struct mdl_model *m, size_t op);

/** krn_writes_nothing() - Return: whether no output of op @op has elements, so that it need not
 * run. Threads: any. */
bool krn_writes_nothing(const struct mdl_model *m, size_t op);
