/* SPDX-License-Identifier: Apache-2.0 */
/* libpiped: what the daemon's messages do. The daemon is not trusted: every size is checked. */
#include "base/base.h"
#include "ipc/client/client.h"

static struct piped_stream *find_stream(struct piped *p, uint32_t id)
{
    struct piped_stream *s;

    LIST_FOREACH(s, &p->streams, linked) {
        if (s->id == id) {
            return s;
        }
    }
    return NULL;
}

static int invalid(const char *what)
{
    return ipc_client_error(-EPROTO, "the daemon sent %s", what);
}

static int status_errno(int status)
{
    static const int numbers[] = {
        [IPC_INVALID_ARGUMENT] = -EINVAL,  [IPC_NOT_FOUND] = -ENOENT,
        [IPC_PERMISSION_DENIED] = -EPERM,  [IPC_UNSUPPORTED] = -EOPNOTSUPP,
        [IPC_RESOURCE_EXHAUSTED] = -EBUSY, [IPC_UNAVAILABLE] = -EAGAIN,
    };

    return status > 0 && status < (int)base_array_count(numbers) ? numbers[status] : -EIO;
}

/* Once all streams are open again, the next loss of the connection gets the full time to retry. */
static void settle(struct piped *p)
{
    struct piped_stream *s;

    LIST_FOREACH(s, &p->streams, linked) {
        if (s->state != IPC_STREAM_READY && s->state != IPC_STREAM_FAILED) {
            return;
        }
    }
    p->backoff_ms = 0;
    p->down_ns = 0;
}

static int ready(struct piped_stream *s)
{
    s->state = IPC_STREAM_READY;
    settle(s->client);
    return ipc_stream_pump(s);
}

static int on_welcome(struct piped *p, const struct ipc_header *h, const uint8_t *b)
{
    struct ipc_welcome m;
    struct piped_stream *s;

    if (p->state != IPC_CLIENT_GREETING || ipc_get_welcome(b, h->length, &m) != 0 ||
        m.version != IPC_VERSION) {
        return invalid("an invalid WELCOME");
    }
    memcpy(p->server, m.server, sizeof(p->server));
    p->features = m.features;
    p->reconnects += p->ever_up;
    p->ever_up = true;
    p->state = IPC_CLIENT_UP;
    p->why[0] = '\0';
    settle(p);
    LIST_FOREACH(s, &p->streams, linked) {
        if (s->state == IPC_STREAM_NEW) {
            int rc = ipc_stream_start(s);

            if (rc < 0) {
                return rc;
            }
        }
    }
    return 0;
}

/* The count of valid rows must be one i64, and its dimension must exist. */
static int check_rows(const struct ipc_tensor *out, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = out[i].rows_output;

        if (at && (at > count || out[at - 1].dtype != IPC_I64 ||
                   out[at - 1].bytes != sizeof(int64_t) || out[i].rows_dim >= out[i].rank)) {
            return invalid("an invalid count of rows");
        }
    }
    return 0;
}

/* f16 comes only where it was asked for, and then f32 does not. */
static bool travels_as_asked(const struct piped_stream *s, const struct ipc_opened *m,
                             const struct ipc_tensor *tensors)
{
    for (uint32_t i = 0; i < m->input_count + m->output_count; i++) {
        uint32_t asked = i < m->input_count ? s->open.input_dtype : s->open.output_dtype;

        if (tensors[i].dtype == (asked == IPC_F16 ? IPC_F32 : IPC_F16)) {
            return false;
        }
    }
    return true;
}

/* A stream that was open before keeps its layout: its client, and the memory of its slots, rely on
 * it. */
static bool same_areas(const struct piped_stream *s, const struct ipc_opened *m)
{
    const struct piped_stream_info *i = &s->info;

    return m->input_count == i->input_count && m->output_count == i->output_count &&
           m->input_bytes == i->input_bytes && m->output_bytes == i->output_bytes &&
           m->image_width == i->image_width && m->image_height == i->image_height;
}

enum { E_OTHER_TENSORS = 1 }; /* than those of the open stream, which is unchanged */

