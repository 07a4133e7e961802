/* SPDX-License-Identifier: Apache-2.0 */
/* The connection half of both frames servers, with a server whose frames the test answers. */
#include <sys/socket.h>

#include "base/base.h"
#include "ipc/server/connection.h"
#include "tests/harness.h"

#define BACKLOG 200u

static struct rig {
    struct ipc_server server;
    struct ipc_conn conn;
    struct ipc_stream stream;
    int fd;                   /* the client's end */
    bool full, over, endless; /* endless: whatever is sent is read at once */
    unsigned taken, framed, cancelled, orphans, ended, opened;
    unsigned due; /* frames that may be answered */
    uint8_t input[64];
    char why[IPC_TEXT_MAX];
} r;

ssize_t __real_send(int fd, const void *bytes, size_t count, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t count, int flags);

ssize_t __wrap_send(int fd, const void *bytes, size_t count, int flags)
{
    return r.endless && fd == r.conn.fd ? (ssize_t)count : __real_send(fd, bytes, count, flags);
}

static void welcome(const struct ipc_conn *c, struct ipc_welcome *ret)
{
    ret->features = IPC_FEATURE_F16;
    ret->streams_max = 1;
}

static void opens(struct ipc_conn *c, const struct ipc_header *h, const uint8_t *payload)
{
    r.opened++;
    r.stream.id = h->stream;
    c->streams[c->stream_count++] = &r.stream;
}

static void memory(struct ipc_conn *c, const struct ipc_header *h, const uint8_t *payload, int fd)
{
}

static bool room(const struct ipc_conn *c, const struct ipc_stream *s)
{
    return !r.full;
}

static void *take(struct ipc_stream *s, const struct ipc_header *h, const uint8_t *payload,
                  uint8_t **ret_to)
{
    r.taken++;
    s->tail++;
    *ret_to = h->length > IPC_FRAME_BYTES ? r.input : NULL;
    return &r;
}

static void frame(void *record)
{
    T_TRUE(record == &r);
    r.framed++;
}

static void cancel(struct ipc_stream *s, uint64_t number)
{
    r.cancelled += number == 7;
}

static bool answer(struct ipc_stream *s)
{
    uint8_t payload[2 * BACKLOG] = {0};
    bool any = false;

    for (; r.due > 0 && !ipc_conn_backlogged(&r.conn); r.due--) {
        ipc_conn_send(&r.conn, (struct ipc_header){.type = IPC_RESULT, .stream = s->id}, payload,
                      sizeof(payload), NULL, 0);
        s->head++;
        any = true;
    }
    return any;
}

static void finished(struct ipc_stream *s)
{
    r.ended++;
}

static void orphaned(struct ipc_stream *s)
{
    r.orphans++;
}

static size_t backlog_max(const struct ipc_conn *c)
{
    return BACKLOG;
}

static void failed(struct ipc_conn *c, enum ipc_status status, const char *text)
{
    snprintf(r.why, sizeof(r.why), "%s", text);
}

static bool over(const struct ipc_conn *c)
{
    return r.over;
}

static void send_message(struct ipc_header h, const void *payload, size_t bytes)
{
    uint8_t b[IPC_HEADER_BYTES + 256];

    h.version = IPC_VERSION;
    h.length = (uint32_t)bytes;
    memcpy(b, &h, sizeof(h));
    memcpy(b + IPC_HEADER_BYTES, payload, bytes);
    T_EQ(send(r.fd, b, IPC_HEADER_BYTES + bytes, MSG_NOSIGNAL), IPC_HEADER_BYTES + bytes);
}

static void send_hello(uint16_t version)
{
    struct ipc_hello m = {.version_min = version, .version_max = version, .features = UINT32_MAX};
    uint8_t payload[IPC_HELLO_BYTES];

    snprintf(m.client, sizeof(m.client), "me");
    memcpy(payload, &m, sizeof(m));
    send_message((struct ipc_header){.type = IPC_HELLO}, payload, sizeof(payload));
}

