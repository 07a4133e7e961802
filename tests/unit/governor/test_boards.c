/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/harness.h"
#include "tests/unit/governor/boards.h"
#include "tests/unit/governor/topologies.h"

TEST(boards)
{
    for (enum board b = 0; b < BOARD_COUNT; b++) {
        tree_auto struct tree tree = board_new(b);
        const struct gov_topology *t = read_topology(&tree);

        T_STR(eps_text(t), board_eps[b]);
        for (size_t i = 0; i < t->cpu_count; i++) {
            T_TRUE(t->cpus[i].why[0] != '\0');
        }
        for (size_t e = 0; e < t->ep_count; e++) {
            T_TRUE(t->eps[e].why[0] != '\0');
            T_TRUE(t->eps[e].policy >= 0 && t->eps[e].max_freq_khz > 0 && t->eps[e].freq_khz > 0);
            T_TRUE(t->eps[e].speed > 0 && t->eps[e].speed <= 1);
        }
    }
}

/* Equal best frequencies and no capacities: nobody knows yet which kind is faster. */
TEST(tx2_kinds_are_told_by_part)
{
    tree_auto struct tree tree = board_new(BOARD_TX2);
    const struct gov_topology *t = read_topology(&tree);

    T_CONTAINS(t->eps[0].why, "0xd07");
    T_CONTAINS(t->eps[1].why, "0x3");
    T_NEAR(t->eps[1].speed, 1, 0);
    T_EQ(t->eps[1].policy, 1);
}

TEST(numa_nodes_of_chiplets)
{
    tree_auto struct tree tree = board_new(BOARD_CHIPLETS);
    const struct gov_topology *t = read_topology(&tree);

    T_EQ(t->eps[1].node, 0);
    T_EQ(t->eps[2].node, 1);
    T_STR(t->eps[3].kind, "big");
    T_CONTAINS(cpu_of(t, 17)->why, "second thread of the core of CPU 1");
}

static void allow(const struct tree *tree, const char *list)
{
    char text[128];

    snprintf(text, sizeof(text), "Name:\tpiped\nCpus_allowed:\tff\nCpus_allowed_list:\t%s", list);
    tree_put(tree, "/proc/self/status", text);
}

TEST(places_are_restricted_to_what_was_given)
{
    tree_auto struct tree tree = board_new(BOARD_RK3588);

    allow(&tree, "2-5");
    const struct gov_topology *t = read_topology(&tree);
    T_STR(eps_text(t), "big:4,5 little:2,3");
    T_TRUE(!cpu_of(t, 7)->used && cpu_of(t, 7)->online);
    T_STR(cpu_of(t, 7)->why, "outside the CPU set of this process");
    allow(&tree, "6");
    T_STR(eps_text(read_topology(&tree)), "big:6");
    allow(&tree, "0-3");
    T_STR(eps_text(read_topology(&tree)), "little:0,1,2,3");
    allow(&tree, "sixty");
    T_STR(eps_text(read_topology(&tree)), board_eps[BOARD_RK3588]);
}

/* A second thread alone is a core. */
TEST(hybrid_with_second_threads_only)
{
    tree_auto struct tree tree = board_new(BOARD_HYBRID);

    allow(&tree, "1,3,8");
    const struct gov_topology *t = read_topology(&tree);
    T_STR(eps_text(t), "big:1,3 little:8");
    T_STR(cpu_of(t, 1)->why, "core of big");
}

TEST(isolated_cores)
{
    tree_auto struct tree tree = board_new(BOARD_HIKEY970);

    tree_put(&tree, "isolated", "6-7");
    const struct gov_topology *t = read_topology(&tree);
    T_STR(eps_text(t), "big:4,5 little:0,1,2,3");
    T_CONTAINS(cpu_of(t, 6)->why, "isolated by the kernel");
    allow(&tree, "0-7");
    t = read_topology(&tree);
    T_STR(eps_text(t), board_eps[BOARD_HIKEY970]);
    T_CONTAINS(cpu_of(t, 6)->why, "isolated from other programs");
}

TEST(cores_that_went_away)
{
    tree_auto struct tree tree = board_new(BOARD_HIKEY970);

    tree_put(&tree, "online", "0-4");
    const struct gov_topology *t = read_topology(&tree);
    T_STR(eps_text(t), "big:4 little:0,1,2,3");
    T_STR(cpu_of(t, 5)->why, "offline");
    tree_put(&tree, "online", "0-3");
    T_STR(eps_text(read_topology(&tree)), "big:0,1,2,3");
}

TEST_MAIN()
