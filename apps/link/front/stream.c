/* SPDX-License-Identifier: Apache-2.0 */
/* piped-link's front: streams of clients, and the frames in them. */
#include <assert.h>

#include "apps/link/front/server_private.h"
#include "ipc/boards/route_window.h"

#define INLINE_MAX ((size_t)256 << 20) /* bytes of buffers for inline frames of a connection */
#define CREDITS 32u                    /* of a stream, if the client does not say */

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
    s->base.id = id;
    s->base.flow.credits = o->credits ? base_min(o->credits, FRONT_CREDITS_MAX) : CREDITS;
    s->base.flow.deadline_ns = o->deadline_ns;
    s->pixfmt = o->pixfmt;
    s->format = m->format;
    s->there = true;
    memcpy(s->model, m->name, sizeof(s->model));
    s->records = calloc(s->base.flow.credits + FRONT_SPARE, sizeof(*s->records));
    if (!s->records) {
        free(s);
        return NULL;
    }
    for (size_t i = 0; i < s->base.flow.credits + FRONT_SPARE; i++) {
        s->records[i].stream = s;
        put_free(&s->records[i]);
    }
    return s;
}

void front_stream_free(struct front_stream *s)
{
    for (size_t i = 0; i < s->base.flow.credits + FRONT_SPARE; i++) {
        forget_bytes(&s->records[i]);
        s->conn->inline_bytes -= s->records[i].buffer_bytes;
        free(s->records[i].buffer);
    }
    for (size_t i = 0; i < IPC_POOLS_MAX; i++) {
        ipc_memory_unref(s->base.memory[i]);
    }
    free(s->records);
    free(s);
}

/* Tells the listener, once, of a frame that it has. */
static void forsake(struct front_record *r)
{
    const struct front_listener *l = &r->stream->conn->room->listener;

    if (r->state == FRONT_TAKEN && !r->frame.gone) {
        r->frame.gone = true;
        if (l->gone) {
            l->gone(l->user, &r->frame);
        }
    }
}

void front_stream_cancel(struct ipc_stream *stream, uint64_t frame)
{
    struct front_stream *s = front_stream_of(stream);

    for (uint32_t i = s->base.head; i != s->base.tail; i++) {
        if (s->ring[i % FRONT_RING]->answer.frame == frame) {
            forsake(s->ring[i % FRONT_RING]);
        }
    }
}

bool front_stream_orphan(struct front_stream *s)
{
    if (s->taken == 0) {
        front_stream_free(s);
        return false;
    }
    for (uint32_t i = s->base.head; i != s->base.tail; i++) {
        forsake(s->ring[i % FRONT_RING]);
    }
    return true;
}

/* Its answer has a status and a reason. */
static void refused(struct front_record *r)
{
    r->state = FRONT_DONE;
    forget_bytes(r);
}

__attribute__((format(printf, 3, 4))) static void
fail(struct front_record *r, enum ipc_status status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    ipc_answer_vrefuse(&r->answer, status, format, args);
    va_end(args);
    refused(r);
}

static struct ipc_areas areas_of(const struct front_stream *s)
{
    return (struct ipc_areas){.input_bytes = s->format.input_bytes,
                              .output_bytes = s->format.output_bytes,
                              .image = s->pixfmt != IPC_PIX_TENSOR};
}

/* Return: false: the picture is impossible, or larger than what goes to boards as it is. */
static bool take_picture(struct front_record *r, const struct ipc_frame *f)
{
    const struct front_stream *s = r->stream;
    uint64_t bytes = brd_picture_bytes(s->pixfmt, f->width, f->height);

    if (s->pixfmt == IPC_PIX_TENSOR) {
        return true;
    }
    r->frame.picture = (struct front_picture){s->pixfmt, f->width, f->height, bytes};
    if (bytes == 0 || bytes > f->in_bytes || bytes > s->format.input_bytes ||
        (f->stride && f->stride != pixfmt_row_bytes((enum pixfmt)s->pixfmt, f->width))) {
        fail(r, IPC_INVALID_ARGUMENT,
             "a picture of %ux%u with stride %u in %llu bytes does not go to boards as it is",
             f->width, f->height, f->stride, (unsigned long long)f->in_bytes);
        return false;
    }
    return true;
}