static void send_frame(uint64_t number, size_t more)
{
    uint8_t payload[IPC_FRAME_BYTES + 64] = {0};

    memset(payload + IPC_FRAME_BYTES, (int)number, more);
    send_message(
        (struct ipc_header){.type = more ? IPC_INLINE : IPC_FRAME, .stream = 5, .frame = number},
        payload, IPC_FRAME_BYTES + more);
}

/* Return: the next message to the client; type 0: none. */
static struct ipc_header received(void)
{
    uint8_t b[IPC_HEADER_BYTES], rest[512];
    struct ipc_header h = {0};

    if (recv(r.fd, b, sizeof(b), MSG_DONTWAIT) != sizeof(b) || ipc_get_header(b, &h) != 0 ||
        (h.length > 0 && recv(r.fd, rest, h.length, MSG_DONTWAIT) != (ssize_t)h.length)) {
        h.type = 0;
    }
    return h;
}

static void start(void)
{
    static const struct ipc_server_ops ops = {.welcome = welcome,
                                              .open = opens,
                                              .memory = memory,
                                              .room = room,
                                              .take = take,
                                              .frame = frame,
                                              .cancel = cancel,
                                              .answer = answer,
                                              .finished = finished,
                                              .orphaned = orphaned,
                                              .backlog_max = backlog_max,
                                              .failed = failed,
                                              .over = over};
    int fds[2];

    r = (struct rig){0};
    T_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    r.fd = fds[0];
    ipc_server_init(&r.server, &ops);
    ipc_conn_init(&r.conn, &r.server, fds[1]);
}

/* A stream is open. */
static void start_open(void)
{
    uint8_t open[IPC_OPEN_BYTES] = {0};

    start();
    send_hello(IPC_VERSION);
    send_message((struct ipc_header){.type = IPC_OPEN, .stream = 5}, open, sizeof(open));
    T_EQ(ipc_conn_read(&r.conn), 0);
    T_EQ(ipc_conn_answer(&r.conn), 0);
    T_EQ(r.opened, 1);
    T_EQ(received().type, IPC_WELCOME);
}

static void stop(void)
{
    ipc_conn_leave(&r.conn);
    T_TRUE(LIST_EMPTY(&r.server.conns) && LIST_EMPTY(&r.server.unsettled));
    ipc_conn_deinit(&r.conn);
    close(r.fd);
}

TEST(a_client_greets_once_and_first)
{
    start_open();
    T_STR(r.conn.client, "me");
    T_EQ(r.conn.features, IPC_FEATURE_F16);
    T_TRUE(!ipc_conn_silent(&r.conn, UINT64_MAX, 1));
    send_hello(IPC_VERSION);
    T_EQ(ipc_conn_read(&r.conn), 0);
    T_STR(r.why, "a second HELLO");
    T_EQ(ipc_conn_answer(&r.conn), IPC_E_ENDED);
    T_EQ(received().type, IPC_ERROR);
    stop();
    start();
    T_TRUE(ipc_conn_silent(&r.conn, r.conn.since_ns + 1, 1));
    send_message((struct ipc_header){.type = IPC_PING}, "", 0);
    T_EQ(ipc_conn_read(&r.conn), 0);
    T_CONTAINS(r.why, "PING before HELLO");
    stop();
    start();
    send_hello(IPC_VERSION + 1);
    T_EQ(ipc_conn_read(&r.conn), 0);
    T_CONTAINS(r.why, "speaks version");
    T_TRUE(!r.conn.greeted);
    stop();
}