/* Return: also E_OTHER_TENSORS. */
static int take_tensors(struct piped_stream *s, const struct ipc_opened *m, const uint8_t *b,
                        size_t bytes)
{
    struct ipc_tensor told[2 * IPC_TENSORS_MAX] = {0};
    size_t count = m->input_count + m->output_count;

    if (bytes < count * IPC_TENSOR_BYTES) {
        return invalid("an invalid OPENED");
    }
    if (s->slots && !same_areas(s, m)) {
        return E_OTHER_TENSORS;
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t area = i < m->input_count ? m->input_bytes : m->output_bytes;
        struct ipc_tensor *t = &told[i];

        if (ipc_get_tensor(b + i * IPC_TENSOR_BYTES, IPC_TENSOR_BYTES, t) != 0 ||
            t->offset + t->bytes > area) {
            return invalid("an invalid tensor");
        }
        memset(&t->dim[t->rank], 0, (IPC_RANK_MAX - t->rank) * sizeof(t->dim[0]));
    }
    if (s->slots) {
        return memcmp(told, s->told_tensors, sizeof(told)) == 0 ? 0 : E_OTHER_TENSORS;
    }
    memcpy(s->told_tensors, told, sizeof(told));
    for (size_t i = 0; i < count; i++) {
        const struct ipc_tensor *t = &s->told_tensors[i];

        s->tensors[i] = (struct piped_tensor){.name = t->name,
                                              .dtype = t->dtype,
                                              .rank = t->rank,
                                              .offset = t->offset,
                                              .bytes = t->bytes};
        memcpy(s->tensors[i].dim, t->dim, sizeof(t->dim));
    }
    return travels_as_asked(s, m, told) ? check_rows(told + m->input_count, m->output_count)
                                        : invalid("a tensor that was not asked for");
}

static int send_pool(struct piped_stream *s)
{
    struct ipc_header h = {.type = IPC_POOL, .stream = s->id};
    struct ipc_pool m = {.pool = 0, .bytes = s->memory_bytes};

    s->state = IPC_STREAM_POOLING;
    return ipc_client_queue(s->client, &h, &m, sizeof(m), NULL, 0, s->memfd);
}

/* A refusal ends a new stream, unless the daemon is stopping: the next one is asked. A stream that
 * was open before a restart is tried again: the daemon may still be loading the model. */
static int refused(struct piped_stream *s, const struct ipc_header *h, const char *text,
                   size_t bytes)
{
    bool stopping = h->status == IPC_UNAVAILABLE && s->client->draining;
    bool reopened = s->slots && (h->status == IPC_UNAVAILABLE || h->status == IPC_NOT_FOUND);

    ipc_client_error(0, "%s refused: %.*s", ipc_type_name((uint16_t)(h->type - 1)), (int)bytes,
                     text);
    if (stopping || reopened) {
        return -EAGAIN;
    }
    ipc_stream_fail(s, h->status, status_errno(h->status), piped_last_error());
    return 0;
}

static int on_opened(struct piped_stream *s, const struct ipc_header *h, const uint8_t *b)
{
    struct ipc_opened m;
    int rc;

    if (s->state != IPC_STREAM_OPENING || ipc_get_opened(b, h->length, &m) != 0) {
        return invalid("an invalid OPENED");
    }
    if (h->status != IPC_OK) {
        return refused(s, h, (const char *)b + IPC_OPENED_BYTES, h->length - IPC_OPENED_BYTES);
    }
    if (s->coming) {
        return invalid("a part of a DESCRIBED");
    }
    rc = take_tensors(s, &m, b + IPC_OPENED_BYTES, h->length - IPC_OPENED_BYTES);
    if (rc == E_OTHER_TENSORS) {
        ipc_stream_fail(s, IPC_INVALID_ARGUMENT, -ESTALE,
                        "the restarted daemon's model has inputs or outputs of other names, shapes "
                        "or types; open the stream again");
        return 0;
    }
    if (rc < 0) {
        return rc;
    }
    s->credits = m.credits;
    s->info = (struct piped_stream_info){.credits = m.credits,
                                         .depth = m.depth,
                                         .slots = (uint32_t)s->slot_count,
                                         .input_count = m.input_count,
                                         .output_count = m.output_count,
                                         .inputs = s->tensors,
                                         .outputs = s->tensors + m.input_count,
                                         .input_bytes = m.input_bytes,
                                         .output_bytes = m.output_bytes,
                                         .image_width = m.image_width,
                                         .image_height = m.image_height};
    if (!s->slots) {
        ipc_description_hold(&s->description, s->told);
        rc = ipc_stream_allocate(s);
        if (rc < 0) {
            ipc_stream_fail(s, IPC_INTERNAL, rc, piped_last_error());
            return 0;
        }
    }
    if (!s->inline_frames) {
        return send_pool(s);
    }
    return ready(s);
}

