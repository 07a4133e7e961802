/* SPDX-License-Identifier: Apache-2.0 */
/** tuner/pipesim/platform.h - described machines */
#pragma once

#include "tuner/pipesim/network.h"
#include "tuner/problem.h"

/* One EP of a described machine. A unit of macs a and bytes b takes on w cores
 *     overhead_ns + max(a / (gmacs[layer] * s(w)), b / min(w * gbytes, gbytes_max))
 *     s(w) = w / (1 + serial * (w - 1))
 * (a roofline; s is Amdahl's law, serial the part of the work on one core that others do not help
 * with; the description says where its figures are from). gbytes_max holds within a team: several
 * teams of an EP do not slow each other, as a cost table cannot say it; what a search does not
 * know of is psim_machine.slow. */
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
