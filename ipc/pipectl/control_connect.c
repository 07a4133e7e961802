/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl: the control socket, connected. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base.h"
#include "ipc/pipectl/pipectl.h"

int ctl_control_connect(const struct ctl *ctl)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), error;

    memcpy(to.sun_path, ctl->control_path, sizeof(to.sun_path));
    if (sock >= 0 && connect(sock, (struct sockaddr *)&to, sizeof(to)) == 0) {
        return sock;
    }
    error = -errno;
    base_close_fd(&sock);
    return error;
}
