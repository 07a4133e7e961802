/* SPDX-License-Identifier: Apache-2.0 */
/* Frames for measuring, of the daemon's own making. */
#include "daemon/plans/retune_private.h"

/* A client that pauses between two frames still uses the model. */
#define IDLE_NS (20 * BASE_NS_PER_MS)
#define IDLE_PERIODS 4u

static void collected(struct dmn_frame_owner *owner, struct dmn_model *m, struct pl_frame *frame)
{
    struct dmn_synthetic *f = base_container_of(owner, struct dmn_synthetic, owner);

    f->taken[frame->tag] = false;
    f->outstanding--;
}

int dmn_synthetic_init(struct dmn_synthetic *f, const struct dmn_model *m)
{
    *f = (struct dmn_synthetic){.owner.collected = collected,
                                .places =
                                    base_min(pl_frame_count(m->pipe), (size_t)DMN_SYNTHETIC_MAX)};
    f->input = calloc(1, base_align_up(m->input_bytes, 64) + 64);
    f->outputs = calloc(f->places, base_align_up(m->output_bytes, 64) + 64);
    if (!f->input || !f->outputs) {
        dmn_synthetic_deinit(f);
        return -ENOMEM;
    }
    return 0;
}

void dmn_synthetic_deinit(struct dmn_synthetic *f)
{
    free(f->input);
    free(f->outputs);
    *f = (struct dmn_synthetic){0};
}

bool dmn_synthetic_idle(const struct dmn_model *m, uint64_t now_ns)
{
    uint64_t moment = base_max(IDLE_NS, IDLE_PERIODS * m->period_ns);

    return m->running == 0 && dmn_model_waiting(m) == 0 &&
           (m->stats.last_ns == 0 || now_ns > m->stats.last_ns + moment);
}

static bool submit(struct dmn_synthetic *f, struct dmn_model *m)
{
    struct pl_frame *frame = pl_frame_get(m->pipe);
    size_t place = 0;

    if (!frame) {
        return false;
    }
    while (f->taken[place]) {
        place++;
    }
    frame->owner = &f->owner;
    frame->tag = place;
    for (size_t i = 0; i < m->model->input_count; i++) {
        frame->inputs[i] = f->input + m->in_offset[i];
    }
    for (size_t i = 0; i < m->model->output_count; i++) {
        frame->outputs[i] =
            f->outputs + place * (base_align_up(m->output_bytes, 64) + 64) + m->out_offset[i];
    }
    if (pl_submit(m->pipe, frame) != 0) {
        pl_frame_put(m->pipe, frame);
        return false;
    }
    f->taken[place] = true;
    f->outstanding++;
    return true;
}

void dmn_synthetic_fill(struct dmn_synthetic *f, struct dmn_model *m)
{
    /* one more, as the loop may collect two before it fills again */
    size_t wanted = base_min(f->places, pl_depth(m->pipe) + 1);

    if (!dmn_synthetic_idle(m, base_now_ns())) {
        return;
    }
    while (f->outstanding < wanted && submit(f, m)) {
    }
}
