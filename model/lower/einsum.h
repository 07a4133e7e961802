/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/lower/einsum.h - the equation of Einsum, parsed; for model/lower/ only
 */
#pragma once

#include "model/lower/lowering.h"

/* Labels: letters, then the dims of an ellipsis, the last one being MDL_EINSUM_LABELS - 1. */
#define MDL_EINSUM_LETTERS 52u
#define MDL_EINSUM_LABELS (MDL_EINSUM_LETTERS + MDL_RANK_MAX)
#define MDL_EINSUM_OPERANDS 16u

/* A tensor whose dimension i is named label[i]. */
struct mdl_einsum_term {
    size_t value;
    size_t rank;
    unsigned char label[MDL_RANK_MAX];
};

struct mdl_einsum {
    size_t count;
    struct mdl_einsum_term in[MDL_EINSUM_OPERANDS]; /* a label may occur twice in one */
    struct mdl_einsum_term out;                     /* each label once; value is not set */
    size_t dim[MDL_EINSUM_LABELS];                  /* size of each label that occurs */
};

/** mdl_einsum_parse() - reads attribute equation for the node's inputs. Dims of one label must be
 * equal or 1. */
void mdl_einsum_parse(struct mdl_lower *l, struct mdl_einsum *ret);
