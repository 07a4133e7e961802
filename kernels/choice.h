/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/choice.h - which row runs each op: the rows that can, the static preference, and choices
 * as plain data
 *
 * A choice has a row for every op alone, since a plan may cut anywhere, and for some ops a FUSED
 * row that runs the next op too where both are asked for. Fused pairs never overlap.
 */
#pragma once

#include "kernels/kernels.h"

#define KRN_KIND_NAME_MAX 24u

struct krn_choice {
    char kind[KRN_KIND_NAME_MAX]; /* of cores it is for */
    size_t op_count;
    const struct krn_variant **own;   /* [op_count], owned; the rows are of krn_variants() */
    const struct krn_variant **fused; /* [op_count], owned; NULL: run alone */
};
#define KRN_CHOICE_NULL ((struct krn_choice){0})

/** krn_choice_init() - room for @op_count ops, nothing chosen. Return: 0, -ENOMEM. */
int krn_choice_init(struct krn_choice *c, size_t op_count);
void krn_choice_deinit(struct krn_choice *c);
/** krn_choice_copy() - Return: 0, -ENOMEM. */
int krn_choice_copy(const struct krn_choice *from, struct krn_choice *ret);
/** krn_choice_prefer() - the static preference: for each op, and for each pair, the first row that
 * krn_row_next() tells; an op that no row can run is left without one. Return: 0, -ENOMEM. */
int krn_choice_prefer(const struct mdl_model *m, const char *only, struct krn_choice *ret);

/**
 * krn_row_next() - rows that can run op @op (FUSED ones: with the next) in order of preference
 * @only: as krn_net_new() has it: rows that it names come first, INEXACT ones only then, FUSED ones
 * only then unless it is NULL. @after: NULL: the first. Return: the next row, NULL: none is left.
 */
const struct krn_variant *krn_row_next(const struct mdl_model *m, size_t op, bool fused,
                                       const char *only, const struct krn_variant *after);
/** krn_row_named() - does its name hold one of the comma-separated parts of @only? */
bool krn_row_named(const struct krn_variant *v, const char *only);
/** krn_row_find() - the row of that very name, or NULL. */
const struct krn_variant *krn_row_find(const char *name);
