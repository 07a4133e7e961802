/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/service/service.h - the service manager: watchdog, inherited sockets, messages, journal
 *
 * service_systemd.c uses libsystemd. service_none.c replaces it in builds without libsystemd and
 * reports that there is no service manager. Threads: the loop thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

/** dmn_service_watchdog_us() - Return: the interval in which WATCHDOG=1 is expected; 0: none. */
uint64_t dmn_service_watchdog_us(void);

struct dmn_inherited {
    int frames, control; /* listening sockets, owned by the one who has the struct; -1: none */
};
#define DMN_INHERITED_NULL                                                                         \
    {                                                                                              \
        -1, -1                                                                                     \
    }

/**
 * dmn_service_sockets() - takes the listening sockets that were passed in, by FileDescriptorName
 *
 * @ret: close-on-exec descriptors, or -1. A single unnamed socket is the frames socket. All others
 * are closed. Return: 0; -EINVAL: one is not a listening Unix stream socket.
 */
int dmn_service_sockets(struct dmn_inherited *ret);

/** dmn_service_status() - tells the service manager what to show as the service's status. May wait
 * for it: not for the loop, which has dmn_notify(). */
void dmn_service_status(const char *text);

/** dmn_service_journal() - writes one entry without the fields that are NULL. Return: 0;
 * -errno: also where there is no journal. */
int dmn_service_journal(int level, const char *text, const char *id, const char *model,
                        const char *plan, const char *client);

/* ---- notify.c: messages to the service manager, without waiting for it ---- */

#define DMN_NOTIFY_WAITING_MAX 8u

struct dmn_notify {
    int fd; /* kept open: a watchdog must be fed when no descriptor is free, too; -1: none */
    uv_timer_t timer;                      /* runs while messages are queued */
    char *waiting[DMN_NOTIFY_WAITING_MAX]; /* [count], owned, oldest first */
    size_t count;
};

/** dmn_notify_init() - starts with an empty queue. */
void dmn_notify_init(struct dmn_notify *n, uv_loop_t *loop);
/** dmn_notify_deinit() - tries once more, then closes the timer; the loop must run once more. */
void dmn_notify_deinit(struct dmn_notify *n);

/** dmn_notify() - sends a message such as "READY=1\nSTATUS=...", now or later. Does nothing without
 * a service manager. */
void dmn_notify(struct dmn_notify *n, const char *text);

/* ---- refusing.c: clients of inherited sockets learn why the daemon does not start ---- */

/* How long it stays without clients; after the last one; at most, if it knows when to end. In 30 s
 * clients can start it fewer times than StartLimitBurst= of piped.service allows, so that people
 * can start it besides. */
#define DMN_REFUSING_IDLE_MS 200u
#define DMN_REFUSING_BUSY_MS 2000u
#define DMN_REFUSING_MOST_MS 10000u

/** dmn_inherited_copy() - Return: the same sockets by descriptors of their own, -1 where there is
 * none or none can be made. */
struct dmn_inherited dmn_inherited_copy(const struct dmn_inherited *from);
void dmn_inherited_close(struct dmn_inherited *in);

/**
 * dmn_refuse_start() - tells the service manager and clients why the daemon does not start
 *
 * @why: one line. Clients of frames get an ERROR of status unavailable, control clients the error
 * NotStarted. It stays for DMN_REFUSING_IDLE_MS, and for DMN_REFUSING_BUSY_MS once somebody has
 * connected; it returns at once if there is no socket.
 * @changed: asked before each answer, whether a start would go another way now: then it returns,
 * and who waits starts the service. So clients that ask again and again may keep it for
 * DMN_REFUSING_MOST_MS. NULL: nobody knows.
 * Threads: the main thread, while no loop runs. Blocks.
 */
void dmn_refuse_start(const struct dmn_inherited *in, const char *why,
                      bool (*changed)(const void *ctx), const void *ctx);
