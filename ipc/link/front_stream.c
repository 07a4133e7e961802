/* SPDX-License-Identifier: Apache-2.0 */
/* The front: streams, and the record of each frame. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base.h"
#include "ipc/link/front_server_private.h"

static void forget_bytes(struct front_record *r)
{
    r->memory = ipc_memory_unref(r->memory);
    r->frame.input = NULL;
    r->frame.output = NULL;
}

static void put_free(struct front_record *r)
{
    forget_bytes(r);
    r->next_free = r->stream->free;
    r->stream->free = r;
}

struct front_stream *front_stream_new(struct front_conn *c, uint32_t id,
                                      const struct front_model *m, const struct ipc_open *o)
{
    struct front_stream *s = calloc(1, sizeof(*s));

    if (!s) {
        return NULL;
    }
    s->conn = c;
    s->id = id;
    s->credits = o->credits ? base_min(o->credits, FRONT_CREDITS_MAX) : FRONT_CREDITS;
    s->deadline_ns = o->deadline_ns;
    s->format = m->format;
    s->there = true;
    memcpy(s->model, m->name, sizeof(s->model));
    s->records = calloc(s->credits + FRONT_SPARE, sizeof(*s->records));
    if (!s->records) {
        free(s);
        return NULL;
    }
    for (size_t i = 0; i < s->credits + FRONT_SPARE; i++) {
        s->records[i].stream = s;
        put_free(&s->records[i]);
    }
    return s;
}

void front_stream_free(struct front_stream *s)
{
    for (size_t i = 0; i < s->credits + FRONT_SPARE; i++) {
        forget_bytes(&s->records[i]);
        s->conn->inline_bytes -= s->records[i].buffer_bytes;
        free(s->records[i].buffer);
    }
    for (size_t i = 0; i < IPC_POOLS_MAX; i++) {
        ipc_memory_unref(s->memory[i]);
    }
    free(s->records);
    free(s);
}

void front_stream_orphan(struct front_stream *s)
{
    if (s->taken == 0) {
        front_stream_free(s);
        return;
    }
    for (uint32_t i = s->head; i != s->tail; i++) {
        s->ring[i % FRONT_RING]->frame.gone = true;
    }
    s->conn->orphans++;
    LIST_INSERT_HEAD(&s->conn->front->orphans, s, linked);
}

__attribute__((format(printf, 3, 4))) static void
fail(struct front_record *r, enum ipc_status status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(r->text, sizeof(r->text), format, args);
    va_end(args);
    r->status = status;
    r->state = FRONT_DONE;
    forget_bytes(r);
}

/* The bytes are in client memory. */
static void place_shared(struct front_record *r, const struct ipc_frame *f)
{
    const struct front_format *format = &r->stream->format;
    struct ipc_memory *m = r->stream->memory[f->pool];
    uint64_t in_end = f->in_offset + f->in_bytes, out_end = f->out_offset + f->out_bytes;

    if (!m) {
        fail(r, IPC_NOT_FOUND, "no pool %u on this stream", f->pool);
    } else if (f->in_bytes != format->input_bytes) {
        fail(r, IPC_INVALID_ARGUMENT, "the input has %llu bytes; the model takes %zu",
             (unsigned long long)f->in_bytes, format->input_bytes);
    } else if (f->out_bytes < format->output_bytes) {
        fail(r, IPC_INVALID_ARGUMENT, "the output area has %llu bytes; the model writes %zu",
             (unsigned long long)f->out_bytes, format->output_bytes);
    } else if (in_end > m->bytes || out_end > m->bytes) {
        fail(r, IPC_INVALID_ARGUMENT, "the %s is outside the pool of %zu bytes",
             in_end > m->bytes ? "input" : "output", m->bytes);
    } else if (f->in_offset % 64 || f->out_offset % 64) {
        fail(r, IPC_INVALID_ARGUMENT, "offsets must be multiples of 64");
    } else if (f->in_offset < out_end && f->out_offset < in_end) {
        fail(r, IPC_INVALID_ARGUMENT, "input and output overlap");
    } else {
        r->memory = ipc_memory_ref(m);
        r->frame.input = m->map + f->in_offset;
        r->frame.output = m->map + f->out_offset;
    }
}

/* Return: false: no memory, or the connection has too much of it. */
static bool grow_buffer(struct front_record *r, size_t bytes)
{
    size_t *sum = &r->stream->conn->inline_bytes;
    uint8_t *grown;

    if (bytes <= r->buffer_bytes) {
        return true;
    }
    if (bytes > FRONT_INLINE_MAX - (*sum - r->buffer_bytes)) {
        return false;
    }
    grown = aligned_alloc(64, bytes);
    if (!grown) {
        return false;
    }
    free(r->buffer);
    r->buffer = grown;
    *sum += bytes - r->buffer_bytes;
    r->buffer_bytes = bytes;
    return true;
}

/* The bytes follow the message, the output comes with the answer. Return: bytes to read; 0: the
 * frame is refused. */
