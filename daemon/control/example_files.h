/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/examples.h - the examples that come with a call
 *
 * The daemon often cannot read the folder that a user means, so their bytes are sent: a sealed
 * memfd beside the call, in which they lie one after the other, and their names and sizes in the
 * parameter "examples" ([{name, bytes}]).
 */
#pragma once

#include "daemon/control.h"
#include "kernels/int8cal/examples.h"

#define DMN_EXAMPLES_BYTES_MAX (2ull << 30)

struct dmn_examples {
    struct krn_examples set; /* borrows from the map */
    void *map;
    size_t map_bytes;
};

/** dmn_examples_take() - what came with @c. Return: owned; NULL: the call was answered. */
struct dmn_examples *dmn_examples_take(struct dmn_call *c);
/** dmn_examples_free() - Takes NULL. Return: NULL. Threads: any. */
struct dmn_examples *dmn_examples_free(struct dmn_examples *e);
