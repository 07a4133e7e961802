/* SPDX-License-Identifier: Apache-2.0 */
/* Files that make no sense: the cores are still found, as one EP if nothing tells them apart. */
#include "tests/harness.h"
#include "tests/unit/governor/topologies.h"

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

TEST_MAIN()
