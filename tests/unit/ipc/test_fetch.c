/* SPDX-License-Identifier: Apache-2.0 */
/* Weights by content, between boards on a wire that loses, reorders, doubles and changes leaves. */
#include "tests/unit/ipc/fetch_rig.h"

TEST(all_and_some)
{
    struct goal g;

    start(0);
    T_EQ(begin(1, &file[0], "1,3-4", &g), 0);
    T_EQ(g.times, 0);
    run(&g);
    T_EQ(g.times, 1);
    T_EQ(g.status, 0);
    T_EQ(marked(g.said), 3);
    T_EQ(wire.leaves, 3u);
    /* what is there is not asked for again */
    T_EQ(begin(1, &file[0], "0-2,4", &g), 0);
    run(&g);
    T_EQ(g.status, 0);
    T_EQ(wire.leaves, 5u);
    T_EQ(wire.lists, 1u);
    /* nor by another process; nothing is asked at all */
    links_restart(1);
    T_EQ(begin(1, &file[0], "", &g), 0);
    run(&g);
    T_EQ(g.status, 0);
    T_EQ(wire.leaves, file[0].leaves.count);
    links_restart(1);
    wire.wants = 0;
    T_EQ(begin(1, &file[0], "", &g), 0);
    links_cut(1); /* not even a link is needed */
    run(&g);
    T_EQ(g.status, 0);
    T_EQ(wire.wants, 0u);
    T_EQ(marked(g.said), file[0].leaves.count);
    finish();
}

TEST(leaves_that_are_none)
{
    static const char *const bad[] = {
        "x", "1-", "-1", "2-1", "1,,2", "1,", ",", "1 2", "99999999999999999999-3"};
    struct goal g;

    start(0);
    for (size_t i = 0; i < base_array_count(bad); i++) {
        T_EQ(begin(1, &file[0], bad[i], &g), -EINVAL);
    }
    T_EQ(fetch_begin(&node[1].link, BRD_MAX, file[0].identity, "", done, &g), -EINVAL);
    T_EQ(begin(1, &file[0], "0-5,4000", &g), 0);
    run(&g);
    T_EQ(g.status, PIPED_INVALID_ARGUMENT);
    T_EQ(wire.leaves, 0u);
    finish();
}

/* Two segments of one file, another file, another board: each leaf once for each board. */
TEST(several_at_once)
{
    struct goal g[4];

    start(0);
    T_EQ(begin(1, &file[0], "0-3", &g[0]), 0);
    T_EQ(begin(1, &file[0], "2-5", &g[1]), 0);
    T_EQ(begin(1, &file[1], "", &g[2]), 0);
    T_EQ(begin(2, &file[0], "", &g[3]), 0);
    for (size_t i = 0; i < 4; i++) {
        run(&g[i]);
        T_EQ(g[i].times, 1);
        T_EQ(g[i].status, 0);
    }
    T_STR(g[0].said, g[1].said);
    T_EQ(marked(g[0].said), 6);
    T_EQ(wire.leaves, 6 + file[1].leaves.count + file[0].leaves.count);
    T_EQ(wire.lists, 3u);
    finish();
}

TEST(wrong_leaves)
{
    struct goal g;

    start(0);
    wire.flip = 1; /* the list, too */
    T_EQ(begin(1, &file[0], "", &g), 0);
    run(&g);
    T_EQ(g.status, PIPED_PROTOCOL);
    T_CONTAINS(g.said, "leaf list");
    T_EQ(wire.lists, 3u);
    wire.flip = 0;
    T_EQ(begin(1, &file[0], "0", &g), 0);
    run(&g);
    T_EQ(g.status, 0);
    wire.flip = 1;
    wire.leaves = 0;
    T_EQ(begin(1, &file[0], "2", &g), 0);
    run(&g);
    T_EQ(g.status, PIPED_PROTOCOL);
    T_CONTAINS(g.said, "leaf 2");
    T_EQ(wire.leaves, 3u);
    wire.flip = 0; /* it may be tried again; two wrong ones are asked for again */
    T_EQ(begin(1, &file[0], "2-4", &g), 0);
    while (g.times == 0) {
        wire.flip = wire.flipped < 6 + 2 ? 1 : 0;
        links_turn();
    }
    T_EQ(wire.flipped, 8u);
    T_EQ(g.status, 0);
    T_EQ(marked(g.said), 4);
    finish();
}

