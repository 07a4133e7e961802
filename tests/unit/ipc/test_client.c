/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libpiped against a scripted daemon in a thread of this process: what a real one never does
 * (answers twice, out of order, impossible sizes, garbage) and what it does rarely (draining, dying
 * at a chosen message, less credit after a restart). The real daemon's side is tested in
 * tests/system.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "ipc/piped.h"
#include "ipc/wire.h"
#include "tests/harness.h"
#include "tests/unit/ipc/scripted_daemon.h"

/* Submits @count frames, frame i filled with i. */
static void submit(struct piped_stream *s, int count)
{
    for (int i = 0; i < count; i++) {
        struct piped_frame *f;

        T_EQ(piped_acquire(s, &f), 0);
        memset(f->input, i, f->input_size);
        f->time_ns = (uint64_t)i;
        T_EQ(piped_submit(s, f), 0);
    }
}

/* Collects @count frames in order, all with @status. */
static void collect(struct piped_stream *s, int count, int status)
{
    for (int i = 0; i < count; i++) {
        struct piped_frame *f;

        T_EQ(piped_wait(s, 30000, &f), 0);
        T_EQ(f->time_ns, i);
        T_EQ(f->status, status);
        if (status == PIPED_OK) {
            T_EQ(f->output_bytes, OUT_BYTES);
            T_EQ(((const uint8_t *)f->output)[OUT_BYTES - 1], i + 1);
        }
        piped_release(s, f);
    }
}

/* Frames come, all are answered last one first, the first of them twice. */
static void script_disorder(struct server *s)
{
    struct message m[4];

    if (!server_accept(s) || !server_open_stream(s)) {
        return;
    }
    for (int i = 0; i < 4; i++) {
        SERVER_CHECK(s, server_receive(s, &m[i]));
    }
    for (int i = 3; i >= 0; i--) {
        server_answer(s, &m[i], IPC_OK);
    }
    server_answer(s, &m[0], IPC_OK);
    server_receive(s, &m[0]);
}

TEST(answers_in_disorder_are_put_right_and_counted)
{
    struct piped_stream_stats stats;
    struct piped_stream *s;
    struct piped *p;
    struct server server;
    struct piped_frame *f;

    server_start(&server, 4, script_disorder);
    T_EQ(client_open(&server, 1000, 4, &p, &s), 0);
    submit(s, 4);
    collect(s, 4, PIPED_OK);
    T_EQ(piped_next(s, &f), -EAGAIN);
    do { /* the second answer to the first frame may still be on its way */
        piped_stream_stats(s, &stats);
    } while (stats.duplicated == 0 && piped_dispatch(p, 30000) > 0);
    T_EQ(stats.reordered, 3);
    T_EQ(stats.duplicated, 1);
    T_EQ(stats.answered, 4);
    T_EQ(piped_next(s, &f), -EAGAIN);
    piped_close(p);
    server_join(&server);
    T_EQ(server.bad, 0);
}

/* Dies after having answered the first of the frames it got; the second life has less credit. */
static void script_dies(struct server *s)
{
    struct message m;

    if (!server_accept(s) || !server_open_stream(s)) {
        return;
    }
    for (int i = 0; i < 4; i++) {
        SERVER_CHECK(s, server_receive(s, &m) && m.h.frame == (uint64_t)i + 1);
        if (i == 0) {
            server_answer(s, &m, IPC_OK);
        }
    }
    server_hang_up(s);
    s->credits = 1;
    if (!server_accept(s) || !server_open_stream(s)) {
        s->bad = __LINE__;
        return;
    }
    for (int i = 1; i < 4; i++) {
        SERVER_CHECK(s, server_receive(s, &m) && m.h.frame == (uint64_t)i + 1 &&
                            m.h.time_ns == (uint64_t)i);
        server_answer(s, &m, IPC_OK);
    }
    server_receive(s, &m);
}

