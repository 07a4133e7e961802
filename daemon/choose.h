/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/choose.h - which primitive runs each op of a model on each kind of cores: kept, or found
 * by measuring when the model is loaded
 *
 * A part of a load (struct dmn_load): filled in on the loop, run on the load's thread, its times
 * handed to the tuner on the loop. What was found is kept for one model on one machine: one file
 * for each model, good for one CPU, one set of libraries and one table of primitives.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/choose.h"
#include "kernels/int8cal/examples.h"
#include "pipeline/plan.h"
#include "tuner/problem.h"

struct dmn_daemon;

#define DMN_CHOOSE_FRONT_MAX 16u

struct dmn_choose_kind {
    char name[PL_EP_NAME_MAX];
    int cpu;     /* that is measured on */
    size_t same; /* the first kind of the same cores; itself where it is that */
};

struct dmn_choose {
    /* inputs */
    size_t kind_count;
    struct dmn_choose_kind kinds[PL_EP_MAX];
    unsigned ms; /* longest time of measuring a kind; 0: primitives by their static order */
    bool anew;   /* measure, whatever is kept */
    bool wants_front;
    struct krn_examples *examples; /* borrowed; that INEXACT rows are judged by, or NULL */
    double agreement_min;          /* of their classes with those of exact rows, 0..1 */
    struct krn_choose_options options;
    _Atomic bool stop; /* writer: loop. Measuring is given up. Relaxed: nothing goes with it */
    char *folder;      /* owned; where it is kept, NULL: nowhere */
    /* results: of the kinds that are the first of their cores */
    bool chosen;   /* false: by the static order */
    bool measured; /* false: as kept */
    struct krn_chosen of[PL_EP_MAX];
    struct krn_chosen front[DMN_CHOOSE_FRONT_MAX]; /* of the first kind, the fastest first */
    size_t front_count;
    double agreement; /* measured on the calibration set; 0: there was none */
    uint64_t took_ns;
    char note[256]; /* what has to be said about it, "" for nothing */
};

/** dmn_choose_init() - inputs from the daemon's cores and configuration. Return: 0, -ENOMEM. */
int dmn_choose_init(struct dmn_choose *c, const struct dmn_daemon *d);
void dmn_choose_deinit(struct dmn_choose *c);

/**
 * dmn_choose_net() - the choice of each kind, kept or measured, and the network by it
 * With c->wants_front the front is made, and no network.
 * Falls back to the static order where measuring fails, and says so in c->note. Threads: the
 * load's. Blocks for c->ms a kind at most, about. Return and @ret_error: as krn_net_new().
 */
int dmn_choose_net(struct dmn_choose *c, const struct mdl_model *m, const char *name,
                   char ret_error[MDL_ERROR_MAX], struct krn_net **ret);

/** dmn_choose_costs() - the times of the chosen primitives as predictions of one core's units,
 * where nothing was measured while serving, or was by other primitives. */
void dmn_choose_costs(const struct dmn_choose *c, const struct mdl_model *m, struct tun_problem *p);
