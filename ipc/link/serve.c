/* SPDX-License-Identifier: Apache-2.0 */
/* piped-link: frames of other boards, computed by the daemon here. */
#include <stdio.h>
#include <string.h>

#include "base.h"
#include "ipc/link/link.h"

#define STREAMS_MAX 16u
#define CONNECT_MS 200u /* how long to look for the daemon before the asking board gets an error */

struct stream {
    struct piped_stream *is; /* owned; NULL: free */
    size_t peer;
    uint32_t number, epoch;
    uint16_t hop;
    char model[64];
    struct piped_frame *held; /* an answer for which the link had no room */
};
struct serve {
    struct link *link;
    const char *socket;
    struct piped *piped; /* owned; NULL: not connected */
    struct stream stream[STREAMS_MAX];
};

int serve_new(struct link *l, const char *socket, struct serve **ret)
{
    struct serve *s = calloc(1, sizeof(*s));

    if (!s) {
        return -ENOMEM;
    }
    s->link = l;
    s->socket = socket;
    *ret = s;
    return 0;
}

static void close_stream(struct stream *st)
{
    piped_stream_close(st->is);
    *st = (struct stream){0};
}

static void close_all(struct serve *s)
{
    for (size_t i = 0; i < STREAMS_MAX; i++) {
        close_stream(&s->stream[i]);
    }
    s->piped = piped_close(s->piped);
}

struct serve *serve_free(struct serve *s)
{
    if (s) {
        close_all(s);
    }
    free(s);
    return NULL;
}

static struct stream *find(struct serve *s, size_t peer, uint32_t number)
{
    for (size_t i = 0; i < STREAMS_MAX; i++) {
        if (s->stream[i].is && s->stream[i].peer == peer && s->stream[i].number == number) {
            return &s->stream[i];
        }
    }
    return NULL;
}

void serve_peer_gone(struct serve *s, size_t peer)
{
    for (size_t i = 0; i < STREAMS_MAX; i++) {
        if (s->stream[i].peer == peer) {
            close_stream(&s->stream[i]);
        }
    }
}

int serve_fd(const struct serve *s)
{
    return s->piped ? piped_fd(s->piped) : -1;
}

/* Opens a stream of the daemon. Waits for its answer. Return: 0 or a status of the protocol. */
static int open_stream(struct serve *s, const char *model, struct stream **ret)
{
    struct piped_options o = {sizeof(o), s->socket, "piped-link", CONNECT_MS};
    struct piped_stream_options so = {.size = sizeof(so), .model = model};
    struct stream *st = NULL;
    int rc;

    for (size_t i = 0; i < STREAMS_MAX && !st; i++) {
        st = s->stream[i].is ? NULL : &s->stream[i];
    }
    if (!st) {
        return PIPED_RESOURCE_EXHAUSTED;
    }
    if (!s->piped && piped_connect(&o, &s->piped) < 0) {
        return PIPED_UNAVAILABLE;
    }
    rc = piped_stream_open(s->piped, &so, &st->is);
    if (rc == -ENOTCONN) {
        close_all(s);
        return PIPED_UNAVAILABLE;
    }
    *ret = st;
    return rc == 0 ? 0 : rc == -ENOENT ? PIPED_NOT_FOUND : PIPED_INTERNAL;
}

void serve_plan(struct serve *s, size_t peer, const struct lnk_message *m)
{
    struct stream *st = find(s, peer, m->plan.stream);
    struct lnk_message credit = {.header.type = LNK_CREDIT};
    char model[64];
    int status;

    snprintf(model, sizeof(model), "%.*s", (int)base_min(m->tail_bytes, sizeof(model) - 1),
             (const char *)m->tail);
    if (st && strcmp(st->model, model) != 0) {
        close_stream(st);
        st = NULL;
    }
    if (!st) {
        status = open_stream(s, model, &st);
        if (status != 0) {
            struct lnk_error e = {.stream = m->plan.stream, .epoch = m->plan.epoch};

            e.hop = m->plan.hop;
            e.status = (uint16_t)status;
            link_log("%s cannot be served for %s: %s", model, s->link->boards.board[peer].name,
                     piped_last_error());
            link_put_error(s->link, peer, &e, piped_status_name(status));
            return;
        }
        snprintf(st->model, sizeof(st->model), "%s", model);
        st->peer = peer;
        st->number = m->plan.stream;
    }
    st->epoch = m->plan.epoch;
    st->hop = m->plan.hop;
    credit.credit =
        (struct lnk_credit){st->number, st->epoch, st->hop, 0, piped_stream_info(st->is)->credits};
    link_put(s->link, peer, LNK_BULK, &credit, NULL, 0, NULL, NULL);
}

