/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/http/peer.h - whose a connection is: a user of this machine, or an address
 *
 * The kernel tells the user at the other end of a Unix socket, and by sock_diag(7) the user of any
 * TCP socket of this machine. Where it tells nothing, clients of this machine count as one user.
 *
 * Threads: any.
 */
#pragma once

#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define WEB_NO_UID UINT32_MAX

struct web_peer {
    bool user;           /* of this machine */
    uint32_t uid;        /* its own; WEB_NO_UID: not known */
    uint8_t address[16]; /* else: the IPv6 address, of which 64 bits count, or a mapped IPv4 one */
};

union web_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_storage all;
};

struct web_peers {
    pthread_mutex_t lock;
    int fd; /* owned; -1: none */
    uint32_t number;
};

/** web_peers_open() - @fd: a netlink socket that the service manager passed, since this process may
 * have a network of its own; taken. -1: opens one. */
void web_peers_open(struct web_peers *p, int fd);
/** web_peer_is_netlink() - Return: @fd is what web_peers_open() takes. */
bool web_peer_is_netlink(int fd);
/** web_peer_is_loopback() - Return: the address, of either version of IP, is this machine's own. */
bool web_peer_is_loopback(const union web_address *a);
/** web_peer_of() - who is at the other end of the connected socket @fd. Does not block. */
struct web_peer web_peer_of(struct web_peers *p, int fd);
