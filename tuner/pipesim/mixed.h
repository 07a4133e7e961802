/* SPDX-License-Identifier: Apache-2.0 */
/** tuner/pipesim/mixed.h - several networks on one machine: their plan, what is admitted of it, and
 * what a simulation shows */
#pragma once

#include "tuner/pipesim/subject.h"
#include "tuner/solve/promise.h"

struct psim_mixed {
    size_t count;
    struct psim_case cases[TUN_MIX_MAX]; /* [count], owned */
    struct tun_wish wishes[TUN_MIX_MAX]; /* of the cases */
    uint8_t *cut_most[TUN_MIX_MAX];      /* of the wishes; owned; NULL: none is cut */
    struct tun_promise plan;             /* owned */
};

void psim_mixed_deinit(struct psim_mixed *x);

/** psim_mixed_json() - plans and simulates as the options say. @ret: as pipesim(1) has it, owned.
 * Return: 0, or an exit code. */
int psim_mixed_json(struct psim_mixed *x, const struct psim_options *o, json_t **ret);
