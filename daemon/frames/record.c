/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/frames/record.h"

#include <assert.h>

#include "daemon/config/config.h"

/* From each state, those that may follow. */
static const unsigned followers[] = {
    [DMN_RECORD_READING] =
        1u << DMN_RECORD_PREPARING | 1u << DMN_RECORD_QUEUED | 1u << DMN_RECORD_DONE,
    [DMN_RECORD_PREPARING] = 1u << DMN_RECORD_READING | 1u << DMN_RECORD_DONE,
    [DMN_RECORD_QUEUED] = 1u << DMN_RECORD_RUNNING | 1u << DMN_RECORD_DONE,
    [DMN_RECORD_RUNNING] = 1u << DMN_RECORD_QUEUED | 1u << DMN_RECORD_DONE,
    [DMN_RECORD_DONE] = 0,
};

void dmn_record_turn(struct dmn_record *r, enum dmn_record_state to)
{
    bool follows = followers[r->state] >> to & 1u;

    assert(follows);
    (void)follows; /* which a build without assertions does not read */
    r->state = to;
}

struct dmn_record *dmn_record_free(struct dmn_record *r)
{
    dmn_record_release(r);
    if (r->buffer) {
        r->account->inline_bytes -= r->buffer_bytes;
        r->frames->inline_bytes -= r->buffer_bytes;
        free(r->buffer);
    }
    free(r);
    return NULL;
}

void dmn_record_reset(struct dmn_record *r)
{
    r->next_free = NULL;
    r->state = DMN_RECORD_READING;
    r->here = r->admitted = false;
    r->goes_to = NULL;
    r->others = false;
    r->arrival_ns = base_now_ns();
    r->deadline_ns = 0;
    r->image = (struct krn_image){0};
    r->beside = r->for_boards = r->prepared = false;
    r->rows_done = 0;
    r->give_up = r->why = DMN_NO_RESULT_NONE;
    r->prepare_ns = 0;
    memset(&r->traced, 0, sizeof(r->traced));
}

void dmn_record_refused(struct dmn_record *r, enum dmn_no_result why)
{
    r->why = why;
    dmn_record_turn(r, DMN_RECORD_DONE);
    dmn_record_release(r);
}

void dmn_record_fail(struct dmn_record *r, enum dmn_no_result why)
{
    ipc_answer_refuse(&r->answer, dmn_no_results[why].status, "%s", dmn_no_results[why].text);
    dmn_record_refused(r, why);
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
    ipc_description_hold(&r->described, NULL);
    r->input = r->input_there = NULL;
    r->converted = NULL;
    r->output = r->output_there = NULL;
}

#define MPIXEL 1000000u

/* What a frame may have in its record's buffer, in this order. */
enum part { INPUT_THERE, INPUT, OUTPUT, OUTPUT_THERE, PARTS };

/* Return: false: too many bytes. */
static bool lay_out_parts(const size_t bytes[PARTS], size_t ret_at[PARTS], size_t *ret_total)
{
    size_t at = 0;

    for (size_t i = 0; i < PARTS; i++) {
        ret_at[i] = at;
        if (!base_add(at, bytes[i], &at) || !base_add(at, 63, &at)) {
            return false;
        }
        at &= ~(size_t)63;
    }
    *ret_total = at;
    return true;
}

/* Return: key's limit in bytes. */
static size_t limit_of(const struct dmn_peer *p, enum dmn_config_id key)
{
    return (size_t)dmn_config_int(*p->frames->config, key) << 20;
}

/* A user may have as much as is free afterwards: one alone half of all, each of two a third. So
 * there is always some for another. */
static bool may_grow(const struct dmn_peer *p, size_t more)
{
    size_t all = limit_of(p, DMN_KEY_LIMIT_INLINE_TOTAL_MIB),
           taken = p->frames->inline_bytes + more;

    return p->inline_bytes + more <= limit_of(p, DMN_KEY_LIMIT_INLINE_MIB) && taken <= all &&
           p->account->inline_bytes + more <= all - taken;
}

