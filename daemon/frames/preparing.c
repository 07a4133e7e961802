/* SPDX-License-Identifier: Apache-2.0 */
/* Huge images become a model's input beside its pipeline.
 *
 * An image of more than DMN_KEY_LIMIT_SLICE_MPIXELS, or of a third of it while another user has a
 * stream of the model, would keep a team busy for so long that every frame behind it is late. Such
 * a frame is PREPARING first: a thread of its own makes its input, slice by slice, into the
 * record's buffer. Then it goes to the pipeline as a tensor. Users take turns between slices, as
 * frames do (admission.h), and the time counts against the user's share of the model. */
#include "daemon/frames/stream.h"
#include "daemon/service/log.h"

/* Pixels of the image in one slice, unless one row of the input takes more. About 5 ms. */
#define SLICE_PIXELS ((uint64_t)1 << 20)

static void slice_done(struct dmn_job *job);

static void leave_preparing(struct dmn_record *r)
{
    r->preparing_for->running--;
    r->preparing_for = NULL;
}

/* Ends a PREPARING frame that is not computed. */
static void give_up(struct dmn_record *r, enum dmn_no_result why)
{
    leave_preparing(r);
    dmn_record_fail(r, why);
    dmn_stream_returned(r->stream);
}

/* Return: the frame was given up. */
static bool ends(struct dmn_record *r)
{
    if (r->give_up != DMN_NO_RESULT_NONE) {
        give_up(r, r->give_up);
    } else if (!r->stream->clients) {
        give_up(r, DMN_NO_RESULT_UNLOADED);
    } else if (r->deadline_ns && base_now_ns() >= r->deadline_ns) {
        give_up(r, DMN_NO_RESULT_LATE_PREPARING);
    } else {
        return false;
    }
    return true;
}

static struct dmn_record *oldest(const struct dmn_stream *s)
{
    for (uint32_t i = s->base.head; i != s->base.tail; i++) {
        struct dmn_record *r = s->ring[i & DMN_RING_MASK];

        if (r->state == DMN_RECORD_PREPARING) {
            return r;
        }
    }
    return NULL;
}

static bool ensure_scratch(struct dmn_preparing *p, size_t bytes)
{
    if (bytes > p->scratch_bytes) {
        uint8_t *grown = aligned_alloc(64, base_align_up(bytes, 64));

        if (!grown) {
            return false;
        }
        free(p->scratch);
        p->scratch = grown;
        p->scratch_bytes = bytes;
    }
    return true;
}

/* As a client sends it. */
static struct mdl_tensor dense(const struct mdl_tensor *t)
{
    struct mdl_tensor d = *t;
    ptrdiff_t stride = 1;

    for (size_t i = d.rank; i-- > 0;) {
        d.stride[i] = stride;
        stride *= (ptrdiff_t)d.dim[i];
    }
    return d;
}

/* Work thread. */
static void slice_run(struct dmn_job *job)
{
    struct dmn_slice *s = base_container_of(job, struct dmn_slice, job);
    const struct krn_exec exec = {.width = 1, .scratch = s->scratch};
    uint64_t start = base_now_ns();

    krn_preprocess_slice(&s->image, &s->preproc, &s->shape, s->input, s->begin, s->end, &exec);
    s->took_ns = base_now_ns() - start;
}

/* Return: false: out of memory. */
static bool begin_slice(struct dmn_preparing *p, struct dmn_record *r)
{
    const struct mdl_model *m = r->stream->clients->model->model;
    struct dmn_slice *s = &p->slice;
    uint64_t pixels = (uint64_t)r->image.width * r->image.height;
    size_t rows;

    if (!ensure_scratch(p, krn_preprocess_scratch_bytes(m, 1))) {
        return false;
    }
    /* a hot swap may have brought another way to prepare */
    if (memcmp(&r->prepared_by, &m->preproc, sizeof(m->preproc)) != 0) {
        memcpy(&r->prepared_by, &m->preproc, sizeof(m->preproc));
        r->rows_done = 0;
    }
    *s = (struct dmn_slice){.job = {.run = slice_run, .done = slice_done},
                            .image = r->image,
                            .preproc = m->preproc,
                            .shape = dense(&m->tensors[m->inputs[0].tensor]),
                            .input = (uint8_t *)(uintptr_t)r->input +
                                     r->stream->format.input.tensor[0].here,
                            .scratch = p->scratch,
                            .begin = r->rows_done};
    rows = krn_preprocess_rows(&s->preproc, &s->shape);
    s->end = s->begin + base_max((size_t)(rows * SLICE_PIXELS / pixels), (size_t)1);
    s->end = base_min(s->end, rows);
    p->record = r;
    dmn_work_do(p->thread, &s->job);
    return true;
}