/* A part of a description, which holds for the outputs that come after it. */
static int on_described(struct piped_stream *s, const struct ipc_header *h, const uint8_t *b)
{
    size_t have = s->coming ? s->coming->bytes : 0;
    struct ipc_description *d;

    if (s->state == IPC_STREAM_NEW || have + h->length > IPC_DESCRIPTION_MAX ||
        memchr(b, 0, h->length)) {
        return invalid("an invalid DESCRIBED");
    }
    d = realloc(s->coming, sizeof(*d) + have + h->length + 1);
    if (!d) {
        return ipc_client_error(-ENOMEM, "out of memory");
    }
    memcpy(d->text + have, b, h->length);
    d->bytes = have + h->length;
    d->text[d->bytes] = '\0';
    d->references = 0;
    s->coming = d;
    if (!(h->flags & IPC_FLAG_MORE)) {
        ipc_description_hold(&s->told, base_take(s->coming));
    }
    return 0;
}

static int on_pooled(struct piped_stream *s, const struct ipc_header *h, const uint8_t *b)
{
    if (s->state != IPC_STREAM_POOLING) {
        return invalid("an unexpected POOLED");
    }
    if (h->status != IPC_OK) {
        return refused(s, h, (const char *)b, h->length);
    }
    return ready(s);
}

static int on_result(struct piped_stream *s, const struct ipc_header *h, const uint8_t *b)
{
    const uint8_t *rest = b + IPC_RESULT_BYTES;
    struct ipc_slot *slot = STAILQ_FIRST(&s->submitted);
    bool earlier_waits = false;
    struct piped_frame *f;
    struct ipc_result m;
    size_t rest_bytes;

    if (s->coming) {
        return invalid("a part of a DESCRIBED");
    }
    if (ipc_get_result(b, h->length, &m) != 0) {
        return invalid("an invalid RESULT");
    }
    rest_bytes = h->length - IPC_RESULT_BYTES;
    while (slot && !(slot->state == IPC_SLOT_SENT && slot->frame.number == h->frame)) {
        earlier_waits |= slot->state == IPC_SLOT_SENT;
        slot = STAILQ_NEXT(slot, linked);
    }
    if (!slot) {
        s->stats.duplicated++;
        return 0;
    }
    if (s->credits + (uint64_t)m.credits <= IPC_CREDITS_MAX) {
        s->credits += m.credits;
    }
    if (h->status == IPC_UNAVAILABLE && s->client->draining) {
        slot->state = IPC_SLOT_QUEUED; /* for the next daemon */
        return 0;
    }
    s->stats.reordered += earlier_waits;
    s->info.depth = m.depth ? m.depth : s->info.depth;
    f = &slot->frame;
    f->queue_ns = m.queue_ns;
    f->service_ns = m.service_ns;
    f->done_ns = m.done_ns;
    f->epoch = m.epoch;
    if (h->status != IPC_OK) {
        f->output_bytes = 0;
        ipc_slot_answer(s, slot, h->status, (const char *)rest, rest_bytes);
        return ipc_stream_pump(s);
    }
    if (m.out_bytes > s->output_size || (s->inline_frames && rest_bytes < m.out_bytes)) {
        return invalid("an invalid RESULT");
    }
    if (s->inline_frames) {
        memcpy(s->memory + slot->out_offset, rest, m.out_bytes);
    }
    f->output_bytes = (size_t)m.out_bytes;
    ipc_description_hold(&slot->description, s->told);
    ipc_slot_answer(s, slot, IPC_OK, "", 0);
    return ipc_stream_pump(s);
}

