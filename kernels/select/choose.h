/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/select/choose.h - chooses primitives from measured times
 *
 * The nodes of the path (kernels/select/path.h) are the primitives that were timed; FUSED ones span
 * two ops. Values have two layouts: the model's and NCHW (kernels/common/layout.h). If a value
 * between two ops may stay in NCHW, the edge costs a conversion only if the layouts differ;
 * elsewhere an NCHW primitive always pays for its conversions. A plan that cuts where a value stays
 * in NCHW pays for both conversions.
 */
#pragma once

#include "kernels/select/measure.h"
#include "kernels/select/path.h"

enum krn_objective { KRN_LATENCY, KRN_MEMORY };

struct krn_choose_options {
    struct krn_path_options path;
    enum krn_objective objective;
    /* LATENCY: limit for all primitives of a plan of one stage; 0: none */
    size_t packed_bytes_max;
    bool exact; /* no INEXACT primitive */
    /* krn_choose_front(): weighs INEXACT ops instead of packed bytes */
    bool front_inexact;
};

struct krn_chosen {
    struct krn_choice choice; /* owned; kind is empty */
    double *op_ns;            /* [op_count], owned; a pair's time is split by its ops' own times; a
                               * conversion counts for the NCHW op */
    double *op_sigma_ns;      /* [op_count], owned; standard uncertainty of op_ns */
    double *op_lose_ns;       /* [op_count], owned; what another choice would gain, on average, if
                               * all times were known; 0 unless the path is the shortest */
    double ns;                /* of one frame, with layout conversions */
    size_t packed_bytes;      /* of one frame's primitives */
    size_t inexact;           /* ops that an INEXACT primitive runs */
    size_t states;            /* visited by the search */
};
#define KRN_CHOSEN_NULL ((struct krn_chosen){0})

/** krn_choose() - Return: 0, -EINVAL (invalid times), -ENOMEM, -ENOSPC (no choice stays within
 * packed_bytes_max). */
int krn_choose(const struct krn_times *t, const struct krn_choose_options *o,
               struct krn_chosen *ret);

/** krn_choose_by() - times a choice as it is. Return: 0, -ENOMEM; KRN_E_UNTIMED: a primitive of it
 * has no time. */
enum { KRN_E_UNTIMED = 1 };
int krn_choose_by(const struct krn_times *t, const struct krn_choice *choice,
                  struct krn_chosen *ret);

/** krn_chosen_doubt() - Return: the share of its time that a choice may lose. */
double krn_chosen_doubt(const struct krn_chosen *c);
/** krn_chosen_unsure() - sets @ret [op_count] for the ops that a choice may lose most by. Without
 * them it would lose less than @share of its time. Return: how many. */
size_t krn_chosen_unsure(const struct krn_chosen *c, double share, bool *ret);
/** krn_chosen_beats() - Return: @c is faster than @now by more than the standard uncertainty of the
 * ops in which they differ. */
bool krn_chosen_beats(const struct krn_chosen *c, const struct krn_chosen *now);

/** krn_choose_front() - finds the Pareto-optimal choices in latency and packed bytes, fastest
 * first.
 * @ret: [@max]. Return: as krn_choose(). */
int krn_choose_front(const struct krn_times *t, const struct krn_choose_options *o, size_t max,
                     struct krn_chosen *ret, size_t *ret_count);

void krn_chosen_deinit(struct krn_chosen *c);
