/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/segment/cut.h - the parts of a cut; for model/segment/ alone
 *
 * border.c finds what is alive at a border, homes.c decides where each storage of the whole model
 * lies in the segment, cut.c makes the segment, cut_place.c its arena.
 */
#pragma once

#include <setjmp.h>

#include "model/common/private.h"
#include "model/segment/segment.h"

/* Where a storage of the whole model lies in the segment, after its front border. */
enum mdl_place {
    MDL_PLACE_NONE,   /* nowhere: no op of the segment uses it */
    MDL_PLACE_CONST,  /* it is a constant */
    MDL_PLACE_ARENA,  /* in the arena */
    MDL_PLACE_INPUT,  /* it is an input, and stays unchanged */
    MDL_PLACE_OUTPUT, /* it is an output */
};

struct mdl_use {
    enum mdl_place place;
    bool used; /* an op of the segment uses it */
    /* It begins as an input that no op may overwrite: the op (of the whole) that writes it as a
     * whole, from which on `place` holds; before, it is the input. MDL_NONE: `place` always
     * holds. */
    size_t split_op;
    bool copy_in;       /* its tensors at the front border are copied into it first */
    bool copy_out;      /* its tensors at the back border are copied out of it last */
    bool passes_by;     /* its front tensors are copied to the outputs, and nothing else */
    size_t before, now; /* cut.c: storages of the segment until split_op, and else; or MDL_NONE */
};

struct mdl_cut {
    const struct mdl_model *whole;
    size_t first_op, end_op; /* of the whole: [first_op, end_op) */
    struct mdl_border front, back;
    struct mdl_use *uses; /* [whole->storage_count], owned */
    /* being made: */
    struct mdl_model *m; /* the segment, owned until it is done */
    struct mdl_pool *pool;
    jmp_buf short_of_memory; /* cut.c: where that goes on */
    size_t copies_in;        /* ops before those of the whole */
    size_t *before, *now;    /* [whole->tensor_count], owned: the segment's tensors, or MDL_NONE */
};

/** mdl_fills() - Return: whether @t is all of its storage in @m, without gaps. */
bool mdl_fills(const struct mdl_model *m, const struct mdl_tensor *t);
/** mdl_same_place() - Return: whether both are the same elements of the same storage. */
bool mdl_same_place(const struct mdl_tensor *a, const struct mdl_tensor *b);
/** mdl_memory_order() - lists the dims from outer to inner, as the strides have them. */
void mdl_memory_order(size_t rank, const size_t *dim, const ptrdiff_t *stride,
                      size_t ret_order[MDL_RANK_MAX]);

/** mdl_segment_check_leaves() - Return: 0 if all leaves that the segment needs are in the file;
 * -EBADMSG, with @error; -ENOMEM. */
int mdl_segment_check_leaves(const struct mdl_model *whole, size_t first, size_t last, char *error);

/** mdl_cut_place() - sets the lifetimes of the segment's storages, the place of images, and the
 * arena. @limit: 0: none. Return: 0, -E2BIG with @error, -ENOMEM. */
int mdl_cut_place(struct mdl_cut *cut, size_t limit, char *error);
/** mdl_cut_homes() - makes cut->uses from ops and borders. Return: 0, -ENOMEM. */
int mdl_cut_homes(struct mdl_cut *cut);