static int on_credit(struct piped_stream *s, const struct ipc_header *h, const uint8_t *b)
{
    struct ipc_credit m;

    if (ipc_get_credit(b, h->length, &m) != 0) {
        return invalid("an invalid CREDIT");
    }
    s->credits = base_min(s->credits + m.credits, IPC_CREDITS_MAX);
    s->info.credits = base_min(s->info.credits + m.credits, IPC_CREDITS_MAX);
    return ipc_stream_pump(s);
}

static int on_ping(struct piped *p, const struct ipc_header *h, const uint8_t *b)
{
    struct ipc_header pong = *h;

    pong.type = IPC_PONG;
    return ipc_client_queue(p, &pong, b, h->length, NULL, 0, -1);
}

/* The daemon closes the connection. */
static int on_error(struct piped *p, const struct ipc_header *h, const uint8_t *b)
{
    bool not_started = h->status == IPC_UNAVAILABLE && p->state == IPC_CLIENT_GREETING;

    if (h->status == IPC_RESOURCE_EXHAUSTED && !p->ever_up) {
        return ipc_client_error(-EUSERS, "refused: %.*s", (int)h->length, (const char *)b);
    }
    if (not_started) {
        ipc_client_error(0, IPC_NOT_STARTED "%.*s", (int)h->length, (const char *)b);
    } else {
        ipc_client_error(0, "the daemon closed the connection: %s: %.*s",
                         ipc_status_name(h->status), (int)h->length, (const char *)b);
    }
    snprintf(p->why, sizeof(p->why), "%s", piped_last_error());
    return not_started                          ? -EHOSTDOWN
           : h->status == IPC_PROTOCOL          ? -EPROTO
           : h->status == IPC_UNSUPPORTED       ? -EPROTONOSUPPORT
           : h->status == IPC_PERMISSION_DENIED ? -EACCES
                                                : -EBUSY;
}

static int on_event(struct piped *p, const struct ipc_header *h, const uint8_t *b)
{
    struct ipc_event_msg m;

    p->draining |= ipc_get_event(b, h->length, &m) == 0 && m.event == IPC_EVENT_DRAINING;
    return 0;
}

/* What a message does, to the connection or to its stream. Other types are skipped. */
static const struct {
    uint16_t type;
    int (*client)(struct piped *p, const struct ipc_header *h, const uint8_t *b);
    int (*stream)(struct piped_stream *s, const struct ipc_header *h, const uint8_t *b);
} handlers[] = {
    {IPC_RESULT, .stream = on_result}, {IPC_CREDIT, .stream = on_credit},
    {IPC_OPENED, .stream = on_opened}, {IPC_DESCRIBED, .stream = on_described},
    {IPC_POOLED, .stream = on_pooled}, {IPC_WELCOME, .client = on_welcome},
    {IPC_PING, .client = on_ping},     {IPC_ERROR, .client = on_error},
    {IPC_EVENT, .client = on_event},
};

int ipc_client_message(struct piped *p, const struct ipc_header *h, const uint8_t *b)
{
    struct piped_stream *s;

    if (p->state == IPC_CLIENT_GREETING && h->type != IPC_WELCOME && h->type != IPC_ERROR &&
        !(h->type & 0x8000)) {
        return invalid("a message before WELCOME");
    }
    for (size_t i = 0; i < base_array_count(handlers); i++) {
        if (handlers[i].type == h->type && handlers[i].client) {
            return handlers[i].client(p, h, b);
        }
        if (handlers[i].type == h->type) {
            s = find_stream(p, h->stream);
            return s ? handlers[i].stream(s, h, b) : 0; /* NULL: this side has closed it */
        }
    }
    return 0;
}