/* The bytes are in client memory. */
static void place_shared(struct front_record *r, const struct ipc_frame *f)
{
    const struct ipc_areas areas = areas_of(r->stream);
    struct ipc_memory *m = r->stream->base.memory[f->pool];

    if (!ipc_frame_fits_memory(&r->answer, f, m, &areas)) {
        refused(r);
        return;
    }
    r->memory = ipc_memory_ref(m);
    r->frame.theirs = true;
    r->frame.input = m->map + f->in_offset;
    r->frame.output = m->map + f->out_offset;
}

/* Return: false: no memory, or the connection has too much of it. */
static bool grow_buffer(struct front_record *r, size_t bytes)
{
    size_t *sum = &r->stream->conn->inline_bytes;
    uint8_t *grown;

    if (bytes <= r->buffer_bytes) {
        return true;
    }
    if (bytes > INLINE_MAX - (*sum - r->buffer_bytes)) {
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
    const struct ipc_areas areas = areas_of(r->stream);
    size_t output_at = base_align_up(base_max((size_t)f->in_bytes, areas.input_bytes), 64);

    if (!ipc_frame_fits_message(&r->answer, h, f, &areas)) {
        refused(r);
        return 0;
    }
    if (!grow_buffer(r, output_at + base_align_up(areas.output_bytes, 64))) {
        fail(r, IPC_RESOURCE_EXHAUSTED, "no memory left for inline frames of this connection");
        return 0;
    }
    r->frame.input = r->buffer;
    r->frame.output = r->buffer + output_at;
    return f->in_bytes;
}

static struct front_record *to_ring(struct front_stream *s)
{
    struct front_record *r = s->free;

    s->free = r->next_free;
    r->frame = (struct front_frame){.model = s->model};
    r->state = FRONT_READING;
    s->ring[s->base.tail++ % FRONT_RING] = r;
    return r;
}

void *front_stream_take(struct ipc_stream *stream, const struct ipc_header *h,
                        const uint8_t *payload, uint8_t **ret_to)
{
    struct front_record *r = to_ring(front_stream_of(stream));
    struct ipc_frame f;

    if (!ipc_frame_take(&stream->flow, &r->answer, h, payload, &f)) {
        refused(r);
        return NULL;
    }
    if (!take_picture(r, &f)) {
        return NULL;
    }
    r->frame.deadline_ns = ipc_frame_deadline(&stream->flow, &f, base_now_ns());
    if (!r->answer.is_inline) {
        place_shared(r, &f);
    } else if (place_inline(r, h, &f) > 0) {
        *ret_to = r->buffer;
    }
    return r->state == FRONT_READING ? r : NULL;
}

void front_stream_deliver(struct front_record *r)
{
    struct front_stream *s = r->stream;
    const struct front_listener *l = &s->conn->room->listener;
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

void front_stream_done(struct front_record *r, int status, const char *text, uint32_t epoch)
{
    struct ipc_answer *a = &r->answer;

    assert(r->state == FRONT_TAKEN);
    if (status == 0 && ipc_memory_lost(r->memory)) {
        status = IPC_INVALID_ARGUMENT;
        text = IPC_POOL_LOST;
    }
    r->state = FRONT_DONE;
    a->status = (enum ipc_status)status;
    a->epoch = epoch;
    a->done_ns = base_now_ns();
    if (status != 0) {
        snprintf(a->text, sizeof(a->text), "%s",
                 text && *text ? text : ipc_status_name((enum ipc_status)status));
    }
    r->stream->taken--;
}

bool front_stream_answer(struct ipc_stream *stream)
{
    struct front_stream *s = front_stream_of(stream);
    bool any = false;

    while (!ipc_stream_empty(stream) && !ipc_conn_backlogged(&s->conn->base)) {
        struct front_record *r = s->ring[stream->head % FRONT_RING];
        struct ipc_reply reply;

        if (r->state != FRONT_DONE) {
            break;
        }
        stream->head++;
        ipc_answer_reply(&r->answer, stream->id, r->frame.output, s->format.output_bytes, &reply);
        ipc_conn_reply(&s->conn->base, &reply);
        stream->flow.unanswered -= r->answer.has_credit;
        put_free(r);
        any = true;
    }
    return any;
}

void front_stream_serves(struct front_stream *s, const struct front_model *m)
{
    bool there = m && memcmp(&m->format, &s->format, sizeof(s->format)) == 0;

    if (s->there && !there && !ipc_conn_backlogged(&s->conn->base)) {
        ipc_conn_event(&s->conn->base, s->base.id, IPC_EVENT_UNLOADING, 0);
    }
    s->there = there;
}
