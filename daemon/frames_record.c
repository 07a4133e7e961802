/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base.h"
#include "daemon/daemon.h"

#define RING_MASK (DMN_RING_SIZE - 1)

bool dmn_record_room(const struct dmn_stream *s)
{
    return s->free != NULL && s->tail - s->head < DMN_RING_SIZE;
}

void dmn_record_fail(struct dmn_record *r, enum ipc_status status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(r->text, sizeof(r->text), format, args);
    va_end(args);
    r->status = status;
    r->state = DMN_RECORD_DONE;
    dmn_record_release(r);
}

void dmn_record_release(struct dmn_record *r)
{
    r->pool = dmn_pool_unref(r->pool);
    r->input = NULL;
    r->output = NULL;
}

/* Room for an inline frame's bytes. The buffer stays with the record for the next one, so that a
 * steady client costs no allocation. */
static bool ensure_buffer(struct dmn_record *r, size_t input_bytes, size_t output_bytes)
{
    struct dmn_conn *c = r->stream->conn;
    size_t at, total,
        limit = (size_t)dmn_config_int(c->daemon->config, DMN_KEY_LIMIT_INLINE_MIB) << 20;

    if (!base_add(input_bytes, 63, &at) || !base_add(at & ~(size_t)63, output_bytes, &total)) {
        return false;
    }
    r->buffer_output = at & ~(size_t)63;
    if (total > r->buffer_bytes) {
        uint8_t *grown;

        if (c->inline_bytes - r->buffer_bytes > limit ||
            total > limit - (c->inline_bytes - r->buffer_bytes)) {
            return false;
        }
        grown = aligned_alloc(64, base_align_up(total, 64));
        if (!grown) {
            return false;
        }
        free(r->buffer);
        r->buffer = grown;
        c->inline_bytes += total - r->buffer_bytes;
        r->buffer_bytes = total;
    }
    r->input = r->buffer;
    r->output = r->buffer + r->buffer_output;
    return true;
}

/* Size and shape of the input. Return: false after the record was answered. */
static bool check_input(struct dmn_record *r, const struct ipc_frame *f)
{
    const struct dmn_stream *s = r->stream;
    size_t bytes;

    if (s->pixfmt == IPC_PIX_TENSOR) {
        if (f->in_bytes != s->input_bytes) {
            dmn_record_fail(r, IPC_INVALID_ARGUMENT, "input has %llu bytes, the model takes %zu",
                            (unsigned long long)f->in_bytes, s->input_bytes);
            return false;
        }
        return true;
    }
    r->image = (struct krn_image){.format = (enum krn_pixfmt)(s->pixfmt - IPC_PIX_RGB24),
                                  .width = f->width,
                                  .height = f->height,
                                  .stride = f->stride};
    if (f->stride == 0 && f->width <= UINT32_MAX / 3) {
        static const uint32_t row[] = {
            [IPC_PIX_RGB24] = 3, [IPC_PIX_BGR24] = 3, [IPC_PIX_GRAY8] = 1,
            [IPC_PIX_NV12] = 1,  [IPC_PIX_YUYV] = 2,
        };
        r->image.stride = row[s->pixfmt] * f->width;
    }
    bytes = krn_image_bytes(&r->image);
    if (bytes == 0 || bytes > f->in_bytes) {
        dmn_record_fail(r, IPC_INVALID_ARGUMENT,
                        "an image of %ux%u with stride %u is impossible or larger than %llu bytes",
                        f->width, f->height, r->image.stride, (unsigned long long)f->in_bytes);
        return false;
    }
    return true;
}

static void place_in_pool(struct dmn_record *r, const struct ipc_frame *f)
{
    struct dmn_stream *s = r->stream;
    struct dmn_pool *p = f->pool < IPC_POOLS_MAX ? s->pools[f->pool] : NULL;
    uint64_t in_end, out_end;

    if (!p) {
        dmn_record_fail(r, IPC_NOT_FOUND, "no pool %u on this stream", f->pool);
    } else if (__builtin_add_overflow(f->in_offset, f->in_bytes, &in_end) || in_end > p->bytes) {
        dmn_record_fail(r, IPC_INVALID_ARGUMENT, "the input is outside the pool of %zu bytes",
                        p->bytes);
    } else if (__builtin_add_overflow(f->out_offset, f->out_bytes, &out_end) ||
               out_end > p->bytes) {
        dmn_record_fail(r, IPC_INVALID_ARGUMENT, "the output is outside the pool of %zu bytes",
                        p->bytes);
    } else if (f->out_bytes < s->output_bytes) {
        dmn_record_fail(r, IPC_INVALID_ARGUMENT, "room for %llu bytes of output, the model has %zu",
                        (unsigned long long)f->out_bytes, s->output_bytes);
    } else if (f->out_offset % 64 || (s->pixfmt == IPC_PIX_TENSOR && f->in_offset % 64)) {
        dmn_record_fail(r, IPC_INVALID_ARGUMENT, "offsets must be multiples of 64");
    } else if (f->in_offset < out_end && f->out_offset < in_end) {
        dmn_record_fail(r, IPC_INVALID_ARGUMENT, "input and output overlap");
    } else if (check_input(r, f)) {
        p->refs++;
        r->pool = p;
        r->input = p->map + f->in_offset;
        r->output = p->map + f->out_offset;
        r->image.data = r->input;
    }
}

