/* SPDX-License-Identifier: Apache-2.0 */
/* The service manager is systemd. */
#include "daemon/service/service.h"

#define SD_JOURNAL_SUPPRESS_LOCATION
#include <sys/socket.h>
#include <sys/uio.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-journal.h>

#include "base/base.h"

uint64_t dmn_service_watchdog_us(void)
{
    uint64_t us = 0;

    return sd_watchdog_enabled(0, &us) > 0 ? us : 0;
}

int dmn_service_sockets(struct dmn_inherited *ret)
{
    char **names = NULL;
    int count = sd_listen_fds_with_names(1, &names);
    struct dmn_inherited in = DMN_INHERITED_NULL;
    int error = 0;

    for (int i = 0; i < count; i++) {
        int fd = SD_LISTEN_FDS_START + i;
        bool is_control = strcmp(names[i], "control") == 0;
        bool is_frames = strcmp(names[i], "frames") == 0 || (count == 1 && !is_control);

        if (sd_is_socket_unix(fd, SOCK_STREAM, 1, NULL, 0) <= 0) {
            error = -EINVAL;
        }
        if (is_frames && in.frames < 0) {
            in.frames = fd;
        } else if (is_control && in.control < 0) {
            in.control = fd;
        } else {
            close(fd);
        }
    }
    for (int i = 0; i < count; i++) {
        free(names[i]);
    }
    free(names);
    if (count < 0 || error) {
        base_close_fd(&in.frames);
        base_close_fd(&in.control);
        return count < 0 ? count : error;
    }
    *ret = in;
    return 0;
}

void dmn_service_status(const char *text)
{
    (void)sd_notifyf(0, "STATUS=%s", text);
}

int dmn_service_journal(int level, const char *text, const char *id, const char *model,
                        const char *plan, const char *client)
{
    const char priority[] = {(char)('0' + level), '\0'};
    const char *const values[] = {priority, "piped", text, id, model, plan, client};
    static const char *const keys[] = {"PRIORITY",    "SYSLOG_IDENTIFIER", "MESSAGE",
                                       "MESSAGE_ID",  "PIPED_MODEL",       "PIPED_PLAN",
                                       "PIPED_CLIENT"};
    char *fields[base_array_count(values)] = {NULL};
    struct iovec iov[base_array_count(values)];
    int count = 0, ret = -ENOMEM;

    for (size_t i = 0; i < base_array_count(values); i++) {
        if (values[i] && asprintf(&fields[count], "%s=%s", keys[i], values[i]) >= 0) {
            count++;
        }
    }
    for (int i = 0; i < count; i++) {
        iov[i] = (struct iovec){fields[i], strlen(fields[i])};
    }
    if (count > 2) {
        ret = sd_journal_sendv(iov, count);
    }
    for (int i = 0; i < count; i++) {
        free(fields[i]);
    }
    return ret;
}
