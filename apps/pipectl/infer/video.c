/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl infer --video: raw frames of one size from a pipe, an answer for each as it comes. */
#include <poll.h>

#include "apps/pipectl/infer/infer.h"
#include "base/pixfmt.h"

struct video {
    struct infer *in;
    struct piped_stream *stream;
    int fd;                      /* owned unless it is standard input */
    size_t frame_bytes, have;    /* of the frame that is being read */
    struct piped_frame *filling; /* NULL: none */
    size_t sent, outstanding;
    bool ended;
};

int infer_video_format(struct infer *in, const char *text)
{
    uint32_t stride;
    int used = 0;

    if (text[strspn(text, "0123456789x")] == ':' &&
        sscanf(text, "%5ux%5u:%n", &in->video_width, &in->video_height, &used) == 2 && used &&
        ctl_pixfmt(text + used, &in->video_format) && in->video_format != PIPED_TENSOR) {
        stride = pixfmt_row_bytes((enum pixfmt)in->video_format, in->video_width);
        in->video_bytes = pixfmt_image_bytes((enum pixfmt)in->video_format, in->video_width,
                                             in->video_height, stride);
    }
    if (!in->video_bytes) {
        return ctl_usage("infer",
                         "--video needs WxH:FORMAT, as in 640x480:rgb24 (bgr24, gray8; nv12 and "
                         "yuyv with even sizes), not '%s'",
                         text);
    }
    return CTL_DONE;
}

/* Prints what is answered, in order. */
static int take_answers(struct video *v)
{
    struct piped_frame *f;
    int rc = CTL_DONE;

    while (rc == CTL_DONE && piped_next(v->stream, &f) == 0) {
        struct infer_item item = {
            .frame = v->in->reported++, .format = v->in->video_format, .best = -1};

        infer_take_answer(v->in, &item, f, v->stream);
        piped_release(v->stream, f);
        v->outstanding--;
        rc = infer_report_item(v->in, &item);
    }
    return rc;
}

/* Reads what is there; a whole frame is sent. */
static int read_some(struct video *v)
{
    ssize_t n = read(v->fd, (uint8_t *)v->filling->input + v->have, v->frame_bytes - v->have);

    if (n < 0 && errno != EINTR && errno != EAGAIN) {
        return ctl_fail("%s: %s", v->in->files[0].name, strerror(errno));
    }
    if (n == 0) {
        v->ended = true;
        if (v->have > 0) {
            ctl_say("%s: the last frame has %zu of %zu bytes", v->in->files[0].name, v->have,
                    v->frame_bytes);
            v->in->failed++;
        } else if (v->sent == 0) {
            ctl_say("%s: no frame came; look what the program that writes them says",
                    v->in->files[0].name);
            v->in->failed++;
        }
    }
    v->have += n > 0 ? (size_t)n : 0;
    if (v->have < v->frame_bytes) {
        return CTL_DONE;
    }
    v->filling->width = v->in->video_width;
    v->filling->height = v->in->video_height;
    if (piped_submit(v->stream, v->filling) < 0) {
        return ctl_refuse(CTL_UNREACHABLE, "%s", piped_last_error());
    }
    v->filling = NULL;
    v->have = 0;
    v->sent++;
    v->outstanding++;
    return CTL_DONE;
}

/* Waits for bytes, if there is room for them, and for answers. */
static int step(struct video *v)
{
    struct pollfd fds[2] = {{.fd = piped_fd(v->in->client), .events = POLLIN},
                            {.fd = v->fd, .events = POLLIN}};
    int limit = v->in->ctl->timeout_ms > 0 ? v->in->ctl->timeout_ms : -1, rc = CTL_DONE, n;

    if (!v->filling && !v->ended && piped_acquire(v->stream, &v->filling) < 0) {
        v->filling = NULL;
    }
    n = poll(fds, v->filling && !v->ended ? 2 : 1, v->outstanding ? limit : -1);
    if (n == 0) {
        return ctl_refuse(CTL_UNREACHABLE, "piped at %s has not answered a frame for %g s",
                          v->in->ctl->frames_path, limit / 1e3);
    }
    if (n > 0 && fds[0].revents && piped_dispatch(v->in->client, 0) < 0) {
        return ctl_refuse(CTL_UNREACHABLE, "%s", piped_last_error());
    }
    ctl_say_trouble(v->in->client, &v->in->said_trouble);
    if (n > 0 && v->filling && !v->ended && fds[1].revents) {
        rc = read_some(v);
    }
    return rc ? rc : take_answers(v);
}

int infer_video(struct infer *in)
{
    const char *path = in->files[0].name;
    bool standard = strcmp(path, "-") == 0;
    struct video v = {.in = in, .frame_bytes = in->video_bytes};
    struct piped_stream_options o = {.size = sizeof(o),
                                     .model = in->o.model,
                                     .pixfmt = in->video_format,
                                     .width = in->video_width,
                                     .height = in->video_height,
                                     .inline_frames = in->o.inline_frames};
    int rc = ctl_open_stream(in->client, &o, INFER_TENSORS, &v.stream);

    if (rc) {
        return rc;
    }
    v.fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (v.fd < 0) {
        return ctl_fail("%s: %s", path, strerror(errno));
    }
    infer_begin_decoding(in, v.stream);
    rc = infer_prepare(in);
    while (rc == CTL_DONE && !(v.ended && v.outstanding == 0)) {
        rc = step(&v);
    }
    if (!standard) {
        close(v.fd);
    }
    return rc;
}
