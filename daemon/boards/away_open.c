/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/boards/away_open.h"

#include "base/base.h"
#include "daemon/service/work.h"
#include "ipc/boards/picture_room.h"
#include "ipc/piped.h"

#define RECONNECT_MS 2000u
/* Frames on their way, whose memory is shared with piped-link: as many as long routes need
 * (ipc/boards/route_window.h), unless they are large. */
#define FRAMES_MAX 256u
#define FRAMES_BYTES ((size_t)64 << 20)
#define FRAMES_LEAST 8u

struct dmn_away_opening {
    struct dmn_job work;
    dmn_away_opened_fn done;
    void *ctx;
    char path[108], model[64];
    unsigned pixfmt;
    size_t input_bytes, output_bytes;
    /* results, of the work thread */
    struct piped *piped;
    struct piped_stream *stream;
    char why[DMN_AWAY_WHY_MAX];
};

static void run(struct dmn_job *work)
{
    struct dmn_away_opening *o = base_container_of(work, struct dmn_away_opening, work);
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

static void drop(struct dmn_job *work)
{
    struct dmn_away_opening *o = base_container_of(work, struct dmn_away_opening, work);

    piped_stream_close(o->stream);
    piped_close(o->piped);
    free(o);
}

static void done(struct dmn_job *work)
{
    struct dmn_away_opening *o = base_container_of(work, struct dmn_away_opening, work);

    o->done(o->ctx, base_take(o->piped), base_take(o->stream), o->why);
    drop(work);
}

struct dmn_away_opening *dmn_away_open(struct dmn_work *w, const struct dmn_away_stream *of,
                                       dmn_away_opened_fn opened, void *ctx)
{
    struct dmn_away_opening *o = calloc(1, sizeof(*o));

    if (!o) {
        return NULL;
    }
    o->work = (struct dmn_job){.run = run, .done = done, .drop = drop};
    o->done = opened;
    o->ctx = ctx;
    o->pixfmt = of->pixfmt;
    o->input_bytes = of->input_bytes;
    o->output_bytes = of->output_bytes;
    snprintf(o->path, sizeof(o->path), "%s", of->path);
    snprintf(o->model, sizeof(o->model), "%s", of->model);
    dmn_work_do(w, &o->work);
    return o;
}

struct dmn_away_opening *dmn_away_open_leave(struct dmn_away_opening *o)
{
    if (o) {
        dmn_job_leave(&o->work);
    }
    return NULL;
}
