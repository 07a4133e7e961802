/* SPDX-License-Identifier: Apache-2.0 */
/* libpiped: the calls for streams and frames. */
#include "base/base.h"
#include "base/shown_text.h"
#include "ipc/client/client.h"

/* Return: f32 tensors can be sent as @dtype. */
static bool travels(uint32_t dtype)
{
    return dtype == 0 || dtype == PIPED_F32 || dtype == PIPED_F16;
}

/* As OPEN has it. */
static uint32_t half(uint32_t dtype)
{
    return dtype == PIPED_F16 ? IPC_F16 : 0;
}

static int take_options(const struct piped_stream_options *from, struct piped_stream_options *ret)
{
    const char *wrong;
    int rc;

    *ret = (struct piped_stream_options){.size = sizeof(*ret)};
    rc = ipc_client_options(from, ret, sizeof(*ret), "piped_stream_options");
    if (rc < 0) {
        return rc;
    }
    wrong = ret->pixfmt >= IPC_PIX_COUNT       ? "pixfmt"
            : ret->policy > IPC_POLICY_REJECT  ? "policy"
            : ret->priority > IPC_PRIORITY_MAX ? "priority"
            : ret->credits > IPC_CREDITS_MAX   ? "credits"
            : ret->slots > 4096                ? "slots"
            : !travels(ret->input_dtype)       ? "input_dtype"
            : !travels(ret->output_dtype)      ? "output_dtype"
                                               : NULL;
    if (wrong) {
        return ipc_client_error(-EINVAL, "the stream option %s is out of range", wrong);
    }
    /* What OPEN cannot have is not the name of a model. */
    if (ret->model &&
        (strlen(ret->model) >= IPC_NAME_BYTES || !shown_ok(ret->model, strlen(ret->model)))) {
        return ipc_client_error(-ENOENT, "no such model: %s", ret->model);
    }
    return 0;
}

/* Sends a message that is its header alone. */
static void tell(struct piped *p, const struct ipc_header *h)
{
    if (ipc_client_queue(p, h, NULL, 0, NULL, 0, -1) < 0 || ipc_client_flush(p) < 0) {
        ipc_client_lost(p, -ECONNABORTED);
    }
}

static void free_stream(struct piped_stream **s)
{
    if (*s) {
        ipc_stream_free(*s);
        *s = NULL;
    }
}

int piped_stream_open(struct piped *p, const struct piped_stream_options *options,
                      struct piped_stream **ret)
{
    base_cleanup(free_stream) struct piped_stream *s = NULL;
    struct piped_stream_options o;
    uint64_t end_ns = ipc_client_end_ns(p->answer_ms);
    int rc = take_options(options, &o);

    if (rc < 0) {
        return rc;
    }
    s = calloc(1, sizeof(*s));
    if (!s) {
        return ipc_client_error(-ENOMEM, "out of memory");
    }
    s->client = p;
    s->memfd = -1;
    STAILQ_INIT(&s->submitted);
    s->id = ++p->last_stream;
    s->inline_frames = o.inline_frames != 0;
    s->width = o.width;
    s->height = o.height;
    s->stride = o.stride;
    s->slots_wanted = o.slots;
    s->open = (struct ipc_open){.pixfmt = o.pixfmt,
                                .policy = o.policy,
                                .credits = o.credits,
                                .priority = o.priority,
                                .deadline_ns = o.deadline_ns,
                                .input_dtype = half(o.input_dtype),
                                .output_dtype = half(o.output_dtype)};
    ipc_name_set(s->open.model, o.model ? o.model : "");
    LIST_INSERT_HEAD(&p->streams, s, linked);
    if (p->state == IPC_CLIENT_UP) {
        rc = ipc_stream_start(s);
        rc = rc < 0 ? rc : ipc_client_flush(p);
        if (rc < 0) {
            ipc_client_lost(p, rc);
            rc = 0;
        }
    }
    while (rc == 0 && s->state != IPC_STREAM_READY && s->state != IPC_STREAM_FAILED) {
        rc = ipc_client_wait(p, end_ns);
    }
    if (s->state == IPC_STREAM_FAILED) {
        return s->error;
    }
    if (rc < 0) {
        return rc;
    }
    *ret = base_take(s);
    return 0;
}

