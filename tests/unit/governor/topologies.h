/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/unit/governor/topologies.h - reads the topology of a tree and says what was found
 */
#pragma once

#include "governor/topology.h"
#include "tests/unit/governor/tree.h"

/* A tree of two equal cores, each with a level 2 cache of its own. */
#define EQUAL_TWO                                                                                  \
    "present = 0-1\nonline = 0-1\n"                                                                \
    "[0] topology/core_cpus_list = 0\n[1] topology/core_cpus_list = 1\n"                           \
    "[0] topology/cluster_cpus_list = 0\n[1] topology/cluster_cpus_list = 1\n"                     \
    "[0] cache/index2/level = 2\n[0] cache/index2/type = Unified\n"                                \
    "[0] cache/index2/shared_cpu_list = 0\n[1] cache/index2/level = 2\n"                           \
    "[1] cache/index2/type = Unified\n[1] cache/index2/shared_cpu_list = 1\n"

/** read_topology(), read_tree() - of a tree, or of one that is made from @description for it. Exit
 * the test on failure. Return: borrowed until the next of these calls. */
const struct gov_topology *read_topology(const struct tree *t);
const struct gov_topology *read_tree(const char *description);

/** eps_text() - the EPs and their CPUs. Return: "big:0,1 little:2,3", borrowed until the next
 * call. */
const char *eps_text(const struct gov_topology *t);

/** cpu_of() - CPU @number. Return: borrowed from @t; one whose reason says so if there is none. */
const struct gov_cpu *cpu_of(const struct gov_topology *t, unsigned number);
