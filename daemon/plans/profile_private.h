/* SPDX-License-Identifier: Apache-2.0 */
/** daemon/plans/profile_private.h - shared by the parts of the profile: profile_net.c (the chain),
 * profile.c (running it), profile_state.c (saving and using the result) */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/config/state_file.h"
#include "daemon/plans/profile.h"
#include "pipeline/plan.h"
#include "tuner/predict.h"

struct dmn_profile_run;

struct dmn_profile { /* owned by struct dmn_plans */
    struct dmn_profiled eps[PL_EP_MAX];
    struct dmn_profile_run *run; /* owned; in progress, or NULL */
};

/** dmn_profile_keep() - sets the predictor of the EP named @ep. */
void dmn_profile_keep(struct dmn_plans *plans, const char *ep, size_t benches,
                      const struct tun_predictor *p);
/** dmn_profile_save() - saves all predictors. @kept: must be given. */
void dmn_profile_save(const struct dmn_plans *plans, struct dmn_state_kept kept);

/**
 * dmn_profile_write_net() - writes the chain as a network description (docs/netdesc.md) to a new
 * file
 *
 * @folder: where. @ret_path: owned; ends in .json; the caller removes the file. Threads: any;
 * blocks. Return: 0 or -errno.
 */
int dmn_profile_write_net(const char *folder, char **ret_path);
