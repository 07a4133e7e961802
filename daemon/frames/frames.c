/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base.h"
#include "daemon/daemon.h"
#include "daemon/service/log.h"
#include "daemon/service/messages.h"

#define RETRY_MS 500u

struct dmn_account *dmn_account_get(struct dmn_frames *f, uid_t uid)
{
    struct dmn_account *a;

    for (a = f->accounts; a; a = a->next) {
        if (a->uid == uid) {
            return a;
        }
    }
    a = calloc(1, sizeof(*a));
    if (a) {
        a->uid = uid;
        a->next = f->accounts;
        f->accounts = a;
    }
    return a;
}

void dmn_account_trim(struct dmn_frames *f)
{
    for (struct dmn_account **at = &f->accounts; *at;) {
        struct dmn_account *a = *at;

        if (a->connections == 0 && a->pool_bytes == 0) {
            *at = a->next;
            free(a);
        } else {
            at = &a->next;
        }
    }
}

/* Too many: told why in an ERROR, as far as the socket's buffer takes it, and closed. */
static void refuse(struct dmn_daemon *d, int fd, uid_t uid, enum ipc_status status,
                   const char *text)
{
    struct ipc_header h = {.type = IPC_ERROR,
                           .version = IPC_VERSION,
                           .status = (uint16_t)status,
                           .length = (uint32_t)strlen(text)};
    uint8_t bytes[IPC_HEADER_BYTES + IPC_TEXT_MAX];

    ipc_put_header(&h, bytes);
    memcpy(bytes + IPC_HEADER_BYTES, text, h.length);
    if (send(fd, bytes, IPC_HEADER_BYTES + h.length, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
        text = "it did not even take the answer";
    }
    close(fd);
    d->frames.refused++;
    dmn_log_limited(LOG_WARNING, (struct dmn_log_fields){.id = DMN_MSG_CLIENT_REFUSED},
                    "refused a client of user %u: %s", (unsigned)uid, text);
}

static void accept_one(struct dmn_daemon *d, int fd)
{
    struct dmn_frames *f = &d->frames;
    struct ucred peer = {.uid = (uid_t)-1};
    socklen_t length = sizeof(peer);
    struct dmn_account *a;
    int error;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0) {
        close(fd);
        return;
    }
    a = dmn_account_get(f, peer.uid);
    if (!a) {
        refuse(d, fd, peer.uid, IPC_RESOURCE_EXHAUSTED, "out of memory");
    } else if (f->conn_count >= (size_t)dmn_config_int(d->config, DMN_KEY_LIMIT_CONNECTIONS)) {
        refuse(d, fd, peer.uid, IPC_RESOURCE_EXHAUSTED, "too many connections");
    } else if (a->connections >= (size_t)dmn_config_int(d->config, DMN_KEY_LIMIT_CONNECTIONS_UID)) {
        refuse(d, fd, peer.uid, IPC_RESOURCE_EXHAUSTED, "too many connections of this user");
    } else {
        error = dmn_conn_new(d, fd, a, peer.pid);
        if (error < 0) {
            refuse(d, fd, peer.uid, IPC_INTERNAL, "the connection could not be set up");
        }
    }
    dmn_account_trim(f);
}

static void on_listen(uv_poll_t *poll, int status, int events);

static void on_retry(uv_timer_t *timer)
{
    struct dmn_daemon *d = timer->data;

    if (d->frames.fd >= 0) {
        uv_poll_start(&d->frames.poll, UV_READABLE, on_listen);
    }
}

static void on_listen(uv_poll_t *poll, int status, int events)
{
    struct dmn_daemon *d = poll->data;

    for (int i = 0; i < 16; i++) {
        int fd = accept4(d->frames.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd >= 0) {
            accept_one(d, fd);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
            /* it stays readable: without a pause the loop would spin */
            dmn_log_limited(LOG_ERR, (struct dmn_log_fields){0}, "cannot accept clients: %s",
                            strerror(errno));
            uv_poll_stop(&d->frames.poll);
            uv_timer_start(&d->frames.retry, on_retry, RETRY_MS, 0);
        }
        if (errno != EINTR && errno != ECONNABORTED) {
            break;
        }
    }
    dmn_daemon_settle(d);
}

