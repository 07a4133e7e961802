/* SPDX-License-Identifier: Apache-2.0 */
/* Which cores share memory and caches, which are threads of one core, and which are to be had. */
#include <sched.h>

#include "tests/harness.h"
#include "tests/unit/governor/topologies.h"

TEST(two_numa_nodes)
{
    const struct gov_topology *t =
        read_tree("present = 0-3\nonline = 0-3\n/sys/devices/system/node/online = 0-1\n"
                  "/sys/devices/system/node/node0/cpulist = 0-1\n"
                  "/sys/devices/system/node/node1/cpulist = 2-3\n");

    T_STR(eps_text(t), "node0:0,1 node1:2,3");
    T_STR(t->eps[1].kind, "big");
    T_EQ(t->eps[1].node, 1);
    T_NEAR(t->eps[1].speed, 1, 0);
}

TEST(memory_only_node_is_ignored)
{
    T_STR(eps_text(read_tree("present = 0-1\nonline = 0-1\n/sys/devices/system/node/online = 0,2\n"
                             "/sys/devices/system/node/node0/cpulist = 0-1\n"
                             "/sys/devices/system/node/node2/cpulist = \n")),
          "big:0,1");
}

#define CHIPLETS                                                                                   \
    "present = 0-7\nonline = 0-7\n[0-7] cache/index3/level = 3\n"                                  \
    "[0-3] cache/index3/shared_cpu_list = 0-3\n[4-7] cache/index3/shared_cpu_list = 4-7\n"

TEST(chiplets)
{
    T_STR(eps_text(read_tree(CHIPLETS)), "big:0,1,2,3 big1:4,5,6,7");
    T_STR(eps_text(read_tree(CHIPLETS "/sys/devices/system/node/online = 0\n"
                                      "/sys/devices/system/node/node0/cpulist = 0-7\n")),
          "big:0,1,2,3 big1:4,5,6,7");
}

TEST(chiplets_in_two_nodes)
{
    T_STR(eps_text(read_tree("present = 0-7\nonline = 0-7\n[0-7] cache/index3/level = 3\n"
                             "[0-1] cache/index3/shared_cpu_list = 0-1\n"
                             "[2-3] cache/index3/shared_cpu_list = 2-3\n"
                             "[4-5] cache/index3/shared_cpu_list = 4-5\n"
                             "[6-7] cache/index3/shared_cpu_list = 6-7\n"
                             "/sys/devices/system/node/online = 0-1\n"
                             "/sys/devices/system/node/node0/cpulist = 0-3\n"
                             "/sys/devices/system/node/node1/cpulist = 4-7\n")),
          "big:0,1 big1:2,3 big2:4,5 big3:6,7");
}

/* More places than EPs may be: caches are given up, then nodes. */
TEST(too_many_places)
{
    tree_auto struct tree t = tree_new("present = 0-79\nonline = 0-79\n");
    static struct gov_topology topology;
    char file[96], list[16];

    for (unsigned cpu = 0; cpu < 80; cpu++) {
        snprintf(file, sizeof(file), "cpu%u/cache/index3/level", cpu);
        tree_put(&t, file, "3");
        snprintf(file, sizeof(file), "cpu%u/cache/index3/shared_cpu_list", cpu);
        snprintf(list, sizeof(list), "%u-%u", cpu & ~1u, cpu | 1u);
        tree_put(&t, file, list);
    }
    T_EQ(gov_topology_read(t.root, &topology), 0);
    T_EQ(topology.ep_count, 1);
    T_EQ(topology.eps[0].cpu_count, 80);
    tree_put(&t, "/sys/devices/system/node/online", "0-1");
    tree_put(&t, "/sys/devices/system/node/node0/cpulist", "0-39");
    tree_put(&t, "/sys/devices/system/node/node1/cpulist", "40-79");
    T_EQ(gov_topology_read(t.root, &topology), 0);
    T_EQ(topology.ep_count, 2);
    T_STR(topology.eps[1].name, "node1");
}

TEST(offline_cores)
{
    const struct gov_topology *t =
        read_tree("present = 0-3\nonline = 0,2-3\n[0] cpu_capacity = 1024\n"
                  "[2-3] cpu_capacity = 1024\n");

    T_STR(eps_text(t), "big:0,2,3");
    T_EQ(t->cpu_count, 4);
    T_TRUE(!t->cpus[1].online && !t->cpus[1].used);
    T_STR(cpu_of(t, 1)->why, "offline");
}

/* An offline first thread leaves the second one as the core. */
TEST(offline_sibling)
{
    T_STR(eps_text(read_tree("present = 0-3\nonline = 1-3\n[1] topology/core_cpus_list = 1\n"
                             "[2-3] topology/core_cpus_list = 2-3\n")),
          "big:1,2");
}

TEST(older_kernels_name_siblings_otherwise)
{
    T_STR(eps_text(read_tree("present = 0-3\nonline = 0-3\n"
                             "[0] topology/thread_siblings_list = 0,2\n"
                             "[2] topology/thread_siblings_list = 0,2\n"
                             "[1] topology/thread_siblings_list = 1,3\n"
                             "[3] topology/thread_siblings_list = 1,3\n")),
          "big:0,1");
}

/* This machine: every CPU that this thread may use is used or is the second thread of one. */
TEST(this_machine)
{
    static struct gov_topology t;
    cpu_set_t set, one;
    size_t used = 0, first = CPU_SETSIZE;

    T_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
    T_EQ(gov_topology_read("/", &t), 0);
    T_TRUE(t.ep_count >= 1);
    for (size_t i = 0; i < t.cpu_count; i++) {
        if (t.cpus[i].used) {
            T_TRUE(CPU_ISSET(t.cpus[i].cpu, &set));
            first = base_min(first, (size_t)t.cpus[i].cpu);
            used++;
        }
    }
    T_TRUE(used >= 1 && used <= (size_t)CPU_COUNT(&set));
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    T_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    T_EQ(gov_topology_read("/", &t), 0);
    T_EQ(sched_setaffinity(0, sizeof(set), &set), 0);
    T_EQ(t.ep_count, 1);
    T_EQ(t.eps[0].cpu_count, 1);
    T_EQ(t.eps[0].cpus[0], first);
    for (size_t i = 0; i < t.cpu_count; i++) {
        if (t.cpus[i].cpu != first && t.cpus[i].online) {
            T_TRUE(!t.cpus[i].used);
            T_STR(t.cpus[i].why, "outside the CPU set of this process");
        }
    }
}

TEST_MAIN()
