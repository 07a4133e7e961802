/* SPDX-License-Identifier: Apache-2.0 */
/**
 * governor/machine_state.h - what a snapshot says of groups of cores, and the name of such a state
 *
 * What was learned on some cores holds for the same cores under the same governors, limits and
 * quota. Whoever keeps or finds something again by "the state of the machine" asks here, so that
 * there is one identity of it. Pure functions of their arguments; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "governor/snapshot.h"
#include "governor/topology.h"

/* A group of cores under the name that its owner gave it; borrowed during a call. */
struct gov_cores {
    const char *name;
    const uint16_t *cpus; /* kernel numbers */
    size_t count;
};

/* What a snapshot says of such a group. */
struct gov_cores_now {
    uint64_t policies_id; /* of governors and numbers of all its policies; 0: none known */
    double khz;           /* now, mean of the cores, none above its limit; 0: unknown */
    double limit_khz;     /* of the most limited policy (gov_policy.limit_khz); 0: unknown */
    double hardware_khz;  /* of the best policy; 0: unknown */
    bool heated;          /* a policy is (gov_policy.heated) */
    uint64_t throttles;   /* counters of all cores, rising; 0: not kept here */
};

/** gov_cores_now() - @s: NULL counts as a snapshot without any figure. */
void gov_cores_now(const struct gov_snapshot *s, const struct gov_cores *cores,
                   struct gov_cores_now *ret);

/* What governs a group, by its first core. */
struct gov_clock {
    int64_t policy;            /* number of the cpufreq policy, -1: none known */
    const char *governor;      /* borrowed from the snapshot or the topology; "" unknown */
    uint64_t now_khz, max_khz; /* now, and the hardware's best; 0: unknown */
};

/** gov_clock_of() - from @s if it has a policy of these cores (NULL: no snapshot), else as @t
 * was read. */
struct gov_clock gov_clock_of(const struct gov_snapshot *s, const struct gov_topology *t,
                              const struct gov_cores *cores);

struct gov_machine_state {
    char eps[4096];       /* "big:0-3;little:4-7" */
    char governors[2048]; /* "big:schedutil:2400000;...": governor and best frequency in kHz */
    /* "big:1493;...quota:1.5": limits in MHz and the quota in CPUs, as far as they are known.
     * Limits are rounded to exp(0.05 n), so that limits nearer than about 5 % are one. */
    char limits[1024];
    uint64_t id; /* FNV-1a of the three; never 0 */
};

/**
 * gov_machine_state() - the state that @cores are in
 * @s: NULL: governors are as @t has them, limits and quota unknown. @t: for cores without a policy
 * in @s. Text that does not fit is cut.
 */
void gov_machine_state(const struct gov_snapshot *s, const struct gov_topology *t,
                       const struct gov_cores *cores, size_t count, struct gov_machine_state *ret);

/** gov_quota_cpus() - CPUs' worth of time that the control group allows; 0: all, or unknown. */
double gov_quota_cpus(const struct gov_snapshot *s);

/** gov_topology_ep() - what the topology says of the EP that @cpu is in; NULL: nothing. */
const struct gov_ep *gov_topology_ep(const struct gov_topology *t, uint16_t cpu);
