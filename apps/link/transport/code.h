/* SPDX-License-Identifier: Apache-2.0 */
/** apps/link/transport/code.h - what a transport is made of; see transport.h for what each does */
#pragma once

#include <stdbool.h>

#include "apps/link/transport/transport.h"

struct lnk_code {
    const char *kind;
    int (*open)(const struct lnk_config *config, struct lnk_transport **ret, char ret_error[256]);
    void (*close)(struct lnk_transport *t);
    void (*dispatch)(struct lnk_transport *t);
    int (*send)(struct lnk_transport *t, size_t peer, enum lnk_lane lane, struct lnk_bytes first,
                const struct lnk_bytes *range, size_t count, void (*released)(void *), void *arg);
    int (*wire)(const struct lnk_transport *t, size_t peer, struct lnk_wire_use *ret); /* or NULL */
    void (*redial)(struct lnk_transport *t, size_t peer, const char *why);             /* or NULL */
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

#define LNK_QUEUED_MESSAGES_MAX 1024u

/* Is a message of @bytes, in @count ranges and its first part, too much for what is queued? One
 * message fits, however large. What has no ranges (credits, errors, plans) is small and waits for
 * nobody: without it frames would never be answered. */
static inline bool lnk_code_full(const struct lnk_transport *t, size_t peer, size_t count,
                                 uint64_t bytes, uint64_t bytes_max)
{
    const struct lnk_peer_stats *s = &t->peer[peer];

    if (count == 0) {
        return s->queued_messages >= 4 * LNK_QUEUED_MESSAGES_MAX;
    }
    return s->queued_messages >= LNK_QUEUED_MESSAGES_MAX ||
           (s->queued_bytes > 0 && s->queued_bytes + bytes > bytes_max);
}