static size_t place_inline(struct dmn_record *r, const struct ipc_header *h,
                           const struct ipc_frame *f)
{
    if (f->in_bytes != h->length - IPC_FRAME_BYTES) {
        dmn_record_fail(r, IPC_INVALID_ARGUMENT, "in_bytes is %llu, %u bytes follow",
                        (unsigned long long)f->in_bytes, h->length - IPC_FRAME_BYTES);
        return 0;
    }
    if (!check_input(r, f)) {
        return 0;
    }
    if (!ensure_buffer(r, f->in_bytes, r->stream->output_bytes)) {
        dmn_record_fail(r, IPC_RESOURCE_EXHAUSTED,
                        "no memory for the inline frames of this connection");
        return 0;
    }
    r->image.data = r->input;
    return f->in_bytes;
}

/* A record at the ring's end, cleared but for its buffer. */
static struct dmn_record *take(struct dmn_stream *s, const struct ipc_header *h)
{
    struct dmn_record *r = s->free;

    s->free = r->next_free;
    r->next_free = NULL;
    r->state = DMN_RECORD_READING;
    r->status = IPC_OK;
    r->is_inline = h->type == IPC_INLINE;
    r->has_credit = s->unanswered < s->credits;
    r->frame = h->frame;
    r->time_ns = h->time_ns;
    r->arrival_ns = base_now_ns();
    r->deadline_ns = r->queue_ns = r->service_ns = r->done_ns = 0;
    r->epoch = 0;
    r->image = (struct krn_image){0};
    r->text[0] = '\0';
    s->unanswered += r->has_credit;
    s->ring[s->tail++ & RING_MASK] = r;
    return r;
}

struct dmn_record *dmn_record_new(struct dmn_stream *s, const struct ipc_header *h,
                                  const uint8_t *payload, size_t *ret_inline)
{
    struct dmn_record *r = take(s, h);
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
    if (s->conn->daemon->draining || !s->model || s->model->leaving) {
        dmn_record_fail(r, IPC_UNAVAILABLE, "%s",
                        s->conn->daemon->draining ? "the daemon is going down"
                                                  : "the model was unloaded");
        return r;
    }
    r->deadline_ns = f.deadline_ns;
    if (!r->deadline_ns && s->deadline_ns &&
        __builtin_add_overflow(r->arrival_ns, s->deadline_ns, &r->deadline_ns)) {
        r->deadline_ns = UINT64_MAX;
    }
    if (r->is_inline) {
        *ret_inline = place_inline(r, h, &f);
    } else {
        place_in_pool(r, &f);
    }
    return r;
}

/* policy latest: whatever waits gives way to the new frame, which is queued already: a queue that
 * ran empty in between would lose its turn, and with every frame that comes before it anew */
static void drop_older(struct dmn_stream *s, const struct dmn_record *newest)
{
    for (uint32_t i = s->next; i != s->tail; i++) {
        struct dmn_record *r = s->ring[i & RING_MASK];

        if (r->state == DMN_RECORD_QUEUED && r != newest) {
            dmn_admission_drop(&s->model->admission, &s->queue);
            dmn_record_fail(r, IPC_DROPPED, "a newer frame took its place");
        }
    }
}