/* The record keeps the buffer for the next frame, so a steady client costs no allocation. */
static bool ensure_buffer(struct dmn_record *r, struct dmn_peer *p, size_t total)
{
    uint8_t *grown;

    if (total <= r->buffer_bytes) {
        return true;
    }
    if (total > SIZE_MAX / 4 || !may_grow(p, total - r->buffer_bytes)) {
        return false;
    }
    grown = aligned_alloc(64, total);
    if (!grown) {
        return false;
    }
    memset(grown, 0, total); /* gaps between tensors go out, too */
    free(r->buffer);
    r->buffer = grown;
    p->inline_bytes += total - r->buffer_bytes;
    r->account = p->account;
    r->frames = p->frames;
    r->account->inline_bytes += total - r->buffer_bytes;
    r->frames->inline_bytes += total - r->buffer_bytes;
    r->buffer_bytes = total;
    return true;
}

/* Finds a place for all that is not in client memory. Return: false: there is none; refused. */
static bool place_all(struct dmn_record *r, const struct dmn_frame_format *format,
                      const struct ipc_frame *f, const struct ipc_memory *m, struct dmn_peer *p)
{
    bool in = format->input.converts || r->beside, out = format->output.converts;
    const size_t bytes[PARTS] = {[INPUT_THERE] = m ? 0 : f->in_bytes,
                                 [INPUT] = in ? format->input.here_bytes : 0,
                                 [OUTPUT] = !m || out ? format->output.here_bytes : 0,
                                 [OUTPUT_THERE] = !m && out ? format->output.there_bytes : 0};
    size_t at[PARTS], total = SIZE_MAX / 2;
    enum dmn_config_id key;
    bool own;

    if (!lay_out_parts(bytes, at, &total) || !ensure_buffer(r, p, total)) {
        own = p->inline_bytes + total > limit_of(p, DMN_KEY_LIMIT_INLINE_MIB);
        key = own ? DMN_KEY_LIMIT_INLINE_MIB : DMN_KEY_LIMIT_INLINE_TOTAL_MIB;
        ipc_answer_refuse(&r->answer, IPC_RESOURCE_EXHAUSTED,
                          "no memory left for the inline, f16 and shrunk frames of this %s: "
                          "%s is %zu",
                          own ? "connection" : "user",
                          own ? "limits.inline_mib" : "limits.inline_total_mib",
                          limit_of(p, key) >> 20);
        return false;
    }
    r->input_there = m ? m->map + f->in_offset : r->buffer + at[INPUT_THERE];
    r->output_there = m ? m->map + f->out_offset : r->buffer + at[out ? OUTPUT_THERE : OUTPUT];
    r->input = in ? r->buffer + at[INPUT] : r->input_there;
    r->converted = format->input.converts ? r->buffer + at[INPUT] : NULL;
    r->output = out ? r->buffer + at[OUTPUT] : r->output_there;
    r->image.data = r->input_there;
    return true;
}

/* As place_all(); without memory for its tensor, a picture is left to the pipeline. */
static bool place(struct dmn_record *r, const struct dmn_frame_format *format,
                  const struct ipc_frame *f, const struct ipc_memory *m, struct dmn_peer *p)
{
    bool placed = place_all(r, format, f, m, p);

    if (!placed && r->for_boards) {
        r->beside = r->for_boards = false;
        r->answer.status = IPC_OK;
        placed = place_all(r, format, f, m, p);
    }
    return placed;
}

/* Describes the input if it is an image. Return: false: it does not fit its bytes, or is too large;
 * refused. */
