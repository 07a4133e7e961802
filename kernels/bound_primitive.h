/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/bound_primitive.h - a primitive prepared for one op, with its packed weights and library
 * objects; for kernels/ only
 */
#pragma once

#include "kernels/common/frame_mem.h"
#include "kernels/common/pages.h"
#include "kernels/common/parallel.h"
#include "kernels/primitive.h"

struct krn_shared;
struct krn_shelf;

struct krn_bound {
    const struct krn_primitive *primitive;
    struct krn_shelf *shelf;   /* of its net, borrowed; NULL: no net, its weights are not shared */
    struct krn_shared *shared; /* owned use of weights that packed points to; NULL: packed owns */
    bool ready;
    size_t users;   /* teams that may run it */
    uint64_t nodes; /* NUMA nodes that hold its weights, one bit each; 0: unknown */
    struct krn_pages packed;
    struct krn_prepared prepared;
};

/** krn_bound_packed_bytes() - Return: bytes that bound->primitive packs for op @op. */
size_t krn_bound_packed_bytes(const struct krn_bound *bound, const struct mdl_model *m, size_t op);

/** krn_bound_may_share() - Return: whether another net may have packed the same weights. Threads:
 * any. */
bool krn_bound_may_share(const struct krn_bound *bound, const struct mdl_model *m, size_t op);

/**
 * krn_bound_ready() - packs op @op for bound->primitive, unless that is done, and makes the library
 * objects for a team of @width
 * Reads the model's file. Threads: one at a time for each primitive, also while teams run it.
 * Return: 0, -ENOMEM, -EOPNOTSUPP (the primitive cannot run the op after all; nothing is left
 * behind).
 */
int krn_bound_ready(struct krn_bound *bound, const struct mdl_model *m, size_t op, size_t width);
/** krn_bound_release() - frees what krn_bound_ready() made; keeps the primitive and its reserved
 * place. */
void krn_bound_release(struct krn_bound *bound);
/** krn_bound_bytes() - Return: bytes of memory that a ready primitive holds. Weights that several
 * share count in equal parts. */
size_t krn_bound_bytes(const struct krn_bound *bound);

/**
 * krn_bound_consts() - copies the misaligned constants that @v reads for op @op at run time
 * @copies: [storage_count], aligned copies, each owned by the caller (free()); *@bytes grows by the
 * bytes copied. Return: 0, -ENOMEM.
 */
int krn_bound_consts(const struct krn_primitive *v, const struct mdl_model *m, size_t op,
                     void **copies, size_t *bytes);

/** krn_bound_scratch_bytes() - Return: scratch for a team of @width to run @v on op @op, layout
 * conversions included; a multiple of 64 if there are conversions. */
size_t krn_bound_scratch_bytes(const struct krn_primitive *v, const struct mdl_model *m, size_t op,
                               size_t width);

struct krn_bound_laps {
    uint64_t in_ns, run_ns, out_ns; /* conversion to NCHW, the primitive, conversion from NCHW */
};

/* One op of one frame; all borrowed. */
struct krn_bound_run {
    const struct mdl_model *m;
    size_t op;
    void *const *copies; /* krn_bound_consts(); NULL: none */
    const struct krn_mem *mem;
    const struct krn_exec *exec;
    /* for NCHW primitives: input 0 is already NCHW; output 0 shall stay NCHW. If false, the run
     * converts from or to the model's layout */
    bool in_nchw, out_nchw;
    struct krn_bound_laps *laps; /* written; NULL: the run does not read a clock */
};

/** krn_bound_frames_bytes() - Return: scratch for krn_bound_run_frames() to run @v on op @op for
 * @frames frames, a multiple of 64; 0: @v runs one frame at a time. */
size_t krn_bound_frames_bytes(const struct krn_primitive *v, const struct mdl_model *m, size_t op,
                              size_t width, size_t frames);

/** krn_bound_run_frames() - runs a ready primitive, which can, for @count frames at once
 * @r: r->mem is not read     @mems: [@count], at least 1
 * Threads: the team's leader. */
void krn_bound_run_frames(const struct krn_bound *bound, const struct krn_bound_run *r,
                          const struct krn_mem *const *mems, size_t count);

/** krn_bound_run() - runs a ready primitive. Threads: the team's leader. */
void krn_bound_run(const struct krn_bound *bound, const struct krn_bound_run *r);
