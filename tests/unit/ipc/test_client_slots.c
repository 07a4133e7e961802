/* SPDX-License-Identifier: Apache-2.0 */
/* How many slots a stream of libpiped has, against a scripted daemon that takes 30 frames. */
#include "base/base.h"
#include "ipc/piped.h"
#include "tests/harness.h"
#include "tests/unit/ipc/scripted_daemon.h"

#define CREDITS 30

static void script(struct server *s)
{
    struct message m;

    SERVER_CHECK(s, server_accept(s) && server_open_stream(s));
    server_receive(s, &m);
}

/* Of a stream of gray pictures. */
static void has_slots(uint32_t width, uint32_t height, uint32_t wanted, uint32_t expected)
{
    struct server server;
    struct piped_options o = {.size = sizeof(o), .reconnect_ms = 1000};
    struct piped_stream_options so = {.size = sizeof(so),
                                      .pixfmt = PIPED_GRAY8,
                                      .slots = wanted,
                                      .width = width,
                                      .height = height};
    struct piped_stream *s;
    struct piped *p;

    server_start(&server, CREDITS, script);
    o.path = server.path;
    T_EQ(piped_connect(&o, &p), 0);
    T_EQ(piped_stream_open(p, &so, &s), 0);
    T_EQ(piped_stream_info(s)->slots, expected);
    piped_close(p);
    server_join(&server);
    T_EQ(server.bad, 0);
}

TEST(small_pictures_have_as_many_as_credits)
{
    has_slots(640, 480, 0, CREDITS);
}

/* 30 slots would be 1.5 GB, more than the daemon maps for a stream: it was refused. */
TEST(large_pictures_have_few)
{
    has_slots(8000, 6000, 0, 5);
}

TEST(who_counts_them_gets_them)
{
    has_slots(1000, 1000, CREDITS + 1, CREDITS + 1);
    has_slots(8000, 6000, 1, 1);
}

TEST_MAIN()