/* What nobody asked for changes nothing. */
TEST(unasked)
{
    struct lnk_message m = {.header.type = LNK_LEAF};
    struct lnk_bytes part = {file[0].data, LEAF}, list = {file[0].list, file[0].list_bytes},
                     text = {"no", 2};
    struct goal g;

    start(0);
    memcpy(m.leaf.model, file[0].identity, LNK_HASH_BYTES);
    m.part = &part;
    fetch_leaf(&node[1].link, 0, &m); /* nothing is fetched */
    links_cut(2);
    T_EQ(begin(2, &file[0], "0-1", &g), 0); /* nothing was asked for yet */
    for (int i = 0; i < 50; i++) {
        links_turn();
        m.leaf.leaf = LNK_LEAF_LIST;
        m.part = &list;
        fetch_leaf(&node[2].link, 0, &m);
        m.leaf.leaf = LNK_LEAF_REFUSED;
        m.part = &text;
        fetch_leaf(&node[2].link, 0, &m);
        m.part = &part;
        for (m.leaf.leaf = 0; m.leaf.leaf < 8; m.leaf.leaf++) {
            fetch_leaf(&node[2].link, 0, &m);
        }
    }
    T_EQ(g.times, 0);
    links_join(2);
    wire.twice = 1;
    run(&g);
    T_EQ(g.status, 0);
    T_EQ(marked(g.said), 2);
    finish();
}

TEST(refusals)
{
    char away[300];
    struct goal g;
    FILE *f;

    start(0);
    snprintf(away, sizeof(away), "%s/away", folder);
    routed[0] = false;
    T_EQ(begin(1, &file[0], "", &g), 0);
    run(&g);
    T_EQ(g.status, PIPED_UNAVAILABLE);
    T_STR(g.said, "head: this board has no route of the model");
    routed[0] = true;
    T_EQ(begin(1, &file[0], "0-1", &g), 0);
    run(&g);
    T_EQ(g.status, 0);
    routed[0] = false; /* the route ends, leaves are missing */
    T_EQ(begin(1, &file[0], "0-2", &g), 0);
    run(&g);
    T_EQ(g.status, PIPED_UNAVAILABLE);
    /* the file changes in place */
    routed[0] = true;
    T_EQ(begin(1, &file[0], "2", &g), 0);
    run(&g);
    T_EQ(g.status, 0);
    f = fopen(file[0].path, "r+b");
    fseek(f, 3 * (long)LEAF + 9, SEEK_SET);
    fputc(file[0].data[3 * LEAF + 9] ^ 1, f);
    fclose(f);
    T_EQ(begin(1, &file[0], "3", &g), 0);
    run(&g);
    T_EQ(g.status, PIPED_UNAVAILABLE);
    T_CONTAINS(g.said, "has changed");
    f = fopen(file[0].path, "r+b");
    fseek(f, 3 * (long)LEAF + 9, SEEK_SET);
    fputc(file[0].data[3 * LEAF + 9], f);
    fclose(f);
    links_pass(11 * BASE_NS_PER_S); /* it is looked at again some time */
    links_turn();
    links_pass(1);
    T_EQ(begin(1, &file[0], "3", &g), 0);
    run(&g);
    T_EQ(g.status, 0);
    /* there is no such file */
    T_EQ(rename(file[1].path, away), 0);
    T_EQ(begin(1, &file[1], "3", &g), 0);
    run(&g);
    T_EQ(rename(away, file[1].path), 0);
    T_EQ(g.status, PIPED_UNAVAILABLE);
    T_CONTAINS(g.said, "No such file");
    finish();
}

