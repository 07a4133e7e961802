/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/boards/away.h"

#include "base/base.h"
#include "daemon/machine/machine.h"
#include "daemon/models/models.h"
#include "daemon/service/work.h"
#include "ipc/boards/route_window.h"
#include "ipc/piped.h"

#define RETRY_NS (500 * BASE_NS_PER_MS)
#define WHY_BYTES 256
#define PATH_BYTES 108 /* of a socket */
#define RECONNECT_MS 2000u
/* Frames on their way, whose memory is shared with piped-link: as many as long routes need
 * (ipc/boards/route_window.h), unless they are large. */
#define FRAMES_MAX 256u
#define FRAMES_BYTES ((size_t)64 << 20)
#define FRAMES_LEAST 8u
#define DISPATCHES 64 /* at once; the loop calls again if there is more */

/* An open stream. */
struct line {
    uv_poll_t poll;
    struct dmn_away *away; /* NULL: closed, waits for the loop */
    struct piped *piped;
    struct piped_stream *stream;
};

/* Opens a stream on a work thread, where libpiped waits. */
struct opening {
    struct dmn_job work;
    struct dmn_away *away; /* who waits */
    char path[PATH_BYTES], model[64];
    unsigned pixfmt;
    size_t input_bytes, output_bytes;
    /* results, of the work thread */
    struct piped *piped;
    struct piped_stream *stream;
    char why[WHY_BYTES];
};

struct dmn_away {
    struct dmn_model *model; /* whose frames these are; borrowed */
    unsigned pixfmt;         /* their pixel format; 0: tensors */
    struct dmn_elsewhere *at;
    char path[PATH_BYTES];
    void (*changed)(void *ctx); /* NULL: nobody asks */
    void *ctx;
    struct opening *opening;            /* on a work thread; NULL: none */
    struct line *line;                  /* NULL: not open */
    TAILQ_HEAD(, dmn_far_frame) frames; /* in flight, in the order in which they were taken */
    struct dmn_away_counts counts;
    uint64_t retry_ns;
    bool unsettled, broken; /* look at the line before the loop waits; it takes no more frames */
    char why[WHY_BYTES];
};

static void close_line(struct line *line)
{
    line->away = NULL;
    uv_close((uv_handle_t *)&line->poll,
             dmn_handle_free); /* stops to watch the descriptor at once */
    piped_stream_close(line->stream);
    piped_close(line->piped);
}

/* Gives @f back to its submitter. */
static void give_back(struct dmn_away *a, struct dmn_far_frame *f, const struct dmn_far_answer *as)
{
    TAILQ_REMOVE(&a->frames, f, linked);
    a->counts.in_flight--;
    a->counts.undone += as->undone;
    f->at = NULL;
    f->slot = NULL;
    f->done(f, a->model, as);
}

/* What the answer in slot @s means for @f. */
static struct dmn_far_answer answer_of(const struct dmn_away *a, const struct dmn_far_frame *f,
                                       const struct piped_frame *s)
{
    uint64_t now = base_now_ns();
    struct dmn_far_answer as = {.epoch = s->epoch, .service_ns = s->service_ns, .done_ns = now};

    if (s->done_ns > s->submitted_ns && s->done_ns < now) {
        as.done_ns = s->done_ns;
    }
    if (s->status == PIPED_OK && s->output_bytes == a->model->output_bytes) {
        as.status = PL_FRAME_OK;
    } else if (s->status == PIPED_DEADLINE_EXCEEDED && f->deadline_ns) {
        as.status = PL_FRAME_EXPIRED;
    } else if (s->status == PIPED_CANCELLED && f->cancelled) {
        as.status = PL_FRAME_CANCELLED;
    } else {
        as.undone = true;
    }
    return as;
}

/* It was opened or lost: frames may go there now, or have to be computed here. */
static void tell(struct dmn_away *a)
{
    if (a->changed) {
        a->changed(a->ctx);
    }
    dmn_model_collect(a->model);
}

static void collect(struct dmn_away *a)
{
    struct piped_frame *s;
    bool any = false;

    while (a->line && piped_next(a->line->stream, &s) == 0) {
        struct dmn_far_frame *f = s->user;
        struct dmn_far_answer as = answer_of(a, f, s);

        if (!as.undone && as.status == PL_FRAME_OK) {
            memcpy(f->output, s->output, a->model->output_bytes);
        }
        piped_release(a->line->stream, s);
        give_back(a, f, &as);
        any = true;
    }
    if (any) { /* so there is room for others */
        dmn_model_collect(a->model);
    }
}

