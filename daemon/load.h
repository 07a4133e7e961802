/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/load.h - one load of a model: file, compilation, choice of primitives, packing
 *
 * A load is made and used up (dmn_model_start()) on the loop thread; in between dmn_load_run() may
 * happen on any thread, with nothing but the load.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/choose.h"
#include "kernels/kernels.h"
#include "model/quant/calibration.h"
#include "model/model.h"
#include "pipeline/plan.h"
#include "tuner/problem.h"

struct dmn_config_model;
struct dmn_daemon;

/* Tells whether a model's file and its sidecar are still those that were loaded. */
struct dmn_file_stamp {
    uint64_t device, inode, bytes, mtime_ns; /* all 0: there is no such file */
};
struct dmn_stamp {
    struct dmn_file_stamp model, sidecar, calibration;
};
/** dmn_stamp_read() - @path: of the model; @calibration: of its file, "" for none. */
struct dmn_stamp dmn_stamp_read(const char *path, const char *calibration);

/* What is to be loaded, borrowed during the call; name and path are there, the rest may be NULL. */
struct dmn_load_source {
    const char *name, *path, *plan, *kernels, *calibration;
    bool latest;
};

/* One load: inputs, then results. Plain data that a work thread may use alone. */
struct dmn_load {
    char name[64];
    char *path, *plan, *kernels, *calibration; /* owned; calibration: a file, or "" */
    bool latest, from_config;
    bool as_is;                     /* whatever was quantised before does not count */
    struct mdl_calibration *ranges; /* owned; given, or read by the load: quantise by them */
    bool bad_calibration;           /* why it failed */
    size_t weight_bytes_max, arena_bytes_max;
    size_t threads;          /* that may share the work; 0: only the one that loads */
    struct mdl_model *model; /* results, owned until the model is started */
    struct krn_net *net;
    struct dmn_choose choose;
    struct tun_problem problem; /* by dmn_planner_prepare(), on the loop */
    struct pl_plan *first;      /* what it will serve by */
    const char *algorithm;      /* static; where the plan is from */
    char error[MDL_ERROR_MAX];  /* why not, if something failed */
    struct dmn_stamp stamp;
    uint64_t took_ns;
};
/** dmn_config_source() - of the configuration's model; borrowed from it. */
struct dmn_load_source dmn_config_source(const struct dmn_config_model *c);

struct dmn_load *dmn_load_from(const struct dmn_load_source *s, const struct dmn_daemon *d);
/** dmn_load_new() - the same without a calibration. */
struct dmn_load *dmn_load_new(const char *name, const char *path, const char *plan,
                              const char *kernels, bool latest, const struct dmn_daemon *d);
/** dmn_load_run() - blocks. Return: 0, or -errno with l->error set. */
int dmn_load_run(struct dmn_load *l);
struct dmn_load *dmn_load_free(struct dmn_load *l);
