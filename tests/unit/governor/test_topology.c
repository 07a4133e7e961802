/* SPDX-License-Identifier: Apache-2.0 */
#include <sched.h>

#include "governor/topology.h"
#include "tests/harness.h"
#include "tests/unit/governor/tree.h"

/* "big:0,1 little:2,3" */
static const char *eps_text(const struct gov_topology *t)
{
    static char text[8192];
    size_t used = 0;

    text[0] = '\0';
    for (size_t e = 0; e < t->ep_count; e++) {
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s:", e ? " " : "",
                                 t->eps[e].name);
        for (size_t i = 0; i < t->eps[e].cpu_count; i++) {
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%u", i ? "," : "",
                                     t->eps[e].cpus[i]);
        }
    }
    return text;
}

static const char *why(const struct gov_topology *t, unsigned cpu)
{
    for (size_t i = 0; i < t->cpu_count; i++) {
        if (t->cpus[i].cpu == cpu) {
            return t->cpus[i].why;
        }
    }
    return "no such CPU";
}

static const struct gov_topology *read_tree(const char *description)
{
    static struct gov_topology topology;
    tree_auto struct tree t = tree_new(description);

    memset(&topology, 0x5a, sizeof(topology));
    if (gov_topology_read(t.root, &topology) != 0) {
        abort();
    }
    return &topology;
}

#define EQUAL_TWO                                                                                  \
    "present = 0-1\nonline = 0-1\n"                                                                \
    "[0] topology/core_cpus_list = 0\n[1] topology/core_cpus_list = 1\n"                           \
    "[0] topology/cluster_cpus_list = 0\n[1] topology/cluster_cpus_list = 1\n"                     \
    "[0] cache/index2/level = 2\n[0] cache/index2/type = Unified\n"                                \
    "[0] cache/index2/shared_cpu_list = 0\n[1] cache/index2/level = 2\n"                           \
    "[1] cache/index2/type = Unified\n[1] cache/index2/shared_cpu_list = 1\n"

TEST(two_equal_cores)
{
    const struct gov_topology *t = read_tree(EQUAL_TWO "[0-1] cpu_capacity = 1024");

    T_STR(eps_text(t), "big:0,1");
    T_STR(t->eps[0].kind, "big");
    T_EQ(t->eps[0].capacity, 1024);
    T_EQ(t->eps[0].policy, -1);
    T_EQ(t->eps[0].node, -1);
    T_NEAR(t->eps[0].speed, 1, 0);
    T_EQ(t->cpu_count, 2);
    T_TRUE(t->cpus[1].used && t->cpus[1].online);
    T_STR(why(t, 1), "core of big");
}

TEST(nothing_but_a_list)
{
    T_STR(eps_text(read_tree("present = 0-3")), "big:0,1,2,3");
    T_STR(eps_text(read_tree("possible = 0-1")), "big:0,1");
    T_STR(eps_text(read_tree("online = 0-2")), "big:0,1,2");
}

#define BIG_LITTLE                                                                                 \
    "present = 0-7\nonline = 0-7\n"                                                                \
    "[0-3] cpu_capacity = 381\n[4-7] cpu_capacity = 1024\n"                                        \
    "[0-3] topology/cluster_cpus_list = 0-3\n[4-7] topology/cluster_cpus_list = 4-7\n"             \
    "[0-3] topology/package_cpus_list = 0-7\n[4-7] topology/package_cpus_list = 0-7\n"             \
    "cpufreq/policy0/related_cpus = 0 1 2 3\ncpufreq/policy0/scaling_governor = ondemand\n"        \
    "cpufreq/policy0/scaling_cur_freq = 600000\ncpufreq/policy0/cpuinfo_max_freq = 1400000\n"      \
    "cpufreq/policy4/related_cpus = 4 5 6 7\ncpufreq/policy4/scaling_governor = powersave\n"       \
    "cpufreq/policy4/scaling_cur_freq = 200000\ncpufreq/policy4/cpuinfo_max_freq = 2000000\n"

TEST(big_little)
{
    const struct gov_topology *t = read_tree(BIG_LITTLE);

    T_STR(eps_text(t), "big:4,5,6,7 little:0,1,2,3");
    T_EQ(t->eps[0].policy, 4);
    T_STR(t->eps[0].governor, "powersave");
    T_EQ(t->eps[0].freq_khz, 200000);
    T_EQ(t->eps[0].max_freq_khz, 2000000);
    T_EQ(t->eps[1].policy, 0);
    T_STR(t->eps[1].governor, "ondemand");
    T_EQ(t->eps[1].capacity, 381);
    T_NEAR(t->eps[1].speed, 381.0 / 1024, 1e-12);
    T_CONTAINS(t->eps[1].why, "cpu_capacity");
    T_STR(why(t, 0), "core of little");
}

