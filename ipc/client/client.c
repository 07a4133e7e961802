/* SPDX-License-Identifier: Apache-2.0 */
/* libpiped: connects, reconnects, and waits. */
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>

#include "base/shown_text.h"
#include "ipc/client/client.h"

#define RECONNECT_DEFAULT_MS 30000u
#define BACKOFF_FIRST_MS 5u
#define BACKOFF_MOST_MS 100u /* of which a daemon without socket units may add one to its pause */
/* Of a service that fails to start: each connection starts it again. */
#define BACKOFF_FAILED_FIRST_MS 1000u
#define BACKOFF_FAILED_MOST_MS 8000u

static int set_timer(struct piped *p, uint32_t ms)
{
    struct itimerspec t = {.it_value = {ms / 1000, (long)(ms % 1000) * 1000000}};

    return timerfd_settime(p->timer_fd, 0, &t, NULL) < 0 ? -errno : 0;
}

static int say_hello(struct piped *p)
{
    struct ipc_header h = {.type = IPC_HELLO};
    struct ipc_hello m = {.version_min = IPC_VERSION,
                          .version_max = IPC_VERSION,
                          .features = IPC_FEATURE_F16 | IPC_FEATURE_DESCRIBED};
    int rc;

    ipc_name_set(m.client, p->client);
    rc = ipc_client_queue(p, &h, &m, sizeof(m), NULL, 0, -1);
    return rc < 0 ? rc : ipc_client_flush(p);
}

/* A daemon that is being started answers late: wait for WELCOME as long as the caller allows. */
static int limit_greeting(struct piped *p)
{
    uint64_t waited = base_now_ns() - p->down_ns;
    uint64_t left = waited < p->reconnect_ns ? p->reconnect_ns - waited : 0;

    return p->ever_up ? set_timer(p, (uint32_t)(left / BASE_NS_PER_MS) + 1) : 0;
}

/* A Unix socket connects at once or not at all. */
static int try_connect(struct piped *p)
{
    base_autoclose int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    struct epoll_event e = {.events = EPOLLIN};
    int rc;

    if (sock < 0) {
        return -errno;
    }
    memcpy(to.sun_path, p->path, sizeof(to.sun_path));
    if (connect(sock, (struct sockaddr *)&to, sizeof(to)) < 0) {
        return -errno;
    }
    e.data.fd = sock;
    if (epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, sock, &e) < 0) {
        return -errno;
    }
    p->sock = base_take_fd(&sock);
    p->state = IPC_CLIENT_GREETING;
    p->draining = false;
    rc = limit_greeting(p);
    return rc < 0 ? rc : say_hello(p);
}

/* A daemon that is restarted without socket units listens again by then. */
#define NOBODY_NS (10 * BASE_NS_PER_S)

/* Errors that a retry would only repeat, and -EUSERS: there was no place at the first connecting.
 * Nothing is lost there, so the caller learns at once which limit it met, why the service fails to
 * start, or that nobody listens any more. */
static bool is_final(const struct piped *p, int rc)
{
    bool nobody = rc == -ECONNREFUSED && base_now_ns() - p->down_ns >= NOBODY_NS;

    return rc == -ENOMEM || rc == -EPROTO || rc == -EPROTONOSUPPORT || rc == -EACCES ||
           rc == -EUSERS || (rc == -EHOSTDOWN && (p->fail_fast || !p->ever_up)) ||
           (nobody && !p->ever_up);
}

static void give_up(struct piped *p, int rc)
{
    /* the reason is in p->why, also where the daemon said nothing more since */
    bool by_daemon = rc == -EBUSY || rc == -EHOSTDOWN || (rc == -ETIMEDOUT && p->why[0]);
    struct piped_stream *s;

    if (!by_daemon && is_final(p, rc) && rc != -ENOMEM && rc != -ECONNREFUSED) {
        snprintf(p->why, sizeof(p->why), "%s", piped_last_error());
    } else if (!by_daemon) {
        snprintf(p->why, sizeof(p->why), "no daemon at %s: %s", p->path, strerror(-rc));
    }
    p->state = IPC_CLIENT_GONE;
    p->cause = rc;
    set_timer(p, 0); /* it may have run out just now, too */
    ipc_client_error(-ENOTCONN, "%s", p->why);
    LIST_FOREACH(s, &p->streams, linked) {
        if (s->state != IPC_STREAM_FAILED) {
            ipc_stream_fail(s, IPC_UNAVAILABLE, -ENOTCONN, p->why);
        }
    }
}