TEST(a_death_loses_nothing)
{
    struct piped_stream_stats stats;
    struct piped_stream *s;
    struct piped *p;
    struct server server;

    server_start(&server, 4, script_dies);
    T_EQ(client_open(&server, 30000, 4, &p, &s), 0);
    submit(s, 4);
    collect(s, 4, PIPED_OK);
    piped_stream_stats(s, &stats);
    T_EQ(stats.resent, 3);
    T_EQ(stats.reordered + stats.duplicated, 0);
    T_EQ(piped_reconnects(p), 1);
    piped_close(p);
    server_join(&server);
    T_EQ(server.bad, 0);
}

/* Goes down politely: what came after the notice is answered "unavailable", and asked again later.
 */
static void script_drains(struct server *s)
{
    struct ipc_event_msg e = {.event = IPC_EVENT_DRAINING};
    uint8_t b[IPC_EVENT_BYTES];
    struct message m;

    if (!server_accept(s) || !server_open_stream(s)) {
        return;
    }
    SERVER_CHECK(s, server_receive(s, &m));
    memcpy(b, &e, sizeof(e));
    server_send(s, (struct ipc_header){.type = IPC_EVENT}, b, sizeof(b), NULL, 0);
    server_answer(s, &m, IPC_OK);
    for (int i = 1; i < 3; i++) {
        SERVER_CHECK(s, server_receive(s, &m));
        server_answer(s, &m, IPC_UNAVAILABLE);
    }
    server_hang_up(s);
    if (!server_accept(s) || !server_open_stream(s)) {
        s->bad = __LINE__;
        return;
    }
    for (int i = 1; i < 3; i++) {
        SERVER_CHECK(s, server_receive(s, &m) && m.h.frame == (uint64_t)i + 1);
        server_answer(s, &m, IPC_OK);
    }
    server_receive(s, &m);
}

TEST(draining_is_waited_out)
{
    struct piped_stream *s;
    struct piped *p;
    struct server server;

    server_start(&server, 4, script_drains);
    T_EQ(client_open(&server, 30000, 4, &p, &s), 0);
    submit(s, 3);
    collect(s, 3, PIPED_OK);
    piped_close(p);
    server_join(&server);
    T_EQ(server.bad, 0);
}

static void script_vanishes(struct server *s)
{
    struct message m;

    if (server_accept(s) && server_open_stream(s)) {
        SERVER_CHECK(s, server_receive(s, &m));
    }
    unlink(s->path);
}

TEST(frames_come_back_when_nobody_returns)
{
    struct piped_stream *s;
    struct piped *p;
    struct piped_frame *f;
    struct server server;

    server_start(&server, 4, script_vanishes);
    T_EQ(client_open(&server, 50, 4, &p, &s), 0);
    submit(s, 3);
    collect(s, 3, PIPED_UNAVAILABLE);
    T_EQ(piped_acquire(s, &f), 0);
    T_EQ(piped_submit(s, f), -ENOTCONN);
    T_EQ(piped_dispatch(p, 0), -ENOTCONN);
    piped_close(p);
    server_join(&server);
}

/* What a script sends once the first frame came. */
static void (*nonsense)(struct server *s, const struct message *m);

static void script_nonsense(struct server *s)
{
    struct message m;

    if (server_accept(s) && server_open_stream(s) && server_receive(s, &m)) {
        nonsense(s, &m);
        while (server_receive(s, &m)) {
        }
    }
}

