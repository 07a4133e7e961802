/* SPDX-License-Identifier: Apache-2.0 */
/** apps/link/args.h - the command line of piped-link */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define EXIT_USAGE 2
#define EXIT_CONFIG 6 /* no keys, no boards: trying again does not help */

struct link;

struct link_args {
    const char *folder, *runtime, *listen, *name, *socket, *control, *models;
    uint64_t store_mb; /* 0: no limit */
    bool trusted_wire;
    double unused_s; /* see --unused-s */
};

/** link_args_take() - Return: 0; EXIT_USAGE; -1: help or the version was printed. */
int link_args_take(int argc, char **argv, struct link_args *ret);
/** link_args_daemon() - the paths of the daemon's sockets, which are beside each other. Return:
 * false: a path is too long. */
bool link_args_daemon(const struct link_args *a, struct link *l);