static size_t place_inline(struct front_record *r, const struct ipc_header *h,
                           const struct ipc_frame *f)
{
    const struct front_format *format = &r->stream->format;
    size_t output_at = base_align_up(format->input_bytes, 64);

    if (f->in_bytes != h->length - IPC_FRAME_BYTES || f->in_bytes != format->input_bytes) {
        fail(r, IPC_INVALID_ARGUMENT, "in_bytes is %llu, %u bytes follow, and the model takes %zu",
             (unsigned long long)f->in_bytes, h->length - IPC_FRAME_BYTES, format->input_bytes);
        return 0;
    }
    if (format->output_bytes > IPC_PAYLOAD_MAX - IPC_RESULT_BYTES) {
        fail(r, IPC_INVALID_ARGUMENT, "the output does not fit into a message");
        return 0;
    }
    if (!grow_buffer(r, output_at + base_align_up(format->output_bytes, 64))) {
        fail(r, IPC_RESOURCE_EXHAUSTED, "no memory left for inline frames of this connection");
        return 0;
    }
    r->frame.input = r->buffer;
    r->frame.output = r->buffer + output_at;
    return f->in_bytes;
}

static void set_deadline(struct front_record *r, const struct ipc_frame *f)
{
    uint64_t now = base_now_ns(), deadline = f->deadline_ns;

    if (!deadline && r->stream->deadline_ns &&
        __builtin_add_overflow(now, r->stream->deadline_ns, &deadline)) {
        deadline = UINT64_MAX;
    }
    r->frame.deadline_ns = deadline;
}

static struct front_record *to_ring(struct front_stream *s, const struct ipc_header *h)
{
    struct front_record *r = s->free;

    s->free = r->next_free;
    r->frame = (struct front_frame){.model = s->model};
    r->state = FRONT_READING;
    r->status = IPC_OK;
    r->is_inline = h->type == IPC_INLINE;
    r->has_credit = s->unanswered < s->credits;
    r->number = h->frame;
    r->time_ns = h->time_ns;
    r->queue_ns = r->service_ns = r->done_ns = r->epoch = 0;
    r->text[0] = '\0';
    s->unanswered += r->has_credit;
    s->ring[s->tail++ % FRONT_RING] = r;
    return r;
}

struct front_record *front_stream_take(struct front_stream *s, const struct ipc_header *h,
                                       const uint8_t *payload, size_t *ret_inline)
{
    bool fresh = !s->numbered || h->frame > s->last_number;
    struct front_record *r = to_ring(s, h);
    struct ipc_frame f;

    *ret_inline = 0;
    if (fresh) {
        s->numbered = true;
        s->last_number = h->frame;
    }
    if (!r->has_credit) {
        fail(r, IPC_RESOURCE_EXHAUSTED, "no credit left: %u frames are unanswered", s->unanswered);
    } else if (!fresh) {
        fail(r, IPC_INVALID_ARGUMENT, "frame number %llu is not above the last one, %llu",
             (unsigned long long)h->frame, (unsigned long long)s->last_number);
    } else if (ipc_get_frame(payload, IPC_FRAME_BYTES, &f) != 0) {
        fail(r, IPC_INVALID_ARGUMENT, "a field of the frame is out of range");
    } else {
        set_deadline(r, &f);
        if (r->is_inline) {
            *ret_inline = place_inline(r, h, &f);
        } else {
            place_shared(r, &f);
        }
    }
    return r;
}

void front_stream_deliver(struct front_record *r)
{
    struct front_stream *s = r->stream;
    const struct front_listener *l = &s->conn->front->listener;
    int status;

    if (!s->there) {
        fail(r, IPC_UNAVAILABLE, "no boards serve %s now", s->model);
        return;
    }
    if (r->frame.deadline_ns && r->frame.deadline_ns <= base_now_ns()) {
        fail(r, IPC_DEADLINE_EXCEEDED, "the deadline is over");
        return;
    }
    r->state = FRONT_TAKEN;
    s->taken++;
    status = l->frame(l->user, &r->frame);
    if (status != 0) {
        assert(r->state == FRONT_TAKEN);
        s->taken--;
        fail(r, (enum ipc_status)status, "%s", ipc_status_name((enum ipc_status)status));
    }
}

static void send_result(struct front_stream *s, const struct front_record *r)
{
    struct ipc_header h = {.type = IPC_RESULT,
                           .stream = s->id,
                           .status = (uint16_t)r->status,
                           .frame = r->number,
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
        tail = r->is_inline ? r->frame.output : NULL;
        tail_bytes = r->is_inline ? s->format.output_bytes : 0;
    }
    ipc_put_result(&m, payload);
    front_send(s->conn, h, payload, sizeof(payload), tail, tail_bytes);
}

bool front_stream_answer(struct front_stream *s)
{
    bool any = false;

    while (s->head != s->tail && !front_backlogged(s->conn)) {
        struct front_record *r = s->ring[s->head % FRONT_RING];

        if (r->state != FRONT_DONE) {
            break;
        }
        s->head++;
        send_result(s, r);
        s->unanswered -= r->has_credit;
        put_free(r);
        any = true;
    }
    return any;
}

void front_stream_event(struct front_stream *s, enum ipc_event event)
{
    struct ipc_event_msg m = {.event = event};
    uint8_t payload[IPC_EVENT_BYTES];

    if (!front_backlogged(s->conn)) {
        ipc_put_event(&m, payload);
        front_send(s->conn, (struct ipc_header){.type = IPC_EVENT, .stream = s->id}, payload,
                   sizeof(payload), NULL, 0);
    }
}
