/* SPDX-License-Identifier: Apache-2.0 */
/** model/draft_output.h - the key `output` of a sidecar, by the row of a network in recipes.c */
#pragma once

#include "model/recipes.h"

/**
 * mdl_draft_output() - fills what the row leaves empty: names of outputs, strides, points, alphabet
 *
 * @folder: of the model's file, in which the characters of a reader may be, one a line
 * @ret_needs: what is missing, for people; set where the return is NULL
 *
 * Threads: any; blocks on files. Return: JSON in @pool; NULL: it cannot be decoded, or out of
 * memory.
 */
const char *mdl_draft_output(const struct mdl_recipe *r, const struct mdl_signs *s,
                             const struct mdl_match *match, const char *folder,
                             struct mdl_pool *pool, const char **ret_needs);
