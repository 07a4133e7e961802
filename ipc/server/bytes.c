/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/server/bytes.h"

#include <sys/socket.h>

#define FIRST_BYTES ((size_t)4096)
#define FDS_ROOM (2 * IPC_FDS_MAX) /* of one recvmsg() */

void ipc_intake_deinit(struct ipc_intake *in)
{
    while (in->fd_count > 0) {
        close(in->fds[--in->fd_count]);
    }
}

/* The first failure is the one that the client is told. Return: false. */
__attribute__((format(printf, 3, 4))) static bool
fail(struct ipc_intake *in, enum ipc_status status, const char *format, ...)
{
    va_list args;

    if (!in->failed) {
        in->failed = status;
        va_start(args, format);
        vsnprintf(in->why, sizeof(in->why), format, args);
        va_end(args);
    }
    return false;
}

/* Return: how much of the payload must be in the buffer before the message is handled. */
static size_t needed(const struct ipc_header *h)
{
    if (h->type == IPC_INLINE) {
        return IPC_FRAME_BYTES;
    }
    return h->type & 0x8000 ? 0 : h->length;
}

bool ipc_intake_payload(struct ipc_intake *in)
{
    size_t n = in->used - in->pos;

    if (in->to) {
        n = base_min(n, in->to_bytes - in->to_done);
        memcpy(in->to + in->to_done, in->in + in->pos, n);
        in->to_done += n;
    } else {
        n = base_min(n, in->skip_bytes);
        in->skip_bytes -= n;
    }
    in->pos += n;
    if (!in->to || in->to_done < in->to_bytes) {
        return false;
    }
    in->to = NULL;
    return true;
}

bool ipc_intake_next(struct ipc_intake *in, struct ipc_header *ret_h)
{
    size_t there = in->used - in->pos;
    int error;

    if (there < IPC_HEADER_BYTES || in->failed || ipc_intake_in_payload(in)) {
        return false;
    }
    error = ipc_get_header(in->in + in->pos, ret_h);
    if (error == IPC_E_VERSION) {
        return fail(in, IPC_UNSUPPORTED, "unsupported header version %u", ret_h->version);
    }
    if (error) {
        return fail(in, IPC_PROTOCOL, "invalid header: type %u (%s), length %u%s", ret_h->type,
                    ipc_type_name(ret_h->type), ret_h->length,
                    error == IPC_E_TOO_BIG ? " is above the limit" : "");
    }
    if (!ipc_type_by_client(ret_h->type)) {
        return fail(in, IPC_PROTOCOL, "only a server may send %s", ipc_type_name(ret_h->type));
    }
    return there >= IPC_HEADER_BYTES + needed(ret_h);
}

/* Takes the descriptors of this message; only POOL uses one. */
static bool claim_fds(struct ipc_intake *in, const struct ipc_header *h, int *ret_fd)
{
    if (h->fd_count > in->fd_count) {
        return fail(in, IPC_PROTOCOL, "%s announces %u file descriptors, %zu came",
                    ipc_type_name(h->type), h->fd_count, in->fd_count);
    }
    for (size_t i = 0; i < h->fd_count; i++) {
        if (h->fd_count == 1 && h->type == IPC_POOL) {
            *ret_fd = in->fds[0];
        } else {
            close(in->fds[i]);
        }
    }
    in->fd_count -= h->fd_count;
    memmove(in->fds, in->fds + h->fd_count, in->fd_count * sizeof(in->fds[0]));
    return true;
}

const uint8_t *ipc_intake_take(struct ipc_intake *in, const struct ipc_header *h, int *ret_fd)
{
    const uint8_t *payload = in->in + in->pos + IPC_HEADER_BYTES;

    if (h->fd_count > 0 && !claim_fds(in, h, ret_fd)) {
        return NULL;
    }
    in->pos += IPC_HEADER_BYTES + needed(h);
    in->skip_bytes = h->length - needed(h);
    return payload;
}

void ipc_intake_compact_rest(struct ipc_intake *in)
{
    if (in->fd_count > IPC_FDS_MAX || (in->fd_count > 0 && in->pos == in->used)) {
        fail(in, IPC_PROTOCOL, "file descriptors that no header announced");
    }
    if (in->pos == in->used) {
        in->pos = in->used = 0;
    } else if (in->pos > 0) {
        memmove(in->in, in->in + in->pos, in->used - in->pos);
        in->used -= in->pos;
        in->pos = 0;
    }
}

