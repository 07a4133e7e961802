/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/kernels.h - a model made executable: a primitive for every op, weights packed once, run
 * by any team
 *
 * A krn_net is immutable after krn_net_new() and shared read-only by all teams. Everything a run
 * needs beside it is passed in: the frame's memory and the team's means (threads, scratch). So any
 * team can run any op of any frame.
 */
#pragma once

#include <pthreadpool.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/model.h"

/* CPU features a variant may need; krn_cpu_features() says what is there. */
enum krn_cpu {
    KRN_CPU_AVX2 = 1u << 0,   /* AVX2 and FMA */
    KRN_CPU_AVX512 = 1u << 1, /* F, BW, DQ, VL */
    KRN_CPU_NEON = 1u << 2,
    KRN_CPU_AVXVNNI = 1u << 3,    /* VEX-encoded dot products of bytes */
    KRN_CPU_AVX512VNNI = 1u << 4, /* the same on 512 bits */
    KRN_CPU_DOTPROD = 1u << 5,    /* of Arm */
};
uint32_t krn_cpu_features(void);

/* The memory of one frame. */
struct krn_image;
struct krn_mem {
    uint8_t *arena;            /* model.arena_bytes, 64-byte aligned */
    const void *const *inputs; /* model.input_count buffers, row-major, any alignment */
    void *const *outputs;      /* model.output_count buffers, row-major, any alignment */
    /* what input 0 is made from, or NULL: it is given. inputs[0] is then the arena's room for it:
     * arena + its storage's offset. Borrowed for the run. */
    const struct krn_image *image;
};

/* The means of one team. pool == NULL means width 1: the caller's thread alone. */
struct krn_exec {
    pthreadpool_t pool;
    size_t width;
    void *scratch; /* krn_net_scratch_bytes(net, width), 64-byte aligned */
    size_t kind;   /* whose rows are run: 0..krn_net_kinds() - 1 */
    /* Ops that this team runs of each frame, in one call of krn_net_run_ops() or, in order, in
     * several, so that a value may stay as planes from one call to the next. {0, 0}: those of each
     * call by itself. */
    size_t first_op, last_op;
};

/* What a primitive's run function gets; in[] and out[] are element 0 of each tensor (offset
 * applied). */
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
    /* FUSED rows: the call of op + 1, whose in[0] is this call's out[0] and is never written; its
     * packed is NULL (what the row packed for both is in this call). Else NULL. */
    const struct krn_call *next;
    /* NULL, or what to read in place of in[0], where from_image() allows it: an image of the width
     * and height of that tensor, to be normalised as model.preproc says */
    const struct krn_image *image;
};

/* What a row keeps beside its packed weights: objects of a library. */
struct krn_prepared {
    void *object; /* owned; NULL: nothing yet */
    size_t bytes; /* that it holds by itself, as far as can be told */
};

/**
 * struct krn_variant - one primitive: library, algorithm, data type, layout
 *
 * All variants stand in one table (krn_variants()); dispatch, tests and benches walk it. The
 * reference of an op kind is its last row, supports everything that the model compiler emits for
 * that kind, and is the oracle of the others.
 */
struct krn_variant {
    const char
        *name; /* "<kind>_<dtype>_<layout>__<library or isa>", e.g. "conv_f32_nhwc__blas_im2row" */
    enum mdl_op_kind kind;
    uint32_t needs; /* enum krn_cpu bits */
    bool reference;
    /* the row runs op and op[1] as one, so that what lies between never leaves the cache. Asked and
     * run only where op[1] is there, is the only reader of op's result, and that is no output of
     * the model; a plan that cuts between the two runs them by rows of their own. */
    bool fused;
    /* rounds more than f32 does (bf16 inside): only run where it is asked for by name */
    bool inexact;
    /* reads in[0] and writes out[0] as channel planes, [N][C][H][W], dense, whatever strides those
     * tensors have, which are of images that krn_img_of() takes; see kernels/form.h. Never of FUSED
     * rows, nor where the result lies in the memory of input 0. */
    bool planes_in, planes_out;
    /* can this op be run: shapes, strides, types, attributes */
    bool (*supports)(const struct mdl_model *m, const struct mdl_op *op);
    /* packed weights; NULL where the variant packs nothing. pack() is called once, at load, any
     * thread. */
    size_t (*packed_bytes)(const struct mdl_model *m, const struct mdl_op *op);
    void (*pack)(const struct mdl_model *m, const struct mdl_op *op, void *dst);
    /* Objects of a library that run() needs, or NULL. Called for width 1, after pack() or, where
     * there is none, to write the packed_bytes() at @packed itself; then, reading those, before the
     * first run of a team of another width, also while others run the op. Makes p->object at the
     * first call and what @width needs inside it, which all teams share. Any thread; blocks,
     * allocates. Return: 0, -ENOMEM, -EOPNOTSUPP (the library cannot do it after all). Where it
     * fails at the first call the row cannot run the op; after a later failure it can, with less of
     * the team. */
    int (*prepare)(const struct mdl_model *m, const struct mdl_op *op, void *packed, size_t width,
                   struct krn_prepared *p);
    void (*release)(struct krn_prepared *p); /* accepts {0}; no run is under way */
    /* scratch for a team of @width, or NULL for none; contents are undefined at the start of run()
     */
    size_t (*scratch_bytes)(const struct mdl_model *m, const struct mdl_op *op, size_t width);
    /* can run() be given an image in place of in[0]; NULL: never. It gives the same bits as it does
     * after krn_preprocess() */
    bool (*from_image)(const struct mdl_model *m, const struct mdl_op *op);
    /* runs the whole op, epilogue included, sharing its work among the team by krn_parallel() */
    void (*run)(const struct krn_call *c);
};

