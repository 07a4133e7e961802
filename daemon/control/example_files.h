/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/control/example_files.h - the examples sent with a call
 *
 * The daemon often may not read the user's folder, so the client sends the files: a sealed memfd
 * holds their bytes one after the other, and the parameter "examples" their names and sizes
 * ([{name, bytes}]).
 */
#pragma once

#include "daemon/control/control.h"
#include "kernels/int8cal/examples.h"

#define DMN_EXAMPLES_BYTES_MAX (2ull << 30)

struct dmn_examples {
    struct krn_examples set; /* borrows from the map */
    void *map;
    size_t map_bytes;
};

/** dmn_examples_take() - takes the examples of @c. Return: owned; NULL: the call was answered.
 * Threads: the loop thread. */
struct dmn_examples *dmn_examples_take(struct dmn_call *c);
/** dmn_examples_free() - takes NULL. Return: NULL. Threads: any. */
struct dmn_examples *dmn_examples_free(struct dmn_examples *e);