/* How long to wait before the next try, the last of which is at the end of reconnect_ns. */
static uint32_t next_pause_ms(struct piped *p, int rc, uint64_t now)
{
    bool failed = rc == -EHOSTDOWN;
    uint64_t left_ms = (p->reconnect_ns - (now - p->down_ns)) / BASE_NS_PER_MS + 1;

    p->backoff_ms =
        base_max(2 * p->backoff_ms, failed ? BACKOFF_FAILED_FIRST_MS : BACKOFF_FIRST_MS);
    p->backoff_ms = base_min(p->backoff_ms, failed ? BACKOFF_FAILED_MOST_MS : BACKOFF_MOST_MS);
    return (uint32_t)base_min((uint64_t)p->backoff_ms, left_ms);
}

void ipc_client_lost(struct piped *p, int rc)
{
    uint64_t now = base_now_ns();
    struct piped_stream *s;

    if (p->state == IPC_CLIENT_GONE) {
        return;
    }
    p->down_ns = p->down_ns ? p->down_ns : now;
    if (p->sock >= 0) {
        epoll_ctl(p->epoll_fd, EPOLL_CTL_DEL, p->sock, NULL);
        base_close_fd(&p->sock);
    }
    p->tx_first = p->tx_count = p->tx_sent = p->rx_used = p->rx_taken = 0;
    p->wants_out = false;
    p->state = IPC_CLIENT_DOWN;
    LIST_FOREACH(s, &p->streams, linked) {
        ipc_stream_disconnected(s);
    }
    if (is_final(p, rc) || now - p->down_ns >= p->reconnect_ns) {
        give_up(p, rc);
        return;
    }
    rc = set_timer(p, next_pause_ms(p, rc, now));
    if (rc < 0) {
        give_up(p, rc);
    }
}

/* The connection is down and may be tried again, or the greeting takes too long. */
static void on_timer(struct piped *p)
{
    uint64_t count;
    ssize_t n = read(p->timer_fd, &count, sizeof(count));
    int rc;

    if (n != (ssize_t)sizeof(count) || p->state == IPC_CLIENT_UP) {
        return;
    }
    rc = p->state == IPC_CLIENT_GREETING ? -ETIMEDOUT : try_connect(p);
    if (rc < 0) {
        ipc_client_lost(p, rc);
    }
}

/* Handles the messages that have come. Return: 0, or -errno: the connection is unusable. */
static int take_messages(struct piped *p)
{
    struct ipc_header h;
    const uint8_t *payload;
    int rc = ipc_client_receive(p);

    while (rc == 0) {
        rc = ipc_client_next(p, &h, &payload);
        if (rc != IPC_CLIENT_MESSAGE) {
            return rc;
        }
        rc = ipc_client_message(p, &h, payload);
    }
    return rc;
}

static void on_socket(struct piped *p, uint32_t events)
{
    int rc = 0;

    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
        rc = take_messages(p);
    }
    if (rc == 0 && p->tx_count > 0) {
        rc = ipc_client_flush(p);
    }
    if (rc < 0) {
        ipc_client_lost(p, rc);
    }
}

#define EVENTS_MAX 2 /* the socket and the timer */

/* Return: as piped_dispatch(); -EINTR: a signal ended the wait. */
static int wait_and_handle(struct piped *p, int timeout_ms)
{
    struct epoll_event events[EVENTS_MAX];
    int n;

    if (p->state == IPC_CLIENT_GONE) {
        return ipc_client_error(-ENOTCONN, "the connection is closed: %s", p->why);
    }
    n = epoll_wait(p->epoll_fd, events, EVENTS_MAX, timeout_ms);
    if (n < 0) {
        int rc = -errno;

        return ipc_client_error(rc, rc == -EINTR ? "interrupted by a signal" : "epoll_wait: %s",
                                strerror(-rc));
    }
    for (int i = 0; i < n; i++) {
        if (events[i].data.fd == p->timer_fd) {
            on_timer(p);
        } else if (events[i].data.fd == p->sock) {
            on_socket(p, events[i].events);
        }
    }
    return p->state == IPC_CLIENT_GONE ? -ENOTCONN : n > 0;
}

int piped_dispatch(struct piped *p, int timeout_ms)
{
    int rc = wait_and_handle(p, timeout_ms);

    return rc == -EINTR ? 0 : rc;
}

uint64_t ipc_client_end_ns(int timeout_ms)
{
    return timeout_ms < 0 ? UINT64_MAX : base_now_ns() + (uint64_t)timeout_ms * BASE_NS_PER_MS;
}

