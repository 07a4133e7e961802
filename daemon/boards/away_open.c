/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/boards/away_open.h"

#include <stdio.h>
#include <string.h>

#include "base.h"
#include "ipc/piped.h"

#define RECONNECT_MS 2000u
/* Frames on their way, whose memory is shared with piped-link: as many as long routes need
 * (ipc/boards/route_window.h), unless they are large. */
#define FRAMES_MAX 256u
#define FRAMES_BYTES ((size_t)64 << 20)
#define FRAMES_LEAST 8u

struct dmn_away_opening {
    uv_work_t work;
    dmn_away_opened_fn done; /* NULL: nobody waits */
    void *ctx;
    char path[108], model[64];
    size_t frame_bytes;
    /* results, of the work thread */
    struct piped *piped;
    struct piped_stream *stream;
    char why[DMN_AWAY_WHY_MAX];
};

static void on_work(uv_work_t *work)
{
    struct dmn_away_opening *o = base_container_of(work, struct dmn_away_opening, work);
    struct piped_options to = {
        .size = sizeof(to), .path = o->path, .client = "piped", .reconnect_ms = RECONNECT_MS};
    size_t frames = FRAMES_BYTES / base_max(o->frame_bytes, (size_t)1);
    struct piped_stream_options of = {
        .size = sizeof(of), .model = o->model, .pixfmt = PIPED_TENSOR, .policy = PIPED_BLOCK};

    frames = base_max(base_min(frames, (size_t)FRAMES_MAX), (size_t)FRAMES_LEAST);
    of.credits = (uint32_t)frames;

    if (piped_connect(&to, &o->piped) < 0 || piped_stream_open(o->piped, &of, &o->stream) < 0) {
        snprintf(o->why, sizeof(o->why), "%s", piped_last_error());
        o->piped = piped_close(o->piped);
    }
}

static void on_worked(uv_work_t *work, int status)
{
    struct dmn_away_opening *o = base_container_of(work, struct dmn_away_opening, work);

    if (o->done) {
        o->done(o->ctx, base_take(o->piped), base_take(o->stream), o->why);
    }
    piped_stream_close(o->stream);
    piped_close(o->piped);
    free(o);
}

struct dmn_away_opening *dmn_away_open(uv_loop_t *loop, const char *path, const char *model,
                                       size_t frame_bytes, dmn_away_opened_fn done, void *ctx)
{
    struct dmn_away_opening *o = calloc(1, sizeof(*o));

    if (!o) {
        return NULL;
    }
    o->done = done;
    o->ctx = ctx;
    o->frame_bytes = frame_bytes;
    snprintf(o->path, sizeof(o->path), "%s", path);
    snprintf(o->model, sizeof(o->model), "%s", model);
    if (uv_queue_work(loop, &o->work, on_work, on_worked) < 0) {
        free(o);
        return NULL;
    }
    return o;
}

struct dmn_away_opening *dmn_away_open_leave(struct dmn_away_opening *o)
{
    if (o) {
        o->done = NULL;
        uv_cancel((uv_req_t *)&o->work); /* fails if it runs already; then its end frees it */
    }
    return NULL;
}
