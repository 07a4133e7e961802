/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/service/acceptor.h"

#include "base/base.h"
#include "daemon/service/log.h"

#define RETRY_MS 500u

/* The socket stays readable until its task has its turn. */
static void on_listen(uv_poll_t *poll, int status, int events)
{
    struct dmn_acceptor *a = poll->data;

    uv_poll_stop(poll);
    dmn_loop_due(&a->task);
}

static void listen_on(struct dmn_acceptor *a)
{
    if (a->open) {
        uv_poll_start(&a->poll, UV_READABLE, on_listen);
    }
}

static void on_retry(uv_timer_t *timer)
{
    listen_on(timer->data);
}

static void take(void *acceptor, int fd, const struct ucred *peer)
{
    struct dmn_acceptor *a = acceptor;
    uint64_t begun_ns = base_now_ns();

    a->accepted(a->ctx, fd, peer);
    dmn_loop_charge(a->turns, dmn_loop_user_of(a->turns, peer->uid), begun_ns);
}

static void run(struct dmn_loop_task *task)
{
    struct dmn_acceptor *a = base_container_of(task, struct dmn_acceptor, task);

    do {
        struct ucred peer;
        int fd, rc = ipc_accept(a->fd, &fd, &peer);

        if (rc == 0) {
            take(a, fd, &peer);
        } else if (rc < 0) {
            dmn_log_limited(LOG_ERR, (struct dmn_log_fields){0},
                            "%s: cannot accept clients: %s; they wait", a->name, strerror(-rc));
            /* the socket stays readable: without a pause the loop would spin */
            uv_timer_start(&a->retry, on_retry, RETRY_MS, 0);
            return;
        } else {
            listen_on(a);
            return;
        }
    } while (!dmn_loop_over(a->turns));
    dmn_loop_due(task);
}

int dmn_acceptor_start(struct dmn_acceptor *a, int fd, struct ipc_socket_file *file)
{
    int error = uv_poll_init(a->loop, &a->poll, fd);

    a->file = *file;
    *file = (struct ipc_socket_file){0};
    if (error < 0) {
        close(fd);
        return error;
    }
    a->fd = fd;
    a->open = true;
    a->poll.data = a->retry.data = a;
    uv_timer_init(a->loop, &a->retry);
    a->task.run = run;
    dmn_loop_join(a->turns, &a->task, DMN_LOOP_NOBODY, 1);
    return uv_poll_start(&a->poll, UV_READABLE, on_listen);
}

int dmn_acceptor_again(struct dmn_acceptor *a, mode_t mode, gid_t group)
{
    int error;

    uv_poll_stop(&a->poll); /* the descriptor stays, but what libuv watches is the old socket */
    error = ipc_listen_again(a->fd, &a->file, mode, group, take, a);
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
        dmn_loop_leave(&a->task);
        uv_close((uv_handle_t *)&a->retry, NULL);
        uv_close((uv_handle_t *)&a->poll, on_closed);
    }
}