const struct krn_variant *krn_variants(size_t *ret_count);

/**
 * krn_usable() - can row @v run op @op of @m on this CPU? For a FUSED row: op and op + 1 together,
 * which takes that nobody else reads what lies between them, that it is no output of the model, and
 * that what the second writes lies nowhere that the first still reads. An op with an empty input
 * is left to its reference. Threads: any.
 */
bool krn_usable(const struct krn_variant *v, const struct mdl_model *m, size_t op);

/**
 * krn_parallel() - runs fn(arg, part) for part = 0..parts-1 on the team; returns when all are done
 * Each part runs exactly once; with parts == width each member usually gets one, and a part may use
 * the part-th share of the scratch exclusively. Return: nothing.
 */
void krn_parallel(pthreadpool_t pool, size_t parts, void (*fn)(void *arg, size_t part), void *arg);

/**
 * krn_parallel_yield() - whether the members of the team that this thread leads give up their cores
 * at the end of every krn_parallel() (true), or spin for some milliseconds in wait of the next one
 * (false, the default). Spinning is faster on cores that the team has for itself, and far slower on
 * cores that it shares with other teams or programs. Threads: a team's leader, about itself.
 */
void krn_parallel_yield(bool yield);

/* Which rows of @n (in steps of @step) part @part of @parts works on. */
struct krn_range {
    size_t begin, end;
};
struct krn_range krn_share(size_t n, size_t step, size_t part, size_t parts);

/**
 * krn_pack_threads() - how many threads may pack weights at the same time when this thread makes a
 * net: 0 and 1 (the default) are this one alone. For loads while nothing serves. Threads: any,
 * about itself.
 */
void krn_pack_threads(size_t count);

struct krn_net;

/**
 * krn_net_new() - choose a variant per op, pack its weights
 * @m: borrowed until krn_net_free()
 * @only: NULL, or a comma-separated list of substrings: among the usable variants of an op, the
 * first whose name holds one of them is taken, where there is one ("__ref" runs everything on the
 * reference, FUSED rows are then taken only where they are named, INEXACT ones always) Packs what
 * any range of ops needs, so that a net can be run without krn_net_join(). Lets go of
 * the file's pages behind what is packed. A constant that a fast variant reads at run time
 * (not one it packs) is copied once if its bytes in the file are not aligned to their type;
 * references read any address. An op with an empty input runs on its reference, one with an empty
 * output is skipped. Return: 0, -ENOMEM, -EOPNOTSUPP (@ret_error says which op).
 */
int krn_net_new(const struct mdl_model *m, const char *only, char ret_error[MDL_ERROR_MAX],
                struct krn_net **ret);
/** krn_net_new_preferred() - the same for who joins: packs what a plan of one stage runs, and
 * leaves the rest to krn_net_join(). */
int krn_net_new_preferred(const struct mdl_model *m, const char *only,
                          char ret_error[MDL_ERROR_MAX], struct krn_net **ret);
struct krn_net *krn_net_free(struct krn_net *net);

#define KRN_KIND_MAX 16u
struct krn_choice; /* kernels/choice.h */

/**
 * krn_net_new_chosen() - the same by choices that were made before, one for each kind of cores
 * @choices: [@kind_count], read during the call. What kinds have in common is packed once.
 * Packs what a plan of one stage runs on each kind; what another plan needs beside that is packed
 * by krn_net_join(). Return: 0, -ENOMEM, -EINVAL (a choice of another model, too many kinds),
 * -EOPNOTSUPP (a chosen row cannot run its op; @ret_error says which).
 */
int krn_net_new_chosen(const struct mdl_model *m, const struct krn_choice *choices,
                       size_t kind_count, char ret_error[MDL_ERROR_MAX], struct krn_net **ret);
size_t krn_net_kinds(const struct krn_net *net);
/** krn_net_kind() - the kind whose choice has that name, else 0. */
size_t krn_net_kind(const struct krn_net *net, const char *name);

/**
 * krn_net_join() - a team of @width on cores of @kind is to run ops @first..@last: its rows are
 * made ready and stay so until krn_net_leave() by as many calls
 * @ret_scratch_bytes: what its scratch has to have, a multiple of 64. Packing anew reads the
 * model's file. Threads: one at a time, also while teams run; blocks, allocates. Return: 0,
 * -ENOMEM, -EOPNOTSUPP.
 */