int ipc_client_wait(struct piped *p, uint64_t end_ns)
{
    uint64_t now = end_ns == UINT64_MAX ? 0 : base_now_ns();
    int rc, ms = -1;

    if (end_ns != UINT64_MAX) {
        ms = now >= end_ns ? 0
                           : (int)base_min((end_ns - now + BASE_NS_PER_MS - 1) / BASE_NS_PER_MS,
                                           (uint64_t)INT32_MAX);
    }
    rc = wait_and_handle(p, ms); /* a signal ends the wait, so a program can stop */
    if (rc == 0 && end_ns != UINT64_MAX && base_now_ns() >= end_ns) {
        return ipc_client_error(-ETIMEDOUT, "timed out waiting for the daemon");
    }
    return rc < 0 ? rc : 0;
}

static int take_options(struct piped *p, const struct piped_options *from)
{
    struct piped_options o = {.size = sizeof(o)};
    int rc = ipc_client_options(from, &o, sizeof(o), "piped_options");

    if (rc < 0) {
        return rc;
    }
    if (!o.path) {
        rc = piped_socket_path(p->path, sizeof(p->path));
    } else if (strlen(o.path) >= sizeof(p->path)) {
        rc = ipc_client_error(-ENAMETOOLONG, "%s is too long for a socket path", o.path);
    } else {
        strcpy(p->path, o.path);
    }
    snprintf(p->client, sizeof(p->client), "%.*s", (int)sizeof(p->client) - 1,
             o.client ? o.client : program_invocation_short_name);
    shown_whole(p->client);
    if (o.reconnect_ms != PIPED_RECONNECT_NEVER) {
        p->reconnect_ns =
            (o.reconnect_ms ? o.reconnect_ms : RECONNECT_DEFAULT_MS) * (uint64_t)BASE_NS_PER_MS;
    }
    p->fail_fast = o.fail_fast != 0;
    p->answer_ms = o.answer_ms ? (int)base_min(o.answer_ms, (uint32_t)INT32_MAX) : -1;
    return rc;
}

static void close_client(struct piped **p)
{
    *p = piped_close(*p);
}

static int make_fds(struct piped *p)
{
    struct epoll_event e = {.events = EPOLLIN};

    p->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    p->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    e.data.fd = p->timer_fd;
    if (p->epoll_fd < 0 || p->timer_fd < 0 ||
        epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, p->timer_fd, &e) < 0) {
        return ipc_client_error(-errno, "cannot create descriptors: %s", strerror(errno));
    }
    return 0;
}

int piped_connect(const struct piped_options *options, struct piped **ret)
{
    base_cleanup(close_client) struct piped *p = calloc(1, sizeof(*p));
    uint64_t limit_ns, end_ns;
    int rc;

    if (!p) {
        return ipc_client_error(-ENOMEM, "out of memory");
    }
    p->epoll_fd = p->timer_fd = p->sock = -1;
    rc = take_options(p, options);
    rc = rc < 0 ? rc : make_fds(p);
    if (rc < 0) {
        return rc;
    }
    rc = try_connect(p);
    if (rc < 0) {
        return ipc_client_error(rc, "piped is not reachable at %s: %s", p->path, strerror(-rc));
    }
    limit_ns = p->reconnect_ns ? p->reconnect_ns : RECONNECT_DEFAULT_MS * BASE_NS_PER_MS;
    end_ns = base_now_ns() + limit_ns;
    p->down_ns = base_now_ns();
    while (p->state != IPC_CLIENT_UP) {
        rc = ipc_client_wait(p, end_ns);
        if (rc == -ETIMEDOUT && p->why[0]) {
            return ipc_client_error(rc, "timed out waiting for the daemon: %s", p->why);
        }
        if (rc == -ETIMEDOUT) {
            return ipc_client_error(rc, "piped at %s has not answered for %g s", p->path,
                                    (double)limit_ns / BASE_NS_PER_S);
        }
        if (rc < 0) {
            bool unreachable = p->cause == -EHOSTDOWN || p->cause == -ECONNREFUSED;

            /* piped_last_error() has the daemon's reason */
            return rc != -ENOTCONN ? rc : unreachable ? p->cause : -EPROTO;
        }
    }
    *ret = base_take(p);
    return 0;
}

struct piped *piped_close(struct piped *p)
{
    if (!p) {
        return NULL;
    }
    base_close_fd(&p->sock);
    p->state = IPC_CLIENT_GONE;
    while (!LIST_EMPTY(&p->streams)) {
        ipc_stream_free(LIST_FIRST(&p->streams));
    }
    base_close_fd(&p->timer_fd);
    base_close_fd(&p->epoll_fd);
    free(p->tx);
    free(p->rx);
    free(p);
    return NULL;
}

int piped_fd(const struct piped *p)
{
    return p->epoll_fd;
}

uint64_t piped_reconnects(const struct piped *p)
{
    return p->reconnects;
}

const char *piped_server(const struct piped *p)
{
    return p->server;
}

const char *piped_trouble(const struct piped *p)
{
    return p->why;
}
