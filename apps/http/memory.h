/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/http/memory.h - whose a connection is, and how much memory requests may take, all together
 * and one owner's
 *
 * An owner is a user of this machine, or an address. The kernel tells the user at the other end of
 * a Unix socket, and by sock_diag(7) the user of any TCP socket of this machine. Where it tells
 * nothing, clients of this machine count as one user.
 *
 * What a request makes this process hold is claimed before it is there, and given back: its body,
 * the tree of its JSON, the slot that its frame lies in, what decoding a picture takes, its answer.
 * All of it stays below --memory-mb. The last eighth is for owners that hold less than an eighth:
 * one user of this machine, or one address, cannot lock others out.
 *
 * Slots outlive requests; idle ones belong to nobody, and are closed where others need the memory.
 *
 * Threads: any.
 */
#pragma once

#include <netinet/in.h>
#include <pthread.h>
#include <sys/queue.h>

#include "base/base.h"

/* ---- mutexes held to the end of a block, and waits until a time. Threads: any. ---- */

static inline pthread_mutex_t *web_lock_(pthread_mutex_t *mutex)
{
    pthread_mutex_lock(mutex);
    return mutex;
}

static inline void web_unlock_(pthread_mutex_t **mutex)
{
    pthread_mutex_unlock(*mutex);
}

/* Holds @mutex from here to the end of the block. */
#define web_locked(mutex) base_cleanup(web_unlock_) pthread_mutex_t *web_locked_ = web_lock_(mutex)

/** web_cond_init() - for web_cond_wait(). */
static inline void web_cond_init(pthread_cond_t *c)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(c, &attr);
    pthread_condattr_destroy(&attr);
}

/** web_cond_wait() - waits until a time of base_now_ns(). Return: 0; ETIMEDOUT. */
static inline int web_cond_wait(pthread_cond_t *c, pthread_mutex_t *mutex, uint64_t at_ns)
{
    struct timespec t = {.tv_sec = (time_t)(at_ns / BASE_NS_PER_S),
                         .tv_nsec = (long)(at_ns % BASE_NS_PER_S)};

    return pthread_cond_timedwait(c, mutex, &t);
}

/* ---- peer.c ---- */

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

/* ---- memory.c ---- */

/* A peer that has connections. */
struct web_owner {
    LIST_ENTRY(web_owner) linked;
    struct web_peer who;
    size_t connections;
    size_t bytes; /* claimed */
    size_t here;  /* scratch of watch.c */
};

struct web_memory_waiter;

struct web_memory {
    pthread_mutex_t lock;
    pthread_cond_t given;
    size_t most, used, idle; /* idle: of used, the slots that no request has */
    size_t holders;          /* requests with a slot */
    uint64_t gifts;          /* times that something was given back */
    LIST_HEAD(, web_owner) owners;
    TAILQ_HEAD(, web_memory_waiter) waiters;
};

void web_memory_init(struct web_memory *m, size_t most);
/** web_owner_enter() - one more connection. Return: NULL: no memory. */
struct web_owner *web_owner_enter(struct web_memory *m, const struct web_peer *who);
/** web_owner_leave() - when it holds nothing by this connection. */
void web_owner_leave(struct web_memory *m, struct web_owner *o);

/** web_memory_claim() - @o: NULL: nobody's. @holds: of a slot: becomes true, and a request more has
 * one; else NULL. Return: false: it does not fit; nothing is claimed. */
bool web_memory_claim(struct web_memory *m, struct web_owner *o, size_t bytes, bool *holds);
/** web_memory_give() - what was claimed is given back. */
void web_memory_give(struct web_memory *m, struct web_owner *o, size_t bytes);
/** web_memory_hold() - whether a request has a slot, or closes one. @holds: what was said last. */
void web_memory_hold(struct web_memory *m, bool *holds, bool now);
/** web_memory_lend() - a slot that was idle is @o's. */
void web_memory_lend(struct web_memory *m, struct web_owner *o, size_t bytes);
/** web_memory_return() - a slot gets idle. */
void web_memory_return(struct web_memory *m, struct web_owner *o, size_t bytes);
/** web_memory_gifts() - for web_memory_wait(), before a claim is tried. */
uint64_t web_memory_gifts(struct web_memory *m);
/** web_memory_wait() - waits until something was given back since @gifts. Return: false: it is
 * later than @until_ns; or no request has a slot that it could give back, and none waits for less
 * long. */
bool web_memory_wait(struct web_memory *m, uint64_t gifts, uint64_t until_ns);
/** web_memory_in_use() - @ret_idle: slots without a request. Return: the rest. */
size_t web_memory_in_use(struct web_memory *m, size_t *ret_idle);