static void take_fds(struct ipc_intake *in, struct msghdr *m)
{
    size_t came = 0;

    for (struct cmsghdr *cm = CMSG_FIRSTHDR(m); cm; cm = CMSG_NXTHDR(m, cm)) {
        size_t count;

        if (cm->cmsg_level != SOL_SOCKET || cm->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        count = (cm->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        came += count;
        for (size_t i = 0; i < count; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(cm) + i * sizeof(int), sizeof(fd));
            if (in->fd_count < base_array_count(in->fds)) {
                in->fds[in->fd_count++] = fd;
            } else {
                close(fd);
                fail(in, IPC_PROTOCOL, "too many file descriptors");
            }
        }
    }
    if (m->msg_flags & MSG_CTRUNC && came < FDS_ROOM) { /* the kernel could not make another */
        fail(in, IPC_RESOURCE_EXHAUSTED,
             "no file descriptor is free to take the client's; try again");
    } else if (m->msg_flags & MSG_CTRUNC) {
        fail(in, IPC_PROTOCOL, "too many file descriptors");
    }
}

ssize_t ipc_intake_receive(struct ipc_intake *in, int fd, bool *ret_full)
{
    union {
        char bytes[CMSG_SPACE(FDS_ROOM * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec iov = {in->in + in->used, sizeof(in->in) - in->used};
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof(control.bytes)};
    bool direct = in->to && in->used == 0;
    ssize_t n;

    if (direct) {
        iov.iov_base = in->to + in->to_done;
        iov.iov_len = in->to_bytes - in->to_done;
    }
    do {
        n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    } while (n < 0 && errno == EINTR);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        return 0;
    }
    if (n <= 0) {
        return -1;
    }
    *ret_full = (size_t)n == iov.iov_len;
    if (direct) {
        in->to_done += (size_t)n;
    } else {
        in->used += (size_t)n;
    }
    take_fds(in, &m);
    return n;
}

/* ---- to the client ---- */

void ipc_outgoing_deinit(struct ipc_outgoing *o)
{
    free(o->bytes);
    *o = (struct ipc_outgoing){0};
}

/* Makes room for @bytes more to write. */
static bool reserve(struct ipc_outgoing *o, size_t bytes)
{
    size_t need;

    if (o->pos > 0 && o->pos == o->used) {
        o->pos = o->used = 0;
    }
    if (!base_add(o->used, bytes, &need)) {
        return false;
    }
    if (need <= o->size) {
        return true;
    }
    if (o->pos > 0) {
        memmove(o->bytes, o->bytes + o->pos, o->used - o->pos);
        o->used -= o->pos;
        o->pos = 0;
        need = o->used + bytes;
    }
    return base_room_for(&o->bytes, 1, base_max(need, FIRST_BYTES), &o->size);
}

bool ipc_outgoing_add(struct ipc_outgoing *o, struct ipc_header h, const void *payload,
                      size_t bytes, const void *tail, size_t tail_bytes)
{
    if (!reserve(o, IPC_HEADER_BYTES + bytes + tail_bytes)) {
        return false;
    }
    h.version = IPC_VERSION;
    h.length = (uint32_t)(bytes + tail_bytes);
    memcpy(o->bytes + o->used, &h, sizeof(h));
    o->used += IPC_HEADER_BYTES;
    if (bytes) {
        memcpy(o->bytes + o->used, payload, bytes);
        o->used += bytes;
    }
    if (tail_bytes) {
        memcpy(o->bytes + o->used, tail, tail_bytes);
        o->used += tail_bytes;
    }
    return true;
}

bool ipc_outgoing_flush(struct ipc_outgoing *o, int fd)
{
    while (o->pos < o->used) {
        ssize_t n = send(fd, o->bytes + o->pos, o->used - o->pos, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            if (o->stuck_ns == 0) {
                o->stuck_ns = base_now_ns();
            }
            return true;
        }
        if (n < 0) {
            return false;
        }
        o->pos += (size_t)n;
        o->stuck_ns = 0;
    }
    o->pos = o->used = 0;
    if (o->size > 16 * FIRST_BYTES) { /* after a burst: give the memory back */
        free(base_take(o->bytes));
        o->size = 0;
    }
    return true;
}
