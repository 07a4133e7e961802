/* SPDX-License-Identifier: Apache-2.0 */
/** ipc/link/transport_code.h - what a transport is made of; see transport.h for what each does */
#pragma once

#include "ipc/link/transport.h"

struct lnk_code {
    const char *kind;
    int (*open)(const struct lnk_config *config, struct lnk_transport **ret, char ret_error[256]);
    void (*close)(struct lnk_transport *t);
    void (*dispatch)(struct lnk_transport *t);
    int (*send)(struct lnk_transport *t, size_t peer, enum lnk_lane lane, struct lnk_bytes first,
                const struct lnk_bytes *range, size_t count, void (*released)(void *), void *arg);
};

/* The beginning of every transport. */
struct lnk_transport {
    const struct lnk_code *code;
    struct lnk_listener listener;
    int fd; /* an epoll descriptor, owned by the code */
    uint16_t port;
    size_t self; /* the own index in the list; LNK_PEERS_MAX: not in it */
    size_t peer_count;
    struct lnk_peer_stats peer[LNK_PEERS_MAX];
    struct lnk_transport_stats all;
};

/* NULL in builds without its library. */
extern const struct lnk_code *const lnk_zmq_code;
extern const struct lnk_code *const lnk_mpi_code;
