/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/calibrate.h - micro-benchmarks on every kind of core, and the predictors fitted to them
 *
 * Pipe-it, section V-B: a chain of convolutions and fully connected layers, spread over image
 * widths 7 to 112, kernels 1 to 11 and channels 3 to 1024, is compiled like any model and runs on
 * each execution place, on one core and on teams of 2, 4, ... and all of its cores, in a pipeline
 * of its own; the clock of each unit is one benchmark. tuner/predict.h is fitted to them. Client
 * frames are served all the while and compete for the cores. The predictors are used by the models
 * that are loaded and by those to come, and are kept in the state folder (calibration.json) for
 * these execution places and this version.
 * Threads: the loop thread; the chain is compiled on a work thread, frames run on their teams, and
 * the loop never waits for either.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "model/model.h"
#include "tuner/problem.h"

struct dmn_call;
struct dmn_daemon;

#define DMN_CALIBRATE_MS 8000u /* of all kinds together, unless the call says otherwise */
#define DMN_CALIBRATE_MS_MAX 600000u

/** dmn_calibration_init() - takes the predictors that an earlier run kept, where they fit these
 * execution places; a file that is no such thing counts as none. Return: 0 or -ENOMEM. */
int dmn_calibration_init(struct dmn_daemon *d);
/** dmn_calibration_deinit() - ends what is under way, its call unanswered. */
void dmn_calibration_deinit(struct dmn_daemon *d);

/**
 * dmn_calibrate_begin() - @call: answered at the end. @ms: of measuring, shared by every kind and
 * width; each gets two frames at least. Return: 0; -EBUSY: one is under way; -ENOMEM.
 */
int dmn_calibrate_begin(struct dmn_daemon *d, struct dmn_call *call, unsigned ms);
/** dmn_calibrate_step() - frames may have come out: goes on. */
void dmn_calibrate_step(struct dmn_daemon *d);
/** dmn_calibrate_abort() - ends it without a result; its call is answered by Busy. Blocks at most
 * one unit's time. */
void dmn_calibrate_abort(struct dmn_daemon *d, const char *why);
bool dmn_calibrating(const struct dmn_daemon *d);

/**
 * dmn_calibrate_predict() - fills costs of @p that are unknown or predicted, for the units whose
 * matrices are known, on the kinds (by name) that were calibrated
 * Return: how many cells it set.
 */
size_t dmn_calibrate_predict(const struct dmn_daemon *d, struct tun_problem *p);

/**
 * dmn_unit_gemm() - the matrices of a unit's heavy operator, Pipe-it eq. 3 and 4: N rows (output
 * positions), K terms of each sum, M columns (output channels)
 * Return: false for what is no such product (grouped convolutions, products of two activations).
 */
bool dmn_unit_gemm(const struct mdl_model *m, size_t unit, double *ret_n, double *ret_k,
                   double *ret_m);
