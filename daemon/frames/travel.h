/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/frames/travel.h - how a frame's tensors lie with the client, and how they lie here
 *
 * Models compute f32. A stream may have its f32 tensors travel as f16, IEEE binary16: they are
 * converted once, where frames enter and leave, so neither the pipeline nor other boards know of
 * it. f16 to f32 is exact; f32 to f16 rounds to nearest even, beyond its range to infinity. Other
 * tensors travel as they are. Both sides have their tensors back to back, each at a multiple of 64.
 *
 * Pure functions; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/model.h"
#include "pipeline/pipeline.h"

/* All inputs, or all outputs, of a frame. */
struct dmn_travel {
    bool converts; /* some travel as f16; else both sides are the same bytes */
    size_t count, here_bytes, there_bytes;
    struct dmn_travel_tensor {
        size_t here, there; /* offsets */
        size_t bytes;       /* here; with the client half of it if f16 */
        bool f16;
    } tensor[PL_FRAME_IO_MAX];
};

/** dmn_travel_plan() - @ios: @count inputs or outputs of @m     @here: their offsets
 *     @f16: f32 tensors travel as f16 */
void dmn_travel_plan(const struct mdl_model *m, const struct mdl_io *ios, size_t count,
                     const size_t *here, size_t here_bytes, bool f16, struct dmn_travel *ret);
/** dmn_travel_bytes() - Return: bytes of tensor @i with the client. */
static inline size_t dmn_travel_bytes(const struct dmn_travel *t, size_t i)
{
    return t->tensor[i].f16 ? t->tensor[i].bytes / 2 : t->tensor[i].bytes;
}
/** dmn_travel_in() - the client's @there_bytes at @there become @here_bytes at @here; apart. */
void dmn_travel_in(const struct dmn_travel *t, const uint8_t *there, uint8_t *here);
/** dmn_travel_out() - the reverse. */
void dmn_travel_out(const struct dmn_travel *t, const uint8_t *here, uint8_t *there);
