/* SPDX-License-Identifier: Apache-2.0 */
/* Messages to the service manager, without waiting for it. Needs no libsystemd.
 *
 * sd_notify() blocks while the manager's queue (10 datagrams by default) is full, and the loop must
 * not wait. If the queue is full, messages that repeat anyway (STATUS, WATCHDOG) are dropped.
 * Messages that are sent once (READY, RELOADING, STOPPING) are queued here, in order, and sent
 * again later. */
#include "daemon/service/service.h"

#include <sys/socket.h>
#include <sys/un.h>

#include "base/base.h"
#include "daemon/service/log.h"

#define AGAIN_MS 50u

/* Return: true: the manager has it, or there is no manager; false: its queue is full, or no
 * descriptor is left to reach it by. */
static bool sent(struct dmn_notify *n, const char *text)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t length;

    if (!path || (path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof(address.sun_path)) {
        return true;
    }
    if (n->fd < 0) {
        n->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    }
    if (n->fd < 0) {
        return false;
    }
    memcpy(address.sun_path, path, strlen(path));
    length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    if (path[0] == '@') {
        address.sun_path[0] = '\0';
    } else {
        length++;
    }
    return sendto(n->fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&address, length) >=
               0 ||
           errno != EAGAIN;
}

static void forget_oldest(struct dmn_notify *n)
{
    free(n->waiting[0]);
    n->count--;
    memmove(n->waiting, n->waiting + 1, n->count * sizeof(n->waiting[0]));
}

static void send_waiting(struct dmn_notify *n)
{
    while (n->count > 0 && sent(n, n->waiting[0])) {
        forget_oldest(n);
    }
}

static void on_again(uv_timer_t *timer)
{
    struct dmn_notify *n = timer->data;

    send_waiting(n);
    if (n->count == 0) {
        uv_timer_stop(timer);
    }
}

static void lose_oldest(struct dmn_notify *n)
{
    dmn_log(LOG_WARNING, "the service manager cannot be reached; lost %s", n->waiting[0]);
    forget_oldest(n);
}

void dmn_notify_init(struct dmn_notify *n, uv_loop_t *loop)
{
    n->count = 0;
    n->fd = -1;
    uv_timer_init(loop, &n->timer);
    n->timer.data = n;
}

void dmn_notify_deinit(struct dmn_notify *n)
{
    send_waiting(n);
    while (n->count > 0) {
        lose_oldest(n);
    }
    base_close_fd(&n->fd);
    uv_close((uv_handle_t *)&n->timer, NULL);
}

void dmn_notify(struct dmn_notify *n, const char *text)
{
    bool repeats = strncmp(text, "STATUS=", 7) == 0 || strncmp(text, "WATCHDOG=", 9) == 0;

    send_waiting(n);
    if ((n->count == 0 && sent(n, text)) || repeats) {
        return;
    }
    if (n->count == DMN_NOTIFY_WAITING_MAX) {
        lose_oldest(n);
    }
    n->waiting[n->count] = strdup(text);
    if (n->waiting[n->count]) {
        n->count++;
        uv_timer_start(&n->timer, on_again, AGAIN_MS, AGAIN_MS);
    }
}
