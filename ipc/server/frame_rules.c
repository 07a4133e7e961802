/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/server/frame_rules.h"

void ipc_answer_vrefuse(struct ipc_answer *a, enum ipc_status status, const char *format,
                        va_list args)
{
    vsnprintf(a->text, sizeof(a->text), format, args);
    a->status = status;
}

void ipc_answer_refuse(struct ipc_answer *a, enum ipc_status status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    ipc_answer_vrefuse(a, status, format, args);
    va_end(args);
}

static void begin_answer(struct ipc_answer *a, const struct ipc_header *h, bool has_credit)
{
    a->status = IPC_OK;
    a->epoch = a->depth = 0;
    a->is_inline = h->type == IPC_INLINE;
    a->has_credit = has_credit;
    a->frame = h->frame;
    a->time_ns = h->time_ns;
    a->queue_ns = a->service_ns = a->done_ns = 0;
    a->text[0] = '\0';
}

bool ipc_frame_take(struct ipc_flow *flow, struct ipc_answer *a, const struct ipc_header *h,
                    const uint8_t *payload, struct ipc_frame *ret_f)
{
    bool fresh = !flow->numbered || h->frame > flow->last_frame;

    begin_answer(a, h, flow->unanswered < flow->credits);
    flow->unanswered += a->has_credit;
    if (fresh) {
        flow->numbered = true;
        flow->last_frame = h->frame;
    }
    if (!a->has_credit) {
        ipc_answer_refuse(a, IPC_RESOURCE_EXHAUSTED, "no credit left: %u frames are unanswered",
                          flow->unanswered);
    } else if (!fresh) {
        ipc_answer_refuse(a, IPC_INVALID_ARGUMENT,
                          "frame number %llu is not above the last one, %llu",
                          (unsigned long long)h->frame, (unsigned long long)flow->last_frame);
    } else if (ipc_get_frame(payload, IPC_FRAME_BYTES, ret_f) != 0) {
        ipc_answer_refuse(a, IPC_INVALID_ARGUMENT, "a field of the frame is out of range");
    } else {
        return true;
    }
    return false;
}

static bool input_fits(struct ipc_answer *a, const struct ipc_frame *f,
                       const struct ipc_areas *areas)
{
    if (!areas->image && f->in_bytes != areas->input_bytes) {
        ipc_answer_refuse(a, IPC_INVALID_ARGUMENT, "the input has %llu bytes; the model takes %zu",
                          (unsigned long long)f->in_bytes, areas->input_bytes);
        return false;
    }
    return true;
}

bool ipc_frame_fits_memory(struct ipc_answer *a, const struct ipc_frame *f,
                           const struct ipc_memory *m, const struct ipc_areas *areas)
{
    uint64_t in_end = f->in_offset + f->in_bytes, out_end = f->out_offset + f->out_bytes;

    if (!m) {
        ipc_answer_refuse(a, IPC_NOT_FOUND, "no pool %u on this stream", f->pool);
    } else if (ipc_memory_lost(m)) {
        ipc_answer_refuse(a, IPC_INVALID_ARGUMENT, IPC_POOL_LOST);
    } else if (in_end > m->bytes || out_end > m->bytes) {
        ipc_answer_refuse(a, IPC_INVALID_ARGUMENT, "the %s is outside the pool of %zu bytes",
                          in_end > m->bytes ? "input" : "output", m->bytes);
    } else if (f->out_bytes < areas->output_bytes) {
        ipc_answer_refuse(a, IPC_INVALID_ARGUMENT,
                          "the output area has %llu bytes; the model writes %zu",
                          (unsigned long long)f->out_bytes, areas->output_bytes);
    } else if (f->out_offset % 64 || (!areas->image && f->in_offset % 64)) {
        ipc_answer_refuse(a, IPC_INVALID_ARGUMENT, "offsets must be multiples of 64");
    } else if (f->in_offset < out_end && f->out_offset < in_end) {
        ipc_answer_refuse(a, IPC_INVALID_ARGUMENT, "input and output overlap");
    } else {
        return input_fits(a, f, areas);
    }
    return false;
}

bool ipc_frame_fits_message(struct ipc_answer *a, const struct ipc_header *h,
                            const struct ipc_frame *f, const struct ipc_areas *areas)
{
    if (f->in_bytes != h->length - IPC_FRAME_BYTES) {
        ipc_answer_refuse(a, IPC_INVALID_ARGUMENT, "in_bytes is %llu, but %u bytes follow",
                          (unsigned long long)f->in_bytes, h->length - IPC_FRAME_BYTES);
        return false;
    }
    if (!input_fits(a, f, areas)) {
        return false;
    }
    if (areas->output_bytes > IPC_PAYLOAD_MAX - IPC_RESULT_BYTES) {
        ipc_answer_refuse(a, IPC_INVALID_ARGUMENT, "the output does not fit into a message");
        return false;
    }
    return true;
}