int dmn_frames_start(struct dmn_daemon *d, int fd, const char *path)
{
    struct dmn_frames *f = &d->frames;
    int error;

    f->fd = fd;
    f->daemon = d;
    if (path && !(f->path = strdup(path))) {
        return -ENOMEM;
    }
    if (getrandom(&f->instance, sizeof(f->instance), GRND_NONBLOCK) != sizeof(f->instance)) {
        f->instance = base_now_ns() ^ ((uint64_t)getpid() << 40);
    }
    error = uv_poll_init(&d->loop, &f->poll, fd);
    if (error < 0) {
        return error;
    }
    f->polling = true;
    f->poll.data = d;
    uv_timer_init(&d->loop, &f->retry);
    f->retry.data = d;
    f->timing = true;
    return uv_poll_start(&f->poll, UV_READABLE, on_listen);
}

static void on_listener_closed(uv_handle_t *handle)
{
    struct dmn_daemon *d = handle->data;

    base_close_fd(&d->frames.fd);
}

void dmn_frames_stop_accepting(struct dmn_daemon *d)
{
    struct dmn_frames *f = &d->frames;

    if (f->path) {
        unlink(f->path);
        free(base_take(f->path));
    }
    if (f->timing) {
        f->timing = false;
        uv_close((uv_handle_t *)&f->retry, NULL);
    }
    if (f->polling) {
        f->polling = false;
        uv_close((uv_handle_t *)&f->poll, on_listener_closed);
    } else {
        base_close_fd(&f->fd);
    }
}

void dmn_frames_settle(struct dmn_daemon *d)
{
    struct dmn_frames *f = &d->frames;

    while (f->dirty) {
        struct dmn_conn *c = f->dirty;
        bool again;

        f->dirty = c->next_dirty;
        again = dmn_conn_work(c); /* dirty meanwhile: what it sends does not list it again */
        c->dirty = false;
        if (again) {
            dmn_conn_mark(c);
        }
    }
}

void dmn_frames_drain_begin(struct dmn_daemon *d)
{
    struct ipc_event_msg m = {.event = IPC_EVENT_DRAINING};
    uint8_t payload[IPC_EVENT_BYTES];
    struct dmn_conn *next;

    for (struct dmn_conn *c = d->frames.conns; c; c = next) {
        next = c->next;
        dmn_conn_read(c); /* frames sent before the stop still count */
        if (!c->closed) {
            dmn_conn_mark(c);
        }
    }
    dmn_frames_settle(d);
    d->draining = true;
    ipc_put_event(&m, payload);
    for (struct dmn_conn *c = d->frames.conns; c; c = c->next) {
        if (c->greeted) {
            dmn_conn_send(c, (struct ipc_header){.type = IPC_EVENT}, payload, sizeof(payload), NULL,
                          0);
        }
    }
}

bool dmn_frames_drained(const struct dmn_daemon *d)
{
    for (const struct dmn_conn *c = d->frames.conns; c; c = c->next) {
        if (c->out_pos < c->out_used) {
            return false;
        }
        for (size_t i = 0; i < c->stream_count; i++) {
            if (c->streams[i]->head != c->streams[i]->tail) {
                return false;
            }
        }
    }
    return true;
}

void dmn_frames_close_all(struct dmn_daemon *d)
{
    while (d->frames.conns) {
        dmn_conn_close(d->frames.conns);
    }
    dmn_account_trim(&d->frames);
}

void dmn_frames_tick(struct dmn_daemon *d, uint64_t now_ns)
{
    uint64_t limit = (uint64_t)dmn_config_int(d->config, DMN_KEY_LIMIT_SLOW_S) * BASE_NS_PER_S;
    struct dmn_conn *next;

    for (struct dmn_conn *c = d->frames.conns; c; c = next) {
        next = c->next;
        if (c->stuck_ns && now_ns > c->stuck_ns && now_ns - c->stuck_ns > limit) {
            dmn_log_limited(
                LOG_WARNING,
                ((struct dmn_log_fields){.id = DMN_MSG_CLIENT_CLOSED, .client = c->client}),
                "client \"%s\" (pid %d, user %u) reads no answers: disconnected", c->client,
                (int)c->pid, (unsigned)c->account->uid);
            dmn_conn_close(c);
        }
    }
}