struct piped_stream *piped_stream_close(struct piped_stream *s)
{
    if (!s) {
        return NULL;
    }
    if (s->client->state == IPC_CLIENT_UP && s->state >= IPC_STREAM_OPENING &&
        s->state != IPC_STREAM_FAILED) {
        struct ipc_header h = {.type = IPC_CLOSE, .stream = s->id};
        struct piped *p = s->client;

        /* a queued message that borrows the stream's memory cannot be finished: reconnect */
        for (size_t i = 0; i < p->tx_count; i++) {
            struct ipc_tx *m = &p->tx[p->tx_first + i];
            bool ours = (m->body && (const uint8_t *)m->body >= s->memory &&
                         (const uint8_t *)m->body < s->memory + s->memory_bytes) ||
                        (m->fd >= 0 && m->fd == s->memfd);

            if (ours) {
                ipc_client_lost(p, -ECONNABORTED);
                free_stream(&s);
                return NULL;
            }
        }
        tell(p, &h);
    }
    free_stream(&s);
    return NULL;
}

uint64_t piped_rows(const struct piped_stream *s, const struct piped_frame *f, uint32_t output,
                    uint32_t *ret_dim)
{
    const struct piped_tensor *t = &s->info.outputs[output];
    const struct ipc_tensor *told = &s->told_tensors[s->info.input_count + output];
    uint32_t at = told->rows_output, dim = told->rows_dim;
    int64_t rows;

    if (ret_dim) {
        *ret_dim = at ? dim : UINT32_MAX;
    }
    if (!at) {
        return t->rank ? t->dim[0] : 1;
    }
    memcpy(&rows, (const uint8_t *)f->output + s->info.outputs[at - 1].offset, sizeof(rows));
    return rows < 0 ? 0 : rows > t->dim[dim] ? t->dim[dim] : (uint64_t)rows;
}

const struct piped_stream_info *piped_stream_info(const struct piped_stream *s)
{
    return &s->info;
}

const char *piped_stream_description(const struct piped_stream *s)
{
    return s->description ? s->description->text : "";
}

void piped_stream_stats(const struct piped_stream *s, struct piped_stream_stats *ret)
{
    *ret = s->stats;
}

int piped_acquire(struct piped_stream *s, struct piped_frame **ret)
{
    for (size_t i = 0; i < s->slot_count; i++) {
        struct ipc_slot *slot = &s->slots[i];

        if (slot->state == IPC_SLOT_FREE) {
            slot->frame = (struct piped_frame){.input = s->memory + slot->in_offset,
                                               .input_size = s->input_size,
                                               .output = s->memory + slot->out_offset};
            slot->frame.text = slot->text;
            slot->text[0] = 0;
            slot->cancelled = slot->was_sent = false;
            slot->state = IPC_SLOT_ACQUIRED;
            *ret = &slot->frame;
            return 0;
        }
    }
    return -EAGAIN;
}

/* A tensor's bytes must be all of them, and no more: floats for a model of bytes are four times as
 * many. */
static int check_tensor(const struct piped_stream *s, const struct piped_frame *f)
{
    size_t needed = (size_t)s->info.input_bytes;

    if (f->width || f->height || f->stride) {
        return ipc_client_error(-EINVAL, "a tensor has no width, height or stride");
    }
    if (f->input_bytes != needed) {
        return ipc_client_error(-EINVAL,
                                "wrong size: the model takes %zu bytes, the first of them %s; "
                                "input_bytes is %zu",
                                needed,
                                s->info.input_count ? ipc_dtype_name(s->info.inputs[0].dtype) : "?",
                                f->input_bytes);
    }
    return 0;
}

/* Fills in what the caller left 0; checks the rest. */
static int check_frame(const struct piped_stream *s, struct piped_frame *f)
{
    size_t needed = (size_t)s->info.input_bytes;

    if (s->open.pixfmt != IPC_PIX_TENSOR) {
        if (f->width == 0 && f->height == 0) {
            f->stride = f->stride ? f->stride : s->stride;
            f->width = s->width;
            f->height = s->height;
        }
        if (ipc_picture_bytes(s->open.pixfmt, f->width, f->height, f->stride, &needed) < 0) {
            return -EINVAL;
        }
    }
    f->input_bytes = f->input_bytes ? f->input_bytes : needed;
    if (s->open.pixfmt == IPC_PIX_TENSOR && check_tensor(s, f) < 0) {
        return -EINVAL;
    }
    if (s->inline_frames && f->input_bytes > IPC_PAYLOAD_MAX - IPC_FRAME_BYTES) {
        return ipc_client_error(-EINVAL,
                                "a frame of %zu MiB is too large for a message; send it through "
                                "shared memory",
                                f->input_bytes >> 20);
    }
    if (needed == 0 || f->input_bytes < needed || f->input_bytes > s->input_size) {
        return ipc_client_error(-EINVAL,
                                "wrong size: the frame takes %zu bytes, input_bytes is %zu, the "
                                "slot has %zu",
                                needed, f->input_bytes, s->input_size);
    }
    return 0;
}