void ipc_answer_reply(const struct ipc_answer *a, uint32_t stream, const uint8_t *output,
                      size_t output_bytes, struct ipc_reply *ret)
{
    struct ipc_result m = {.queue_ns = a->queue_ns,
                           .service_ns = a->service_ns,
                           .done_ns = a->done_ns,
                           .credits = a->has_credit,
                           .epoch = a->epoch,
                           .depth = a->depth};

    ret->h = (struct ipc_header){.type = IPC_RESULT,
                                 .stream = stream,
                                 .status = (uint16_t)a->status,
                                 .frame = a->frame,
                                 .time_ns = a->time_ns};
    if (a->status != IPC_OK) {
        ret->tail = a->text;
        ret->tail_bytes = strlen(a->text);
    } else {
        m.out_bytes = output_bytes;
        ret->tail = a->is_inline ? output : NULL;
        ret->tail_bytes = a->is_inline ? output_bytes : 0;
    }
    ret->bytes = IPC_RESULT_BYTES;
    memcpy(ret->payload, &m, sizeof(m));
}

/* ---- OPEN and POOL ---- */

_Static_assert(sizeof(((struct ipc_reply *)NULL)->payload) >= IPC_OPENED_BYTES,
               "a reply has room for OPENED");

static bool travels(uint32_t dtype)
{
    return dtype == 0 || dtype == IPC_F32 || dtype == IPC_F16;
}

/* Checks as what f32 tensors travel. Where a side knows only f32, these fields are reserved. */
static enum ipc_status check_dtypes(struct ipc_open *o, uint32_t features, const char **ret_text)
{
    if (!(features & IPC_FEATURE_F16)) {
        o->input_dtype = o->output_dtype = 0;
    }
    if (!travels(o->input_dtype) || !travels(o->output_dtype)) {
        *ret_text = "input_dtype and output_dtype are 0, f32 or f16";
        return IPC_UNSUPPORTED;
    }
    if (o->input_dtype == IPC_F16 && o->pixfmt != IPC_PIX_TENSOR) {
        *ret_text = "an input of f16 needs pixfmt 0; pictures have pixels of bytes";
        return IPC_INVALID_ARGUMENT;
    }
    o->input_dtype = o->input_dtype == IPC_F16 ? IPC_F16 : 0;
    o->output_dtype = o->output_dtype == IPC_F16 ? IPC_F16 : 0;
    return IPC_OK;
}

enum ipc_status ipc_open_check(const struct ipc_header *h, const uint8_t *payload,
                               const struct ipc_open_place *place, struct ipc_open *ret,
                               const char **ret_text)
{
    if (ipc_get_open(payload, IPC_OPEN_BYTES, ret) != 0 || h->stream == 0) {
        *ret_text = "a field of OPEN is out of range";
        return IPC_INVALID_ARGUMENT;
    }
    if (place->in_use) {
        *ret_text = "the stream's number is in use";
        return IPC_INVALID_ARGUMENT;
    }
    if (place->unavailable) {
        *ret_text = place->unavailable;
        return IPC_UNAVAILABLE;
    }
    if (place->streams >= place->streams_max) {
        *ret_text = "too many streams on this connection";
        return IPC_RESOURCE_EXHAUSTED;
    }
    return check_dtypes(ret, place->features, ret_text);
}

void ipc_open_refusal(const struct ipc_header *h, enum ipc_status status, const char *text,
                      struct ipc_reply *ret)
{
    *ret = (struct ipc_reply){
        .h = {.type = IPC_OPENED, .stream = h->stream, .status = (uint16_t)status},
        .bytes = IPC_OPENED_BYTES,
        .tail = text,
        .tail_bytes = strlen(text)};
}

static enum ipc_status take_pool(const uint8_t *payload, int fd, const struct ipc_pool_place *place,
                                 struct ipc_pool *ret, const char **ret_text)
{
    if (ipc_get_pool(payload, IPC_POOL_BYTES, ret) != 0) {
        *ret_text = "a field of POOL is out of range";
        return IPC_INVALID_ARGUMENT;
    }
    if (!place->memory) {
        *ret_text = "no such stream";
        return IPC_NOT_FOUND;
    }
    if (fd < 0) {
        *ret_text = "POOL needs exactly one file descriptor";
        return IPC_INVALID_ARGUMENT;
    }
    if (place->memory[ret->pool]) {
        *ret_text = "the pool's number is in use";
        return IPC_INVALID_ARGUMENT;
    }
    if (ret->bytes <= IPC_POOL_BYTES_MAX && *place->total + ret->bytes > place->total_max) {
        *ret_text = place->over;
        return IPC_RESOURCE_EXHAUSTED;
    }
    return ipc_memory_map(fd, ret->bytes, place->total, place->total_max, ret_text,
                          &place->memory[ret->pool]);
}

void ipc_pool_take(const struct ipc_header *h, const uint8_t *payload, int fd,
                   const struct ipc_pool_place *place, struct ipc_reply *ret)
{
    struct ipc_pool p = {0};
    const char *text = "";
    enum ipc_status status = take_pool(payload, fd, place, &p, &text);

    *ret = (struct ipc_reply){
        .h = {.type = IPC_POOLED, .stream = h->stream, .status = (uint16_t)status, .frame = p.pool},
        .tail = text,
        .tail_bytes = strlen(text)};
}
