/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/control/host.h - the daemon as control/ sees it: its state and its requests
 *
 * daemon/ fills it in and keeps it up to date. Threads: the loop thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/models/done.h"
#include "kernels/lib/blas_check.h"

enum dmn_state {
    DMN_STATE_SERVING,
    DMN_STATE_TUNING,
    DMN_STATE_DEGRADED, /* something requested does not serve or makes no progress */
    DMN_STATE_DRAINING,
};
/** dmn_state_name() - Return: static. */
const char *dmn_state_name(enum dmn_state state);

struct dmn_host {
    uint64_t started_ns;
    double started_s; /* wall clock, since 1970 */
    struct krn_blas_status blas;
    uint64_t reloads, reload_failures;
    void *ctx; /* for the functions below */
    enum dmn_state (*state)(const void *ctx);
    /* Reads the configuration again; @done is called at the end. Return: false, and @done is not
     * called, if a reload is in progress or the daemon is stopping. */
    bool (*reload)(void *ctx, struct dmn_done done);
};
