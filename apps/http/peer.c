/* SPDX-License-Identifier: Apache-2.0 */
/* piped-http: whose a connection is. */
#include "apps/http/memory.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <sys/socket.h>

struct question {
    struct nlmsghdr head;
    struct inet_diag_req_v2 body;
};

bool web_peer_is_netlink(int fd)
{
    int domain = 0, protocol = 0;
    socklen_t a = sizeof(domain), b = sizeof(protocol);

    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &a) == 0 && domain == AF_NETLINK &&
           getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &b) == 0 &&
           protocol == NETLINK_SOCK_DIAG;
}

void web_peers_open(struct web_peers *p, int fd)
{
    p->fd = fd >= 0 ? fd : socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
}

static void put_address(const union web_address *a, __be32 to[4], __be16 *ret_port)
{
    if (a->any.sa_family == AF_INET) {
        memcpy(to, &a->v4.sin_addr, 4);
        *ret_port = a->v4.sin_port;
    } else {
        memcpy(to, &a->v6.sin6_addr, 16);
        *ret_port = a->v6.sin6_port;
    }
}

/* The answer to question @number. Return: the user; WEB_NO_UID: there is no such socket here. */
static uint32_t read_answer(int fd, uint32_t number)
{
    union {
        struct nlmsghdr head;
        char bytes[4096];
    } m;

    for (;;) {
        ssize_t n = recv(fd, &m, sizeof(m), MSG_DONTWAIT);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < (ssize_t)sizeof(m.head)) {
            return WEB_NO_UID;
        }
        if (m.head.nlmsg_seq == number) { /* others are answers that came too late */
            return m.head.nlmsg_type == SOCK_DIAG_BY_FAMILY &&
                           n >= (ssize_t)NLMSG_LENGTH(sizeof(struct inet_diag_msg))
                       ? ((struct inet_diag_msg *)NLMSG_DATA(&m.head))->idiag_uid
                       : WEB_NO_UID;
        }
    }
}

/* The user of the socket at @far whose other end is @near. */
static uint32_t user_of(struct web_peers *p, const union web_address *far,
                        const union web_address *near)
{
    struct question q = {
        .head = {.nlmsg_len = sizeof(q),
                 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                 .nlmsg_flags = NLM_F_REQUEST},
        .body = {.sdiag_family = (uint8_t)far->any.sa_family,
                 .sdiag_protocol = IPPROTO_TCP,
                 .idiag_states = UINT32_MAX,
                 .id = {.idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}},
    };
    uint32_t uid = WEB_NO_UID;

    put_address(far, q.body.id.idiag_src, &q.body.id.idiag_sport);
    put_address(near, q.body.id.idiag_dst, &q.body.id.idiag_dport);
    pthread_mutex_lock(&p->lock);
    q.head.nlmsg_seq = ++p->number;
    /* The kernel answers before send() returns. */
    if (p->fd >= 0 && send(p->fd, &q, sizeof(q), MSG_DONTWAIT) == (ssize_t)sizeof(q)) {
        uid = read_answer(p->fd, q.head.nlmsg_seq);
    }
    pthread_mutex_unlock(&p->lock);
    return uid;
}

bool web_peer_is_loopback(const union web_address *a)
{
    const uint8_t *b = a->v6.sin6_addr.s6_addr;

    return a->any.sa_family == AF_INET
               ? ntohl(a->v4.sin_addr.s_addr) >> 24 == 127
               : IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr) ||
                     (IN6_IS_ADDR_V4MAPPED(&a->v6.sin6_addr) && b[12] == 127);
}

static struct web_peer of_address(const union web_address *a)
{
    struct web_peer p = {.uid = WEB_NO_UID};

    if (a->any.sa_family == AF_INET) {
        p.address[10] = p.address[11] = 0xff;
        memcpy(p.address + 12, &a->v4.sin_addr, 4);
    } else {
        memcpy(p.address, &a->v6.sin6_addr, IN6_IS_ADDR_V4MAPPED(&a->v6.sin6_addr) ? 16 : 8);
    }
    return p;
}

struct web_peer web_peer_of(struct web_peers *p, int fd)
{
    union web_address far = {.all = {0}}, near = far;
    socklen_t far_bytes = sizeof(far), near_bytes = sizeof(near), bytes = sizeof(struct ucred);
    struct web_peer none = {.user = true, .uid = WEB_NO_UID};
    struct ucred who;
    uint32_t uid;

    if (getpeername(fd, &far.any, &far_bytes) < 0 || getsockname(fd, &near.any, &near_bytes) < 0) {
        return none;
    }
    if (near.any.sa_family == AF_UNIX) {
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes) == 0) {
            none.uid = who.uid;
        }
        return none;
    }
    uid = user_of(p, &far, &near);
    if (uid == WEB_NO_UID && !web_peer_is_loopback(&far)) {
        return of_address(&far);
    }
    none.uid = uid;
    return none;
}