/* Nobody waits for the stream that is being opened any more, if there is one. */
static void leave_opening(struct dmn_away *a)
{
    struct opening *o = base_take(a->opening);

    if (o) {
        dmn_job_leave(&o->work);
    }
}

void dmn_away_close(struct dmn_away *a)
{
    const struct dmn_far_answer undone = {.undone = true};
    struct line *line;

    leave_opening(a);
    if (!a->line) {
        return;
    }
    collect(a);
    line = base_take(a->line); /* from here on nothing is taken */
    close_line(line);
    while (!TAILQ_EMPTY(&a->frames)) {
        give_back(a, TAILQ_FIRST(&a->frames), &undone);
    }
    a->broken = a->unsettled = false;
    tell(a);
}

/* Sends, receives, and takes what came back. */
static void dispatch(struct dmn_away *a)
{
    int r = 1;

    a->unsettled = false;
    for (size_t i = 0; r == 1 && i < DISPATCHES; i++) {
        r = piped_dispatch(a->line->piped, 0);
    }
    collect(a);
    if (a->line && (r < 0 || a->broken)) {
        snprintf(a->why, sizeof(a->why), "the connection to piped-link was lost");
        dmn_away_close(a);
    }
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct line *line = poll->data;

    if (line->away) {
        dispatch(line->away);
    }
}

bool dmn_away_settle(struct dmn_away *a)
{
    bool due = a->line && a->unsettled;

    if (due) {
        dispatch(a);
    }
    return due;
}

/* Return: false: out of memory or descriptors; both were closed. */
static bool watch(struct dmn_away *a, struct piped *p, struct piped_stream *s)
{
    struct line *line = calloc(1, sizeof(*line));

    if (!line || uv_poll_init(a->model->of->machine->loop, &line->poll, piped_fd(p)) < 0) {
        free(line);
        piped_stream_close(s);
        piped_close(p);
        return false;
    }
    line->poll.data = line;
    line->away = a;
    line->piped = p;
    line->stream = s;
    a->line = line;
    uv_poll_start(&line->poll, UV_READABLE, on_readable);
    return true;
}

/* Return: the stream's frames lie in memory as the model's do. */
static bool same_layout(const struct dmn_model *m, const struct piped_stream_info *i)
{
    bool same = i->input_count == m->model->input_count &&
                i->output_count == m->model->output_count && i->input_bytes == m->input_bytes &&
                i->output_bytes == m->output_bytes;

    for (size_t k = 0; same && k < i->input_count; k++) {
        same = i->inputs[k].offset == m->in_offset[k];
    }
    for (size_t k = 0; same && k < i->output_count; k++) {
        same = i->outputs[k].offset == m->out_offset[k];
    }
    return same;
}

static void opening_run(struct dmn_job *work)
{
    struct opening *o = base_container_of(work, struct opening, work);
    struct piped_options to = {
        .size = sizeof(to), .path = o->path, .client = "piped", .reconnect_ms = RECONNECT_MS};
    size_t frames = FRAMES_BYTES / base_max(o->input_bytes + o->output_bytes, (size_t)1);
    struct piped_stream_options of = {
        .size = sizeof(of), .model = o->model, .pixfmt = o->pixfmt, .policy = PIPED_BLOCK};

    frames = base_max(base_min(frames, (size_t)FRAMES_MAX), (size_t)FRAMES_LEAST);
    of.credits = (uint32_t)frames;
    if (o->pixfmt) {
        of.width = BRD_PICTURE_WIDTH;
        of.height = brd_picture_room((enum pixfmt)o->pixfmt, o->input_bytes);
    }

    if (piped_connect(&to, &o->piped) < 0 || piped_stream_open(o->piped, &of, &o->stream) < 0) {
        snprintf(o->why, sizeof(o->why), "%s", piped_last_error());
        o->piped = piped_close(o->piped);
    }
}

static void opening_drop(struct dmn_job *work)
{
    struct opening *o = base_container_of(work, struct opening, work);

    piped_stream_close(o->stream);
    piped_close(o->piped);
    free(o);
}

