/* SPDX-License-Identifier: Apache-2.0 */
/* libpiped: moves bytes between queues and the socket. */
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/base.h"
#include "ipc/client/client.h"

#define RX_LEAST (64u << 10)
#define BATCH 16 /* messages per sendmsg() */

int ipc_client_queue(struct piped *p, const struct ipc_header *h, const void *payload, size_t bytes,
                     const void *body, size_t body_bytes, int fd)
{
    struct ipc_header header = *h;
    struct ipc_tx *m;

    if (p->tx_first > 0 && p->tx_first >= p->tx_count && p->tx_first + p->tx_count == p->tx_size) {
        memmove(p->tx, p->tx + p->tx_first, p->tx_count * sizeof(*p->tx));
        p->tx_first = 0;
    }
    if (!base_room(&p->tx, sizeof(*p->tx), p->tx_first + p->tx_count, &p->tx_size)) {
        return -ENOMEM;
    }
    m = &p->tx[p->tx_first + p->tx_count++];
    header.version = IPC_VERSION;
    header.length = (uint32_t)(bytes + body_bytes);
    header.fd_count = fd >= 0;
    memcpy(m->head, &header, sizeof(header));
    if (bytes) {
        memcpy(m->head + IPC_HEADER_BYTES, payload, bytes);
    }
    m->head_bytes = IPC_HEADER_BYTES + bytes;
    m->body = body;
    m->body_bytes = body_bytes;
    m->fd = fd;
    return 0;
}

/* Gathers up to BATCH messages from the first unsent byte on. A message with a descriptor goes
 * alone: the descriptor travels with its first byte. */
static size_t gather(struct piped *p, struct iovec *iov, int *ret_fd)
{
    size_t count = 0, skip = p->tx_sent;

    *ret_fd = -1;
    for (size_t i = 0; i < base_min(p->tx_count, (size_t)BATCH); i++) {
        struct ipc_tx *m = &p->tx[p->tx_first + i];

        if (m->fd >= 0 && i > 0) {
            break;
        }
        if (skip < m->head_bytes) {
            iov[count++] = (struct iovec){m->head + skip, m->head_bytes - skip};
            skip = 0;
        } else {
            skip -= m->head_bytes;
        }
        if (m->body_bytes > skip) {
            iov[count++] = (struct iovec){(char *)m->body + skip, m->body_bytes - skip};
        }
        skip = 0;
        if (m->fd >= 0) {
            *ret_fd = p->tx_sent == 0 ? m->fd : -1;
            break;
        }
    }
    return count;
}

static void sent(struct piped *p, size_t bytes)
{
    p->tx_sent += bytes;
    while (p->tx_count > 0) {
        struct ipc_tx *m = &p->tx[p->tx_first];
        size_t whole = m->head_bytes + m->body_bytes;

        if (p->tx_sent < whole) {
            return;
        }
        p->tx_sent -= whole;
        p->tx_first = --p->tx_count > 0 ? p->tx_first + 1 : 0;
    }
}

static int want_out(struct piped *p, bool wanted)
{
    struct epoll_event e = {.events = EPOLLIN | (wanted ? EPOLLOUT : 0), .data.fd = p->sock};

    if (p->wants_out == wanted) {
        return 0;
    }
    p->wants_out = wanted;
    return epoll_ctl(p->epoll_fd, EPOLL_CTL_MOD, p->sock, &e) < 0 ? -errno : 0;
}

int ipc_client_flush(struct piped *p)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;

    while (p->tx_count > 0) {
        struct iovec iov[2 * BATCH];
        struct msghdr msg = {.msg_iov = iov};
        ssize_t n;
        int fd;

        msg.msg_iovlen = gather(p, iov, &fd);
        if (fd >= 0) {
            memset(&control, 0, sizeof(control));
            msg.msg_control = control.bytes;
            msg.msg_controllen = sizeof(control.bytes);
            CMSG_FIRSTHDR(&msg)->cmsg_level = SOL_SOCKET;
            CMSG_FIRSTHDR(&msg)->cmsg_type = SCM_RIGHTS;
            CMSG_FIRSTHDR(&msg)->cmsg_len = CMSG_LEN(sizeof(int));
            memcpy(CMSG_DATA(CMSG_FIRSTHDR(&msg)), &fd, sizeof(fd));
        }
        n = sendmsg(p->sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            return want_out(p, true);
        }
        if (n < 0 && errno == EPIPE) { /* read first why the daemon has closed the connection */
            return want_out(p, false);
        }
        if (n < 0) {
            return -errno;
        }
        sent(p, (size_t)n);
    }
    return want_out(p, false);
}

static int reserve(struct piped *p, size_t size)
{
    return base_room_for(&p->rx, 1, size, &p->rx_size) ? 0 : -ENOMEM;
}

int ipc_client_receive(struct piped *p)
{
    ssize_t n;
    int rc = reserve(p, RX_LEAST);

    if (rc < 0) {
        return rc;
    }
    n = recv(p->sock, p->rx + p->rx_used, p->rx_size - p->rx_used, MSG_DONTWAIT);
    if (n < 0) {
        return errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -errno;
    }
    if (n == 0) {
        return -ECONNRESET;
    }
    p->rx_used += (size_t)n;
    return 0;
}

/* Moves what was not taken to the front. */
static void compact(struct piped *p)
{
    memmove(p->rx, p->rx + p->rx_taken, p->rx_used - p->rx_taken);
    p->rx_used -= p->rx_taken;
    p->rx_taken = 0;
}

int ipc_client_next(struct piped *p, struct ipc_header *ret, const uint8_t **ret_payload)
{
    size_t left = p->rx_used - p->rx_taken, whole = IPC_HEADER_BYTES;
    int rc = 0;

    if (left >= IPC_HEADER_BYTES) {
        if (ipc_get_header(p->rx + p->rx_taken, ret) != 0 || ret->fd_count != 0) {
            return ipc_client_error(-EPROTO, "the daemon sent an invalid header");
        }
        whole += ret->length;
        rc = left < whole ? reserve(p, base_max(whole, (size_t)RX_LEAST)) : 0;
    }
    if (left < whole) {
        compact(p);
        return rc;
    }
    *ret_payload = p->rx + p->rx_taken + IPC_HEADER_BYTES;
    p->rx_taken += whole;
    return IPC_CLIENT_MESSAGE;
}
