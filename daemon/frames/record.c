/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/frames/record.h"

#include <stdarg.h>
#include <stdatomic.h>

#include "base.h"
#include "daemon/config/config.h"
#include "pixfmt.h"

struct dmn_record *dmn_record_new(struct dmn_stream *s)
{
    struct dmn_record *r = calloc(1, sizeof(*r));

    if (r) {
        r->stream = s;
    }
    return r;
}

struct dmn_record *dmn_record_free(struct dmn_record *r)
{
    dmn_record_release(r);
    free(r->buffer);
    free(r);
    return NULL;
}

void dmn_record_reset(struct dmn_record *r)
{
    r->next_free = NULL;
    r->state = DMN_RECORD_READING;
    r->here = false;
    r->arrival_ns = base_now_ns();
    r->deadline_ns = 0;
    r->image = (struct krn_image){0};
}

void dmn_record_refused(struct dmn_record *r)
{
    r->state = DMN_RECORD_DONE;
    dmn_record_release(r);
}

void dmn_record_fail(struct dmn_record *r, enum ipc_status status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    ipc_answer_vrefuse(&r->answer, status, format, args);
    va_end(args);
    dmn_record_refused(r);
}

void dmn_record_cancel(struct dmn_record *r)
{
    if (r->running) {
        atomic_store_explicit(&r->running->cancel, true, memory_order_relaxed);
    } else if (r->far.at) {
        r->far.at->cancel(r->far.at, &r->far);
    }
}

void dmn_record_release(struct dmn_record *r)
{
    r->memory = ipc_memory_unref(r->memory);
    r->input = NULL;
    r->output = NULL;
}

/* The record keeps the buffer for the next inline frame, so a steady client costs no allocation. */
static bool ensure_buffer(struct dmn_record *r, struct dmn_peer *p, size_t input_bytes,
                          size_t output_bytes)
{
    size_t at, total,
        limit = (size_t)dmn_config_int(*p->frames->config, DMN_KEY_LIMIT_INLINE_MIB) << 20;

    if (!base_add(input_bytes, 63, &at) || !base_add(at & ~(size_t)63, output_bytes, &total)) {
        return false;
    }
    r->buffer_output = at & ~(size_t)63;
    if (total > r->buffer_bytes) {
        uint8_t *grown;

        if (p->inline_bytes - r->buffer_bytes > limit ||
            total > limit - (p->inline_bytes - r->buffer_bytes)) {
            return false;
        }
        grown = aligned_alloc(64, base_align_up(total, 64));
        if (!grown) {
            return false;
        }
        free(r->buffer);
        r->buffer = grown;
        p->inline_bytes += total - r->buffer_bytes;
        r->buffer_bytes = total;
    }
    r->input = r->buffer;
    r->output = r->buffer + r->buffer_output;
    return true;
}

static struct ipc_areas areas_of(const struct dmn_frame_format *format)
{
    return (struct ipc_areas){.input_bytes = format->input_bytes,
                              .output_bytes = format->output_bytes,
                              .image = format->pixfmt != IPC_PIX_TENSOR};
}

/* Describes the input if it is an image. Return: false: it does not fit its bytes, refused. */
static bool set_image(struct dmn_record *r, const struct dmn_frame_format *format,
                      const struct ipc_frame *f)
{
    size_t bytes;

    if (format->pixfmt == IPC_PIX_TENSOR) {
        return true;
    }
    r->image = (struct krn_image){.format = krn_pixfmt(format->pixfmt),
                                  .width = f->width,
                                  .height = f->height,
                                  .stride = f->stride};
    if (f->stride == 0 && f->width <= UINT32_MAX / 3) {
        r->image.stride = pixfmt_row_bytes((enum pixfmt)format->pixfmt, f->width);
    }
    bytes = krn_image_bytes(&r->image);
    if (bytes == 0 || bytes > f->in_bytes) {
        ipc_answer_refuse(
            &r->answer, IPC_INVALID_ARGUMENT,
            "an image of %ux%u with stride %u is impossible or larger than %llu bytes", f->width,
            f->height, r->image.stride, (unsigned long long)f->in_bytes);
        return false;
    }
    return true;
}

void dmn_record_place_shared(struct dmn_record *r, const struct dmn_frame_format *format,
                             const struct ipc_frame *f, struct ipc_memory *memory)
{
    const struct ipc_areas areas = areas_of(format);

    if (!ipc_frame_fits_memory(&r->answer, f, memory, &areas) || !set_image(r, format, f)) {
        dmn_record_refused(r);
        return;
    }
    r->memory = ipc_memory_ref(memory);
    r->input = memory->map + f->in_offset;
    r->output = memory->map + f->out_offset;
    r->image.data = r->input;
}

size_t dmn_record_place_inline(struct dmn_record *r, const struct dmn_frame_format *format,
                               const struct ipc_header *h, const struct ipc_frame *f,
                               struct dmn_peer *p)
{
    const struct ipc_areas areas = areas_of(format);

    if (!ipc_frame_fits_message(&r->answer, h, f, &areas) || !set_image(r, format, f)) {
        dmn_record_refused(r);
        return 0;
    }
    if (!ensure_buffer(r, p, f->in_bytes, format->output_bytes)) {
        dmn_record_fail(r, IPC_RESOURCE_EXHAUSTED,
                        "no memory left for inline frames of this connection");
        return 0;
    }
    r->image.data = r->input;
    return f->in_bytes;
}
