/* SPDX-License-Identifier: Apache-2.0 */
/* Fetches that get no answer, no room, no store, or are not wanted any more. */
#include "tests/unit/ipc/fetch_rig.h"

/* A message that is lost although the peer stays. */
TEST(silence)
{
    struct goal g;

    start(0);
    wire.lose = 1;
    T_EQ(begin(1, &file[0], "0-2", &g), 0);
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < TURNS && wire.lost <= (unsigned)k; i++) {
            links_turn();
        }
        links_turn();
        links_turn();
        T_EQ(wire.lost, (unsigned)k + 1);
        links_pass(31 * BASE_NS_PER_S);
    }
    wire.lose = 0;
    run(&g);
    T_EQ(g.status, 0);
    finish();
}

TEST(no_room)
{
    struct goal g;

    start(3 * LEAF + LEAF / 2);
    T_EQ(begin(1, &file[0], "", &g), 0);
    run(&g);
    T_EQ(g.status, PIPED_RESOURCE_EXHAUSTED);
    T_CONTAINS(g.said, "3 MB");
    T_EQ(wire.leaves, 0u);
    T_EQ(begin(1, &file[0], "0-2", &g), 0);
    run(&g);
    T_EQ(g.status, 0);
    /* the file is in use until it is released */
    T_EQ(begin(1, &file[1], "0-1", &g), 0);
    run(&g);
    T_EQ(g.status, PIPED_RESOURCE_EXHAUSTED);
    fetch_release(&node[1].link, file[0].identity);
    T_EQ(begin(1, &file[1], "0-1", &g), 0);
    run(&g);
    T_EQ(g.status, 0);
    T_EQ(marked(g.said), 2);
    finish();
}

/* The head's transport is full of borders. */
TEST(back_pressure)
{
    uint64_t *queued = &node[0].base.peer[0].queued_bytes;
    struct goal g;

    start(0);
    wire.queue_bytes_max = 2 * LEAF;
    *queued += 2 * LEAF;
    T_EQ(begin(1, &file[0], "", &g), 0);
    for (int i = 0; i < TURNS && wire.full < 3; i++) {
        links_turn();
    }
    T_EQ(wire.full, 3u);
    T_EQ(wire.lists, 0u);
    *queued -= 2 * LEAF;
    run(&g);
    T_EQ(g.status, 0);
    T_EQ(wire.leaves, file[0].leaves.count);
    finish();
}

TEST(no_store)
{
    char path[300];
    struct goal g;

    start(0);
    snprintf(path, sizeof(path), "%s/1", folder);
    leaf_remove_all(path);
    T_EQ(begin(1, &file[0], "", &g), 0);
    run(&g);
    T_EQ(g.status, PIPED_INTERNAL);
    T_CONTAINS(g.said, "No such file");
    mkdir(path, 0755);
    T_EQ(begin(1, &file[0], "0", &g), 0);
    run(&g);
    T_EQ(g.status, 0);
    finish();
}

TEST(cancelled)
{
    struct goal g, other;

    start(0);
    T_EQ(begin(1, &file[0], "", &g), 0);
    T_EQ(begin(1, &file[0], "0-1", &other), 0);
    while (wire.leaves < 1) {
        links_turn();
    }
    fetch_cancel(&node[1].link, &g);
    run(&other);
    T_EQ(other.status, 0);
    T_EQ(begin(1, &file[1], "", &other), 0);
    for (int i = 0; i < 10; i++) {
        links_turn();
    }
    fetch_cancel(&node[1].link, &other);
    T_EQ(begin(1, &file[2], "", &other), 0);
    run(&other);
    T_EQ(g.times, 0);
    T_EQ(other.times, 1);
    T_EQ(begin(1, &file[1], "", &other), 0); /* and all ends under way */
    links_turn();
    finish();
    T_EQ(other.times, 0);
}

/* A leaf that rots on the disk is fetched again by the next process. */
TEST(damage_at_rest)
{
    struct goal g;
    int fd;

    start(0);
    T_EQ(begin(1, &file[0], "0-2", &g), 0);
    run(&g);
    fd = open(g.said, O_WRONLY | O_CLOEXEC);
    T_EQ(pwrite(fd, "x", 1, LEAF + 1), 1);
    close(fd);
    links_restart(1);
    T_EQ(begin(1, &file[0], "0-3", &g), 0);
    run(&g);
    T_EQ(g.status, 0);
    T_EQ(marked(g.said), 4);
    T_EQ(wire.leaves, 5u);
    finish();
}
