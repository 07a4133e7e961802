/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/notify.h - messages to the service manager, which is never waited for
 *
 * sd_notify() blocks while the manager's queue (10 datagrams by default) is full, and a loop that
 * serves must not wait for a busy manager. What comes again by itself (STATUS, WATCHDOG) is dropped
 * then; what is said once (READY, RELOADING, STOPPING) waits here, in order, and is tried again.
 * Needs no libsystemd. Threads: the loop thread.
 */
#pragma once

#include <stddef.h>
#include <uv.h>

#define DMN_NOTIFY_WAITING_MAX 8u

struct dmn_notify {
    uv_timer_t timer;                      /* runs while something waits */
    char *waiting[DMN_NOTIFY_WAITING_MAX]; /* [count], owned, the oldest first */
    size_t count;
};

/** dmn_notify_init() - nothing waits. */
void dmn_notify_init(struct dmn_notify *n, uv_loop_t *loop);
/** dmn_notify_deinit() - a last try, then the timer is closed; the loop has to run once more. */
void dmn_notify_deinit(struct dmn_notify *n);

/** dmn_notify() - sends one message such as "READY=1\nSTATUS=...", now or later. Without a manager:
 * nothing. */
void dmn_notify(struct dmn_notify *n, const char *text);
