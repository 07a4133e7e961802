/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages to the service manager. sd_notify() blocks while the manager's queue (10 datagrams by
 * default) is full, and a loop that serves must not wait for a busy manager: what comes again by
 * itself (STATUS, WATCHDOG) is dropped then, what happens once (READY, RELOADING, STOPPING) waits a
 * little.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base.h"
#include "daemon/log.h"
#include "daemon/service.h"

#define ONCE_WAIT_MS 2000

void dmn_service_notify(const char *text)
{
    const char *path = getenv("NOTIFY_SOCKET");
    bool repeats = strncmp(text, "STATUS=", 7) == 0 || strncmp(text, "WATCHDOG=", 9) == 0;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    base_autoclose int fd = -1;
    socklen_t length;

    if (!path || (path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof(address.sun_path)) {
        return;
    }
    memcpy(address.sun_path, path, strlen(path));
    length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    if (path[0] == '@') {
        address.sun_path[0] = '\0';
    } else {
        length++;
    }
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, length) < 0) {
        return;
    }
    if (send(fd, text, strlen(text), MSG_NOSIGNAL) >= 0 || errno != EAGAIN || repeats) {
        return;
    }
    if (poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, ONCE_WAIT_MS) <= 0 ||
        send(fd, text, strlen(text), MSG_NOSIGNAL) < 0) {
        dmn_log(LOG_WARNING, "the service manager does not take messages: %s is lost", text);
    }
}
