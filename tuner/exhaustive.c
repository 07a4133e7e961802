/* SPDX-License-Identifier: Apache-2.0 */
#include "base.h"
#include "tuner/search_private.h"

static int start(struct tun_search *s)
{
    (void)s;
    return -ENOSYS;
}

const struct tun_algorithm tun_exhaustive = {.name = "exhaustive", .start = start};

const struct tun_algorithm tun_random_walk = {.name = "random", .start = start};
