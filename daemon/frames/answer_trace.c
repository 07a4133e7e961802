/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/frames/answer_trace.h"

#include <endian.h>

/* Return: the trace knows it. */
static bool describe(struct dmn_stream *s)
{
    struct dmn_frames_trace *t = &s->peer->frames->trace;
    uint32_t name[sizeof(s->peer->base.client) / sizeof(uint32_t) + 1] = {0};
    size_t words = strlen(s->peer->base.client) / sizeof(uint32_t) + 1;

    if (s->trace_session == t->session) {
        return true;
    }
    if (!pl_trace_begin(t->ring, TRACE_STREAM, (uint32_t)(TRACE_STREAM_NAME + words))) {
        return false;
    }
    memcpy(name, s->peer->base.client, strlen(s->peer->base.client));
    s->trace_session = t->session;
    s->trace_track = ++t->streams;
    pl_trace_put(t->ring, s->trace_track);
    pl_trace_put(t->ring, s->base.id);
    pl_trace_put(t->ring, (uint32_t)s->peer->pid);
    for (size_t i = 0; i < words; i++) {
        pl_trace_put(t->ring, le32toh(name[i]));
    }
    pl_trace_end(t->ring);
    return true;
}

void dmn_trace_answered(struct dmn_stream *s, const struct dmn_record *r)
{
    struct pl_trace_ring *ring = s->peer->frames->trace.ring;

    if (!ring || !describe(s) || !pl_trace_begin(ring, TRACE_ANSWER, TRACE_ANSWER_WORDS)) {
        return;
    }
    pl_trace_put(ring, s->trace_track);
    pl_trace_put(ring, r->answer.status);
    pl_trace_put(ring, r->traced.pipeline);
    pl_trace_put(ring, r->traced.pipeline ? r->answer.epoch : 0);
    pl_trace_put64(ring, r->answer.frame);
    pl_trace_put64(ring, r->traced.number);
    pl_trace_put64(ring, r->arrival_ns);
    pl_trace_put64(ring, r->traced.admitted_ns);
    pl_trace_put64(ring, r->traced.done_ns);
    pl_trace_put64(ring, base_now_ns());
    pl_trace_end(ring);
}
