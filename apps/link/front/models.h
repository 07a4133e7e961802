/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/link/front/models.h - which models the front's clients may open, and their tensors
 *
 * Threads: the front's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/boards/board_state.h"

/* The tensors of a model's frames. Comparable by memcmp(). */
struct front_format {
    size_t input_count, output_count, input_bytes, output_bytes;
    struct brd_tensor input[BRD_TENSORS_MAX], output[BRD_TENSORS_MAX];
};
struct front_model {
    char name[BRD_CONTENT_BYTES];
    uint32_t depth; /* frames that keep its boards busy */
    bool pictures;  /* it takes them, too */
    struct front_format format;
};
struct front_list {
    size_t count;
    struct front_model model[BRD_ROUTES_MAX];
};

/** front_list_set() - the models of the routes that have hops, and tensors that make sense. */
void front_list_set(struct front_list *l, const struct brd_routes *r);
/** front_list_find() - @name "": the first. Return: NULL: no such model. */
const struct front_model *front_list_find(const struct front_list *l, const char *name);
