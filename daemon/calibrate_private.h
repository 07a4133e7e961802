/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/calibrate_private.h - what the parts of the calibration share: calibrate_net.c (the
 * chain), calibrate.c (running it), calibrate_state.c (what is kept and used)
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/calibrate.h"
#include "pipeline/plan.h"
#include "tuner/predict.h"

struct dmn_calibrate_run;

struct dmn_calibration { /* owned by the daemon; kinds as in dmn_daemon.eps */
    struct {
        bool known;
        size_t benches; /* it was fitted to */
        struct tun_predictor predictor;
    } kinds[PL_EP_MAX];
    struct dmn_calibrate_run *run; /* owned; under way, or NULL */
};

/** dmn_calibration_save() - logs when it cannot. */
void dmn_calibration_save(const struct dmn_daemon *d);

/**
 * dmn_calibrate_write_net() - the chain as a network description (docs/netdesc.md) in a new file
 * @folder: where. @ret_path: owned; its name ends in .json; the caller removes the file.
 * Threads: any; blocks. Return: 0 or -errno.
 */
int dmn_calibrate_write_net(const char *folder, char **ret_path);