/* Copies a frame's tensors to where the daemon wants them. Return: 0 or a status. */
static int take_inputs(const struct stream *st, const struct lnk_message *m,
                       const struct lnk_bytes *part, struct piped_frame *f)
{
    const struct piped_stream_info *info = piped_stream_info(st->is);

    if (m->frame.tensor_count != info->input_count) {
        return PIPED_INVALID_ARGUMENT;
    }
    for (uint32_t i = 0; i < info->input_count; i++) {
        const struct piped_tensor *t = &info->inputs[i];

        if (m->tensor[i].dtype != t->dtype || m->tensor[i].encoding != LNK_AS_IS ||
            m->tensor[i].bytes != t->bytes || t->offset > f->input_size ||
            t->bytes > f->input_size - t->offset) {
            return PIPED_INVALID_ARGUMENT;
        }
        memcpy((uint8_t *)f->input + t->offset, part[i].data, t->bytes);
    }
    return 0;
}

void serve_frame(struct serve *s, size_t peer, const struct lnk_message *m,
                 const struct lnk_bytes *part)
{
    struct lnk_error e = {m->frame.stream, m->frame.epoch, m->frame.frame, m->frame.hop, 0, 0};
    struct stream *st = find(s, peer, m->frame.stream);
    struct piped_frame *f = NULL;
    int status = st ? 0 : PIPED_NOT_FOUND;

    if (st && piped_acquire(st->is, &f) < 0) {
        status = PIPED_RESOURCE_EXHAUSTED; /* more than its credits */
    }
    status = f ? take_inputs(st, m, part, f) : status;
    if (status == 0) {
        f->time_ns = m->frame.frame; /* both come back with the answer */
        f->user = (void *)(uintptr_t)m->frame.epoch;
        f->deadline_ns = m->frame.left_ns ? base_now_ns() + m->frame.left_ns : 0;
        status = piped_submit(st->is, f) < 0 ? PIPED_UNAVAILABLE : 0;
    }
    if (status == 0) {
        s->link->peer[peer].frames++;
    } else {
        if (f) {
            piped_release(st->is, f);
        }
        e.status = (uint16_t)status;
        link_put_error(s->link, peer, &e, piped_status_name(status));
    }
}

/* Return: as lnk_send(). */
static int send_answer(struct serve *s, const struct stream *st, const struct piped_frame *f)
{
    const struct piped_stream_info *info = piped_stream_info(st->is);
    uint32_t epoch = (uint32_t)(uintptr_t)f->user, count = info->output_count;
    struct lnk_error e = {st->number, epoch, f->time_ns, st->hop, (uint16_t)f->status, 0};
    struct lnk_message m = {.header.type = LNK_ANSWER};
    struct lnk_bytes range[LNK_PARTS_MAX];

    if (f->status != PIPED_OK || count > LNK_PARTS_MAX) {
        e.status = f->status ? e.status : PIPED_UNSUPPORTED;
        return link_put_error(s->link, st->peer, &e, f->text);
    }
    m.answer = (struct lnk_answer){.stream = st->number, .epoch = epoch, .frame = f->time_ns};
    m.answer.queue_ns = f->queue_ns;
    m.answer.service_ns = f->service_ns;
    m.answer.hop = st->hop;
    m.answer.tensor_count = (uint8_t)count;
    for (uint32_t i = 0; i < count; i++) {
        const struct piped_tensor *t = &info->outputs[i];

        m.tensor[i] = (struct lnk_tensor){.dtype = (uint8_t)t->dtype, .rank = (uint8_t)t->rank};
        memcpy(m.tensor[i].dim, t->dim, t->rank * sizeof(t->dim[0]));
        m.tensor[i].bytes = t->bytes;
        range[i] = (struct lnk_bytes){(const uint8_t *)f->output + t->offset, t->bytes};
    }
    /* Copied: the slot is free again, whatever becomes of the link. */
    return link_put(s->link, st->peer, LNK_BULK, &m, range, count, NULL, NULL);
}

static void stream_answers(struct serve *s, struct stream *st)
{
    struct piped_frame *f = st->held;

    while (f || piped_next(st->is, &f) == 0) {
        if (send_answer(s, st, f) == LNK_E_FULL) {
            break;
        }
        piped_release(st->is, f);
        f = NULL;
    }
    st->held = f;
}

void serve_answers(struct serve *s)
{
    bool lost = s->piped && piped_dispatch(s->piped, 0) == -ENOTCONN;

    for (size_t i = 0; i < STREAMS_MAX; i++) {
        if (s->stream[i].is) {
            stream_answers(s, &s->stream[i]);
        }
        if (s->stream[i].is && lost) { /* the asking board shall not count on us */
            struct lnk_error e = {s->stream[i].number, s->stream[i].epoch, 0,
                                  s->stream[i].hop,    PIPED_UNAVAILABLE,  0};

            link_put_error(s->link, s->stream[i].peer, &e, "the daemon is gone");
        }
    }
    if (lost) {
        close_all(s);
    }
}
