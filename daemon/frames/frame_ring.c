/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/frames/frame_ring.h"

#include <string.h>

#include "base.h"

static struct dmn_record *to_ring(struct dmn_stream *s, const struct ipc_header *h)
{
    struct dmn_record *r = s->free;

    s->free = r->next_free;
    dmn_record_reset(r, h, s->unanswered < s->credits);
    s->unanswered += r->has_credit;
    s->ring[s->tail++ & DMN_RING_MASK] = r;
    return r;
}

struct dmn_record *dmn_stream_take(struct dmn_stream *s, const struct ipc_header *h,
                                   const uint8_t *payload, size_t *ret_inline)
{
    struct dmn_record *r = to_ring(s, h);
    struct ipc_frame f;
    bool fresh = !s->numbered || h->frame > s->last_frame;

    *ret_inline = 0;
    if (fresh) {
        s->numbered = true;
        s->last_frame = h->frame;
    }
    if (!r->has_credit) {
        dmn_record_fail(r, IPC_RESOURCE_EXHAUSTED, "no credit left: %u frames are unanswered",
                        s->unanswered);
        return r;
    }
    if (!fresh) {
        dmn_record_fail(r, IPC_INVALID_ARGUMENT,
                        "frame number %llu is not above the last one, %llu",
                        (unsigned long long)h->frame, (unsigned long long)s->last_frame);
        return r;
    }
    if (ipc_get_frame(payload, IPC_FRAME_BYTES, &f) != 0) {
        dmn_record_fail(r, IPC_INVALID_ARGUMENT, "a field of the frame is out of range");
        return r;
    }
    if (s->peer->frames->draining || !s->clients || s->clients->model->leaving) {
        dmn_record_fail(r, IPC_UNAVAILABLE, "%s",
                        s->peer->frames->draining ? "the daemon is stopping"
                                                  : "the model was unloaded");
        return r;
    }
    r->deadline_ns = f.deadline_ns;
    if (!r->deadline_ns && s->deadline_ns &&
        __builtin_add_overflow(r->arrival_ns, s->deadline_ns, &r->deadline_ns)) {
        r->deadline_ns = UINT64_MAX;
    }
    if (r->is_inline) {
        *ret_inline = dmn_record_place_inline(r, &s->format, h, &f, s->peer);
    } else {
        dmn_record_place_shared(r, &s->format, &f,
                                f.pool < IPC_POOLS_MAX ? s->memory[f.pool] : NULL);
    }
    return r;
}

void dmn_stream_cancel(struct dmn_stream *s, uint64_t frame)
{
    for (uint32_t i = s->head; i != s->tail; i++) {
        struct dmn_record *r = s->ring[i & DMN_RING_MASK];

        if (r->frame != frame || r->state == DMN_RECORD_DONE) {
            continue;
        }
        if (r->state == DMN_RECORD_QUEUED) {
            dmn_stream_unqueue(r, IPC_CANCELLED, "cancelled");
        } else if (r->state == DMN_RECORD_RUNNING) {
            dmn_record_cancel(r);
        }
        return;
    }
}

/* Sends the RESULT of the ring's head. */
static void send_result(struct dmn_stream *s, struct dmn_record *r)
{
    struct ipc_header h = {.type = IPC_RESULT,
                           .stream = s->id,
                           .status = (uint16_t)r->status,
                           .frame = r->frame,
                           .time_ns = r->time_ns};
    struct ipc_result m = {.queue_ns = r->queue_ns,
                           .service_ns = r->service_ns,
                           .done_ns = r->done_ns,
                           .credits = r->has_credit,
                           .epoch = r->epoch};
    uint8_t payload[IPC_RESULT_BYTES];
    const void *tail = r->text;
    size_t tail_bytes = strlen(r->text);

    if (r->status == IPC_OK) {
        m.out_bytes = s->format.output_bytes;
        tail = r->is_inline ? r->output : NULL;
        tail_bytes = r->is_inline ? s->format.output_bytes : 0;
    }
    ipc_put_result(&m, payload);
    dmn_peer_send(s->peer, h, payload, sizeof(payload), tail, tail_bytes);
}

bool dmn_stream_answer(struct dmn_stream *s)
{
    bool any = false;

    while (s->head != s->tail && !dmn_peer_backlogged(s->peer)) {
        struct dmn_record *r = s->ring[s->head & DMN_RING_MASK];

        if (r->state != DMN_RECORD_DONE) {
            break;
        }
        if (s->next == s->head) {
            s->next++;
        }
        s->head++;
        send_result(s, r);
        s->peer->answered++;
        if (s->clients) {
            dmn_clients_count(s->clients, r->status, r->arrival_ns, r->done_ns);
        }
        s->unanswered -= r->has_credit;
        dmn_record_release(r);
        r->next_free = s->free;
        s->free = r;
        any = true;
    }
    return any;
}
