/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/choice.h - which primitive runs each op: the usable primitives, their static order, and
 * choices as plain data
 *
 * A choice has an unfused primitive for every op, since a plan may cut anywhere. For some ops it
 * also has a FUSED primitive, which runs the op and the next one if both are in the range. Fused
 * pairs never overlap.
 */
#pragma once

#include "kernels/primitive.h"

#define KRN_KIND_NAME_MAX 24u

struct krn_choice {
    char kind[KRN_KIND_NAME_MAX]; /* the kind of cores that this choice is for */
    size_t op_count;
    /* [op_count], owned array of entries of krn_primitives() */
    const struct krn_primitive **own;
    const struct krn_primitive **fused; /* [op_count], owned; NULL: run alone */
};
#define KRN_CHOICE_NULL ((struct krn_choice){0})

/** krn_choice_init() - makes an empty choice for @op_count ops. Return: 0, -ENOMEM. */
int krn_choice_init(struct krn_choice *c, size_t op_count);
void krn_choice_deinit(struct krn_choice *c);
/** krn_choice_prefer() - chooses by static preference: for each op and each pair, the first
 * primitive that krn_primitive_next() returns. An op that no primitive can run stays without one.
 * Return: 0, -ENOMEM. */
int krn_choice_prefer(const struct mdl_model *m, const char *only, struct krn_choice *ret);

/**
 * krn_primitive_next() - lists the primitives that can run op @op (FUSED ones: ops @op and @op + 1)
 * in order of preference
 * @only: as in krn_net_new(): primitives that it names come first. INEXACT ones are listed only if
 * named; FUSED ones only if named or if @only is NULL. @after: the previous answer; NULL: start.
 * Return: the next primitive; NULL: no more.
 */
const struct krn_primitive *krn_primitive_next(const struct mdl_model *m, size_t op, bool fused,
                                               const char *only, const struct krn_primitive *after);
/** krn_primitive_named() - Return: whether its name contains one of the comma-separated parts of
 * @only. */
bool krn_primitive_named(const struct krn_primitive *v, const char *only);
/** krn_primitive_find() - Return: the primitive with exactly this name, or NULL. */
const struct krn_primitive *krn_primitive_find(const char *name);

/** krn_nchw_may_stay() - Return: whether the output of op @op is an f32 image that is dense at the
 * start of its storage in the arena, and only op @op + 1 reads it, as its input 0. It may stay
 * there in NCHW (kernels/common/layout.h). */
bool krn_nchw_may_stay(const struct mdl_model *m, size_t op);