static bool set_image(struct dmn_record *r, const struct dmn_frame_format *format,
                      const struct ipc_frame *f, const struct dmn_config *config)
{
    uint64_t pixels = (uint64_t)f->width * f->height;
    uint64_t in_team = (uint64_t)dmn_config_int(config, DMN_KEY_LIMIT_SLICE_MPIXELS) * MPIXEL;
    int64_t most = dmn_config_int(config, DMN_KEY_LIMIT_IMAGE_MPIXELS);
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
    if (pixels > (uint64_t)most * MPIXEL) {
        ipc_answer_refuse(&r->answer, IPC_INVALID_ARGUMENT,
                          "an image of %ux%u has %.1f megapixels; limits.image_mpixels is %lld",
                          f->width, f->height, (double)pixels / MPIXEL, (long long)most);
        return false;
    }
    /* other users' frames wait while a team prepares it */
    r->beside = pixels > (r->others ? in_team / 3 : in_team);
    r->for_boards =
        !r->beside && r->goes_to && !r->goes_to->takes(r->goes_to, format->pixfmt, &r->image);
    r->beside |= r->for_boards;
    return true;
}

size_t dmn_record_place(struct dmn_record *r, const struct dmn_frame_format *format,
                        const struct ipc_header *h, const struct ipc_frame *f,
                        struct ipc_memory *memory, struct dmn_peer *p)
{
    const struct ipc_areas areas = {.input_bytes = format->input.there_bytes,
                                    .output_bytes = format->output.there_bytes,
                                    .image = format->pixfmt != IPC_PIX_TENSOR};
    bool here = r->answer.is_inline;
    bool fits = here ? ipc_frame_fits_message(&r->answer, h, f, &areas)
                     : ipc_frame_fits_memory(&r->answer, f, memory, &areas);

    if (!fits || !set_image(r, format, f, *p->frames->config)) {
        dmn_record_refused(r, !here && ipc_memory_lost(memory) ? DMN_NO_RESULT_POOL_LOST
                                                               : DMN_NO_RESULT_INVALID);
        return 0;
    }
    if (!place(r, format, f, here ? NULL : memory, p)) {
        dmn_record_refused(r, DMN_NO_RESULT_MEMORY);
        return 0;
    }
    r->memory = here ? NULL : ipc_memory_ref(memory);
    return here ? f->in_bytes : 0;
}

/* ---- how its tensors travel ---- */

void dmn_travel_plan(const struct mdl_model *m, const struct mdl_io *ios, size_t count,
                     const size_t *here, size_t here_bytes, bool f16, struct dmn_travel *ret)
{
    size_t at = 0;

    *ret = (struct dmn_travel){.count = count, .here_bytes = here_bytes, .there_bytes = here_bytes};
    for (size_t i = 0; i < count; i++) {
        struct dmn_travel_tensor *t = &ret->tensor[i];

        *t = (struct dmn_travel_tensor){.here = here[i], .there = here[i], .bytes = ios[i].bytes};
        t->f16 = f16 && m->tensors[ios[i].tensor].dtype == MDL_F32;
        ret->converts |= t->f16;
    }
    for (size_t i = 0; ret->converts && i < count; i++) {
        ret->tensor[i].there = base_align_up(at, 64); /* at most as far as here: cannot overflow */
        at = ret->there_bytes = ret->tensor[i].there + dmn_travel_bytes(ret, i);
    }
}

void dmn_travel_in(const struct dmn_travel *t, const uint8_t *there, uint8_t *here)
{
    for (size_t i = 0; i < t->count; i++) {
        const struct dmn_travel_tensor *x = &t->tensor[i];

        if (x->f16) {
            ipc_f16_decode(there + x->there, x->bytes / sizeof(float), here + x->here);
        } else {
            memcpy(here + x->here, there + x->there, x->bytes);
        }
    }
}

void dmn_travel_out(const struct dmn_travel *t, const uint8_t *here, uint8_t *there)
{
    for (size_t i = 0; i < t->count; i++) {
        const struct dmn_travel_tensor *x = &t->tensor[i];

        if (x->f16) {
            ipc_f16_encode(here + x->here, x->bytes / sizeof(float), there + x->there);
        } else {
            memcpy(there + x->there, here + x->here, x->bytes);
        }
    }
}
