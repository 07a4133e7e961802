/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/pipesim/pipesim.h - the planner without hardware: described or recorded machines, networks,
 * simulated trials, tables and reports
 *
 * This folder is a program, not part of the library: it reads files and prints. It may know model/
 * (to load networks) and jansson.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "tuner/search/random.h"
#include "tuner/search/search.h"
#include "tuner/solve.h"

#define PSIM_ERROR_MAX 512u

enum psim_layer { PSIM_CONV, PSIM_DEPTHWISE, PSIM_FC, PSIM_OTHER };

struct psim_unit { /* what a machine needs to say how long it takes */
    char name[64];
    enum psim_layer layer;
    double weight;      /* Pipe-search eq. 1, 2 */
    double macs, bytes; /* arithmetic; weights + activations read and written */
    double in_bytes;    /* crossing the border in front of it */
    double gemm_n, gemm_k, gemm_m;
};
struct psim_network {
    char name[64];
    size_t unit_count;
    struct psim_unit *units; /* owned */
};

/**
 * psim_network_load() - @name: of a network in model/networks (searched in $PIPESIM_NETWORKS, the
 * source tree the program was built from, the installed data) or a path to .json or .onnx
 * @layers: false: the units that piped serves; true: as the papers count, every convolution, pool
 * and fully connected layer on its own (VGG-16 has 21). Return: 0 or -errno with @ret_error.
 */
int psim_network_load(const char *name, bool layers, char ret_error[PSIM_ERROR_MAX],
                      struct psim_network *ret);
void psim_network_deinit(struct psim_network *n);

/* One kind of core of a described machine. A unit of macs a and bytes b takes on w cores
 *     overhead_ns + max(a / (gmacs[layer] * s(w)), b / min(w * gbytes, gbytes_max))
 *     s(w) = w / (1 + serial * (w - 1))
 * (a roofline; s is Amdahl's law, serial the part of the work on one core that others do not help
 * with; the description says where its figures are from). gbytes_max holds within a team: several
 * teams of a kind do not slow each other, as a cost table cannot say it; what a search does not
 * know of is psim_machine.slow. */
struct psim_kind {
    struct tun_kind kind;
    double gmacs[4];           /* multiply-accumulates per ns on one core, by enum psim_layer */
    double serial;             /* part of the work, 0..1 */
    double gbytes, gbytes_max; /* bytes per ns of one core, and of all of this kind */
    double overhead_ns;
};
struct psim_platform {
    char name[64], title[128];
    size_t kind_count;
    struct psim_kind kinds[PL_EP_MAX];
    double handoff_ns, handoff_ns_per_byte;
};
/** psim_platform_load() - @name: a file of tuner/platforms ("hikey970") or a path. Return: 0, or
 * -errno with @ret_error naming file and key. */
int psim_platform_load(const char *name, char ret_error[PSIM_ERROR_MAX], struct psim_platform *ret);
/** psim_platform_names() - all in tuner/platforms, sorted; NULL-terminated, owned by the caller
 * (psim_names_free). */
char **psim_platform_names(void);
char **psim_network_names(void);
char **psim_names_free(char **names);

/** psim_problem() - the network on the platform, every cost known and exact. Return: 0 or -errno.
 */
int psim_problem(const struct psim_network *n, const struct psim_platform *m,
                 struct tun_problem *ret);
/** psim_problem_load() - a recorded one: what `pipectl costs --json` prints. */
int psim_problem_load(const char *path, char ret_error[PSIM_ERROR_MAX], struct tun_problem *ret);

/* A simulated machine: the truth, which a search does not see. */
struct psim_machine {
    const struct tun_problem *truth; /* borrowed */
    double slow[PL_EP_MAX];          /* contention: factor on every cost of the kind, 1: none */
    double noise;                    /* relative sigma of a mean measured in a trial */
    unsigned frames;                 /* per trial; 0: 10 */
    struct tun_random random;
};
/**
 * psim_trial() - runs a plan on the machine: fills measured figures, samples and the time it took
 *     spent = latency (fill) + frames * bottleneck
 * @samples: room for tun_core_count * unit_count samples, borrowed by the trial.
 */
void psim_trial(struct psim_machine *m, const struct pl_plan *plan, struct tun_sample *samples,
                struct tun_trial *ret);

struct psim_run {
    char algorithm[40];
    struct tun_trial *log; /* owned; log[result] serves */
    size_t count, result;
    double bottleneck_ns; /* of the result, by the truth with its contention */
    double latency_ns;
    double optimum_ns;                   /* exact solve of the truth with its contention, slack 0 */
    struct tun_outcome outcome, optimum; /* of the result and of that solve, all figures */
    bool possible;   /* there is a plan that keeps the bounds; else optimum is the fastest one */
    double ratio;    /* result / optimum in what the objective asks for, 1: as good as can be */
    double tuning_s; /* trials and what the search itself took on this machine */
    double own_s;    /* what the search itself took: start (a database) and every ask */
    double explored; /* trials / plans in its space; 0 when the space is endless */
    double space;
};
/** psim_run() - one search to its end. @p: what the search is told (may be wrong); @m: the truth.
 * Return: 0 or -errno with @ret_error. */
int psim_run(const char *algorithm, const struct tun_problem *p, const struct tun_options *o,
             struct psim_machine *m, char ret_error[PSIM_ERROR_MAX], struct psim_run *ret);
void psim_run_deinit(struct psim_run *r);

/* A command of the program: help is made of this table (main.c). Return: an exit code (0 done, 1
 * failed, 2 wrong usage). */
struct psim_command {
    const char *name, *usage, *help;
    int (*run)(int argc, char **argv);
};
extern const struct psim_command psim_commands[];

/* Commands: return an exit code (0 done, 1 failed, 2 wrong usage). */
int psim_cmd_compare(int argc, char **argv);
int psim_cmd_plan(int argc, char **argv);   /* the exact plan, its front, runners-up */
int psim_cmd_list(int argc, char **argv);   /* platforms, networks, algorithms */
int psim_cmd_check(int argc, char **argv);  /* check*.c: everything that must hold */
int psim_cmd_adapt(int argc, char **argv);  /* machines that change by script */
int psim_cmd_replay(int argc, char **argv); /* recorded decisions, made anew */
int psim_cmd_report(int argc, char **argv); /* report*.c: --report FILE.html */
