/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/choose.h - from measured times to a choice of rows
 *
 * The nodes of the path (kernels/path.h) are the rows that were timed; FUSED ones span two ops.
 * Values have two forms, as the model lays them out and as planes (kernels/form.h). Between two ops
 * where a value may stay as planes, a change of form is what the edge costs; elsewhere a row of the
 * planes form always pays for its changes. A plan that cuts where a value stays pays for both.
 */
#pragma once

#include "kernels/measure.h"
#include "kernels/select/path.h"

enum krn_objective { KRN_LATENCY, KRN_MEMORY };

struct krn_choose_options {
    struct krn_path_options path;
    enum krn_objective objective;
    size_t packed_bytes_max; /* LATENCY: of all rows that a plan of one stage runs; 0: no bound */
    bool exact;              /* no INEXACT row */
    bool front_inexact;      /* krn_choose_front(): ops of INEXACT rows in place of packed bytes */
};

struct krn_chosen {
    struct krn_choice choice; /* owned; kind is empty */
    double *op_ns;            /* [op_count], owned; a pair's time by the shares of its ops alone;
                                 a change of form belongs to the op of the planes form */
    double ns;                /* of one frame, with changes of form */
    size_t packed_bytes;      /* of one frame's rows */
    size_t inexact;           /* ops that an INEXACT row runs */
    size_t states;            /* that the search looked at */
};
#define KRN_CHOSEN_NULL ((struct krn_chosen){0})

/** krn_choose() - Return: 0, -EINVAL (times that are none of a model), -ENOMEM, -ENOSPC (nothing
 * stays below packed_bytes_max). */
int krn_choose(const struct krn_times *t, const struct krn_choose_options *o,
               struct krn_chosen *ret);

/** krn_choose_front() - choices that are best in latency, packed bytes or both, the fastest first.
 * @ret: [@max]. Return: as krn_choose(). */
int krn_choose_front(const struct krn_times *t, const struct krn_choose_options *o, size_t max,
                     struct krn_chosen *ret, size_t *ret_count);

/** krn_choose_uniform() - every op by the fastest row whose name holds one of the parts of @only,
 * where there is one, and by the fastest of all where there is none: the shortest path of those.
 * Return: 0, -ENOMEM, -EINVAL (times that are none of a model). */
int krn_choose_uniform(const struct krn_times *t, const char *only, struct krn_chosen *ret);

void krn_chosen_deinit(struct krn_chosen *c);