TEST(frequencies_are_refreshed)
{
    static struct gov_topology t;
    tree_auto struct tree tree = tree_new(BIG_LITTLE);

    T_EQ(gov_topology_read(tree.root, &t), 0);
    tree_put(&tree, "cpufreq/policy4/scaling_governor", "performance");
    tree_put(&tree, "cpufreq/policy4/scaling_cur_freq", "2000000");
    tree_put(&tree, "cpufreq/policy0/scaling_cur_freq", "fast");
    T_EQ(remove(tree_path(&tree, "cpufreq/policy0/scaling_governor")), 0);
    gov_topology_update_freq(tree.root, &t);
    T_STR(t.eps[0].governor, "performance");
    T_EQ(t.eps[0].freq_khz, 2000000);
    T_STR(t.eps[1].governor, "");
    T_EQ(t.eps[1].freq_khz, 0);
    T_EQ(t.eps[1].max_freq_khz, 1400000);
}

/* One prime core, three big, four little (all behind one shared level 3 cache). */
TEST(three_clusters)
{
    const struct gov_topology *t = read_tree(
        "present = 0-7\nonline = 0-7\n[0-3] cpu_capacity = 250\n[4-6] cpu_capacity = 780\n"
        "[7] cpu_capacity = 1024\n[0-7] cache/index3/level = 3\n[0-7] cache/index3/type = Unified\n"
        "[0-7] cache/index3/shared_cpu_list = 0-7\n");

    T_STR(eps_text(t), "big:7 mid:4,5,6 little:0,1,2,3");
    T_STR(t->eps[1].kind, "mid");
}

TEST(four_kinds)
{
    const struct gov_topology *t =
        read_tree("present = 0-7\nonline = 0-7\n[0-1] cpu_capacity = 250\n"
                  "[2-4] cpu_capacity = 600\n[5-6] cpu_capacity = 800\n[7] cpu_capacity = 1024\n");

    T_STR(eps_text(t), "big:7 mid:5,6 mid2:2,3,4 little:0,1");
}

/* An EP of "mid" must not take the name of the kind "mid2". */
TEST(names_are_unique)
{
    const struct gov_topology *t = read_tree(
        "present = 0-9\nonline = 0-9\n[0-1] cpu_capacity = 250\n[2-3] cpu_capacity = 600\n"
        "[4-7] cpu_capacity = 800\n[8-9] cpu_capacity = 1024\n"
        "[0-1] topology/cluster_cpus_list = 0-1\n[2-3] topology/cluster_cpus_list = 2-3\n"
        "[4-5] topology/cluster_cpus_list = 4-5\n[6-7] topology/cluster_cpus_list = 6-7\n"
        "[8-9] topology/cluster_cpus_list = 8-9\n");

    T_STR(eps_text(t), "big:8,9 mid:4,5 mid1:6,7 mid2:2,3 little:0,1");
    t = read_tree(
        "present = 0-11\nonline = 0-11\n[0-1] cpu_capacity = 250\n[2-3] cpu_capacity = 600\n"
        "[4-9] cpu_capacity = 800\n[10-11] cpu_capacity = 1024\n"
        "[0-1] topology/cluster_cpus_list = 0-1\n[2-3] topology/cluster_cpus_list = 2-3\n"
        "[4-5] topology/cluster_cpus_list = 4-5\n[6-7] topology/cluster_cpus_list = 6-7\n"
        "[8-9] topology/cluster_cpus_list = 8-9\n[10-11] topology/cluster_cpus_list = 10-11\n");
    for (size_t a = 0; a < t->ep_count; a++) {
        for (size_t b = 0; b < a; b++) {
            T_TRUE(strcmp(t->eps[a].name, t->eps[b].name) != 0);
        }
    }
}

/* 2 performance cores with two threads each, 4 efficient ones, and a frequency for the ranking. */
#define HYBRID                                                                                     \
    "present = 0-7\nonline = 0-7\n/sys/devices/cpu_core/cpus = 0-3\n"                              \
    "/sys/devices/cpu_atom/cpus = 4-7\n[0-1] topology/core_cpus_list = 0-1\n"                      \
    "[2-3] topology/core_cpus_list = 2-3\n[4] topology/core_cpus_list = 4\n"                       \
    "[5] topology/core_cpus_list = 5\n[6] topology/core_cpus_list = 6\n"                           \
    "[7] topology/core_cpus_list = 7\n[0-1] topology/cluster_cpus_list = 0-1\n"                    \
    "[2-3] topology/cluster_cpus_list = 2-3\n[4-7] topology/cluster_cpus_list = 4-7\n"             \
    "[0-7] cache/index0/level = 1\n[0-7] cache/index0/type = Data\n"                               \
    "[0-7] cache/index3/level = 3\n[0-7] cache/index3/type = Unified\n"                            \
    "[0-7] cache/index3/shared_cpu_list = 0-7\n"

