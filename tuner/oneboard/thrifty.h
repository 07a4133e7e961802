/* SPDX-License-Identifier: Apache-2.0 */
/** tuner/oneboard/thrifty.h - the least energy with bounds on both period and latency */
#pragma once

#include "tuner/oneboard/solution.h"

/** tun_thrifty() - Return: as tun_second(). @ret_cut: partial plans were left out, so the answer
 * may not be the best; written only then. */
int tun_thrifty(const struct tun_space *s, double period_ns, double latency_ns,
                struct tun_path *ret, bool *ret_cut);