/* A file that is open is that of the route, whatever takes its name. */
TEST(a_file_that_is_replaced)
{
    struct goal g;
    char away[300];

    start(0);
    snprintf(away, sizeof(away), "%s.away", file[0].path);
    T_EQ(begin(1, &file[0], "0", &g), 0);
    run(&g);
    T_EQ(rename(file[0].path, away), 0);
    T_EQ(begin(1, &file[0], "1-2", &g), 0);
    run(&g);
    T_EQ(rename(away, file[0].path), 0);
    T_EQ(g.status, 0);
    finish();
}

TEST(a_peer_comes_and_goes)
{
    struct goal g;

    start(0);
    links_cut(1);
    T_EQ(begin(1, &file[0], "", &g), 0);
    for (int i = 0; i < 20; i++) {
        links_turn();
    }
    links_join(1);
    for (unsigned seen = 1; g.times == 0; seen++) {
        while (g.times == 0 && wire.leaves < seen) {
            links_turn();
        }
        links_cut(1);
        links_turn();
        links_turn();
        links_join(1);
    }
    T_EQ(g.status, 0);
    T_EQ(marked(g.said), file[0].leaves.count);
    /* a leaf that came was kept */
    T_LE(wire.leaves, file[0].leaves.count + 1);
    T_EQ(wire.lists, 1u);
    finish();
}

/* Anything at any time: every fetch ends once, well or with too many wrong leaves. */
static void at_random(void)
{
    struct goal g[4];
    const struct leaf_file *of[4];
    size_t board[4];
    bool again;

    start(0);
    wire.flip = t_random() % 2 ? 25 : 0;
    wire.twice = t_random() % 2 ? 3 : 0;
    wire.any_order = t_random() % 2;
    wire.queue_bytes_max = t_random() % 2 ? 2 * LEAF : 0;
    wire.lose = t_random() % 2 ? 20 : 0;
    for (size_t i = 0; i < 4; i++) {
        char leaves[32];
        int first = (int)t_range(0, 6);

        of[i] = &file[t_range(0, FILES - 1)];
        board[i] = (size_t)t_range(1, 2);
        snprintf(leaves, sizeof(leaves), "%d-%d", first, (int)t_range(first, 6));
        T_EQ(begin(board[i], of[i], leaves, &g[i]), 0);
    }
    for (int turn = 0; turn < TURNS; turn++) {
        bool all = true;

        again = links_turn();
        for (size_t i = 0; i < 4; i++) {
            all &= g[i].times > 0;
        }
        if (all) {
            break;
        }
        if (t_random() % 40 == 0) {
            size_t i = (size_t)t_range(1, 2);

            links_cut(i);
            links_turn();
            links_join(i);
        }
        links_pass(again ? BASE_NS_PER_MS : BASE_NS_PER_S);
    }
    for (size_t i = 0; i < 4; i++) {
        T_EQ(g[i].times, 1);
        T_TRUE(g[i].status == 0 || (wire.flip && g[i].status == PIPED_PROTOCOL));
        T_TRUE(g[i].status != 0 || marked(g[i].said) > 0);
    }
    finish();
}

TEST(random_wires)
{
    for (int i = 0; i < t_times(20); i++) {
        at_random();
    }
}

static void clean(void)
{
    for (size_t i = 0; i < FILES; i++) {
        leaf_file_free(&file[i]);
    }
    leaf_remove_all(folder);
}

__attribute__((constructor)) static void make_files(void)
{
    if (!mkdtemp(folder)) {
        abort();
    }
    for (size_t i = 0; i < FILES; i++) {
        char name[8];

        snprintf(name, sizeof(name), "f%zu", i);
        file[i] = leaf_file_make(folder, name, 6 * LEAF + 1000 * (i + 1), i + 10);
    }
    atexit(clean);
}

TEST_MAIN()