int piped_submit(struct piped_stream *s, struct piped_frame *f)
{
    struct ipc_slot *slot = (struct ipc_slot *)f;
    struct piped *p = s->client;
    int rc;

    if (slot->state != IPC_SLOT_ACQUIRED) {
        return ipc_client_error(-EINVAL, "the frame is not acquired, or was submitted before");
    }
    if (p->state == IPC_CLIENT_GONE) {
        return ipc_client_error(-ENOTCONN, "the stream is closed: %s", p->why);
    }
    if (s->state == IPC_STREAM_FAILED) {
        return ipc_client_error(-ENOTCONN, "the stream is closed: %s", strerror(-s->error));
    }
    rc = check_frame(s, f);
    if (rc < 0) {
        return rc;
    }
    f->number = ++s->last_number;
    f->submitted_ns = base_now_ns();
    slot->state = IPC_SLOT_QUEUED;
    STAILQ_INSERT_TAIL(&s->submitted, slot, linked);
    s->stats.submitted++;
    rc = ipc_stream_pump(s);
    rc = rc < 0 || p->sock < 0 ? rc : ipc_client_flush(p);
    if (rc < 0) {
        ipc_client_lost(p, rc); /* the frame is in the list and will be sent again */
    }
    return 0;
}

int piped_next(struct piped_stream *s, struct piped_frame **ret)
{
    struct ipc_slot *slot = STAILQ_FIRST(&s->submitted);

    if (!slot || slot->state != IPC_SLOT_ANSWERED) {
        return -EAGAIN;
    }
    STAILQ_REMOVE_HEAD(&s->submitted, linked);
    if (slot->frame.status == PIPED_OK) {
        ipc_description_hold(&s->description, slot->description);
        ipc_description_hold(&slot->description, NULL);
    }
    slot->state = IPC_SLOT_GIVEN;
    *ret = &slot->frame;
    return 0;
}

int piped_wait(struct piped_stream *s, int timeout_ms, struct piped_frame **ret)
{
    uint64_t end_ns = ipc_client_end_ns(timeout_ms);

    while (piped_next(s, ret) < 0) {
        int rc;

        if (STAILQ_EMPTY(&s->submitted)) {
            return ipc_client_error(-EAGAIN, "no frame is outstanding");
        }
        rc = ipc_client_wait(s->client, end_ns);
        if (rc < 0 && STAILQ_FIRST(&s->submitted)->state != IPC_SLOT_ANSWERED) {
            return rc;
        }
    }
    return 0;
}

void piped_release(struct piped_stream *s, struct piped_frame *f)
{
    struct ipc_slot *slot = (struct ipc_slot *)f;

    if (slot->state == IPC_SLOT_GIVEN || slot->state == IPC_SLOT_ACQUIRED) {
        slot->state = IPC_SLOT_FREE;
    }
}

void piped_cancel(struct piped_stream *s, struct piped_frame *f)
{
    struct ipc_slot *slot = (struct ipc_slot *)f;
    struct ipc_header h = {.type = IPC_CANCEL, .stream = s->id, .frame = f->number};

    if (slot->state != IPC_SLOT_QUEUED && slot->state != IPC_SLOT_SENT) {
        return;
    }
    slot->cancelled = true;
    if (slot->state == IPC_SLOT_QUEUED) {
        ipc_slot_cancelled(s, slot);
    } else {
        tell(s->client, &h);
    }
}

int piped_infer(struct piped_stream *s, struct piped_frame *f, int timeout_ms)
{
    struct piped_frame *answered;
    int rc;

    if (!STAILQ_EMPTY(&s->submitted)) {
        return ipc_client_error(-EBUSY, "other frames of the stream are outstanding");
    }
    rc = piped_submit(s, f);
    return rc < 0 ? rc : piped_wait(s, timeout_ms, &answered);
}
