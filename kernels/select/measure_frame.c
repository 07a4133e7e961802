/* SPDX-License-Identifier: Apache-2.0 */

#include "base/base.h"
#include "kernels/select/measure_private.h"

static uint8_t *buffer(struct krn_measurement *r, const struct mdl_io *io)
{
    return r->buffers[r->buffer_count++] =
               aligned_alloc(64, base_align_up(base_max(io->bytes, (size_t)1), 64));
}

/* Values of a normalised image; indices and truths are zero. */
static void fill_input(const struct mdl_tensor *t, uint8_t *at, size_t bytes)
{
    uint32_t state = 12345;

    memset(at, 0, bytes);
    for (size_t i = 0; t->dtype == MDL_F32 && i < bytes / sizeof(float); i++) {
        float x;

        state = state * 1664525u + 1013904223u;
        x = (float)(state >> 8) / 8388608.0f - 1.0f;
        memcpy(at + i * sizeof(x), &x, sizeof(x));
    }
    for (size_t i = 0; t->dtype == MDL_U8 && i < bytes; i++) {
        state = state * 1664525u + 1013904223u;
        at[i] = (uint8_t)(state >> 24);
    }
}

int krn_measure_frame(struct krn_measurement *r)
{
    const struct mdl_model *m = r->m;
    size_t arena = base_align_up(base_max(m->arena_bytes, (size_t)64), 64);

    r->arena = aligned_alloc(64, arena);
    r->saved = aligned_alloc(64, arena);
    r->copies = calloc(m->storage_count + 1, sizeof(*r->copies));
    r->buffers = calloc(2 * (m->input_count + m->output_count) + 1, sizeof(*r->buffers));
    if (!r->arena || !r->saved || !r->copies || !r->buffers) {
        return -ENOMEM;
    }
    memset(r->arena, 0, arena);
    for (size_t i = 0; i < m->input_count; i++) {
        uint8_t *at = buffer(r, &m->inputs[i]);

        if (!at) {
            return -ENOMEM;
        }
        fill_input(&m->tensors[m->inputs[i].tensor], at, m->inputs[i].bytes);
    }
    for (size_t i = 0; i < m->output_count; i++) {
        if (!buffer(r, &m->outputs[i])) {
            return -ENOMEM;
        }
    }
    r->mem = (struct krn_mem){.arena = r->arena,
                              .inputs = (const void *const *)r->buffers,
                              .outputs = (void *const *)&r->buffers[m->input_count]};
    return 0;
}

void krn_measure_deinit(struct krn_measurement *r)
{
    for (size_t i = 0; r->candidates && i < r->candidate_count; i++) {
        krn_bound_release(&r->candidates[i].bound);
    }
    for (size_t i = 0; r->copies && i < r->m->storage_count; i++) {
        free(r->copies[i]);
    }
    for (size_t i = 0; r->buffers && i < r->buffer_count; i++) {
        free(r->buffers[i]);
    }
    free(r->copies);
    free(r->buffers);
    free(r->arena);
    free(r->saved);
    free(r->scratch);
    free(r->ops);
    free(r->candidates);
    free(r->stats);
}
