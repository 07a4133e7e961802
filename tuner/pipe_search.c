/* SPDX-License-Identifier: Apache-2.0 */
#include "base.h"
#include "tuner/search_private.h"

static int start(struct tun_search *s)
{
    (void)s;
    return -ENOSYS;
}

const struct tun_algorithm tun_pipe_search = {.name = "pipe-search", .start = start};

const struct tun_algorithm tun_pipe_search_database = {.name = "pipe-search-database",
                                                       .start = start};
