/* SPDX-License-Identifier: Apache-2.0 */
/* libpiped at a scripted service that fails to start: each connection is told why, and starts it
 * again. */
#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/base.h"
#include "ipc/piped.h"
#include "tests/harness.h"
#include "tests/unit/ipc/scripted_daemon.h"

#define WHY "/etc/piped/piped.json:1: log_level: \"loud\" is not one of ..."
#define PATIENT ((struct piped_options){.reconnect_ms = 3600000})

static unsigned refused; /* connections; of the script's thread until server_join() */
static sem_t asked_for, refusal;

/* Return: false: it was no client of libpiped. */
static bool refuse_one(struct server *s)
{
    struct message m;

    s->sock = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);
    if (s->sock < 0 || !server_receive(s, &m)) {
        return false;
    }
    server_send(s, (struct ipc_header){.type = IPC_ERROR, .status = IPC_UNAVAILABLE}, WHY,
                strlen(WHY), NULL, 0);
    server_hang_up(s);
    refused++;
    sem_post(&refusal);
    return true;
}

static void script_refuses(struct server *s)
{
    refuse_one(s);
}

static void script_hangs_up_and_is_gone(struct server *s)
{
    s->sock = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);
    close(s->listener);
    s->listener = -1;
    server_hang_up(s);
}

/* It serves, then, when the test asks for it, it fails to start until somebody says nothing. */
static void script_serves_then_refuses(struct server *s)
{
    struct message m;

    if (!server_take(s, &m)) {
        return;
    }
    server_hang_up(s);
    sem_wait(&asked_for);
    while (refuse_one(s)) {
        continue;
    }
    server_hang_up(s);
}

/* It serves, fails to start once, and then says nothing. */
static void script_falls_silent(struct server *s)
{
    struct message m;

    if (!server_take(s, &m)) {
        return;
    }
    server_hang_up(s);
    SERVER_CHECK(s, refuse_one(s));
    s->sock = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);
    while (server_receive(s, &m)) {
        continue;
    }
    server_hang_up(s);
}

/* It serves, fails to start once, and serves. */
static void script_is_mended(struct server *s)
{
    struct message m;

    if (!server_take(s, &m)) {
        return;
    }
    server_hang_up(s);
    SERVER_CHECK(s, refuse_one(s));
    if (!server_take(s, &m)) {
        return;
    }
    server_answer(s, &m, IPC_OK);
    server_receive(s, &m);
}

static void end_script(const struct server *s)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    memcpy(to.sun_path, s->path, sizeof(to.sun_path));
    T_EQ(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    close(fd);
}

/* Sends a frame, of which the script reads the message and nothing else. */
static void send_one(struct piped *p, struct piped_stream **s, struct piped_frame **ret)
{
    T_EQ(piped_stream_open(p, NULL, s), 0);
    T_EQ(piped_acquire(*s, ret), 0);
    memset((*ret)->input, 5, (*ret)->input_size);
    T_EQ(piped_submit(*s, *ret), 0);
}

static int reach(struct server *server, struct piped_options o, void (*script)(struct server *s),
                 struct piped **p)
{
    refused = 0;
    sem_init(&asked_for, 0, 0);
    sem_init(&refusal, 0, 0);
    server_start(server, 4, script);
    o.size = sizeof(o);
    o.path = server->path;
    return piped_connect(&o, p);
}

static void leave(struct server *server, struct piped *p)
{
    piped_close(p);
    server_join(server);
    T_EQ(server->bad, 0);
}

/* Another try would wait for the script, which is over. */
TEST(a_new_client_is_told_at_once)
{
    struct server server;
    struct piped *p = NULL;

    T_EQ(reach(&server, PATIENT, script_refuses, &p), -EHOSTDOWN);
    T_CONTAINS(piped_last_error(), "the service failed to start: " WHY);
    leave(&server, p);
    T_EQ(refused, 1);
}

TEST(a_new_client_does_not_wait_where_nobody_listens_any_more)
{
    struct server server;
    struct piped *p = NULL;

    T_EQ(reach(&server, PATIENT, script_hangs_up_and_is_gone, &p), -ECONNREFUSED);
    T_CONTAINS(piped_last_error(), "no daemon at ");
    leave(&server, p);
}