static void next_slice(struct dmn_preparing *p)
{
    struct dmn_queue *q;

    while (!p->record && (q = dmn_admission_next(&p->turns)) != NULL) {
        struct dmn_record *r = oldest(base_container_of(q, struct dmn_stream, slices));

        p->expected_ns = dmn_admission_taken(&p->turns, q);
        if (!ends(r) && !begin_slice(p, r)) {
            give_up(r, DMN_NO_RESULT_NO_MEMORY);
        }
    }
}

/* The input is complete: it is as if it came now, as a tensor. */
static void prepared(struct dmn_record *r)
{
    struct dmn_stream *s = r->stream;

    leave_preparing(r);
    r->prepared = true;
    dmn_record_turn(r, DMN_RECORD_READING);
    s->running--;
    dmn_submit_frame(r);
    ipc_conn_mark(&s->peer->base);
}

static void slice_done(struct dmn_job *job)
{
    struct dmn_preparing *p = base_container_of(job, struct dmn_preparing, slice.job);
    struct dmn_record *r = base_take(p->record);
    struct dmn_stream *stream = r->stream;
    uint64_t took_ns = p->slice.took_ns;

    if (!p->running) {
        give_up(r, DMN_NO_RESULT_STOPPED);
        return;
    }
    dmn_admission_measured(&p->turns, &stream->slices, p->expected_ns, took_ns);
    if (stream->queue.share) {
        dmn_admission_correct(&stream->clients->admission, &stream->queue, (int64_t)took_ns);
    }
    r->preparing_for->clients->stats.image_beside_ns += took_ns;
    r->rows_done = p->slice.end;
    r->prepare_ns += took_ns;
    if (ends(r)) {
        /* nothing is left to do */
    } else if (r->rows_done == krn_preprocess_rows(&p->slice.preproc, &p->slice.shape)) {
        prepared(r);
    } else {
        dmn_admission_add(&p->turns, &stream->slices);
    }
    next_slice(p);
}

void dmn_prepare_frame(struct dmn_record *r)
{
    struct dmn_stream *s = r->stream;
    struct dmn_preparing *p = &s->peer->frames->preparing;

    if (!r->beside || !s->clients || s->clients->model->leaving) {
        dmn_submit_frame(r);
        return;
    }
    if (!p->running) {
        dmn_record_fail(r, DMN_NO_RESULT_NO_THREAD);
        return;
    }
    for (uint32_t i = s->base.head; i != s->base.tail && s->policy == IPC_POLICY_LATEST; i++) {
        s->ring[i & DMN_RING_MASK]->give_up = DMN_NO_RESULT_NEWER; /* read only of PREPARING ones */
    }
    r->give_up = DMN_NO_RESULT_NONE;
    if (!s->slices.share) {
        dmn_peer_join(s->peer, &p->turns, &s->slices);
    }
    dmn_record_turn(r, DMN_RECORD_PREPARING);
    r->preparing_for = s->clients->model;
    r->preparing_for->running++;
    s->running++;
    dmn_admission_add(&p->turns, &s->slices);
    next_slice(p);
}

void dmn_preparing_deinit(struct dmn_frames *f)
{
    dmn_admission_deinit(&f->preparing.turns);
    f->preparing.thread = dmn_work_free(f->preparing.thread);
    free(base_take(f->preparing.scratch));
    f->preparing.scratch_bytes = 0;
}

void dmn_preparing_start(struct dmn_frames *f)
{
    int error = dmn_work_new(f->loop, "piped:images", 1, true, &f->preparing.thread);

    f->preparing.running = error == 0;
    if (error < 0) {
        dmn_log(LOG_ERR,
                "cannot start the thread that shrinks large images: %s; images larger than "
                "limits.slice_mpixels are refused",
                strerror(-error));
    }
}

void dmn_preparing_stop(struct dmn_frames *f)
{
    struct dmn_preparing *p = &f->preparing;
    struct dmn_queue *q;

    p->running = false;
    dmn_work_stop(p->thread);
    while ((q = dmn_admission_next(&p->turns)) != NULL) {
        struct dmn_record *r = oldest(base_container_of(q, struct dmn_stream, slices));

        dmn_admission_drop(&p->turns, q);
        give_up(r, DMN_NO_RESULT_STOPPED);
    }
}
