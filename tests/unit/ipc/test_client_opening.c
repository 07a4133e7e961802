/* SPDX-License-Identifier: Apache-2.0 */
/* libpiped opens streams at a scripted daemon that is stopping, and at the next one. */
#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "ipc/piped.h"
#include "tests/harness.h"
#include "tests/unit/ipc/scripted_daemon.h"

static void tell_draining(struct server *s)
{
    struct ipc_event_msg e = {.event = IPC_EVENT_DRAINING};
    uint8_t b[IPC_EVENT_BYTES];

    memcpy(b, &e, sizeof(e));
    server_send(s, (struct ipc_header){.type = IPC_EVENT}, b, sizeof(b), NULL, 0);
}

static void refuse(struct server *s)
{
    static const char why[] = "a reason";
    struct ipc_opened refusal = {0};
    uint8_t b[IPC_OPENED_BYTES];
    struct message m;

    SERVER_CHECK(s, server_receive(s, &m) && m.h.type == IPC_OPEN);
    memcpy(b, &refusal, sizeof(refusal));
    server_send(
        s, (struct ipc_header){.type = IPC_OPENED, .stream = m.h.stream, .status = IPC_UNAVAILABLE},
        b, sizeof(b), why, strlen(why));
}

/* The next life serves it. */
static void script_stops(struct server *s)
{
    struct message m;

    if (!server_accept(s)) {
        return;
    }
    tell_draining(s);
    refuse(s);
    SERVER_CHECK(s, !server_receive(s, &m));
    server_hang_up(s);
    if (!server_accept(s) || !server_open_stream(s)) {
        s->bad = __LINE__;
        return;
    }
    SERVER_CHECK(s, server_receive(s, &m));
    server_answer(s, &m, IPC_OK);
    server_receive(s, &m);
}

static void script_refuses(struct server *s)
{
    struct message m;

    if (server_accept(s)) {
        refuse(s);
        SERVER_CHECK(s, !server_receive(s, &m));
    }
}

static int reach(struct server *server, void (*script)(struct server *s), struct piped **p)
{
    struct piped_options o = {.size = sizeof(o), .path = server->path};

    server_start(server, 4, script);
    return piped_connect(&o, p);
}

TEST(a_daemon_that_is_stopping_is_waited_for)
{
    struct piped_stream *s;
    struct piped_frame *f;
    struct server server;
    struct piped *p;

    T_EQ(reach(&server, script_stops, &p), 0);
    T_EQ(piped_stream_open(p, NULL, &s), 0);
    T_EQ(piped_acquire(s, &f), 0);
    memset(f->input, 5, f->input_size);
    T_EQ(piped_infer(s, f, 30000), 0);
    T_EQ(f->status, PIPED_OK);
    T_EQ(((const uint8_t *)f->output)[0], 6);
    T_EQ(piped_reconnects(p), 1);
    piped_close(p);
    server_join(&server);
    T_EQ(server.bad, 0);
}

TEST(another_refusal_is_told)
{
    struct piped_stream *s;
    struct server server;
    struct piped *p;

    T_EQ(reach(&server, script_refuses, &p), 0);
    T_EQ(piped_stream_open(p, NULL, &s), -EAGAIN);
    T_CONTAINS(piped_last_error(), "a reason");
    piped_close(p);
    server_join(&server);
    T_EQ(server.bad, 0);
}

static void script_hears_nothing(struct server *s)
{
    struct message m;

    SERVER_CHECK(s, server_accept(s) && !server_receive(s, &m));
}

/* It would not find out which field of OPEN is wrong. */
TEST(what_cannot_be_a_name_is_not_the_name_of_a_model)
{
    static const char *const names[] = {
        "\xe2\x80\xaex", "\xffx", "\x1b[1m",
        "0123456789012345678901234567890123456789012345678901234567890123"};
    struct piped_stream *s;
    struct server server;
    struct piped *p;

    T_EQ(reach(&server, script_hears_nothing, &p), 0);
    for (size_t i = 0; i < base_array_count(names); i++) {
        struct piped_stream_options o = {.size = sizeof(o), .model = names[i]};

        T_EQ(piped_stream_open(p, &o, &s), -ENOENT);
        T_CONTAINS(piped_last_error(), "no such model: ");
    }
    T_CONTAINS(piped_last_error(), names[3]);
    piped_close(p);
    server_join(&server);
    T_EQ(server.bad, 0);
}

/* A daemon refuses a name that is not UTF-8. */
TEST(a_long_name_is_cut_between_characters)
{
    char name[100] = "";

    for (size_t lead = 0; lead < 4; lead++) {
        struct piped_options o = {.size = sizeof(o), .client = name};
        struct piped_stream *s;
        struct server server;
        struct piped *p;

        memset(name, 'a', lead);
        for (size_t at = lead; at + 3 < sizeof(name); at += 3) {
            strcpy(name + at, "\xe2\x82\xac");
        }
        server_start(&server, 4, script_refuses);
        o.path = server.path;
        T_EQ(piped_connect(&o, &p), 0);
        T_EQ(piped_stream_open(p, NULL, &s), -EAGAIN);
        piped_close(p);
        server_join(&server);
        T_EQ(server.bad, 0);
    }
}

TEST_MAIN()