static void too_much_output(struct server *s, const struct message *m)
{
    struct ipc_result r = {.credits = 1, .out_bytes = OUT_BYTES + 1};
    uint8_t b[IPC_RESULT_BYTES];

    memcpy(b, &r, sizeof(r));
    server_send(s,
                (struct ipc_header){.type = IPC_RESULT, .stream = m->h.stream, .frame = m->h.frame},
                b, sizeof(b), NULL, 0);
}
static void another_version(struct server *s, const struct message *m)
{
    server_send(s, (struct ipc_header){.type = IPC_PING, .version = 9}, NULL, 0, NULL, 0);
}
static void unknown_type(struct server *s, const struct message *m)
{
    server_send(s, (struct ipc_header){.type = 99}, NULL, 0, NULL, 0);
}
static void second_welcome(struct server *s, const struct message *m)
{
    uint8_t b[IPC_WELCOME_BYTES] = {1};

    server_send(s, (struct ipc_header){.type = IPC_WELCOME}, b, sizeof(b), NULL, 0);
}
static void second_opened(struct server *s, const struct message *m)
{
    server_send_opened(s, m->h.stream, 1u << 20);
}
static void an_error(struct server *s, const struct message *m)
{
    server_send(s, (struct ipc_header){.type = IPC_ERROR, .status = IPC_PROTOCOL}, "you!", 4, NULL,
                0);
}

TEST(a_daemon_that_makes_no_sense_is_left)
{
    static void (*const kinds[])(struct server *, const struct message *) = {
        too_much_output, another_version, unknown_type, second_welcome, second_opened, an_error};

    for (size_t i = 0; i < base_array_count(kinds); i++) {
        struct piped_stream *s;
        struct piped *p;
        struct server server;

        nonsense = kinds[i];
        server_start(&server, 4, script_nonsense);
        T_EQ(client_open(&server, 30000, 2, &p, &s), 0);
        submit(s, 2);
        collect(s, 2, PIPED_UNAVAILABLE);
        piped_close(p);
        server_join(&server);
        T_EQ(server.bad, 0);
    }
}

/* Skipped: an unknown optional type, an unknown event, a frame nobody sent; a PING is answered. */
static void harmless(struct server *s, const struct message *m)
{
    struct ipc_event_msg e = {.event = 4711};
    uint8_t b[IPC_EVENT_BYTES];
    struct message pong, other = *m;

    memcpy(b, &e, sizeof(e));
    server_send(s, (struct ipc_header){.type = 0x9123}, "abc", 3, NULL, 0);
    server_send(s, (struct ipc_header){.type = IPC_EVENT}, b, sizeof(b), NULL, 0);
    other.h.stream = 77;
    server_answer(s, &other, IPC_OK);
    server_send(s, (struct ipc_header){.type = IPC_PING, .frame = 5}, "hello", 5, NULL, 0);
    server_answer(s, m, IPC_OK);
    SERVER_CHECK(s, server_receive(s, &pong));
    while (pong.h.type == IPC_FRAME) {
        server_answer(s, &pong, IPC_OK);
        SERVER_CHECK(s, server_receive(s, &pong));
    }
    SERVER_CHECK(s, pong.h.type == IPC_PONG && pong.h.frame == 5 && pong.h.length == 5 &&
                        memcmp(pong.payload, "hello", 5) == 0);
}

TEST(harmless_surprises_are_skipped)
{
    struct piped_stream *s;
    struct piped *p;
    struct server server;

    nonsense = harmless;
    server_start(&server, 1, script_nonsense);
    T_EQ(client_open(&server, 1000, 1, &p, &s), 0);
    submit(s, 1);
    collect(s, 1, PIPED_OK);
    piped_close(p);
    server_join(&server);
    T_EQ(server.bad, 0);
}

/* A model that has another output after the restart: the memory of the slots does not fit it; or
 * as many bytes that mean something else. */
static void restart_with(struct server *s, const char *input, uint64_t out_bytes)
{
    struct message m;

    if (!server_take(s, &m)) {
        return;
    }
    server_hang_up(s);
    if (!server_accept(s) || !server_receive(s, &m)) {
        s->bad = __LINE__;
        return;
    }
    SERVER_CHECK(s, m.h.type == IPC_OPEN);
    s->input_name = input;
    server_send_opened(s, m.h.stream, out_bytes);
    server_receive(s, &m);
}

