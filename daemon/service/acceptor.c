/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/service/acceptor.h"

#include <poll.h>
#include <string.h>

#include "base.h"
#include "daemon/service/log.h"

#define RETRY_MS 500u
#define ACCEPTS_MAX 16 /* in one turn of the loop, so that clients who are served go on */

static void on_listen(uv_poll_t *poll, int status, int events);

static void on_retry(uv_timer_t *timer)
{
    struct dmn_acceptor *a = timer->data;

    if (a->open) {
        uv_poll_start(&a->poll, UV_READABLE, on_listen);
    }
}

static void take(void *acceptor, int fd)
{
    struct dmn_acceptor *a = acceptor;
    struct ucred peer = {.uid = (uid_t)-1, .gid = (gid_t)-1};
    socklen_t length = sizeof(peer);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0) {
        close(fd);
        return;
    }
    a->accepted(a->ctx, fd, &peer);
}

static bool is_short(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

/* The socket stays readable: without a pause the loop would spin. */
static void pause_accepting(struct dmn_acceptor *a, int error)
{
    dmn_log_limited(LOG_ERR, (struct dmn_log_fields){0}, "%s: cannot accept clients: %s; they wait",
                    a->name, strerror(error));
    uv_poll_stop(&a->poll);
    uv_timer_start(&a->retry, on_retry, RETRY_MS, 0);
}

/* accept4() says EMFILE even if nobody has come. */
static bool somebody_waits(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, 0) > 0;
}

static void on_listen(uv_poll_t *poll, int status, int events)
{
    struct dmn_acceptor *a = poll->data;

    for (int i = 0; i < ACCEPTS_MAX && a->open; i++) {
        int fd = accept4(a->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        int error = fd < 0 ? errno : 0;

        if (fd >= 0) {
            take(a, fd);
        } else if (error != EINTR && error != ECONNABORTED) {
            if (is_short(error) && somebody_waits(a->fd)) {
                pause_accepting(a, error);
            }
            return;
        }
    }
}

static void take_file(struct dmn_acceptor *a, struct ipc_socket_file *file)
{
    ipc_socket_file_remove(&a->file);
    a->file = *file;
    *file = (struct ipc_socket_file){0};
}

int dmn_acceptor_start(struct dmn_acceptor *a, int fd, struct ipc_socket_file *file)
{
    int error = uv_poll_init(a->loop, &a->poll, fd);

    take_file(a, file);
    if (error < 0) {
        close(fd);
        return error;
    }
    a->fd = fd;
    a->open = true;
    a->poll.data = a->retry.data = a;
    uv_timer_init(a->loop, &a->retry);
    return uv_poll_start(&a->poll, UV_READABLE, on_listen);
}

int dmn_acceptor_move(struct dmn_acceptor *a, int fd, struct ipc_socket_file *file)
{
    int error;

    uv_poll_stop(&a->poll); /* the descriptor stays, but what libuv watches is the old socket */
    error = ipc_listen_move(a->fd, fd, take, a);
    if (!error) {
        take_file(a, file);
    }
    uv_poll_start(&a->poll, UV_READABLE, on_listen);
    return error;
}

static void on_closed(uv_handle_t *handle)
{
    struct dmn_acceptor *a = handle->data;

    base_close_fd(&a->fd);
}

void dmn_acceptor_stop(struct dmn_acceptor *a)
{
    ipc_socket_file_remove(&a->file);
    if (a->open) {
        a->open = false;
        uv_close((uv_handle_t *)&a->retry, NULL);
        uv_close((uv_handle_t *)&a->poll, on_closed);
    }
}
