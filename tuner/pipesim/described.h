/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/pipesim/described.h - descriptions of networks and machines, and the problem of one on the
 * other
 *
 * A description is found by name in the folders of its sort, the first that has it wins: that of
 * the environment variable, the source tree the program was built from, the installed data.
 */
#pragma once

#include "tuner/json/json_reader.h"

/* ---- files (data_files.c) ---- */

#define PSIM_PATH_MAX 4096u
#define PSIM_ERROR_MAX 512u /* TUN_READER_ERROR_MAX, too */

struct psim_folders {
    const char *what;           /* "network", for messages */
    const char *environment;    /* a variable that names one more folder */
    const char *const *folders; /* NULL-terminated */
};
extern const struct psim_folders psim_networks, psim_platforms;

/** psim_find() - path of @name: itself where it has a slash or ends in .json or .onnx, else
 * NAME.json in the folders. Return: 0, or -ENOENT with @ret_error. */
int psim_find(const struct psim_folders *f, const char *name, char ret_error[PSIM_ERROR_MAX],
              char ret_path[PSIM_PATH_MAX]);

/** psim_names() - of all descriptions in the folders, sorted, each once; NULL-terminated, owned by
 * the caller (psim_names_free). Return: NULL: out of memory. */
char **psim_names(const struct psim_folders *f);
char **psim_names_free(char **names);

/** psim_problem_load() - a recorded one: what `pipectl costs --json` prints. */
int psim_problem_load(const char *path, char ret_error[PSIM_ERROR_MAX], struct tun_problem *ret);

/* ---- networks (network.c): their units, and what a machine needs to know of them ---- */

enum psim_layer { PSIM_CONV, PSIM_DEPTHWISE, PSIM_FC, PSIM_OTHER };

struct psim_unit { /* what a machine needs to say how long it takes */
    char name[64];
    enum psim_layer layer;
    double macs, bytes; /* arithmetic; weights + activations read and written */
    struct tun_unit of; /* for the problem */
    bool light;         /* a norm, an addition or an activation by itself (PSIM_NODES) */
};
struct psim_network {
    char name[64];
    size_t unit_count;
    struct psim_unit *units;          /* owned */
    double input_bytes, output_bytes; /* of a frame */
};

/* What counts as a unit: what piped serves; every convolution, pool and fully connected layer on
 * its own, as the papers count (VGG-16 has 21); every node of the network by itself: a
 * convolution, its batch norm, its addition and its activation are units of their own (ResNet-101
 * has 344). */
enum psim_counted { PSIM_UNITS, PSIM_LAYERS, PSIM_NODES };

/**
 * psim_network_load() - @name: of a network in model/networks (searched in $PIPESIM_NETWORKS, the
 * source tree the program was built from, the installed data) or a path to .json or .onnx
 * Return: 0 or -errno with @ret_error.
 */
int psim_network_load(const char *name, enum psim_counted counted, char ret_error[PSIM_ERROR_MAX],
                      struct psim_network *ret);
void psim_network_deinit(struct psim_network *n);

/* ---- machines (platform.c) ---- */

/* One EP of a described machine. A unit of macs a and bytes b takes on w cores
 *     overhead_ns + max(a / (gmacs[layer] * s(w)), b / min(w * gbytes, gbytes_max))
 *     s(w) = w / (1 + serial * (w - 1))
 * (a roofline; s is Amdahl's law, serial the part of the work on one core that others do not help
 * with; the description says where its figures are from). If the machine has a gbytes_max, too,
 * teams of an EP share theirs, and all teams that of the machine (tuner/memory.h); else several
 * teams do not slow each other. What a search does not know of is psim_machine.slow. */
struct psim_ep {
    struct tun_ep ep;
    double gmacs[4];           /* multiply-accumulates per ns on one core, by enum psim_layer */
    double serial;             /* part of the work, 0..1 */
    double gbytes, gbytes_max; /* bytes per ns of one core, and of all of this EP */
    double overhead_ns;
};
struct psim_platform {
    char name[64], title[128];
    size_t ep_count;
    struct psim_ep eps[PL_EP_MAX];
    double handoff_ns, handoff_ns_per_byte;
    size_t stages_max;        /* bound of plans, and Shisha's N; 0: none */
    double gbytes_max;        /* bytes per ns of all EPs; 0: not said, then no team slows another */
    struct tun_boards boards; /* .count 0: one board */
};
/* Several boards: EPs are named BOARD:EP, and the longest hand-off of all boards is everybody's.
 * Their bytes of a frame are set by psim_problem(). */
/** psim_platform_load() - @name: a file of tuner/platforms ("hikey970") or a path. Return: 0, or
 * -errno with @ret_error naming file and key. */
int psim_platform_load(const char *name, char ret_error[PSIM_ERROR_MAX], struct psim_platform *ret);

/** psim_problem() - the network on the platform, every cost known and exact. Return: 0 or -errno.
 */
int psim_problem(const struct psim_network *n, const struct psim_platform *m,
                 struct tun_problem *ret);

/**
 * psim_predict() - what Pipe-it's equations 5 to 8 foretell of @p, in place of its costs
 *
 * They are fitted on each EP to what its micro-benchmarks (section V-B) take there: convolutions of
 * the paper's grid, and the fully connected and depthwise layers of which it says no shapes. Costs
 * of units without matrices stay. @p: of @m. Return: 0 or -ENOMEM.
 */
int psim_predict(const struct psim_platform *m, struct tun_problem *p);

/* A network on a platform. */
struct psim_case {
    struct psim_network network;
    struct psim_platform platform;
    struct tun_problem truth;
};
#define PSIM_CASE_NULL ((struct psim_case){.truth = TUN_PROBLEM_NULL})
/** psim_case_init() - loads both by name. Return: 0 or -errno with @ret_error. */
int psim_case_init(const char *network, enum psim_counted counted, const char *platform,
                   char ret_error[PSIM_ERROR_MAX], struct psim_case *ret);
void psim_case_deinit(struct psim_case *c);