static void opening_done(struct dmn_job *work)
{
    struct opening *o = base_container_of(work, struct opening, work);
    struct piped *p = base_take(o->piped);
    struct piped_stream *s = base_take(o->stream);
    struct dmn_away *a = o->away;
    const char *why = o->why;

    a->opening = NULL;
    if (s && !same_layout(a->model, piped_stream_info(s))) {
        why = "piped-link has other inputs or outputs for the model";
        piped_stream_close(s);
        piped_close(p);
        s = NULL;
    } else if (s && !watch(a, p, s)) {
        why = "out of memory or descriptors";
        s = NULL;
    }
    snprintf(a->why, sizeof(a->why), "%s", s ? "" : why);
    opening_drop(work);
    if (s) {
        a->retry_ns = 0;
        tell(a);
    }
}

void dmn_away_want(struct dmn_away *a, uint64_t now_ns)
{
    struct opening *o;

    if (a->line || a->opening || now_ns < a->retry_ns) {
        return;
    }
    a->retry_ns = now_ns + RETRY_NS;
    a->opening = o = calloc(1, sizeof(*o));
    if (!o) {
        return;
    }
    o->work = (struct dmn_job){.run = opening_run, .done = opening_done, .drop = opening_drop};
    o->away = a;
    o->pixfmt = a->pixfmt;
    o->input_bytes = a->model->input_bytes;
    o->output_bytes = a->model->output_bytes;
    memcpy(o->path, a->path, sizeof(o->path));
    memcpy(o->model, a->model->name, sizeof(o->model));
    dmn_work_do(a->model->of->machine->awaited, &o->work);
}

/* Copies a picture without gaps between its rows. */
static void put_picture(const struct dmn_far_frame *f, struct piped_frame *s)
{
    const struct krn_image *i = f->image;
    size_t row = pixfmt_row_bytes((enum pixfmt)f->pixfmt, i->width);
    size_t rows = brd_picture_bytes(f->pixfmt, i->width, i->height) / row; /* of all planes */

    for (size_t y = 0; y < rows; y++) {
        memcpy((uint8_t *)s->input + y * row, i->data + y * i->stride, row);
    }
    s->width = i->width;
    s->height = i->height;
}

enum dmn_offer dmn_away_offer(struct dmn_away *a, struct dmn_far_frame *f)
{
    struct piped_frame *s;

    if (!a->line || a->broken) {
        return DMN_OFFER_NONE;
    }
    if (piped_acquire(a->line->stream, &s) < 0) {
        return DMN_OFFER_FULL;
    }
    if (f->image) {
        put_picture(f, s);
    } else {
        memcpy(s->input, f->input, a->model->input_bytes);
    }
    s->deadline_ns = f->deadline_ns;
    s->user = f;
    if (piped_submit(a->line->stream, s) < 0) {
        piped_release(a->line->stream, s);
        a->broken = a->unsettled = true;
        return DMN_OFFER_NONE;
    }
    f->at = a->at;
    f->slot = s;
    TAILQ_INSERT_TAIL(&a->frames, f, linked);
    a->counts.in_flight++;
    a->counts.taken++;
    return DMN_OFFER_TAKEN;
}

void dmn_away_cancel(struct dmn_away *a, struct dmn_far_frame *f)
{
    f->cancelled = true;
    piped_cancel(a->line->stream, f->slot);
    a->unsettled = true; /* what was not sent yet is answered without a message */
}

bool dmn_away_ready(const struct dmn_away *a)
{
    return a->line && !a->broken;
}

const char *dmn_away_why(const struct dmn_away *a)
{
    return a->why;
}

size_t dmn_away_depth(const struct dmn_away *a)
{
    const struct piped_stream_info *i = a->line ? piped_stream_info(a->line->stream) : NULL;

    return i ? base_max((size_t)i->depth, (size_t)1) : 0;
}

struct dmn_away_counts dmn_away_counts(const struct dmn_away *a)
{
    return a->counts;
}

struct dmn_away *dmn_away_new(struct dmn_model *m, unsigned pixfmt, struct dmn_elsewhere *at,
                              void (*changed)(void *ctx), void *ctx)
{
    const struct dmn_config *config = dmn_machine_config(m->of->machine);
    struct dmn_away *a = calloc(1, sizeof(*a));

    if (a) {
        *a = (struct dmn_away){
            .model = m, .pixfmt = pixfmt, .at = at, .changed = changed, .ctx = ctx};
        snprintf(a->path, sizeof(a->path), "%s",
                 dmn_config_string(config, DMN_KEY_BOARDS_FRAMES_SOCKET));
        TAILQ_INIT(&a->frames);
    }
    return a;
}

struct dmn_away *dmn_away_free(struct dmn_away *a)
{
    if (a) {
        leave_opening(a);
        if (a->line) {
            close_line(a->line);
        }
        free(a);
    }
    return NULL;
}
