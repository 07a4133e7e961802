/* SPDX-License-Identifier: Apache-2.0 */
/* What this process may use: quotas and CPU sets of its cgroup, and its affinity. */
#include "tests/harness.h"
#include "tests/unit/governor/boards.h"
#include "tests/unit/governor/probe.h"

static void put_lines(const struct tree *t, const char *file, const char *lines)
{
    tree_put_bytes(t, file, lines, strlen(lines));
}

#define GROUP "/sys/fs/cgroup/system.slice/piped.service/"

TEST(cgroup_version_2)
{
    tree_auto struct tree t = board_new(BOARD_RK3588);

    put_lines(&t, GROUP "cpu.stat",
              "usage_usec 10\nuser_usec 5\nnr_periods 40\nnr_throttled 7\n"
              "throttled_usec 1234\nnr_bursts 0\n");
    tree_put(&t, GROUP "cpuset.cpus.effective", "2-5");
    probe_auto struct probe *p = probe_new(&t);
    T_EQ(p->s.cgroup.version, 2);
    T_TRUE(isinf(p->s.cgroup.quota_cpus));
    T_EQ(p->s.cgroup.nr_throttled, 7);
    T_EQ(p->s.cgroup.nr_periods, 40);
    T_EQ(p->s.cgroup.throttled_us, 1234);
    T_TRUE(p->s.cgroup.cpus.known && gov_cpuset_has(&p->s.cgroup.cpus.set, 5) &&
           !gov_cpuset_has(&p->s.cgroup.cpus.set, 6));
    tree_put(&t, GROUP "cpu.max", "150000 100000");
    probe_sample(p, 1);
    T_NEAR(p->s.cgroup.quota_cpus, 1.5, 1e-12);
    /* the slice above allows less */
    tree_put(&t, "/sys/fs/cgroup/system.slice/cpu.max", "50000 100000");
    tree_put(&t, "/sys/fs/cgroup/system.slice/cpu.stat", "nr_throttled 9");
    probe_sample(p, 5);
    T_NEAR(p->s.cgroup.quota_cpus, 0.5, 1e-12);
    T_EQ(p->s.cgroup.nr_throttled, 9);
    tree_put(&t, "/sys/fs/cgroup/system.slice/cpu.max", "none at all");
    tree_put(&t, GROUP "cpu.max", "max 100000");
    probe_sample(p, 1);
    T_TRUE(!gov_known(p->s.cgroup.quota_cpus));
}

TEST(cgroup_moves)
{
    tree_auto struct tree t = board_new(BOARD_RK3588);
    probe_auto struct probe *p = probe_new(&t);

    tree_put(&t, "/sys/fs/cgroup/user.slice/cpu.max", "25000 100000");
    tree_put(&t, "/proc/self/cgroup", "0::/user.slice");
    probe_sample(p, 1);
    T_NEAR(p->s.cgroup.quota_cpus, 0.25, 1e-12);
    /* a path that is not in our view: what is mounted is our own */
    tree_put(&t, "/sys/fs/cgroup/cpu.max", "75000 100000");
    tree_put(&t, "/sys/elsewhere/cpu.max", "10000 100000");
    tree_put(&t, "/proc/self/cgroup", "0::/../../elsewhere");
    probe_sample(p, 1);
    T_NEAR(p->s.cgroup.quota_cpus, 0.75, 1e-12);
}

TEST(cgroup_version_1)
{
    tree_auto struct tree t =
        tree_new("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us = 200000\n"
                 "/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us = 50000\n"
                 "/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.stat = throttled_time 5000000\n"
                 "/sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_quota_us = -1\n"
                 "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us = -1\n"
                 "/sys/fs/cgroup/cpuset/docker/abc/cpuset.effective_cpus = 1,3\n");

    put_lines(&t, "/proc/self/cgroup",
              "6:cpuset:/docker/abc\n5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n0::/\n");
    probe_auto struct probe *p = probe_new(&t);
    T_EQ(p->s.cgroup.version, 1);
    T_NEAR(p->s.cgroup.quota_cpus, 4, 1e-12);
    T_EQ(p->s.cgroup.throttled_us, 5000);
    T_TRUE(p->s.cgroup.nr_throttled == GOV_UNKNOWN);
    T_TRUE(p->s.cgroup.cpus.known && gov_cpuset_has(&p->s.cgroup.cpus.set, 3));
    tree_put(&t, "/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "-1");
    probe_sample(p, 1);
    T_TRUE(isinf(p->s.cgroup.quota_cpus));
    tree_put(&t, "/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "0");
    probe_sample(p, 1);
    T_TRUE(!gov_known(p->s.cgroup.quota_cpus));
}

TEST(affinity_of_a_tree)
{
    tree_auto struct tree t = board_new(BOARD_RK3588);

    tree_put(&t, "isolated", "6-7");
    put_lines(&t, "/proc/self/status",
              "Name:\tpiped\nCpus_allowed:\t3f\nCpus_allowed_list:\t0-5\nMems_allowed:\t1\n");
    probe_auto struct probe *p = probe_new(&t);
    T_TRUE(p->s.allowed.known && gov_cpuset_has(&p->s.allowed.set, 5) &&
           !gov_cpuset_has(&p->s.allowed.set, 6));
    T_TRUE(p->s.isolated.known && gov_cpuset_has(&p->s.isolated.set, 6));
    tree_put(&t, "/proc/self/status", "Name:\tpiped");
    probe_sample(p, 1);
    T_TRUE(!p->s.allowed.known);
}

TEST_MAIN()
