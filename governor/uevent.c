/* SPDX-License-Identifier: Apache-2.0 */
#include "governor/uevent.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base.h"
#include "governor/sysfs.h"

#define KERNEL_GROUP 1u          /* what the kernel sends itself; udevd's is 2 */
#define RECEIVE_BYTES (1 << 17u) /* a burst, such as a whole package that goes offline */

int gov_uevent_open(int *ret_fd)
{
    const struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = KERNEL_GROUP};
    base_autoclose int fd =
        socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);
    int bytes = RECEIVE_BYTES;

    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
        switch (errno) {
        case EAFNOSUPPORT:
        case EPROTONOSUPPORT:
        case EPERM:
        case EACCES:
        case ENOSYS:
            return GOV_UEVENT_E_DENIED;
        default:
            return -errno;
        }
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)); /* less will do as well */
    *ret_fd = fd;
    fd = -1;
    return 0;
}

int gov_uevent_read(int fd, struct gov_uevent *ret)
{
    char bytes[GOV_UEVENT_BYTES_MAX];
    struct sockaddr_nl from = {0};
    struct iovec iov = {.iov_base = bytes, .iov_len = sizeof(bytes)};
    struct msghdr message = {
        .msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &iov, .msg_iovlen = 1};
    ssize_t size;

    do {
        size = recvmsg(fd, &message, MSG_DONTWAIT);
    } while (size < 0 && errno == EINTR);
    if (size < 0) {
        return errno == EAGAIN ? GOV_UEVENT_E_NONE : errno == ENOBUFS ? GOV_UEVENT_E_LOST : -errno;
    }
    if (message.msg_namelen != sizeof(from) || from.nl_family != AF_NETLINK || from.nl_pid != 0 ||
        from.nl_groups != KERNEL_GROUP || (message.msg_flags & MSG_TRUNC)) {
        return GOV_UEVENT_E_BAD;
    }
    return gov_uevent_parse(bytes, (size_t)size, ret);
}

/* "/devices/system/cpu/cpu3" and nothing below it. Return: 3, or -1. */
static int32_t cpu_of(const char *path)
{
    static const char prefix[] = "/devices/system/cpu/cpu";
    uint32_t number = 0;

    if (strncmp(path, prefix, sizeof(prefix) - 1) != 0) {
        return -1;
    }
    path += sizeof(prefix) - 1;
    if (!*path || strlen(path) > 5) {
        return -1;
    }
    for (; *path; path++) {
        if (*path < '0' || *path > '9') {
            return -1;
        }
        number = number * 10 + (uint32_t)(*path - '0');
    }
    return number < GOV_CPU_NUMBER_MAX ? (int32_t)number : -1;
}

static enum gov_uevent_kind kind_of(const char *action, const char *subsystem, int32_t cpu)
{
    static const char *const came[] = {"online", "add"}, *const went[] = {"offline", "remove"};

    if (strcmp(subsystem, "cpu") == 0 && cpu >= 0) {
        for (size_t i = 0; i < base_array_count(came); i++) {
            if (strcmp(action, came[i]) == 0) {
                return GOV_UEVENT_CPU_ONLINE;
            }
            if (strcmp(action, went[i]) == 0) {
                return GOV_UEVENT_CPU_OFFLINE;
            }
        }
        return GOV_UEVENT_OTHER;
    }
    return strcmp(subsystem, "thermal") == 0        ? GOV_UEVENT_THERMAL
           : strcmp(subsystem, "gpio") == 0         ? GOV_UEVENT_GPIO
           : strcmp(subsystem, "power_supply") == 0 ? GOV_UEVENT_POWER
                                                    : GOV_UEVENT_OTHER;
}

int gov_uevent_parse(const char *bytes, size_t size, struct gov_uevent *ret)
{
    const char *at = size ? memchr(bytes, '@', size) : NULL, *end = bytes + size, *path, *value;
    const char *subsystem = "";
    char action[GOV_UEVENT_TEXT_MAX];

    /* With the last byte a zero, every string that begins inside ends inside. */
    if (size > GOV_UEVENT_BYTES_MAX || !at || end[-1] != '\0' || at == bytes ||
        memchr(bytes, '\0', (size_t)(at - bytes)) || at[1] != '/') {
        return GOV_UEVENT_E_BAD;
    }
    snprintf(action, sizeof(action), "%.*s", (int)base_min(at - bytes, (ptrdiff_t)sizeof(action)),
             bytes);
    path = at + 1;
    for (const char *p = path + strlen(path) + 1; p < end; p += strlen(p) + 1) {
        value = strchr(p, '=');
        if (!value || value == p) {
            return GOV_UEVENT_E_BAD;
        }
        if (strncmp(p, "SUBSYSTEM=", 10) == 0) {
            subsystem = value + 1;
        }
    }
    ret->cpu = cpu_of(path);
    ret->kind = kind_of(action, subsystem, ret->cpu);
    if (strcmp(subsystem, "cpu") != 0) {
        ret->cpu = -1;
    }
    memcpy(ret->action, action, sizeof(action));
    return 0;
}
