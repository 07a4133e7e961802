/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/unit/governor/probe.h - reads the sensors of a tree on a clock that the test moves
 */
#pragma once

#include "governor/sensors.h"
#include "tests/unit/governor/tree.h"

/* Where a tree has its frequency policies and its thermal zones and cooling devices. */
#define POLICY "cpufreq/policy"
#define THERMAL "/sys/class/thermal/"

struct probe {
    struct gov_sensors *sensors; /* owned */
    uint64_t now_ns;
    struct gov_snapshot s; /* the newest */
};

/** probe_new() - opens the sensors of @t and takes the first sample, at 100 s. Exits the test on
 * failure. Return: owned by the caller, see probe_auto. */
struct probe *probe_new(const struct tree *t);
void probe_free(struct probe **p);
#define probe_auto base_cleanup(probe_free)

/** probe_sample() - takes @count samples, 200 ms apart. */
void probe_sample(struct probe *p, unsigned count);

/** probe_policy(), probe_source() - of the newest snapshot, by number and by name. Return: an empty
 * one if there is none; borrowed from @p until the next sample. */
const struct gov_policy *probe_policy(const struct probe *p, uint32_t number);
const struct gov_energy_source *probe_source(const struct probe *p, const char *name);
