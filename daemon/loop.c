/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/loop.h"

#include <sys/eventfd.h>
#include <sys/resource.h>

#include "base/base.h"

#define WATCHERS_MAX 16384u

int dmn_loop_reserve(uv_loop_t *loop, uv_poll_t *poll)
{
    base_autoclose int low = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), high = -1;
    struct rlimit limit = {.rlim_cur = WATCHERS_MAX};
    int r;

    getrlimit(RLIMIT_NOFILE, &limit);
    high = low < 0 ? -1
                   : fcntl(low, F_DUPFD_CLOEXEC,
                           (int)base_min(limit.rlim_cur, (rlim_t)WATCHERS_MAX) - 1);
    r = high < 0 ? -errno : uv_poll_init(loop, poll, high);
    if (r < 0) {
        return r;
    }
    r = uv_poll_start(poll, UV_READABLE, NULL);
    uv_close((uv_handle_t *)poll, NULL);
    return r;
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct dmn_wake *w = poll->data;
    uint64_t count;

    /* Before the work: what is sent from now on wakes again. The kernel's lock on the count orders
     * the senders' writes before what woken() reads. */
    (void)!read(w->fd, &count, sizeof(count));
    w->woken(w->arg);
}

int dmn_wake_init(struct dmn_wake *w, uv_loop_t *loop, void (*woken)(void *arg), void *arg)
{
    int r;

    *w =
        (struct dmn_wake){.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .woken = woken, .arg = arg};
    if (w->fd < 0) {
        return -errno;
    }
    r = uv_poll_init(loop, &w->poll, w->fd);
    if (r < 0) {
        base_close_fd(&w->fd);
        return r;
    }
    w->poll.data = w;
    return uv_poll_start(&w->poll, UV_READABLE, on_poll);
}

void dmn_wake_send(struct dmn_wake *w)
{
    const uint64_t one = 1;

    /* EAGAIN: the count is full, so it wakes anyway. */
    while (write(w->fd, &one, sizeof(one)) < 0 && errno == EINTR) {
    }
}

static void on_close(uv_handle_t *handle)
{
    base_close_fd(&((struct dmn_wake *)handle->data)->fd);
}

void dmn_wake_close(struct dmn_wake *w)
{
    if (w->poll.data) {
        uv_close((uv_handle_t *)&w->poll, on_close);
    }
}
