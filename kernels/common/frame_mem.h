/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/common/frame_mem.h - the memory of one frame, and where a tensor lies in it
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "model/model.h"

struct krn_image; /* kernels/image/image.h */

/* All of it is borrowed for the run. */
struct krn_mem {
    uint8_t *arena;            /* model.arena_bytes, 64-byte aligned */
    const void *const *inputs; /* [model.input_count], row-major, any alignment */
    void *const *outputs;      /* [model.output_count], row-major, any alignment */
    /* The image that input 0 is made from. inputs[0] then points to the arena's space for input 0:
     * arena + the offset of its storage. NULL: inputs[0] holds the tensor itself. */
    const struct krn_image *image;
    uint64_t *image_ns; /* the time of converting the image is added here; NULL: nobody asks */
};

/**
 * krn_tensor_ptr() - finds a tensor in a frame
 * @t: index of the tensor in @m
 *
 * Return: the address of its element 0; never NULL. A constant may have any alignment and must not
 * be written.
 * Threads: any.
 */
static inline void *krn_tensor_ptr(const struct mdl_model *m, size_t t, const struct krn_mem *mem)
{
    const struct mdl_tensor *tensor = &m->tensors[t];
    const struct mdl_storage *s = &m->storages[tensor->storage];
    const uint8_t *base = NULL;

    switch (s->home) {
    case MDL_HOME_ARENA:
        base = mem->arena + s->offset;
        break;
    case MDL_HOME_INPUT:
        base = mem->inputs[s->index];
        break;
    case MDL_HOME_OUTPUT:
        base = mem->outputs[s->index];
        break;
    case MDL_HOME_CONST:
        base = s->data;
        break;
    }
    return (uint8_t *)(uintptr_t)base + tensor->offset;
}
