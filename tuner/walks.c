/* SPDX-License-Identifier: Apache-2.0 */
#include "base.h"
#include "tuner/search_private.h"

static int start(struct tun_search *s)
{
    (void)s;
    return -ENOSYS;
}

const struct tun_algorithm tun_hill_climbing = {.name = "hill-climbing", .start = start};

const struct tun_algorithm tun_hill_climbing_seeded = {.name = "hill-climbing-seeded",
                                                       .start = start};

const struct tun_algorithm tun_annealing = {.name = "annealing", .start = start};

const struct tun_algorithm tun_annealing_seeded = {.name = "annealing-seeded", .start = start};
