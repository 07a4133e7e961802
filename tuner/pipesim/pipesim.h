/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/pipesim/pipesim.h - the planner without hardware: described or recorded machines, networks,
 * simulated trials, tables and reports
 *
 * This folder is a program, not part of the library: it reads files and prints. It may know model/
 * (to load networks) and jansson. These are its commands.
 */
#pragma once

#include <stdint.h>

#include "base/cli/cli.h"

/* What the command line says. Each command has the options of its rows, and sets their defaults. */
struct psim_options {
    const char *model, *platform, *problem, *algorithm, *contention, *plan, *file, *scenario,
        *records;
    bool layers, json, one_ep, nodes, units, no_hints, predict;
    bool front; /* plan: of throughput and latency; mix: of wishes and energy */
    unsigned objective, encoding, space; /* enum tun_objective, mix: tun_share; tun_encoding;
                                          * tun_space */
    unsigned alpha, heuristic, stages, stages_max, frames, top, seeds, changes;
    uint64_t seed, trials, runs, simulate;
    double fps, latency_ms; /* bounds; 0: none */
    double stop_fps;        /* 0: none */
    double sigma, noise, correlation, spikes, hours, evaluation_s, early, floor;
};

/* The commands with their options and help. A new one is a row in pipesim_options.c, its code, and
 * its lines in pipesim(1), which a lint test compares with this table. */
extern const struct cli_program psim_program;

/* The commands: X(compare) is psim_cmd_compare(). They return an exit code, or CLI_ENDED. */
#define PSIM_COMMANDS(X)                                                                           \
    X(compare) X(plan) X(mix) X(list) X(report) X(adapt) X(replay) X(boards) X(mapping)
#define PSIM_DECLARE(name) int psim_cmd_##name(int argc, char **argv);
PSIM_COMMANDS(PSIM_DECLARE)
#undef PSIM_DECLARE
