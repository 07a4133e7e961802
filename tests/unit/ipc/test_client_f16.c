/* SPDX-License-Identifier: Apache-2.0 */
/* libpiped's streams of f16 against a scripted daemon: an older one, and those that make no sense.
 */
#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "ipc/piped.h"
#include "tests/harness.h"
#include "tests/unit/ipc/scripted_daemon.h"

#define OLDER_BYTES 64 /* of struct piped_stream_options without f16; the last 4 were padding */
_Static_assert(offsetof(struct piped_stream_options, input_dtype) == OLDER_BYTES ||
                   sizeof(void *) == 4,
               "an older caller's padding is not read");

static int open_f16(struct piped *p, size_t size, uint32_t input_dtype, struct piped_stream **ret)
{
    struct piped_stream_options o = {.size = size, .slots = 1, .input_dtype = input_dtype};

    return piped_stream_open(p, &o, ret);
}

static int reach(struct server *server, void (*script)(struct server *s), struct piped **ret)
{
    struct piped_options o = {.size = sizeof(o), .path = server->path, .reconnect_ms = 1000};

    server_start(server, 4, script);
    return piped_connect(&o, ret);
}

static void leave(struct piped *p, struct server *server)
{
    piped_close(p);
    server_join(server);
    T_EQ(server->bad, 0);
}

static void script_older(struct server *s)
{
    struct message m;

    SERVER_CHECK(s, server_accept(s) && server_open_stream(s));
    server_receive(s, &m);
}

TEST(an_older_daemon_is_not_asked)
{
    struct server server;
    struct piped_stream *s;
    struct piped *p;

    T_EQ(reach(&server, script_older, &p), 0);
    T_EQ(open_f16(p, sizeof(struct piped_stream_options), PIPED_F16, &s), -EOPNOTSUPP);
    T_CONTAINS(piped_last_error(), "scripted, is too old for f16");
    T_EQ(open_f16(p, sizeof(struct piped_stream_options), PIPED_F32, &s), 0);
    leave(p, &server);
}

/* The first stream asks for f16 inputs, the second for nothing. */
static void script_newer(struct server *s)
{
    struct ipc_open o;
    struct message m;

    s->features = 0xffffffff;
    s->half = true;
    SERVER_CHECK(s, server_accept(s) && server_receive(s, &m));
    SERVER_CHECK(s, m.h.type == IPC_OPEN && ipc_get_open(m.payload, m.h.length, &o) == 0);
    SERVER_CHECK(s, o.input_dtype == IPC_F16 && o.output_dtype == 0);
    server_send_opened(s, m.h.stream, OUT_BYTES);
    SERVER_CHECK(s, server_receive(s, &m) && m.h.type == IPC_POOL);
    close(m.fd);
    server_send(s, (struct ipc_header){.type = IPC_POOLED, .stream = m.h.stream}, NULL, 0, NULL, 0);
    s->half = false;
    SERVER_CHECK(s, server_open_stream(s));
    server_receive(s, &m);
}

TEST(halves_are_asked_for_and_described)
{
    struct server server;
    struct piped_stream *s;
    struct piped *p;

    T_EQ(reach(&server, script_newer, &p), 0);
    T_EQ(open_f16(p, sizeof(struct piped_stream_options), PIPED_F16, &s), 0);
    T_EQ(piped_stream_info(s)->inputs[0].dtype, PIPED_F16);
    T_EQ(piped_stream_info(s)->inputs[0].bytes, IN_BYTES);
    T_EQ(open_f16(p, OLDER_BYTES, PIPED_F16, &s), 0);
    T_EQ(piped_stream_info(s)->inputs[0].dtype, PIPED_U8);
    leave(p, &server);
}

TEST(other_types_are_refused_before_the_daemon_sees_them)
{
    struct server server;
    struct piped_stream *s;
    struct piped *p;

    T_EQ(reach(&server, script_older, &p), 0);
    for (uint32_t dtype = PIPED_I32; dtype <= PIPED_BOOL; dtype++) {
        T_EQ(open_f16(p, sizeof(struct piped_stream_options), dtype, &s), -EINVAL);
        T_CONTAINS(piped_last_error(), "input_dtype");
    }
    T_EQ(open_f16(p, sizeof(struct piped_stream_options), PIPED_F16 + 1, &s), -EINVAL);
    T_EQ(open_f16(p, sizeof(struct piped_stream_options), 0, &s), 0);
    leave(p, &server);
}

static void script_unasked(struct server *s)
{
    struct message m;

    s->half = true;
    SERVER_CHECK(s, server_accept(s) && server_receive(s, &m));
    server_send_opened(s, m.h.stream, OUT_BYTES);
    SERVER_CHECK(s, !server_receive(s, &m));
}

TEST(halves_that_nobody_asked_for)
{
    struct server server;
    struct piped_stream *s;
    struct piped *p;

    T_EQ(reach(&server, script_unasked, &p), 0);
    T_TRUE(open_f16(p, sizeof(struct piped_stream_options), 0, &s) < 0);
    T_CONTAINS(piped_last_error(), "not asked for");
    leave(p, &server);
}

/* It is replaced by an older one while it has a frame. */
static void script_replaced(struct server *s)
{
    struct message m;

    s->features = IPC_FEATURE_F16;
    s->half = true;
    SERVER_CHECK(s, server_accept(s) && server_open_stream(s) && server_receive(s, &m));
    server_hang_up(s);
    s->features = 0;
    SERVER_CHECK(s, server_accept(s));
    server_receive(s, &m);
}

TEST(an_older_daemon_after_a_restart_ends_the_stream)
{
    struct server server;
    struct piped_stream *s;
    struct piped_frame *f;
    struct piped *p;

    T_EQ(reach(&server, script_replaced, &p), 0);
    T_EQ(open_f16(p, sizeof(struct piped_stream_options), PIPED_F16, &s), 0);
    T_EQ(piped_acquire(s, &f), 0);
    T_EQ(piped_submit(s, f), 0);
    T_EQ(piped_wait(s, 30000, &f), 0);
    T_EQ(f->status, PIPED_UNSUPPORTED);
    T_CONTAINS(f->text, "too old");
    leave(p, &server);
}

TEST_MAIN()
