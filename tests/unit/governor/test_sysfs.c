/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/resource.h>

#include "governor/kernel_file.h"
#include "tests/harness.h"
#include "tests/unit/governor/tree.h"

static int read_text(const struct tree *t, const char *name, char *ret, size_t size)
{
    return gov_sysfs_text(t->root, ret, size, TREE_CPU "%s", name);
}

TEST(text_is_trimmed)
{
    tree_auto struct tree t = tree_new("governor =   ondemand  \ntwo = first second");
    char text[32];

    T_EQ(read_text(&t, "governor", text, sizeof(text)), 0);
    T_STR(text, "ondemand");
    T_EQ(read_text(&t, "two", text, sizeof(text)), 0);
    T_STR(text, "first second");
}

TEST(text_that_does_not_fit_is_unknown)
{
    tree_auto struct tree t = tree_new("governor = ondemand");
    char text[9] = "before";

    T_EQ(read_text(&t, "governor", text, 8), GOV_SYSFS_E_UNKNOWN);
    T_STR(text, "before");
    T_EQ(read_text(&t, "governor", text, 9), 0);
    T_STR(text, "ondemand");
}

TEST(garbage_is_unknown)
{
    tree_auto struct tree t = tree_new("empty = ");
    char text[64];
    static char huge[1 << 20];

    T_EQ(read_text(&t, "empty", text, sizeof(text)), GOV_SYSFS_E_UNKNOWN);
    T_EQ(read_text(&t, "missing", text, sizeof(text)), GOV_SYSFS_E_UNKNOWN);
    tree_put_bytes(&t, "binary", "on\0demand\n", 10);
    T_EQ(read_text(&t, "binary", text, sizeof(text)), GOV_SYSFS_E_UNKNOWN);
    tree_put_bytes(&t, "escape", "\033[2Jon\n", 7);
    T_EQ(read_text(&t, "escape", text, sizeof(text)), GOV_SYSFS_E_UNKNOWN);
    tree_put_bytes(&t, "lines", "on\ndemand\n", 10);
    T_EQ(read_text(&t, "lines", text, sizeof(text)), GOV_SYSFS_E_UNKNOWN);
    memset(huge, ' ', sizeof(huge));
    tree_put_bytes(&t, "huge", huge, sizeof(huge));
    T_EQ(read_text(&t, "huge", text, sizeof(text)), GOV_SYSFS_E_UNKNOWN);
}

/* None of these may hold the reader (the suite's timeout watches). */
TEST(what_is_no_file_is_unknown)
{
    tree_auto struct tree t = tree_new("a = b");
    char text[64], loop[512];

    T_EQ(mkfifo(tree_path(&t, "fifo"), 0644), 0);
    T_EQ(read_text(&t, "fifo", text, sizeof(text)), GOV_SYSFS_E_UNKNOWN);
    T_EQ(mkdir(tree_path(&t, "folder"), 0755), 0);
    T_EQ(read_text(&t, "folder", text, sizeof(text)), GOV_SYSFS_E_UNKNOWN);
    T_EQ(symlink("/dev/zero", tree_path(&t, "zero")), 0);
    T_EQ(read_text(&t, "zero", text, sizeof(text)), GOV_SYSFS_E_UNKNOWN);
    snprintf(loop, sizeof(loop), "%s", tree_path(&t, "loop"));
    T_EQ(symlink(loop, loop), 0);
    T_EQ(read_text(&t, "loop", text, sizeof(text)), GOV_SYSFS_E_UNKNOWN);
}

TEST(forbidden_files_are_unknown)
{
    tree_auto struct tree t = tree_new("secret = ondemand");
    char text[64];

    T_EQ(chmod(tree_path(&t, "secret"), 0), 0);
    uid_t me = geteuid();
    if (me == 0 && seteuid(65534) != 0) {
        T_SKIP("root may read everything here");
    }
    int r = read_text(&t, "secret", text, sizeof(text));
    T_EQ(seteuid(me), 0);
    T_EQ(r, GOV_SYSFS_E_UNKNOWN);
}

TEST(long_paths_are_unknown)
{
    char root[5000], text[16];

    memset(root, 'r', sizeof(root) - 1);
    root[sizeof(root) - 1] = '\0';
    T_EQ(gov_sysfs_text(root, text, sizeof(text), "%s", "a"), GOV_SYSFS_E_UNKNOWN);
    T_EQ(gov_sysfs_text("/", text, sizeof(text), "%s", root), GOV_SYSFS_E_UNKNOWN);
}

TEST(no_descriptor_left_is_unknown)
{
    tree_auto struct tree t = tree_new("governor = ondemand");
    struct rlimit before, none;
    char text[64];

    T_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    T_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    int r = read_text(&t, "governor", text, sizeof(text));
    T_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    T_EQ(r, GOV_SYSFS_E_UNKNOWN);
}

