/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/plans/profile.h - micro-benchmarks on every kind of core, and predictors fitted to them
 *
 * As in Pipe-it, section V-B: a chain of convolutions, depthwise ones too, and fully connected
 * layers, with image widths 7 to 112, kernels 1 to 11 and channels 3 to 1024, is compiled like any
 * model. (The paper's grid of 900 shapes has 2.0e12 multiply-accumulates, 1,400 times as many as
 * the chain: bench/results/pipe-it.md.) It runs on each EP with 1, 2, 4, ... and all of its cores,
 * in a pipeline of its own. The clock of each unit is one benchmark; tuner/predict.h is fitted to
 * them. Clients' frames are served meanwhile and compete for the cores.
 *
 * Before that, all cores stream memory for some hundred milliseconds, alone and at once
 * (streams.c); so they do when primitives are measured at the first load.
 *
 * All models, loaded now or later, use the predictors and the streams. They are saved in the state
 * folder for these EPs and this version. Users see an older name, which stays: the file
 * calibration.json and the event "calibration".
 *
 * Threads: the loop thread. A work thread compiles the chain and teams run its frames; the loop
 * never waits for them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/models/done.h"
#include "model/model.h"
#include "pipeline/plan.h"
#include "tuner/predict.h"
#include "tuner/problem.h"

struct dmn_plans;
struct dmn_profile_run;
struct dmn_state_kept;

#define DMN_PROFILE_MS 8000u /* default budget for all kinds together */
#define DMN_PROFILE_MS_MAX 600000u

/** dmn_profile_init() - reads the saved predictors that fit these EPs. An invalid file counts as
 * missing. Return: 0 or -ENOMEM. */
int dmn_profile_init(struct dmn_plans *plans);

/** dmn_profile_begin() - starts a profile. @done: called at its end, if it starts. @ms: time for
 * measuring, shared by all kinds and widths; each gets at least two frames. Return: 0; -EBUSY: one
 * is in progress; -ENOMEM. */
int dmn_profile_begin(struct dmn_plans *plans, struct dmn_done done, unsigned ms);
/** dmn_profile_step() - goes on if frames have come out. */
void dmn_profile_step(struct dmn_plans *plans);
/** dmn_profile_abort() - ends the profile without a result and refuses whoever waits. @why: for
 * people. Blocks for at most one unit's time. */
void dmn_profile_abort(struct dmn_plans *plans, const char *why);
bool dmn_profiling(const struct dmn_plans *plans);
/** dmn_profile_progress() - Return: how many widths of all EPs are measured; @ret_of: of how many.
 * There is a profile in progress. */
size_t dmn_profile_progress(const struct dmn_plans *plans, size_t *ret_of);

/* The profile of an EP. */
struct dmn_profiled {
    char ep[PL_EP_NAME_MAX]; /* its name; "": unused */
    bool known;
    size_t benches; /* number of benchmarks fitted */
    struct tun_predictor predictor;
};
/** dmn_profiled() - the profile of the EP named @ep. Return: borrowed; `known` is false if there is
 * none. */
const struct dmn_profiled *dmn_profiled(const struct dmn_plans *plans, const char *ep);

/** dmn_profile_predict() - predicts costs of @p that are unknown or predicted, for units whose
 * matrices are known, on EPs (by name) that were profiled. Return: the number of cells set. */
size_t dmn_profile_predict(const struct dmn_plans *plans, struct tun_problem *p);

/* What cores stream, in bytes per ns (governor/bandwidth.h), by EP. */
struct dmn_streams {
    struct pl_ep_set on;                   /* none is split */
    double one[PL_EP_MAX], all[PL_EP_MAX]; /* one of its cores, all of them at once; 0: unknown */
    double machine;                        /* all cores at once; 0: nothing is known */
};
/** dmn_streams_measure() - on @s->on, the rest 0; what cannot be measured stays 0. Allocates;
 * blocks for about 0.2 s an EP; any thread. */
void dmn_streams_measure(struct dmn_streams *s);
/** dmn_streams_enter() - into EPs (by name; parts of an EP count as it) and machine of @p. Where
 * nothing is known nobody competes, and bandwidths are equal. Any thread. */
void dmn_streams_enter(const struct dmn_streams *s, struct tun_problem *p);
/** dmn_streams_take() - from now on all models have these, if anything is known. */
void dmn_streams_take(struct dmn_plans *plans, const struct dmn_streams *s);

/** dmn_layer_name() - Return: what files and messages call it; static. */
const char *dmn_layer_name(enum tun_layer layer);

/** dmn_unit_gemm() - the matrices of a unit's heavy operator, Pipe-it eq. 3 and 4: N rows (output
 * positions), K terms of each sum, M columns (output channels), and its layer.
 * @ret: only these are set. Return: false if it is not such a product (convolution of groups of
 * several channels, product of two activations). */
bool dmn_unit_gemm(const struct mdl_model *m, size_t unit, struct tun_bench *ret);

/* ---- between the parts: profile_net.c (the chain), profile.c (running it) and profile_state.c
 * (saving and using the result) ---- */

struct dmn_profile { /* owned by struct dmn_plans */
    struct dmn_profiled eps[PL_EP_MAX];
    struct dmn_streams streams;
    bool streaming;              /* a load measures them; only the first one is asked to */
    struct dmn_profile_run *run; /* owned; in progress, or NULL */
};

/** dmn_profile_keep() - sets the predictor of the EP named @ep. */
void dmn_profile_keep(struct dmn_plans *plans, const char *ep, size_t benches,
                      const struct tun_predictor *p);
/** dmn_profile_save() - saves all predictors and streams. */
void dmn_profile_save(const struct dmn_plans *plans, struct dmn_state_kept kept);

/**
 * dmn_profile_write_net() - writes the chain as a network description (docs/netdesc.md) to a new
 * file
 *
 * @folder: where. @ret_path: owned; ends in .json; the caller removes the file. Threads: any;
 * blocks. Return: 0 or -errno.
 */
int dmn_profile_write_net(const char *folder, char **ret_path);
