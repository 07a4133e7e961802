/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/service/notify.h - messages to the service manager, without waiting for it
 *
 * sd_notify() blocks while the manager's queue (10 datagrams by default) is full, and the loop must
 * not wait. If the queue is full, messages that repeat anyway (STATUS, WATCHDOG) are dropped.
 * Messages that are sent once (READY, RELOADING, STOPPING) are queued here, in order, and sent
 * again later.
 *
 * Needs no libsystemd. Threads: the loop thread.
 */
#pragma once

#include <stddef.h>
#include <uv.h>

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