TEST(numbers)
{
    static const struct {
        const char *text;
        int r;
        uint64_t value;
    } cases[] = {
        {"1024", 0, 1024},    {"0", 0, 0},     {"0x410fd0b0", 0, 0x410fd0b0},
        {"007", 0, 7},        {"-1", 1, 0},    {"+1", 1, 0},
        {"12 13", 1, 0},      {"1.5", 1, 0},   {"0x", 1, 0},
        {"abc", 1, 0},        {"", 1, 0},      {"99999999999999999999999", 1, 0},
        {"4294967296", 1, 0}, {"12kHz", 1, 0},
    };

    for (size_t i = 0; i < base_array_count(cases); i++) {
        tree_auto struct tree t = tree_new("a = b");
        uint64_t value = 77;

        tree_put(&t, "number", cases[i].text);
        T_EQ(gov_sysfs_u64(t.root, 0, UINT32_MAX, &value, TREE_CPU "number"), cases[i].r);
        T_EQ(value, cases[i].r ? 77 : cases[i].value);
    }
}

TEST(numbers_out_of_range_are_unknown)
{
    tree_auto struct tree t = tree_new("n = 1024");
    uint64_t value;

    T_EQ(gov_sysfs_u64(t.root, 1, 1024, &value, TREE_CPU "n"), 0);
    T_EQ(gov_sysfs_u64(t.root, 1, 1023, &value, TREE_CPU "n"), GOV_SYSFS_E_UNKNOWN);
    T_EQ(gov_sysfs_u64(t.root, 1025, 2000, &value, TREE_CPU "n"), GOV_SYSFS_E_UNKNOWN);
}

static void list_text(const struct gov_cpuset *set, char *ret, size_t size)
{
    size_t used = 0;

    ret[0] = '\0';
    for (int32_t cpu = gov_cpuset_next(set, 0); cpu >= 0 && used < size;
         cpu = gov_cpuset_next(set, (size_t)cpu + 1)) {
        used += (size_t)snprintf(ret + used, size - used, "%s%d", used ? " " : "", (int)cpu);
    }
}

TEST(cpu_lists)
{
    static const struct {
        const char *text, *members;
    } cases[] = {
        {"0", "0"},
        {"0-3", "0 1 2 3"},
        {"0-1,4,6-7", "0 1 4 6 7"},
        {"63-65", "63 64 65"},
        {"8191", "8191"},
        {"", ""},
        {"3-1", NULL},
        {"0-", NULL},
        {"-3", NULL},
        {"0,", NULL},
        {",0", NULL},
        {"0,0", NULL},
        {"4,2", NULL},
        {"0-3,2-5", NULL},
        {"8192", NULL},
        {"0-99999999999", NULL},
        {"0 1", NULL},
        {"0x3", NULL},
        {"one", NULL},
        {"0--3", NULL},
        {"0-1-2", NULL},
    };

    for (size_t i = 0; i < base_array_count(cases); i++) {
        struct gov_cpuset set = {.bits = {0xabc}};
        char text[64];
        int r = gov_cpulist_parse(cases[i].text, &set);

        if (!cases[i].members) {
            T_EQ(r, GOV_SYSFS_E_UNKNOWN);
            T_EQ(set.bits[0], 0xabc);
            continue;
        }
        T_EQ(r, 0);
        list_text(&set, text, sizeof(text));
        T_STR(text, cases[i].members);
    }
}

TEST(cpu_list_files)
{
    tree_auto struct tree t = tree_new("online = 0-1,3\noffline = \nbad = 0-x");
    struct gov_cpuset set;

    T_EQ(gov_sysfs_cpulist(t.root, &set, TREE_CPU "online"), 0);
    T_TRUE(gov_cpuset_has(&set, 3) && !gov_cpuset_has(&set, 2));
    T_EQ(gov_sysfs_cpulist(t.root, &set, TREE_CPU "offline"), 0);
    T_EQ(gov_cpuset_next(&set, 0), -1);
    T_EQ(gov_sysfs_cpulist(t.root, &set, TREE_CPU "bad"), GOV_SYSFS_E_UNKNOWN);
    T_EQ(gov_sysfs_cpulist(t.root, &set, TREE_CPU "missing"), GOV_SYSFS_E_UNKNOWN);
}

/* Any bytes are either a set in range or unknown. */
TEST(random_lists)
{
    static const char alphabet[] = "0123456789,,--  x\n";

    for (int round = 0; round < 20000; round++) {
        char text[24];
        struct gov_cpuset set;
        size_t length = (size_t)t_range(0, sizeof(text) - 1);

        for (size_t i = 0; i < length; i++) {
            text[i] = alphabet[t_range(0, sizeof(alphabet) - 2)];
        }
        text[length] = '\0';
        int r = gov_cpulist_parse(text, &set);
        T_TRUE(r == 0 || r == GOV_SYSFS_E_UNKNOWN);
        if (r == 0) {
            T_TRUE(strspn(text, "0123456789,-") == length);
            T_TRUE((gov_cpuset_next(&set, 0) >= 0) == (length > 0));
        }
    }
}

TEST_MAIN()