void dmn_record_ready(struct dmn_record *r)
{
    struct dmn_stream *s = r->stream;
    struct dmn_model *m = s->model;
    size_t ahead;

    if (!m || m->leaving) {
        dmn_record_fail(r, IPC_UNAVAILABLE, "the model was unloaded");
        return;
    }
    ahead = pl_in_flight(m->pipe) + m->admission.waiting;
    if (s->policy == IPC_POLICY_LATEST) {
        ahead -= s->queue.waiting; /* gives way to this one */
    }
    if (dmn_admission_hopeless(r->deadline_ns, base_now_ns(), ahead, m->period_ns,
                               (uint64_t)m->stats.service_ewma_ns)) {
        dmn_record_fail(r, IPC_DEADLINE_EXCEEDED, "it could not be answered in time");
        return;
    }
    r->state = DMN_RECORD_QUEUED;
    dmn_admission_add(&m->admission, &s->queue);
    if (s->policy == IPC_POLICY_LATEST) {
        drop_older(s, r);
    }
    dmn_model_admit(m);
    if (r->state == DMN_RECORD_QUEUED && s->policy == IPC_POLICY_REJECT) {
        dmn_admission_drop(&m->admission, &s->queue);
        dmn_record_fail(r, IPC_RESOURCE_EXHAUSTED, "the pipeline is full");
    }
}

static void fill(struct pl_frame *f, struct dmn_record *r)
{
    const struct dmn_stream *s = r->stream;

    f->owner = r;
    f->tag = r->frame;
    f->deadline_ns = r->deadline_ns;
    f->has_image = s->pixfmt != IPC_PIX_TENSOR;
    f->image = r->image;
    for (size_t i = 0; i < s->input_count && !f->has_image; i++) {
        f->inputs[i] = r->input + s->in_offset[i];
    }
    for (size_t i = 0; i < s->output_count; i++) {
        f->outputs[i] = r->output + s->out_offset[i];
    }
}

bool dmn_record_submit(struct dmn_stream *s)
{
    struct dmn_model *m = s->model;
    struct dmn_record *r;
    struct pl_frame *f;

    while (s->ring[s->next & RING_MASK]->state != DMN_RECORD_QUEUED) {
        s->next++; /* there is one: the queue counts it */
    }
    r = s->ring[s->next & RING_MASK];
    if (r->deadline_ns && base_now_ns() >= r->deadline_ns) {
        dmn_admission_taken(&m->admission, &s->queue);
        dmn_record_fail(r, IPC_DEADLINE_EXCEEDED, "its deadline passed while it waited");
        if (s->conn) {
            dmn_conn_mark(s->conn);
        }
        return true;
    }
    f = pl_frame_get(m->pipe);
    if (!f) {
        return false;
    }
    fill(f, r);
    if (pl_submit(m->pipe, f) != 0) {
        pl_frame_put(m->pipe, f);
        return false;
    }
    dmn_admission_taken(&m->admission, &s->queue);
    r->state = DMN_RECORD_RUNNING;
    r->running = f;
    s->running++;
    m->running++;
    m->stats.admitted++;
    return true;
}

void dmn_record_collected(struct dmn_record *r, const struct pl_frame *f)
{
    struct dmn_stream *s = r->stream;

    r->running = NULL;
    r->epoch = f->epoch;
    r->done_ns = f->done_ns;
    r->queue_ns = f->started_ns > r->arrival_ns ? f->started_ns - r->arrival_ns : 0;
    r->service_ns = f->done_ns > f->started_ns && f->started_ns ? f->done_ns - f->started_ns : 0;
    s->running--;
    switch (f->status) {
    case PL_FRAME_OK:
        r->state = DMN_RECORD_DONE;
        break;
    case PL_FRAME_EXPIRED:
        dmn_record_fail(r, IPC_DEADLINE_EXCEEDED, "its deadline passed between two stages");
        break;
    case PL_FRAME_CANCELLED:
        dmn_record_fail(r, IPC_CANCELLED, "cancelled");
        break;
    }
    if (s->conn) {
        dmn_conn_mark(s->conn);
    } else if (s->running == 0) {
        dmn_stream_free(s);
    }
}

void dmn_record_cancel(struct dmn_stream *s, uint64_t frame)
{
    for (uint32_t i = s->head; i != s->tail; i++) {
        struct dmn_record *r = s->ring[i & RING_MASK];

        if (r->frame != frame || r->state == DMN_RECORD_DONE) {
            continue;
        }
        if (r->state == DMN_RECORD_QUEUED) {
            dmn_admission_drop(&s->model->admission, &s->queue);
            dmn_record_fail(r, IPC_CANCELLED, "cancelled");
        } else if (r->state == DMN_RECORD_RUNNING) {
            atomic_store_explicit(&r->running->cancel, true, memory_order_relaxed);
        }
        return;
    }
}