TEST(intel_hybrid)
{
    const struct gov_topology *t = read_tree(HYBRID "cpufreq/policy0/cpuinfo_max_freq = 5000000\n"
                                                    "cpufreq/policy2/cpuinfo_max_freq = 5000000\n"
                                                    "cpufreq/policy4/cpuinfo_max_freq = 3750000\n"
                                                    "cpufreq/policy4/related_cpus = 4 5 6 7");

    T_STR(eps_text(t), "big:0,2 little:4,5,6,7");
    T_CONTAINS(t->eps[0].why, "cpu_core");
    T_CONTAINS(why(t, 1), "second thread of the core of CPU 0");
    T_CONTAINS(why(t, 3), "CPU 2");
    T_TRUE(!t->cpus[1].used && t->cpus[1].online);
    T_NEAR(t->eps[1].speed, 0.75, 1e-12);
    T_EQ(t->eps[1].policy, 4);
}

/* Low-power efficient cores have no level 3 cache: a kind of their own. */
TEST(low_power_cores_without_level_3)
{
    const struct gov_topology *t =
        read_tree("present = 0-5\nonline = 0-5\n/sys/devices/cpu_core/cpus = 0-1\n"
                  "/sys/devices/cpu_atom/cpus = 2-5\n[0-5] cache/index2/level = 2\n"
                  "[0-3] cache/index3/level = 3\n[0-3] cache/index3/shared_cpu_list = 0-3\n"
                  "[4-5] cache/index2/shared_cpu_list = 4-5\n");

    T_STR(eps_text(t), "big:0,1 mid:2,3 little:4,5");
    T_CONTAINS(t->eps[2].why, "no level 3 cache");
}

/* The same core at another frequency is the same core: capacities a few percent apart. */
TEST(favoured_cores_are_no_kind)
{
    T_STR(eps_text(read_tree("present = 0-3\nonline = 0-3\n[0-2] cpu_capacity = 1004\n"
                             "[3] cpu_capacity = 1024\n")),
          "big:0,1,2,3");
}

TEST(frequency_alone_is_no_kind)
{
    const struct gov_topology *t =
        read_tree("present = 0-3\nonline = 0-3\ncpufreq/policy0/cpuinfo_max_freq = 1000000\n"
                  "cpufreq/policy0/related_cpus = 0 1\ncpufreq/policy2/related_cpus = 2 3\n"
                  "cpufreq/policy2/cpuinfo_max_freq = 3000000\n");

    T_STR(eps_text(t), "big:0,1,2,3");
}

/* arm64 without capacities: part numbers tell the kinds, frequency then ranks them. */
TEST(core_parts)
{
    const struct gov_topology *t =
        read_tree("present = 0-3\nonline = 0-3\n"
                  "[0-1] regs/identification/midr_el1 = 0x00000000410fd034\n"
                  "[2-3] regs/identification/midr_el1 = 0x00000000411fd0b1\n"
                  "cpufreq/policy0/related_cpus = 0 1\ncpufreq/policy0/cpuinfo_max_freq = 1400000\n"
                  "cpufreq/policy2/related_cpus = 2 3\ncpufreq/policy2/cpuinfo_max_freq = 2000000");

    T_STR(eps_text(t), "big:2,3 little:0,1");
    T_CONTAINS(t->eps[0].why, "0xd0b");
    T_NEAR(t->eps[1].speed, 0.7, 1e-12);
}

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

TEST(too_many_kinds)
{
    tree_auto struct tree t = tree_new("present = 0-39\nonline = 0-39\n");
    static struct gov_topology topology;
    char file[96], text[16];
    size_t cores = 0;

    for (unsigned cpu = 0; cpu < 40; cpu++) {
        snprintf(file, sizeof(file), "cpu%u/regs/identification/midr_el1", cpu);
        snprintf(text, sizeof(text), "0x%x", 0x41000000u | (cpu + 1) << 4);
        tree_put(&t, file, text);
    }
    T_EQ(gov_topology_read(t.root, &topology), 0);
    T_EQ(topology.ep_count, GOV_EP_MAX);
    for (size_t e = 0; e < topology.ep_count; e++) {
        cores += topology.eps[e].cpu_count;
    }
    T_EQ(cores, 40);
    T_STR(topology.eps[GOV_EP_MAX - 1].name, "little");
}

