/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/control/swap_call.h - a call that is answered when a hot swap has ended
 *
 * For Optimise, Quantise, and a Load of files that changed. Threads: the loop thread.
 */
#pragma once

#include <stddef.h>

#include "daemon/control/example_files.h"
#include "daemon/control/methods.h"
#include "daemon/models/hot_swap.h"

/* The first member of what a method keeps in dmn_hot_swap.of. */
struct dmn_swap_call {
    struct dmn_call *call;
    struct dmn_examples *examples; /* owned; NULL: none */
};

/**
 * dmn_swap_call_new() - prepares a hot swap of @m for call @c
 *
 * @bytes: of the method's struct, which starts with a struct dmn_swap_call. It is zeroed, has its
 * `call` set, and belongs to the hot swap's end(), which the method must set.
 *
 * Sets failed(), which answers the call. Return: NULL: not possible now, and the call was answered.
 */
struct dmn_hot_swap *dmn_swap_call_new(struct dmn_call *c, struct dmn_model *m,
                                       enum dmn_cause cause, size_t bytes);