TEST(a_connected_client_waits_and_starts_it_rarely)
{
    struct piped_options o = {.reconnect_ms = 1500};
    bool told = false;
    struct piped_stream *s;
    struct piped_frame *f, *back;
    struct server server;
    struct piped *p;

    T_EQ(reach(&server, o, script_serves_then_refuses, &p), 0);
    sem_post(&asked_for);
    send_one(p, &s, &f);
    while (piped_next(s, &back) == -EAGAIN) {
        told |= piped_dispatch(p, -1) >= 0 && strstr(piped_trouble(p), WHY);
    }
    T_EQ(back == f, true);
    T_EQ(told, true);
    T_EQ(f->status, PIPED_UNAVAILABLE);
    T_CONTAINS(f->text, "the service failed to start: " WHY);
    T_EQ(piped_dispatch(p, 0), -ENOTCONN);
    T_CONTAINS(piped_last_error(), "the connection is closed: the service failed to start: " WHY);
    end_script(&server);
    leave(&server, p);
    T_EQ(refused <= 3, true); /* at once, after a second, and at the end */
}

/* Return: this process's only timer, which libpiped has; -1: there is none. */
static int find_timer(void)
{
    char path[64], name[64];

    for (int fd = 0; fd < 64; fd++) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        ssize_t n = readlink(path, name, sizeof(name) - 1);

        name[base_max(n, (ssize_t)0)] = '\0';
        if (strcmp(name, "anon_inode:[timerfd]") == 0) {
            return fd;
        }
    }
    return -1;
}

static bool is_far(int timer)
{
    struct itimerspec t;

    return timerfd_gettime(timer, &t) == 0 &&
           (t.it_value.tv_sec > 0 || t.it_value.tv_nsec > 200000000);
}

/* A refusal and the end of its patience are one wake-up: it does not connect once more. */
TEST(a_refusal_at_the_end_of_patience_is_the_last)
{
    struct piped_options o = {.reconnect_ms = 1500};
    struct piped_stream *s;
    struct piped_frame *f;
    struct server server;
    struct pollfd timer = {.events = POLLIN};
    struct piped *p;

    T_EQ(reach(&server, o, script_serves_then_refuses, &p), 0);
    send_one(p, &s, &f);
    timer.fd = find_timer();
    while (!is_far(timer.fd)) { /* it waits at most 100 ms to connect, then for a greeting */
        T_LE(0, piped_dispatch(p, -1));
    }
    T_EQ(piped_dispatch(p, 0), 0); /* so what comes next comes first */
    sem_post(&asked_for);
    sem_wait(&refusal);
    T_EQ(poll(&timer, 1, -1), 1);
    T_EQ(piped_dispatch(p, 0), -ENOTCONN);
    T_EQ(f->status, PIPED_UNAVAILABLE);
    T_EQ(piped_dispatch(p, 0), -ENOTCONN);
    end_script(&server);
    leave(&server, p);
    T_EQ(refused, 1);
}

TEST(a_client_that_waited_in_vain_says_what_it_was_told)
{
    struct piped_options o = {.reconnect_ms = 1500};
    struct piped_stream *s;
    struct piped_frame *f;
    struct server server;
    struct piped *p;

    T_EQ(reach(&server, o, script_falls_silent, &p), 0);
    send_one(p, &s, &f);
    while (piped_dispatch(p, -1) >= 0) {
        continue;
    }
    T_EQ(f->status, PIPED_UNAVAILABLE);
    T_CONTAINS(f->text, "the service failed to start: " WHY);
    leave(&server, p);
}

TEST(a_hurried_client_gives_up_at_once)
{
    struct piped_options o = {.fail_fast = 1};
    struct piped_stream *s;
    struct piped_frame *f;
    struct server server;
    struct piped *p;

    T_EQ(reach(&server, o, script_serves_then_refuses, &p), 0);
    sem_post(&asked_for);
    send_one(p, &s, &f);
    while (piped_dispatch(p, -1) >= 0) {
        continue;
    }
    T_EQ(f->status, PIPED_UNAVAILABLE);
    T_CONTAINS(f->text, WHY);
    T_EQ(piped_next(s, &f), 0);
    piped_release(s, f);
    T_EQ(piped_acquire(s, &f), 0);
    T_EQ(piped_submit(s, f), -ENOTCONN);
    T_CONTAINS(piped_last_error(), "the stream is closed: the service failed to start: " WHY);
    end_script(&server);
    leave(&server, p);
    T_EQ(refused, 1);
}

TEST(a_service_that_is_mended_loses_nothing)
{
    struct piped_stream *s;
    struct piped_frame *f, *back;
    struct server server;
    struct piped *p;

    T_EQ(reach(&server, (struct piped_options){0}, script_is_mended, &p), 0);
    send_one(p, &s, &f);
    while (piped_next(s, &back) == -EAGAIN) {
        T_EQ(piped_dispatch(p, -1) >= 0, true);
    }
    T_EQ(back == f, true);
    T_EQ(f->status, PIPED_OK);
    T_EQ(((const uint8_t *)f->output)[0], 6);
    T_EQ(piped_reconnects(p), 1);
    T_EQ(piped_trouble(p)[0], '\0');
    leave(&server, p);
    T_EQ(refused, 1);
}

TEST_MAIN()