TEST(offline_cores)
{
    const struct gov_topology *t =
        read_tree("present = 0-3\nonline = 0,2-3\n[0] cpu_capacity = 1024\n"
                  "[2-3] cpu_capacity = 1024\n");

    T_STR(eps_text(t), "big:0,2,3");
    T_EQ(t->cpu_count, 4);
    T_TRUE(!t->cpus[1].online && !t->cpus[1].used);
    T_STR(why(t, 1), "offline");
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

TEST(every_file_garbled)
{
    static const char *garbage[] = {"-1", "999999999999", "0-8191", "banana", "1e9", "0,0,0", ""};

    for (size_t g = 0; g < base_array_count(garbage); g++) {
        static const char *files[] = {"cpu_capacity",
                                      "topology/core_cpus_list",
                                      "topology/cluster_cpus_list",
                                      "topology/package_cpus_list",
                                      "cache/index0/level",
                                      "cache/index0/type",
                                      "cache/index0/shared_cpu_list",
                                      "regs/identification/midr_el1"};
        tree_auto struct tree t = tree_new("present = 0-1\nonline = 0-1\n");
        static struct gov_topology topology;
        char file[96];

        for (size_t i = 0; i < 2 * base_array_count(files); i++) {
            snprintf(file, sizeof(file), "cpu%zu/%s", i % 2, files[i / 2]);
            tree_put(&t, file, garbage[g]);
        }
        tree_put(&t, "/sys/devices/system/node/online", garbage[g]);
        tree_put(&t, "/sys/devices/system/node/node0/cpulist", garbage[g]);
        tree_put(&t, "/sys/devices/cpu_core/cpus", garbage[g]);
        tree_put(&t, "/sys/devices/cpu_atom/cpus", garbage[g]);
        tree_put(&t, "cpufreq/policy0/related_cpus", garbage[g]);
        tree_put(&t, "cpufreq/policy0/cpuinfo_max_freq", garbage[g]);
        T_EQ(gov_topology_read(t.root, &topology), 0);
        T_STR(eps_text(&topology), "big:0,1");
    }
}

TEST(one_garbled_core)
{
    T_STR(eps_text(read_tree(EQUAL_TWO "[0] cpu_capacity = 1024\n[1] cpu_capacity = ~\n")),
          "big:0,1");
    T_STR(eps_text(read_tree("present = 0-3\nonline = 0-3\n[0-1] cpu_capacity = 300\n"
                             "[2] cpu_capacity = 1024\n[3] cpu_capacity = -5\n"
                             "[0-1] topology/cluster_cpus_list = 0-1\n"
                             "[2-3] topology/cluster_cpus_list = 2-3\n")),
          "big:2,3 little:0,1");
    /* CPU 0 claims everybody; nobody agrees. */
    T_STR(eps_text(read_tree("present = 0-3\nonline = 0-3\n[0] topology/core_cpus_list = 0-3\n"
                             "[1] topology/core_cpus_list = 1\n[2] topology/core_cpus_list = 2\n"
                             "[3] topology/core_cpus_list = 3\n")),
          "big:0,1,2,3");
}

TEST(garbled_lists_of_cpus)
{
    static struct gov_topology t;
    tree_auto struct tree empty = tree_new("other = 1");
    tree_auto struct tree none = tree_new("present = 0-3\nonline = 9\n");
    tree_auto struct tree many = tree_new("present = 0-8191\nonline = 0-8191\n");
    tree_auto struct tree words = tree_new("present = many\nonline = some\npossible = all\n");

    T_EQ(gov_topology_read(empty.root, &t), 0);
    T_STR(eps_text(&t), "big:0");
    T_EQ(gov_topology_read(none.root, &t), 0);
    T_STR(eps_text(&t), "big:0");
    T_EQ(gov_topology_read(words.root, &t), 0);
    T_STR(eps_text(&t), "big:0");
    T_EQ(gov_topology_read("/nonexistent/tree", &t), 0);
    T_STR(eps_text(&t), "big:0");
    T_EQ(gov_topology_read(many.root, &t), 0);
    T_EQ(t.cpu_count, GOV_CPU_MAX);
    T_EQ(t.eps[0].cpu_count, GOV_CPU_MAX);
}

TEST(odd_files_do_not_hold_it)
{
    static struct gov_topology t;
    tree_auto struct tree tree = tree_new("present = 0-1\n");

    T_EQ(mkfifo(tree_path(&tree, "online"), 0644), 0);
    T_EQ(mkfifo(tree_path(&tree, "cpu0/cpu_capacity"), 0644), 0);
    T_EQ(mkdir(tree_path(&tree, "cpu1/cpu_capacity"), 0755), 0);
    T_EQ(symlink("/dev/zero", tree_path(&tree, "cpu0/cache/index0/level")), 0);
    T_EQ(gov_topology_read(tree.root, &t), 0);
    T_STR(eps_text(&t), "big:0,1");
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
