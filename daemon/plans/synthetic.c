/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/feed.h"

#include "base.h"
#include "daemon/models.h"

/* A client between two frames is still there. */
#define IDLE_NS (20 * BASE_NS_PER_MS)
#define IDLE_PERIODS 4u

int dmn_feed_init(struct dmn_feed *f, const struct dmn_model *m)
{
    *f = (struct dmn_feed){.places = base_min(pl_frame_count(m->pipe), (size_t)DMN_FEED_MAX)};
    f->input = calloc(1, base_align_up(m->input_bytes, 64) + 64);
    f->outputs = calloc(f->places, base_align_up(m->output_bytes, 64) + 64);
    if (!f->input || !f->outputs) {
        dmn_feed_deinit(f);
        return -ENOMEM;
    }
    return 0;
}

void dmn_feed_deinit(struct dmn_feed *f)
{
    free(f->input);
    free(f->outputs);
    *f = (struct dmn_feed){0};
}

bool dmn_feed_idle(const struct dmn_model *m, uint64_t now_ns)
{
    uint64_t moment = base_max(IDLE_NS, IDLE_PERIODS * m->period_ns);

    return m->running == 0 && m->admission.waiting == 0 &&
           (m->stats.last_ns == 0 || now_ns > m->stats.last_ns + moment);
}

static bool submit(struct dmn_feed *f, struct dmn_model *m)
{
    struct pl_frame *frame = pl_frame_get(m->pipe);
    size_t place = 0;

    if (!frame) {
        return false;
    }
    while (f->taken[place]) {
        place++;
    }
    frame->owner = NULL;
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

void dmn_feed_fill(struct dmn_feed *f, struct dmn_model *m)
{
    size_t wanted = base_min(f->places, pl_depth(m->pipe));

    if (!dmn_feed_idle(m, base_now_ns())) {
        return;
    }
    while (f->outstanding < wanted && submit(f, m)) {
    }
}

void dmn_feed_back(struct dmn_feed *f, const struct pl_frame *frame)
{
    f->taken[frame->tag] = false;
    f->outstanding--;
}
