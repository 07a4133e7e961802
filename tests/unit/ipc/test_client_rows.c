/* SPDX-License-Identifier: Apache-2.0 */
/* How many rows of an output libpiped says that an answer has. */
#include <errno.h>

#include "ipc/piped.h"
#include "tests/harness.h"
#include "tests/unit/ipc/scripted_daemon.h"

/* Answers frames until the client goes. */
static void script_answers(struct server *s)
{
    struct message m;

    if (server_accept(s) && server_open_stream(s)) {
        while (server_receive(s, &m)) {
            server_answer(s, &m, IPC_OK);
        }
    }
}

static void script_counts(struct server *s)
{
    s->rows_output = 2;
    script_answers(s);
}

/* A frame whose answer is the 8 bytes of @count: its rows must be @rows along @dim. */
static void rows_are(struct piped_stream *s, int64_t count, uint64_t rows, uint32_t dim)
{
    struct piped_frame *f;
    uint32_t along;

    T_EQ(piped_acquire(s, &f), 0);
    for (size_t i = 0; i < OUT_BYTES; i++) { /* it answers each byte plus one */
        ((uint8_t *)f->input)[i] = (uint8_t)(((uint64_t)count >> 8 * i & 255) - 1);
    }
    T_EQ(piped_infer(s, f, 30000), 0);
    T_EQ(piped_rows(s, f, 0, NULL), rows);
    T_EQ(piped_rows(s, f, 0, &along), rows);
    T_EQ(along, dim);
    piped_release(s, f);
}

TEST(rows_of_an_output_are_counted)
{
    struct server server;
    struct piped_stream *s;
    struct piped *p;

    server_start(&server, 4, script_counts);
    T_EQ(client_open(&server, 1000, 1, &p, &s), 0);
    T_EQ(piped_stream_info(s)->output_count, 2);
    rows_are(s, 3, 3, 0);
    rows_are(s, 0, 0, 0);
    rows_are(s, INT64_MAX, OUT_BYTES, 0); /* what a broken server says stays inside */
    rows_are(s, -1, 0, 0);
    piped_close(p);
    server_join(&server);
    T_EQ(server.bad, 0);
}

TEST(rows_of_a_fixed_output_are_all)
{
    struct server server;
    struct piped_stream *s;
    struct piped *p;

    server_start(&server, 4, script_answers);
    T_EQ(client_open(&server, 1000, 1, &p, &s), 0);
    rows_are(s, 3, OUT_BYTES, UINT32_MAX);
    piped_close(p);
    server_join(&server);
    T_EQ(server.bad, 0);
}

static void open_with(struct server *s, uint32_t output, uint32_t dim)
{
    struct message m;

    s->rows_output = output;
    s->rows_dim = dim;
    if (server_accept(s) && server_receive(s, &m)) {
        server_send_opened(s, m.h.stream, OUT_BYTES);
        SERVER_CHECK(s, !server_receive(s, &m)); /* it has left */
    }
}

static void script_no_output(struct server *s)
{
    open_with(s, 3, 0);
}

static void script_no_integer(struct server *s)
{
    open_with(s, 1, 0);
}

static void script_no_dimension(struct server *s)
{
    open_with(s, 2, 1);
}

/* a count that is no output, is no i64, or is along no dimension */
TEST(rows_that_cannot_be_counted)
{
    static void (*const scripts[])(struct server * s) = {script_no_output, script_no_integer,
                                                         script_no_dimension};

    for (size_t i = 0; i < base_array_count(scripts); i++) {
        struct server server;
        struct piped_stream *s;
        struct piped *p;

        server_start(&server, 4, scripts[i]);
        T_EQ(client_open(&server, 30000, 1, &p, &s), -ENOTCONN);
        piped_close(p);
        server_join(&server);
        T_EQ(server.bad, 0);
    }
}
