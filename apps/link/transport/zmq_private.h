/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/link/transport/zmq_private.h - the transport over ZeroMQ
 *
 * Everything that comes in comes by one listening ROUTER; everything that goes out to a peer goes
 * by two DEALERs of its own, one for each lane. Only the urgent one has heartbeats: behind a
 * border of megabytes on a slow link a heartbeat would come too late, and end a connection that
 * works.
 *
 * A peer is up when both its DEALERs have shaken hands. If either ends, both are closed, which
 * drops what is queued, and dialed again.
 *
 * After a write that fails, libzmq waits for the connection to end, which it need not do: perhaps
 * the kernel only lacked buffers. So a bulk lane that has messages while its connection stays idle
 * is closed, too. On the urgent lane the next heartbeat writes again.
 *
 * Host names are not accepted: libzmq would resolve them on the thread that sends and receives.
 */
#pragma once

#include <pthread.h>
#include <sys/queue.h>
#include <zmq.h>

#include "apps/link/transport/code.h"

#define ZL_DOMAIN "piped" /* of authentication */

struct zl_out;

enum zl_state { ZL_RESTING, ZL_URGENT_DIALS, ZL_BULK_DIALS, ZL_UP };

struct zl_dialer {
    void *socket, *monitor; /* owned; NULL: none */
    int fd; /* libzmq's of the connection, as it told; -1: none. It may be closed any time. */
    bool socket_news, monitor_news; /* must be asked: since the last time it told, or was used */
    unsigned queued;                /* messages that libzmq holds */
    unsigned idle;                  /* looks in a row at which nothing moved */
    uint64_t look_ns, acked;        /* the next look is due then; bytes at the last one */
};
struct zl_peer {
    struct brd_board is;
    struct zl_dialer lane[LNK_LANES];
    enum zl_state state;
    uint64_t until_ns;   /* RESTING: dials then; dialing: gives up and begins again then */
    bool wants_room;     /* a send was refused as full */
    const char *hang_up; /* why it is to be dialed again; NULL: it is not */
};
struct zl {
    struct lnk_transport base;
    void *context, *router, *router_monitor, *auth; /* owned */
    bool router_news, refused_news, auth_news;      /* as a dialer's */
    int wake, timer;                                /* owned: eventfd, timerfd */
    bool woken, timed;
    uint64_t timer_ns; /* that it is set to; UINT64_MAX: to none */
    bool trusted_wire;
    struct brd_keys keys;
    uint64_t part_bytes_max, queue_bytes_max;
    int silent_ms;
    struct zl_peer peer[LNK_PEERS_MAX];
    /* Messages that libzmq has let go of: pushed by its threads, freed in dispatch. */
    pthread_mutex_t lock;
    STAILQ_HEAD(zl_outs, zl_out) let_go;
    unsigned monitor_count; /* for names of monitors */
    bool news;              /* of some socket, that no descriptor may tell */
};

/* zmq_socket.c */
/** zl_watch(), zl_watch_fd() - adds its descriptor to base.fd; @news becomes true now, and when it
 * tells. Return: 0 or -errno. */
int zl_watch_fd(struct zl *z, int fd, bool *news);
int zl_watch(struct zl *z, void *socket, bool *news);
void zl_close_socket(struct zl *z, void **socket);
int zl_set_int(void *socket, int option, int value);
int zl_secure(struct zl *z, void *socket, const uint8_t *server_key); /* NULL: the server */
/** zl_monitor() - @events: ZMQ_EVENT_... @news: as zl_watch()'s. Return: the socket that tells
 * them, owned; NULL. */
void *zl_monitor(struct zl *z, void *socket, int events, bool *news);
/** zl_next_event() - @ret_value: NULL, or what comes with it. Return: the next event of a monitor;
 * 0: none. */
uint16_t zl_next_event(void *monitor, uint32_t *ret_value);
/** zl_auth_open(), zl_auth_dispatch() - answer libzmq's questions who may connect (ZAP, RFC 27).
 */
int zl_auth_open(struct zl *z);
void zl_auth_dispatch(struct zl *z);
/** zl_who() - the peer whose message that is. Return: LNK_PEERS_MAX: nobody on the list. */
size_t zl_who(struct zl *z, zmq_msg_t *identity);

/* zmq_peer.c */
void zl_peer_dispatch(struct zl *z, size_t peer, uint64_t now_ns);
void zl_peer_hang_up(struct zl *z, size_t peer);
void zl_set_timer(struct zl *z);
void zl_redial(struct lnk_transport *t, size_t peer, const char *why);
/** zl_queued() - a message was given to libzmq, the first of some or one more. */
void zl_queued(struct zl *z, struct zl_dialer *d);
int zl_wire(const struct lnk_transport *t, size_t peer, struct lnk_wire_use *ret);

/* zmq_send.c */
int zl_send(struct lnk_transport *t, size_t peer, enum lnk_lane lane, struct lnk_bytes first,
            const struct lnk_bytes *range, size_t count, void (*released)(void *), void *arg);
void zl_release_all(struct zl *z);