TEST(frames_wait_for_room_and_all_that_follows_waits)
{
    start_open();
    r.full = true;
    send_frame(1, 0);
    send_message((struct ipc_header){.type = IPC_PING}, "", 0);
    T_EQ(ipc_conn_read(&r.conn), 0);
    T_EQ(r.taken, 0);
    r.full = false;
    ipc_conn_handle(&r.conn);
    T_EQ(r.framed, 1);
    T_EQ(ipc_conn_answer(&r.conn), 0);
    T_EQ(received().type, IPC_PONG);
    stop();
    T_EQ(r.orphans, 1);
}

TEST(an_inline_frame_is_one_when_its_last_byte_has_come)
{
    uint8_t payload[IPC_FRAME_BYTES] = {0}, all[IPC_HEADER_BYTES];
    struct ipc_header h = {.type = IPC_INLINE,
                           .version = IPC_VERSION,
                           .stream = 5,
                           .frame = 1,
                           .length = IPC_FRAME_BYTES + 8};

    start_open();
    memcpy(all, &h, sizeof(h));
    T_EQ(send(r.fd, all, sizeof(all), 0), (ssize_t)sizeof(all));
    T_EQ(send(r.fd, payload, sizeof(payload), 0), (ssize_t)sizeof(payload));
    T_EQ(send(r.fd, "abcd", 4, 0), 4);
    T_EQ(ipc_conn_read(&r.conn), 0);
    T_EQ(r.taken, 1);
    T_EQ(r.framed, 0);
    T_EQ(send(r.fd, "efgh", 4, 0), 4);
    T_EQ(ipc_conn_read(&r.conn), 0);
    T_EQ(r.framed, 1);
    T_EQ(memcmp(r.input, "abcdefgh", 8), 0);
    stop();
}

TEST(a_stream_ends_with_its_last_answer)
{
    start_open();
    send_frame(1, 0);
    send_message((struct ipc_header){.type = IPC_CANCEL, .stream = 5, .frame = 7}, "", 0);
    send_message((struct ipc_header){.type = IPC_CLOSE, .stream = 5}, "", 0);
    send_message((struct ipc_header){.type = IPC_CLOSE, .stream = 6}, "", 0);
    send_frame(2, 0);
    T_EQ(ipc_conn_read(&r.conn), 0);
    T_EQ(ipc_conn_answer(&r.conn), 0);
    T_EQ(r.cancelled, 1);
    T_EQ(r.ended, 0);
    T_EQ(received().status, IPC_NOT_FOUND); /* stream 6 */
    T_EQ(received().status, IPC_NOT_FOUND); /* frame 2 */
    r.due = 1;
    T_EQ(ipc_conn_answer(&r.conn), 0);
    T_EQ(r.ended, 1);
    T_EQ(received().type, IPC_RESULT);
    T_EQ(received().type, IPC_CLOSED);
    stop();
    T_EQ(r.orphans, 0);
}

TEST(answers_that_a_backlog_held_back_follow_when_it_is_gone)
{
    start_open();
    r.endless = true;
    r.due = 3;
    T_EQ(ipc_conn_answer(&r.conn), 0);
    T_EQ(r.due, 2);
    T_EQ(ipc_outgoing_waiting(&r.conn.out), 0);
    T_TRUE(r.conn.unsettled);
    for (int i = 0; i < 3; i++) {
        T_EQ(ipc_conn_answer(&r.conn), 0);
    }
    T_EQ(r.due, 0);
    T_TRUE(!r.conn.unsettled);
    stop();
}

TEST(others_have_their_turn)
{
    start_open();
    r.over = true;
    send_frame(1, 0);
    send_frame(2, 0);
    T_EQ(ipc_conn_read(&r.conn), IPC_E_MORE);
    T_EQ(r.framed, 1);
    T_EQ(ipc_conn_read(&r.conn), IPC_E_MORE);
    T_EQ(r.framed, 2);
    T_EQ(ipc_conn_read(&r.conn), 0);
    shutdown(r.fd, SHUT_WR);
    T_EQ(ipc_conn_read(&r.conn), IPC_E_ENDED);
    stop();
}

TEST_MAIN()
