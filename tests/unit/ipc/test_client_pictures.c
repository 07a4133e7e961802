/* SPDX-License-Identifier: Apache-2.0 */
/* What pictures streams and frames of libpiped may have, against a scripted daemon. */
#include <errno.h>

#include "base/base.h"
#include "ipc/piped.h"
#include "tests/harness.h"
#include "tests/unit/ipc/scripted_daemon.h"

static void script(struct server *s)
{
    struct message m;

    SERVER_CHECK(s, server_accept(s) && server_receive(s, &m) && m.h.type == IPC_OPEN);
    server_send_opened(s, m.h.stream, OUT_BYTES);
    while (server_receive(s, &m)) {
    }
}

/* Opens a stream in plain memory. @ret: NULL: it must be refused for its @words. */
static void open_stream(struct server *server, struct piped_stream_options so, const char *words,
                        struct piped **ret_client, struct piped_stream **ret)
{
    struct piped_options o = {.size = sizeof(o), .reconnect_ms = 1000};
    struct piped_stream *s;

    so.size = sizeof(so);
    so.slots = 1;
    so.inline_frames = 1;
    server_start(server, 1, script);
    o.path = server->path;
    T_EQ(piped_connect(&o, ret_client), 0);
    T_EQ(piped_stream_open(*ret_client, &so, &s), ret ? 0 : -EINVAL);
    if (ret) {
        *ret = s;
    } else {
        T_CONTAINS(piped_last_error(), words);
    }
}

static void close_all(struct server *server, struct piped *p)
{
    piped_close(p);
    server_join(server);
    T_EQ(server->bad, 0);
}

static void is_refused(uint32_t pixfmt, uint32_t width, uint32_t height, uint32_t stride,
                       const char *words)
{
    struct server server = {0};
    struct piped *p;

    open_stream(&server,
                (struct piped_stream_options){
                    .pixfmt = pixfmt, .width = width, .height = height, .stride = stride},
                words, &p, NULL);
    close_all(&server, p);
}

TEST(sizes_that_no_stream_has)
{
    is_refused(PIPED_RGB24, 20000, 20000, 0,
               "a picture of 20000x20000 is too large: it has 1144 MiB, and the memory of a stream "
               "at most 1024");
    is_refused(PIPED_GRAY8, 99999, 1, 0,
               "a picture of 99999x1 is too large: width and height may be at most 32768");
    is_refused(PIPED_NV12, 15, 15, 0, "a picture of 15x15 cannot be nv12: ");
    is_refused(PIPED_YUYV, 641, 480, 0, "a picture of 641x480 cannot be yuyv: ");
    is_refused(PIPED_RGB24, 16, 16, 47, "rows have 48 bytes, and stride is 47");
}

static void frame_is_refused(struct piped_stream *s, uint32_t width, uint32_t height,
                             uint32_t stride, const char *words)
{
    struct piped_frame *f;

    T_EQ(piped_acquire(s, &f), 0);
    f->width = width;
    f->height = height;
    f->stride = stride;
    T_EQ(piped_submit(s, f), -EINVAL);
    T_CONTAINS(piped_last_error(), words);
    piped_release(s, f);
}

/* A crop without pixels has one size of 0 as a rule: its slot holds the picture before it. */
TEST(frames_that_are_no_pictures)
{
    struct server server = {0};
    struct piped_stream *s;
    struct piped *p;

    open_stream(&server,
                (struct piped_stream_options){.pixfmt = PIPED_YUYV, .width = 320, .height = 240},
                NULL, &p, &s);
    frame_is_refused(s, 0, 240, 0, "the picture is empty (0x240)");
    frame_is_refused(s, 320, 0, 0, "the picture is empty (320x0)");
    frame_is_refused(s, 15, 240, 0, "a picture of 15x240 cannot be yuyv: ");
    frame_is_refused(s, 320, 240, 639, "rows have 640 bytes, and stride is 639");
    frame_is_refused(s, 322, 240, 0, "wrong size: ");
    close_all(&server, p);
}

TEST(a_frame_larger_than_a_message)
{
    struct server server = {0};
    struct piped_stream *s;
    struct piped *p;

    open_stream(&server,
                (struct piped_stream_options){.pixfmt = PIPED_GRAY8, .width = 9000, .height = 9000},
                NULL, &p, &s);
    frame_is_refused(s, 0, 0, 0, "a frame of 77 MiB is too large for a message; ");
    close_all(&server, p);
}

TEST_MAIN()
