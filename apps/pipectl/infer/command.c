/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl infer: sends files and prints their answers in order. Keeps all slots busy. */
#include <poll.h>

#include "apps/pipectl/infer/infer.h"
#include "ipc/wire.h"

#define STALL_MS 120000 /* no answer for this long: something is wrong */

static size_t stream_index(const struct infer_item *item)
{
    return item->f16 ? INFER_F16 : item->format == PIPED_GRAY8 ? 2 : item->format == PIPED_RGB24;
}

static int open_stream(struct infer *in, size_t k, uint32_t slots)
{
    static const uint32_t formats[INFER_STREAMS] = {PIPED_TENSOR, PIPED_RGB24, PIPED_GRAY8,
                                                    PIPED_TENSOR};
    struct piped_stream_options o = {.size = sizeof(o),
                                     .model = in->o.model,
                                     .pixfmt = formats[k],
                                     .slots = slots,
                                     .width = in->most_width[k],
                                     .height = in->most_height[k],
                                     .inline_frames = in->o.inline_frames,
                                     .input_dtype = k == INFER_F16 ? PIPED_F16 : 0};

    return ctl_open_stream(in->client, &o, INFER_TENSORS, &in->streams[k]);
}

/* Gives the answers that have come to their items. */
static int collect(struct infer *in)
{
    for (size_t k = 0; k < INFER_STREAMS; k++) {
        struct piped_frame *f;

        while (in->streams[k] && piped_next(in->streams[k], &f) == 0) {
            infer_take_answer(in, f->user, f, in->streams[k]);
            piped_release(in->streams[k], f);
        }
    }
    return infer_report_next(in);
}

static int wait_answers(struct infer *in)
{
    int limit_ms = in->ctl->timeout_ms == CTL_TIMEOUT_DEFAULT ? STALL_MS : in->ctl->timeout_ms;
    int rc = piped_dispatch(in->client, limit_ms ? limit_ms : -1);

    if (rc == 0) {
        return ctl_refuse(CTL_UNREACHABLE, "piped at %s has not answered a frame for %g s",
                          in->ctl->frames_path, limit_ms / 1e3);
    }
    if (rc < 0) {
        (void)collect(in);
        return ctl_refuse(CTL_UNREACHABLE, "%s", piped_last_error());
    }
    ctl_say_trouble(in->client, &in->said_trouble);
    return collect(in);
}

static int acquire(struct infer *in, struct piped_stream *s, struct piped_frame **ret)
{
    int rc = CTL_DONE;

    while (rc == CTL_DONE && piped_acquire(s, ret) < 0) {
        rc = wait_answers(in);
    }
    return rc;
}

static void fail_item(struct infer_item *item, const char *why)
{
    item->error = strdup(why);
    item->done = true;
}

static int send_item(struct infer *in, struct infer_item *item, const struct picture *img)
{
    struct piped_stream *s = in->streams[stream_index(item)];
    struct piped_frame *f;
    char error[PICTURE_ERROR_MAX];
    int rc = acquire(in, s, &f);

    if (rc) {
        return rc;
    }
    f->user = item;
    if (img->kind == PICTURE_RAW) {
        size_t bytes = in->frame_bytes[item->f16];

        memcpy(f->input, img->data + img->pixels_at + item->frame * bytes, bytes);
    } else {
        f->width = img->width;
        f->height = img->height;
        f->stride = img->width * img->channels;
        if (picture_decode(img, f->input, error) < 0) {
            fail_item(item, error);
            piped_release(s, f);
            return CTL_DONE;
        }
    }
    if (piped_submit(s, f) < 0) {
        fail_item(item, piped_last_error());
        piped_release(s, f);
    }
    return CTL_DONE;
}

/* The open file, and the picture in it. */
struct position {
    struct picture img;
    size_t file, frame;
};

/* Opens the item's file and goes to its picture. Return: false if the file is not what it was. */
static bool go_to(struct infer *in, const struct infer_item *item, struct position *at)
{
    char error[PICTURE_ERROR_MAX];

    if (item->file != at->file) {
        picture_close(&at->img);
        at->file = SIZE_MAX;
        at->frame = 0;
        if (picture_open(infer_path(in, item->file), error, &at->img) < 0) {
            return false;
        }
        at->file = item->file;
    }
    if (at->img.kind == PICTURE_RAW) {
        return (item->frame + 1) * in->frame_bytes[item->f16] <= at->img.bytes;
    }
    for (; at->frame < item->frame; at->frame++) {
        if (picture_next(&at->img, error) != 1) {
            return false;
        }
    }
    return item->format == (at->img.channels == 1 ? PIPED_GRAY8 : PIPED_RGB24) &&
           at->img.bytes <= in->most_bytes[stream_index(item)];
}

static int send_all(struct infer *in)
{
    struct position at = {.img = PICTURE_NULL, .file = SIZE_MAX};
    int rc = CTL_DONE;

    for (size_t i = 0; rc == CTL_DONE && i < in->item_count; i++) {
        struct infer_item *item = &in->items[i];

        if (item->done) {
            continue;
        }
        if (!go_to(in, item, &at)) {
            fail_item(item, "the file changed while pipectl read it");
            continue;
        }
        rc = send_item(in, item, &at.img);
    }
    picture_close(&at.img);
    while (rc == CTL_DONE && in->reported < in->item_count) {
        rc = collect(in);
        if (rc == CTL_DONE && in->reported < in->item_count) {
            rc = wait_answers(in);
        }
    }
    return rc;
}

