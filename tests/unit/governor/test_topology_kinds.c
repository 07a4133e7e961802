/* SPDX-License-Identifier: Apache-2.0 */
/* Which cores are of one kind, how kinds are ranked and named, and why. */
#include "tests/harness.h"
#include "tests/unit/governor/topologies.h"

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
    T_STR(cpu_of(t, 1)->why, "core of big");
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
    T_STR(cpu_of(t, 0)->why, "core of little");
}

/* Capacities are relative to the fastest core of the machine, whether it can be used or not. */
TEST(little_stays_little_without_big)
{
    const struct gov_topology *t =
        read_tree("present = 0-3\nonline = 2-3\n[2-3] cpu_capacity = 307\n");

    T_STR(eps_text(t), "little:2,3");
    T_STR(t->eps[0].kind, "little");
    T_NEAR(t->eps[0].speed, 1, 0);
    t = read_tree("present = 0-7\nonline = 0-6\n[0-3] cpu_capacity = 250\n"
                  "[4-6] cpu_capacity = 780\n");
    T_STR(eps_text(t), "mid:4,5,6 little:0,1,2,3");
    t = read_tree("present = 0-3\nonline = 2-3\n[0-1] cpu_capacity = 1024\n"
                  "[2-3] cpu_capacity = 307\n"); /* as older kernels tell of cores offline */
    T_STR(eps_text(t), "little:2,3");
    /* little cores that went leave big ones */
    t = read_tree("present = 0-3\nonline = 0-1\n[0-1] cpu_capacity = 1000\n");
    T_STR(eps_text(t), "big:0,1");
    /* nothing is missing: the fastest there is */
    t = read_tree("present = 0-1\nonline = 0-1\n[0-1] cpu_capacity = 500\n");
    T_STR(eps_text(t), "big:0,1");
}

/* Equal cores in two clusters, one of which is clocked lower: the part number tells nothing. */
TEST(the_reason_is_what_tells_apart)
{
    const struct gov_topology *t =
        read_tree("present = 0-3\nonline = 0-3\n[0-1] cpu_capacity = 1024\n"
                  "[2-3] cpu_capacity = 307\n"
                  "[0-3] regs/identification/midr_el1 = 0x00000000410fd034\n");

    T_STR(eps_text(t), "big:0,1 little:2,3");
    T_STR(t->eps[0].why, "told apart by cpu_capacity, capacity 1024");
    T_STR(t->eps[1].why, "told apart by cpu_capacity, capacity 307");
    t = read_tree("present = 0-3\nonline = 0-3\n[0-1] cpu_capacity = 1024\n"
                  "[2-3] cpu_capacity = 307\n"
                  "[0-1] regs/identification/midr_el1 = 0x00000000410fd080\n"
                  "[2-3] regs/identification/midr_el1 = 0x00000000410fd034\n");
    T_STR(t->eps[1].why, "core part 0xd03 of MIDR_EL1, capacity 307");
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
    T_CONTAINS(cpu_of(t, 1)->why, "second thread of the core of CPU 0");
    T_CONTAINS(cpu_of(t, 3)->why, "CPU 2");
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

TEST_MAIN()
