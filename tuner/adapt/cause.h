/* SPDX-License-Identifier: Apache-2.0 */
/** tuner/adapt/cause.h - what made a decision due */
#pragma once

#include "tuner/adapt/decision_record.h"

/* As `pipectl history` names them. */
enum tun_cause {
    TUN_CAUSE_NONE,
    TUN_CAUSE_GOVERNOR,
    TUN_CAUSE_FREQUENCY,
    TUN_CAUSE_THERMAL,
    TUN_CAUSE_CONTENTION,
    TUN_CAUSE_HOTPLUG,
    TUN_CAUSE_CPUSET,
    TUN_CAUSE_THROUGHPUT,
    TUN_CAUSE_GPIO,
    TUN_CAUSE_MEASURED, /* costs, so that another plan may be clearly better */
    TUN_CAUSE_COUNT
};
/** tun_cause_name() - "contention"; "none" for TUN_CAUSE_NONE and what is no cause. */
const char *tun_cause_name(enum tun_cause cause);

/** tun_cause_felt() - Return: the cause is known from measured times alone. */
bool tun_cause_felt(enum tun_cause cause);

/** tun_attribute() - what changed
 * @ret_ep: that it is about; SIZE_MAX: several or none
 * @ret_quota: set where the cgroup's quota made the contention */
enum tun_cause tun_attribute(const struct tun_record *r, size_t *ret_ep, bool *ret_quota);
