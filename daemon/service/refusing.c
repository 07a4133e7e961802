/* SPDX-License-Identifier: Apache-2.0 */
/* Clients of inherited sockets learn why the daemon does not start.
 *
 * With socket activation a client that waits starts the service. If that fails and the client still
 * waits, the service manager starts it again at once, until its limits of starts make the sockets
 * fail, too, and nobody reaches the service even after the cause is mended. So a start that fails
 * answers who waits, and goes on answering for a moment: no client is left waiting, and starts
 * follow each other slowly enough for the unit's StartLimitBurst=. */
#include "daemon/service/service.h"

#include <poll.h>
#include <sys/socket.h>

#include "base/base.h"
#include "base/json_text.h"
#include "ipc/varlink.h"
#include "ipc/wire.h"

struct dmn_inherited dmn_inherited_copy(const struct dmn_inherited *from)
{
    return (struct dmn_inherited){
        .frames = from->frames < 0 ? -1 : fcntl(from->frames, F_DUPFD_CLOEXEC, 0),
        .control = from->control < 0 ? -1 : fcntl(from->control, F_DUPFD_CLOEXEC, 0)};
}

void dmn_inherited_close(struct dmn_inherited *in)
{
    base_close_fd(&in->frames);
    base_close_fd(&in->control);
}

/* Answers one client who was there when poll() returned: who came later may have changed something
 * first. Return: whether there was one. */
static bool answer(const struct pollfd *listening, const void *bytes, size_t count)
{
    base_autoclose int fd = -1;

    if (listening->revents & POLLIN) {
        fd = accept4(listening->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    }
    if (fd >= 0) {
        (void)!send(fd, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    return fd >= 0;
}

void dmn_refuse_start(const struct dmn_inherited *in, const char *why,
                      bool (*changed)(const void *ctx), const void *ctx)
{
    uint64_t now = base_now_ns(), end = now + DMN_REFUSING_IDLE_MS * BASE_NS_PER_MS;
    uint64_t most_ms = changed ? DMN_REFUSING_MOST_MS : DMN_REFUSING_BUSY_MS;
    uint64_t last = now + most_ms * BASE_NS_PER_MS;
    struct pollfd wait[] = {{in->frames, POLLIN, 0}, {in->control, POLLIN, 0}};
    uint8_t error[IPC_HEADER_BYTES + IPC_TEXT_MAX];
    size_t error_bytes = ipc_put_error(IPC_UNAVAILABLE, why, error), reply_bytes = 0;
    json_t *parameters = json_pack("{s:o}", "why", json_text_shown(why));
    base_autofree char *reply = NULL;

    if (!parameters ||
        ipc_varlink_error(IPC_VARLINK_NOT_STARTED, parameters, &reply, &reply_bytes) < 0) {
        reply_bytes = 0;
    }
    json_decref(parameters);
    dmn_service_status(why);
    for (size_t i = 0; i < base_array_count(wait); i++) {
        if (wait[i].fd >= 0) {
            (void)fcntl(wait[i].fd, F_SETFL, fcntl(wait[i].fd, F_GETFL) | O_NONBLOCK);
        }
    }
    while ((in->frames >= 0 || in->control >= 0) && now < end) {
        int count = poll(wait, base_array_count(wait), (int)((end - now) / BASE_NS_PER_MS) + 1);

        if ((count < 0 && errno != EINTR) || (count > 0 && changed && changed(ctx))) {
            break;
        }
        now = base_now_ns();
        if (count > 0) {
            bool frames = answer(&wait[0], error, error_bytes);

            if (answer(&wait[1], reply, reply_bytes) || frames) {
                end = base_min(now + DMN_REFUSING_BUSY_MS * BASE_NS_PER_MS, last);
            }
        }
    }
}
