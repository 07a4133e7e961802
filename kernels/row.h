/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/row.h - one row made ready for one op: its packed weights and its library's objects; for
 * kernels/ only
 */
#pragma once

#include "kernels/kernels.h"
#include "kernels/pages.h"

struct krn_row {
    const struct krn_variant *variant;
    bool ready;
    size_t users;   /* teams that may run it */
    uint64_t nodes; /* NUMA nodes that its weights are put on, a bit each; 0: not known */
    struct krn_pages packed;
    struct krn_prepared prepared;
};

/** krn_row_packed_bytes() - that row->variant packs for op @op. */
size_t krn_row_packed_bytes(const struct krn_row *row, const struct mdl_model *m, size_t op);

/**
 * krn_row_ready() - packs op @op for row->variant and makes the objects of a team of @width; of a
 * row that is ready, only the latter
 * Reads the model's file. Threads: one at a time for a row, also while others run it. Return: 0,
 * -ENOMEM, -EOPNOTSUPP (the row cannot run the op after all; nothing is left behind).
 */
int krn_row_ready(struct krn_row *row, const struct mdl_model *m, size_t op, size_t width);
/** krn_row_release() - gives back what krn_row_ready() made; the variant and its place stay. */
void krn_row_release(struct krn_row *row);
/** krn_row_bytes() - of memory that a ready row holds. */
size_t krn_row_bytes(const struct krn_row *row);

/**
 * krn_row_consts() - copies the constants that @v reads for op @op at run time and whose bytes are
 * not aligned to their type
 * @copies: [storage_count], aligned copies, each owned by the caller (free()); *@bytes grows by
 * what was copied. Return: 0, -ENOMEM.
 */
int krn_row_consts(const struct krn_variant *v, const struct mdl_model *m, size_t op, void **copies,
                   size_t *bytes);

/** krn_row_scratch_bytes() - what a team of @width needs to run @v on op @op, changes of form
 * included; a multiple of 64 where there are any. */
size_t krn_row_scratch_bytes(const struct krn_variant *v, const struct mdl_model *m, size_t op,
                             size_t width);

struct krn_row_laps {
    uint64_t in_ns, run_ns, out_ns; /* into planes, the row, from planes */
};

/* One op of one frame; all borrowed. */
struct krn_row_run {
    const struct mdl_model *m;
    size_t op;
    void *const *copies; /* krn_row_consts() */
    const struct krn_mem *mem;
    const struct krn_exec *exec;
    /* of rows of the planes form: input 0 lies as planes, output 0 is to be left as planes; else
     * they are converted from and to what the model lays out */
    bool in_planes, out_planes;
    struct krn_row_laps *laps; /* written; NULL: no clock is read */
};

/** krn_row_run() - runs a ready row. Threads: the team's leader. */
void krn_row_run(const struct krn_row *row, const struct krn_row_run *r);
