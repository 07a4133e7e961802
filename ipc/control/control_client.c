/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/control/control_client.h"

#include <sys/socket.h>
#include <sys/un.h>

#include "base/base.h"

#define READ_BYTES (64u << 10)

int ipc_control_connect(struct ipc_control *c, const char *path, bool queue)
{
    int type = SOCK_STREAM | SOCK_CLOEXEC | (queue ? 0 : SOCK_NONBLOCK);
    base_autoclose int fd = socket(AF_UNIX, type, 0);
    struct sockaddr_un to = {.sun_family = AF_UNIX};

    if (strlen(path) >= sizeof(to.sun_path)) {
        return -ENAMETOOLONG;
    }
    strcpy(to.sun_path, path);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0) {
        return -errno;
    }
    *c = (struct ipc_control){.fd = base_take_fd(&fd)};
    return 0;
}

void ipc_control_close(struct ipc_control *c)
{
    base_close_fd(&c->fd);
    ipc_varlink_reader_deinit(&c->reader);
    free(c->out);
    *c = IPC_CONTROL_NULL;
}

struct pollfd ipc_control_poll(const struct ipc_control *c)
{
    short out = c->out_sent < c->out_bytes ? POLLOUT : 0;

    return (struct pollfd){.fd = c->fd, .events = (short)(POLLIN | out)};
}

static void drop_calls(struct ipc_control *c)
{
    c->out_bytes = c->out_sent = 0;
}

static void end(struct ipc_control *c, int why)
{
    c->end = why;
    drop_calls(c);
}

/* @fds: @count descriptors, which go with the first byte. */
static ssize_t write_some(struct ipc_control *c, const int *fds, size_t count)
{
    struct iovec part = {c->out + c->out_sent, c->out_bytes - c->out_sent};
    union {
        char bytes[CMSG_SPACE(IPC_CONTROL_FDS_MAX * sizeof(int))];
        struct cmsghdr align;
    } control = {.bytes = {0}};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    if (count > 0) {
        struct cmsghdr *head = &control.align;

        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(head), fds, count * sizeof(int));
    }
    return sendmsg(c->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void write_out(struct ipc_control *c, const int *fds, size_t count)
{
    while (!c->end && c->out_sent < c->out_bytes) {
        ssize_t n = write_some(c, fds, count);

        if (n >= 0) {
            c->out_sent += (size_t)n;
            count = 0;
        } else if (errno == EAGAIN) {
            return;
        } else if (errno == EPIPE) {
            drop_calls(c); /* what came says why, and then the end shows */
        } else if (errno != EINTR) {
            end(c, -errno);
        }
    }
}

int ipc_control_call(struct ipc_control *c, const char *method, json_t *parameters, bool more,
                     const int *fds, size_t count)
{
    base_autofree char *text = NULL;
    size_t bytes, left = c->out_bytes - c->out_sent;
    char *grown;
    int rc = c->fd < 0                     ? -ENOTCONN
             : count > IPC_CONTROL_FDS_MAX ? -EINVAL
             : count > 0 && left > 0       ? -EAGAIN
                                     : ipc_varlink_call(method, parameters, more, &text, &bytes);

    if (rc < 0) {
        return rc;
    }
    if (left > 0) {
        memmove(c->out, c->out + c->out_sent, left);
    }
    c->out_bytes = left;
    c->out_sent = 0;
    grown = realloc(c->out, left + bytes);
    if (!grown) {
        return -ENOMEM;
    }
    memcpy(grown + left, text, bytes);
    c->out = grown;
    c->out_bytes += bytes;
    write_out(c, fds, count);
    if (count > 0 && c->out_sent == 0 && c->out_bytes > 0) {
        drop_calls(c);
        return -EAGAIN;
    }
    return base_min(c->end, 0);
}

static void read_in(struct ipc_control *c)
{
    char bytes[READ_BYTES];
    ssize_t n = recv(c->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    int rc = n > 0 ? ipc_varlink_feed(&c->reader, bytes, (size_t)n) : 0;

    if (n == 0) {
        end(c, IPC_CONTROL_E_CLOSED);
    } else if (n < 0 && errno != EAGAIN && errno != EINTR) {
        end(c, -errno);
    } else if (rc) {
        end(c, rc < 0 ? rc : IPC_CONTROL_E_TOO_BIG);
    }
}

void ipc_control_go(struct ipc_control *c)
{
    write_out(c, NULL, 0);
    if (c->fd >= 0 && !c->end) {
        read_in(c);
    }
}

bool ipc_control_has_reply(const struct ipc_control *c)
{
    return c->reader.used - c->reader.start > c->reader.tail;
}

int ipc_control_next(struct ipc_control *c, struct ipc_control_reply *ret)
{
    json_t *message, *error;
    int rc = ipc_varlink_next(&c->reader, &message);

    if (rc == IPC_VARLINK_E_NONE) {
        return c->end ? c->end : c->fd < 0 ? -ENOTCONN : IPC_CONTROL_E_NONE;
    }
    if (rc) {
        ipc_varlink_reader_deinit(&c->reader); /* nothing after it */
        end(c, rc < 0 ? rc : IPC_CONTROL_E_BAD);
        return c->end;
    }
    error = json_object_get(message, "error");
    *ret = (struct ipc_control_reply){
        .message = message,
        .error = json_is_string(error) ? json_string_value(error)
                 : error               ? "error"
                                       : NULL,
        .parameters = json_object_get(message, "parameters"),
        .continues = !error && json_is_true(json_object_get(message, "continues"))};
    return 0;
}

int ipc_control_wait(struct ipc_control *c, uint64_t end_ns, int other,
                     struct ipc_control_reply *ret)
{
    int rc;

    while ((rc = ipc_control_next(c, ret)) == IPC_CONTROL_E_NONE) {
        struct pollfd p[] = {ipc_control_poll(c), {.fd = other, .events = POLLIN}};
        uint64_t now = base_now_ns();
        uint64_t left_ns = now < end_ns ? end_ns - now : 0;
        int n = poll(p, base_array_count(p),
                     end_ns ? (int)((left_ns + BASE_NS_PER_MS - 1) / BASE_NS_PER_MS) : -1);

        if (n == 0) {
            return IPC_CONTROL_E_LATE;
        }
        if (n > 0 && !p[0].revents) {
            return IPC_CONTROL_E_OTHER;
        }
        if (n < 0 && errno != EINTR) {
            return -errno;
        }
        ipc_control_go(c);
    }
    return rc;
}

const char *ipc_control_reason(int rc)
{
    return rc == IPC_CONTROL_E_CLOSED    ? "it closed the connection"
           : rc == IPC_CONTROL_E_TOO_BIG ? "its answer is too long"
           : rc == IPC_CONTROL_E_BAD     ? "its answer is not JSON"
                                         : strerror(-rc);
}