static void script_changes_size(struct server *s)
{
    restart_with(s, NULL, 4096);
}

static void script_changes_name(struct server *s)
{
    restart_with(s, "other", OUT_BYTES);
}

TEST(a_model_that_changed_its_tensors_ends_the_stream)
{
    void (*const scripts[])(struct server * s) = {script_changes_size, script_changes_name};

    for (size_t i = 0; i < base_array_count(scripts); i++) {
        struct piped_stream *s;
        struct piped *p;
        struct piped_frame *f;
        struct server server;

        server_start(&server, 4, scripts[i]);
        T_EQ(client_open(&server, 30000, 2, &p, &s), 0);
        submit(s, 1);
        T_EQ(piped_wait(s, 30000, &f), 0);
        T_EQ(f->status, PIPED_INVALID_ARGUMENT);
        T_CONTAINS(f->text, "of other names, shapes or types");
        T_STR(piped_stream_info(s)->inputs[0].name, "in");
        piped_close(p);
        server_join(&server);
        T_EQ(server.bad, 0);
    }
}

/* Answers each frame when the next one came, for cancelling and timeouts. */
static void script_late(struct server *s)
{
    struct message m, cancel;

    if (!server_take(s, &m)) {
        return;
    }
    SERVER_CHECK(s, server_receive(s, &cancel) && cancel.h.type == IPC_CANCEL &&
                        cancel.h.frame == m.h.frame && cancel.h.stream == m.h.stream);
    server_answer(s, &m, IPC_CANCELLED);
    server_receive(s, &m);
}

TEST(wrong_use_and_cancelling)
{
    struct piped_stream *s, *none;
    struct piped *p;
    struct piped_frame *f, *g;
    struct server server;
    struct piped_stream_options bad = {.size = sizeof(bad), .pixfmt = 99};
    struct piped_options long_path = {.size = sizeof(long_path)};
    char path[200];

    memset(path, 'x', sizeof(path) - 1);
    path[sizeof(path) - 1] = 0;
    long_path.path = path;
    T_EQ(piped_connect(&long_path, &p), -ENAMETOOLONG);
    long_path.path = "/nonexistent/frames.sock";
    T_EQ(piped_connect(&long_path, &p), -ENOENT);
    T_CONTAINS(piped_last_error(), "/nonexistent/frames.sock");
    server_start(&server, 4, script_late);
    T_EQ(client_open(&server, 1000, 2, &p, &s), 0);
    T_EQ(piped_stream_open(p, &bad, &none), -EINVAL);
    T_EQ(piped_stream_info(s)->slots, 2);
    T_STR(piped_stream_info(s)->outputs[0].name, "out");
    T_EQ(piped_wait(s, 0, &f), -EAGAIN);
    T_EQ(piped_acquire(s, &f), 0);
    T_EQ((uintptr_t)f->input % 64, 0);
    f->input_bytes = IN_BYTES + 1;
    T_EQ(piped_submit(s, f), -EINVAL);
    f->input_bytes = 0;
    T_EQ(piped_submit(s, f), 0);
    T_EQ(piped_submit(s, f), -EINVAL); /* twice */
    T_EQ(piped_acquire(s, &g), 0);
    T_EQ(piped_infer(s, g, 0), -EBUSY);
    T_EQ(piped_acquire(s, &g), -EAGAIN);
    T_EQ(piped_wait(s, 1, &g), -ETIMEDOUT);
    piped_release(s, f); /* not ours: nothing happens */
    piped_cancel(s, f);
    T_EQ(piped_wait(s, 30000, &g), 0);
    T_TRUE(g == f);
    T_EQ(g->status, PIPED_CANCELLED);
    T_STR(g->text, "why ??");
    piped_release(s, g);
    piped_close(p);
    server_join(&server);
    T_EQ(server.bad, 0);
    T_TRUE(piped_close(NULL) == NULL && piped_stream_close(NULL) == NULL);
}

TEST_MAIN()