int krn_net_join(const struct krn_net *net, size_t kind, size_t first, size_t last, size_t width,
                 size_t *ret_scratch_bytes);
void krn_net_leave(const struct krn_net *net, size_t kind, size_t first, size_t last);
/** krn_net_trim() - gives back what is ready for nobody that joined, and pages of the model's file.
 * Threads: as krn_net_join(). */
void krn_net_trim(const struct krn_net *net);
/**
 * krn_net_place() - on which NUMA nodes the cores are that run ops @first..@last
 * @nodes: [krn_net_kinds()], of the teams of each kind a bit for every node; 0: none runs them, or
 * not known. The packed weights are put there, those that are packed later, too: on that node if it
 * is one, page by page in turns on several. Where the system does not do that they stay where they
 * are. What a library packs by itself is not moved. Threads: as krn_net_join(); blocks.
 */
void krn_net_place(const struct krn_net *net, size_t first, size_t last, const uint64_t *nodes);
/** krn_net_nodes() - what was asked for op @op's weights on cores of @kind, run alone; 0: nothing.
 */
uint64_t krn_net_nodes(const struct krn_net *net, size_t kind, size_t op);

const struct mdl_model *krn_net_model(const struct krn_net *net);
/** krn_net_row() - the row that runs @op alone on cores of @kind. krn_net_row_fused() - the row
 * that runs @op and @op + 1 there where both are asked for, or NULL. krn_net_variant(),
 * krn_net_fused()
 * - those of kind 0. */
const struct krn_variant *krn_net_row(const struct krn_net *net, size_t kind, size_t op);
const struct krn_variant *krn_net_row_fused(const struct krn_net *net, size_t kind, size_t op);
const struct krn_variant *krn_net_variant(const struct krn_net *net, size_t op);
const struct krn_variant *krn_net_fused(const struct krn_net *net, size_t op);
size_t krn_net_packed_bytes(const struct krn_net *net);
/** scratch that any row that is ready needs for a team of @width, in bytes, multiple of 64; for who
 * runs a net without krn_net_join(), which a net by krn_net_new() allows. Asked
 * before its first run: libraries' objects for its width are made here (blocks, allocates). */
size_t krn_net_scratch_bytes(const struct krn_net *net, size_t width);

/** krn_net_run_ops() - runs ops @first..@last (inclusive) of one frame; a pair that has a FUSED row
 * is run by it where both ops are in the range. With mem->image, that takes the place of input 0
 * and of its entry_op (see struct mdl_io): the range that has that op, or op 0 where there is none,
 * converts it by krn_preprocess(), or hands it to the row that reads it. Threads: the team's
 * leader; never allocates. */
void krn_net_run_ops(const struct krn_net *net, size_t first, size_t last,
                     const struct krn_mem *mem, const struct krn_exec *exec);

/** krn_tensor_ptr() - element 0 of tensor @t in this frame. */
void *krn_tensor_ptr(const struct mdl_model *m, size_t t, const struct krn_mem *mem);

/** krn_const_eval() - a mdl_const_eval_fn: runs the model's single op on the reference. */
int krn_const_eval(const struct mdl_model *m, void *arena);

/* An image as a client sends it. */
enum krn_pixfmt {
    KRN_PIX_RGB24,
    KRN_PIX_BGR24,
    KRN_PIX_GRAY8,
    KRN_PIX_NV12,
    KRN_PIX_YUYV,
    KRN_PIX_COUNT
};
struct krn_image {
    enum krn_pixfmt format;
    uint32_t width, height; /* NV12, YUYV: even */
    uint32_t stride; /* bytes per row of the first plane; NV12: its UV plane follows at stride *
                        height, same stride */
    const uint8_t *data;
};
/** krn_image_bytes() - bytes that an image of this shape occupies, or 0 for an impossible one
 * (overflow, stride < row). */
size_t krn_image_bytes(const struct krn_image *img);

/**
 * krn_preprocess() - converts, resizes (bilinear, half-pixel centres, antialiased by area when
 * shrinking more than 2x) and normalises an image into input 0 of a model
 * @dst, @shape: destination element 0 and its tensor (f32 or u8; NCHW or NHWC meaning from @pre,
 * strides from the tensor)
 * @exec: rows are shared among the team; scratch from krn_preprocess_scratch_bytes() (preprocess.h;
 * part of krn_net_scratch_bytes) A model with one channel gets luma (BT.601). NV12 and YUYV are
 * BT.601 limited range. Threads: the team's leader; never allocates.
 */
void krn_preprocess(const struct krn_image *img, const struct mdl_preproc *pre,
                    const struct mdl_tensor *shape, void *dst, const struct krn_exec *exec);

/* kernels/blas_check.h holds krn_blas_check(): is OpenBLAS single-threaded, and which core should
 * it be told to be. */
