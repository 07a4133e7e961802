/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory models may take, by files of a machine. */
#include "daemon/models/process_memory.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "daemon/machine/cgroup_limits.h"
#include "tests/harness.h"

#define MIB (1ull << 20)

static char root[64];

static void put(const char *path, const char *text)
{
    char all[256];
    FILE *f;

    snprintf(all, sizeof(all), "%s%s", root, path);
    for (char *at = strchr(all + strlen(root) + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        mkdir(all, 0700);
        *at = '/';
    }
    f = fopen(all, "we");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0) {
        abort();
    }
}

static void begin(const char *meminfo, const char *cgroup)
{
    snprintf(root, sizeof(root), "/tmp/piped-room-XXXXXX");
    if (!mkdtemp(root)) {
        abort();
    }
    if (meminfo) {
        put("/proc/meminfo", meminfo);
    }
    if (cgroup) {
        put("/proc/self/cgroup", cgroup);
    }
}

static void end(void)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -r %s", root);
    if (system(command) != 0) {
        abort();
    }
}

#define FREE_1000_MIB "MemTotal: 4096000 kB\nMemFree: 1 kB\nMemAvailable: 1024000 kB\n"

TEST(what_is_free_and_what_is_taken)
{
    begin(FREE_1000_MIB, "0::/system.slice/piped.service\n");
    T_EQ(dmn_memory_room(root, 0), 992 * MIB);
    T_EQ(dmn_memory_room(root, 24 * MIB), 1024 * MIB);
    T_EQ(dmn_memory_room(root, 24 * MIB - 1), 1008 * MIB);
    end();
}

TEST(the_least_limit_counts)
{
    begin(FREE_1000_MIB, "12:cpu:/x\n0::/a/b/piped.service\n");
    put("/sys/fs/cgroup/a/b/piped.service/memory.max", "max\n");
    T_EQ(dmn_memory_room(root, 0), 992 * MIB);
    put("/sys/fs/cgroup/a/memory.max", "536870912\n");
    T_EQ(dmn_memory_room(root, 0), 512 * MIB);
    put("/sys/fs/cgroup/a/b/piped.service/memory.max", "268435456\n");
    T_EQ(dmn_memory_room(root, 100 * MIB), 256 * MIB);
    put("/sys/fs/cgroup/memory.max", "134217728\n");
    T_EQ(dmn_memory_room(root, 0), 128 * MIB);
    end();
}

TEST(in_a_container)
{
    begin(FREE_1000_MIB, "0::/\n");
    T_EQ(dmn_memory_room(root, 0), 992 * MIB);
    put("/sys/fs/cgroup/memory.max", "134217728\n");
    T_EQ(dmn_memory_room(root, 0), 128 * MIB);
    end();
}

TEST(groups_of_version_1)
{
    begin(FREE_1000_MIB, "4:memory:/a/b\n3:cpuset:/\n0::/\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    T_EQ(dmn_memory_room(root, 0), 992 * MIB);
    put("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "268435456\n");
    T_EQ(dmn_memory_room(root, 0), 256 * MIB);
    end();
}

TEST(what_is_not_there_is_unknown)
{
    begin(NULL, NULL);
    T_EQ(dmn_memory_room(root, 100 * MIB), 0);
    put("/proc/self/cgroup", "1:name=systemd:/x\n");
    put("/proc/meminfo", "MemAvailable: many kB\n");
    T_EQ(dmn_memory_room(root, 100 * MIB), 0);
    put("/sys/fs/cgroup/memory.max", "67108864\n");
    T_EQ(dmn_memory_room(root, 0), 64 * MIB);
    end();
}

TEST(tasks_have_limits_too)
{
    begin(NULL, "0::/a/b\n8:pids:/c\n");
    T_TRUE(dmn_cgroup_limit(root, DMN_CGROUP_TASKS) == UINT64_MAX);
    put("/sys/fs/cgroup/a/pids.max", "300\n");
    put("/sys/fs/cgroup/a/b/pids.max", "max\n");
    T_EQ(dmn_cgroup_limit(root, DMN_CGROUP_TASKS), 300);
    put("/sys/fs/cgroup/pids/c/pids.max", "20\n");
    T_EQ(dmn_cgroup_limit(root, DMN_CGROUP_TASKS), 20);
    T_TRUE(dmn_cgroup_limit(root, DMN_CGROUP_MEMORY) == UINT64_MAX);
    end();
}

/* Two frames in flight for each that a team takes: 4 teams of 8 have 64. */
TEST(frames_of_batches_leave_room)
{
    T_EQ(dmn_memory_batch(256 * MIB, MIB, 4, 8), 8);
    T_EQ(dmn_memory_batch(256 * MIB - 4, MIB, 4, 8), 4);
    T_EQ(dmn_memory_batch(1024 * MIB, 27 * MIB, 4, 8), 1);
    T_EQ(dmn_memory_batch(4096 * MIB, 27 * MIB, 4, 8), 4);
    T_EQ(dmn_memory_batch(1, MIB, 4, 8), 1);
    T_EQ(dmn_memory_batch(0, MIB, 4, 8), 1); /* nothing is free */
    T_EQ(dmn_memory_batch(UINT64_MAX, UINT64_MAX, 4, 8), 8);
    T_EQ(dmn_memory_batch(MIB, UINT64_MAX, SIZE_MAX, 8), 1);
}

TEST_MAIN()
