/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/link/hop/queue.h"

#include "apps/link/common/ledger.h"
#include "base/base.h"
#include "ipc/boards/route_window.h"

void hop_queue_init(struct hop_queue *q)
{
    TAILQ_INIT(&q->frames);
    q->bytes = q->count = 0;
}

void hop_queue_deinit(struct hop_queue *q)
{
    while (!TAILQ_EMPTY(&q->frames)) {
        hop_queue_drop(q, TAILQ_FIRST(&q->frames));
    }
}

int hop_queue_add(struct hop_queue *q, uint64_t place, const struct lnk_message *m)
{
    size_t bytes = m->tail_bytes;
    struct hop_waiting *w;
    uint8_t *at;

    for (size_t i = 0; i < m->frame.tensor_count; i++) {
        bytes += m->part[i].bytes;
    }
    if (q->count == LNK_LEDGER_MAX || bytes > BRD_WINDOW_BYTES - q->bytes) {
        return -ENOSPC;
    }
    w = malloc(sizeof(*w) + bytes);
    if (!w) {
        return -ENOMEM;
    }
    w->place = place;
    w->came_ns = base_now_ns();
    w->bytes = bytes;
    w->message = *m;
    w->message.tail = w->data;
    w->message.part = w->part;
    if (m->tail_bytes > 0) {
        memcpy(w->data, m->tail, m->tail_bytes);
    }
    at = w->data + m->tail_bytes;
    for (size_t i = 0; i < m->frame.tensor_count; i++) {
        memcpy(at, m->part[i].data, m->part[i].bytes);
        w->part[i] = (struct lnk_bytes){at, m->part[i].bytes};
        at += m->part[i].bytes;
    }
    TAILQ_INSERT_TAIL(&q->frames, w, linked);
    q->count++;
    q->bytes += bytes;
    return 0;
}

void hop_queue_drop(struct hop_queue *q, struct hop_waiting *w)
{
    TAILQ_REMOVE(&q->frames, w, linked);
    q->count--;
    q->bytes -= w->bytes;
    free(w);
}
