/* SPDX-License-Identifier: Apache-2.0 */
/* libpiped's descriptions of outputs against a scripted daemon: in parts, none, and broken ones. */
#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "ipc/decode/piped_decode.h"
#include "ipc/piped.h"
#include "tests/harness.h"
#include "tests/unit/ipc/scripted_daemon.h"

static const char first[] = "{\"output\": {\"decode\": \"classes\", ";
static const char last[] = "\"activation\": \"none\"}}";
static const char labelled[] =
    "{\"output\": {\"decode\": \"classes\", \"activation\": \"none\"}, \"labels\": [\"a\"]}";

static void describe(struct server *s, uint32_t stream, const char *text, size_t bytes, bool more)
{
    struct ipc_header h = {
        .type = IPC_DESCRIBED, .stream = stream, .flags = more ? IPC_FLAG_MORE : 0};

    server_send(s, h, text, bytes, NULL, 0);
}

static void script_parts(struct server *s)
{
    struct message m;

    SERVER_CHECK(s, server_accept(s) && server_receive(s, &m) && m.h.type == IPC_OPEN);
    describe(s, m.h.stream, first, strlen(first), true);
    describe(s, m.h.stream, last, strlen(last), false);
    server_send_opened(s, m.h.stream, OUT_BYTES);
    SERVER_CHECK(s, server_take_pool(s));
    SERVER_CHECK(s, server_open_stream(s)); /* the second stream has none */
    server_receive(s, &m);
}

static int reach(struct server *server, void (*script)(struct server *s), struct piped **ret)
{
    struct piped_options o = {
        .size = sizeof(o), .path = server->path, .reconnect_ms = 1000, .answer_ms = 20000};

    server_start(server, 4, script);
    return piped_connect(&o, ret);
}

static int open_stream(struct piped *p, struct piped_stream **ret)
{
    struct piped_stream_options o = {.size = sizeof(o), .slots = 3};

    return piped_stream_open(p, &o, ret);
}

TEST(parts_are_one_description)
{
    struct piped_stream *s, *other;
    struct piped_decoder *d;
    struct server server;
    char whole[200];
    struct piped *p;

    T_EQ(reach(&server, script_parts, &p), 0);
    T_EQ(open_stream(p, &s), 0);
    snprintf(whole, sizeof(whole), "%s%s", first, last);
    T_STR(piped_stream_description(s), whole);
    T_EQ(open_stream(p, &other), 0);
    T_STR(piped_stream_description(other), "");
    T_EQ(piped_decoder_new(piped_stream_description(s), piped_stream_info(s)->outputs,
                           piped_stream_info(s)->output_count, &d),
         0);
    piped_decoder_free(d);
    T_EQ(piped_decoder_new(piped_stream_description(other), piped_stream_info(other)->outputs,
                           piped_stream_info(other)->output_count, &d),
         -ENODATA);
    T_CONTAINS(piped_last_error(), "does not say how to decode");
    piped_close(p);
    server_join(&server);
    T_EQ(server.bad, 0);
}

/* The model is replaced twice. */
static void script_anew(struct server *s)
{
    struct message m, f[3];

    SERVER_CHECK(s, server_accept(s) && server_receive(s, &m) && m.h.type == IPC_OPEN);
    describe(s, m.h.stream, labelled, strlen(labelled), false);
    server_send_opened(s, m.h.stream, OUT_BYTES);
    SERVER_CHECK(s, server_take_pool(s));
    for (size_t i = 0; i < base_array_count(f); i++) {
        SERVER_CHECK(s, server_receive(s, &f[i]));
    }
    server_answer(s, &f[0], IPC_OK);
    describe(s, m.h.stream, first, strlen(first), true);
    describe(s, m.h.stream, last, strlen(last), false);
    server_answer(s, &f[1], IPC_OK);
    describe(s, m.h.stream, "", 0, false);
    server_answer(s, &f[2], IPC_OK);
    server_receive(s, &m);
}

/* All answers are there before the first is looked at. */
TEST(a_frame_has_the_description_of_its_model)
{
    static const char *const labels[] = {"a", NULL, NULL};
    struct piped_stream_stats stats = {0};
    struct piped_decoder *d = NULL;
    struct piped_stream *s;
    struct piped_frame *f;
    struct server server;
    struct piped *p;

    T_EQ(reach(&server, script_anew, &p), 0);
    T_EQ(open_stream(p, &s), 0);
    for (size_t i = 0; i < base_array_count(labels); i++) {
        T_EQ(piped_acquire(s, &f), 0);
        f->input_bytes = IN_BYTES;
        memset(f->input, 0, IN_BYTES);
        T_EQ(piped_submit(s, f), 0);
    }
    while (stats.answered < base_array_count(labels)) {
        T_TRUE(piped_dispatch(p, 20000) >= 0);
        piped_stream_stats(s, &stats);
    }
    T_STR(piped_stream_description(s), labelled);
    for (size_t i = 0; i < base_array_count(labels); i++) {
        const struct piped_class *best;
        uint32_t count;

        T_EQ(piped_next(s, &f), 0);
        T_EQ(piped_decoder_follow(&d, s), i < 2 ? 0 : -ENODATA);
        T_EQ(d != NULL, i < 2);
        if (d) {
            const struct piped_decoder *before = d;

            T_EQ(piped_decode_classes(d, f->output, 1, &best, &count), 0);
            T_EQ(count, 1);
            T_STR(best[0].label ? best[0].label : "", labels[i] ? labels[i] : "");
            T_EQ(piped_decoder_follow(&d, s), 0);
            T_TRUE(d == before);
        }
        piped_release(s, f);
    }
    piped_decoder_free(d);
    piped_close(p);
    server_join(&server);
    T_EQ(server.bad, 0);
}

/* Each of these ends the connection. */
static void script_unfinished(struct server *s)
{
    struct message m;

    if (server_accept(s) && server_receive(s, &m)) {
        describe(s, m.h.stream, first, strlen(first), true);
        server_send_opened(s, m.h.stream, OUT_BYTES);
        server_receive(s, &m);
    }
}

static void script_zero(struct server *s)
{
    struct message m;

    if (server_accept(s) && server_receive(s, &m)) {
        describe(s, m.h.stream, "{}", 3, false);
        server_receive(s, &m);
    }
}

static void script_endless(struct server *s)
{
    static char spaces[IPC_UNKNOWN_MAX];
    struct message m;

    memset(spaces, ' ', sizeof(spaces));
    if (server_accept(s) && server_receive(s, &m)) {
        for (size_t i = 0; i <= IPC_DESCRIPTION_MAX / sizeof(spaces); i++) {
            describe(s, m.h.stream, spaces, sizeof(spaces), true);
        }
        server_receive(s, &m);
    }
}

TEST(broken_ones_end_the_connection)
{
    void (*const scripts[])(struct server * s) = {script_unfinished, script_zero, script_endless};
    static const char *const parts[] = {"a part of a DESCRIBED", "an invalid DESCRIBED",
                                        "an invalid DESCRIBED"};

    for (size_t i = 0; i < base_array_count(scripts); i++) {
        struct piped_stream *s;
        struct server server;
        struct piped *p;

        T_EQ(reach(&server, scripts[i], &p), 0);
        T_TRUE(open_stream(p, &s) < 0);
        T_CONTAINS(piped_last_error(), parts[i]);
        piped_close(p);
        server_join(&server);
    }
}

TEST_MAIN()