/* A raw file holds floats: its bytes must not become another type's numbers. */
static void find_types(struct infer *in)
{
    const struct piped_stream_info *info = piped_stream_info(in->streams[0]);

    for (uint32_t i = 0; i < info->input_count && !in->not_floats[0]; i++) {
        const struct piped_tensor *t = &info->inputs[i];
        const char *type = ipc_dtype_name(t->dtype);

        if (t->dtype != PIPED_F32) {
            snprintf(
                in->not_floats, sizeof(in->not_floats),
                "it holds floats, and the model's input %s takes %s; send a picture, or make the "
                "%s yourself and send them with libpiped",
                t->name, type, type);
        }
    }
}

/* "x f32 [1,3,224,224]", and so on for each input */
static void inputs_text(const struct piped_stream_info *info, char *ret, size_t bytes)
{
    ret[0] = '\0';
    for (uint32_t i = 0; i < info->input_count; i++) {
        const struct piped_tensor *t = &info->inputs[i];

        base_append(ret, bytes, "%s%s %s [", i ? ", " : "", t->name, ipc_dtype_name(t->dtype));
        for (uint32_t d = 0; d < t->rank; d++) {
            base_append(ret, bytes, "%s%u", d ? "," : "", t->dim[d]);
        }
        base_append(ret, bytes, "]");
    }
}

/* A tensor stream with one slot tells the sizes. */
static int find_sizes(struct infer *in, size_t k)
{
    int rc = open_stream(in, k, 1);

    if (rc == CTL_DONE) {
        const struct piped_stream_info *info = piped_stream_info(in->streams[k]);

        in->frame_bytes[k == INFER_F16] = (size_t)info->input_bytes;
        inputs_text(info, in->frame_text[k == INFER_F16], sizeof(in->frame_text[0]));
        if (k == 0) {
            find_types(in);
            in->rank = info->input_count == 1 ? info->inputs[0].rank : 0;
            memcpy(in->dim, info->inputs[0].dim, sizeof(in->dim));
        }
        in->streams[k] = piped_stream_close(in->streams[k]);
    }
    return rc;
}

static int run_files(struct infer *in)
{
    int rc = find_sizes(in, 0);

    if (rc == CTL_DONE && !in->not_floats[0] && infer_has_f16(in)) {
        rc = find_sizes(in, INFER_F16);
    }
    rc = rc ? rc : infer_make_items(in);
    if (rc == CTL_DONE && in->o.expect) {
        rc = infer_read_expected(in);
    }
    for (size_t k = 0; rc == CTL_DONE && k < INFER_STREAMS; k++) {
        if (in->most_bytes[k]) {
            rc = open_stream(in, k, 0);
            if (rc == CTL_DONE) {
                infer_begin_decoding(in, in->streams[k]);
            }
        }
    }
    if (rc == CTL_DONE && (in->streams[1] || in->streams[2])) {
        infer_warn(in);
    }
    rc = rc ? rc : infer_prepare(in);
    return rc ? rc : send_all(in);
}

static int run(struct infer *in)
{
    int rc = ctl_connect(in->ctl, 0, &in->client);

    if (rc == CTL_DONE) {
        rc = in->video_bytes ? infer_video(in) : run_files(in);
    }
    return rc ? rc : infer_finish(in);
}

static int take_files(struct infer *in, int argc, char **argv)
{
    int rc = CTL_DONE;

    if (in->video_bytes) {
        if (argc - optind > 1 || in->file_count || in->o.expect) {
            return ctl_usage("infer", "--video reads one pipe: no --list, no --expect, one FILE");
        }
        return infer_add_file(in, optind < argc ? argv[optind] : "-");
    }
    while (rc == CTL_DONE && optind < argc) {
        rc = infer_add_path(in, argv[optind++]);
    }
    if (rc == CTL_DONE && in->file_count == 0) {
        return ctl_usage("infer", "no file given");
    }
    return rc;
}

static int take_args(struct infer *in, int argc, char **argv)
{
    const struct ctl_options *o = &in->o;
    int rc = ctl_take(argc, argv, &in->o, NULL);

    for (size_t i = 0; rc == CTL_DONE && i < o->lists.count; i++) {
        rc = infer_add_list(in, o->lists.text[i]);
    }
    if (rc == CTL_DONE && o->video) {
        rc = infer_video_format(in, o->video);
    }
    if (rc == CTL_DONE && o->draw && !infer_draw_ok(o->draw)) {
        return ctl_usage("infer", "--draw needs a name that ends in .jpg or .png, not '%s'",
                         o->draw);
    }
    return rc ? rc : take_files(in, argc, argv);
}

int ctl_infer(const struct ctl *ctl, int argc, char **argv)
{
    struct infer in = {.ctl = ctl, .o.top = 5};
    int rc = take_args(&in, argc, argv);

    rc = rc ? rc : run(&in);
    piped_close(in.client);
    piped_decoder_free(in.decoder);
    for (size_t i = 0; i < in.item_count; i++) {
        free(in.items[i].error);
        free(in.items[i].outputs);
        json_decref(in.items[i].report);
    }
    for (size_t i = 0; i < in.file_count; i++) {
        free(in.files[i].name);
        base_close_fd(&in.files[i].copy);
    }
    if (in.raw) {
        fclose(in.raw);
    }
    free(in.items);
    free(in.files);
    free(in.expected);
    json_decref(in.results);
    return rc;
}
