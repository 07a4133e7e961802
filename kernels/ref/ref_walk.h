/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/ref/ref_walk.h - walks strided tensors of one shape together, element by element
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "model/values.h"

/* A walk over @shape in row-major order, with the element offsets of up to five operands. */
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
