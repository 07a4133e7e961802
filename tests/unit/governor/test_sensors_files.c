/* SPDX-License-Identifier: Apache-2.0 */
/* Files that change, go, come back, make no sense or are too many. */
#include <sched.h>
#include <sys/resource.h>

#include "tests/harness.h"
#include "tests/unit/governor/boards.h"
#include "tests/unit/governor/probe.h"

TEST(changes_are_seen_in_the_next_sample)
{
    tree_auto struct tree t = board_new(BOARD_HIKEY970);
    probe_auto struct probe *p = probe_new(&t);

    tree_put(&t, POLICY "4/scaling_governor", "performance");
    tree_put(&t, POLICY "4/scaling_cur_freq", "2362000");
    tree_put(&t, POLICY "0/scaling_max_freq", "922000");
    tree_put(&t, THERMAL "thermal_zone0/temp", "66000");
    tree_put(&t, "online", "0-6");
    tree_put(&t, "/proc/pressure/cpu", "some avg10=33.25 avg60=1.00 avg300=0.00 total=999");
    probe_sample(p, 1);
    T_STR(probe_policy(p, 4)->governor, "performance");
    T_EQ(probe_policy(p, 4)->now_khz, 2362000);
    T_NEAR(probe_policy(p, 0)->pressure, 0.5, 1e-12);
    T_EQ(probe_policy(p, 0)->by_heat, GOV_NO);
    T_EQ(p->s.zones[0].past_passive, GOV_YES);
    T_TRUE(probe_policy(p, 0)->heated && !probe_policy(p, 4)->heated);
    T_TRUE(!gov_cpuset_has(&p->s.online.set, 7));
    T_NEAR(p->s.psi_cpu.some_avg10, 33.25, 1e-9);
    T_EQ(p->s.psi_cpu.some_total_us, 999);
    T_EQ(p->s.throttled, GOV_NO);
}

/* Replaced as a whole instead of written into: the open file is then another one. */
TEST(replaced_files_are_seen)
{
    tree_auto struct tree t = board_new(BOARD_HIKEY970);
    probe_auto struct probe *p = probe_new(&t);
    char from[512];

    tree_put(&t, "new", "userspace");
    snprintf(from, sizeof(from), "%s", tree_path(&t, "new"));
    T_EQ(rename(from, tree_path(&t, POLICY "0/scaling_governor")), 0);
    probe_sample(p, 1);
    T_STR(probe_policy(p, 0)->governor, "userspace");
}

static void everything_is_unknown(const struct probe *p)
{
    T_EQ(p->s.policy_count, 0);
    T_EQ(p->s.zone_count, 0);
    T_EQ(p->s.cooling_count, 0);
    T_EQ(p->s.energy_count, 0);
    T_EQ(p->s.cpu_count, 0);
    T_TRUE(!p->s.online.known && !p->s.isolated.known && !p->s.allowed.known);
    T_EQ(p->s.throttled, GOV_MAYBE);
    T_TRUE(!gov_known(p->s.psi_cpu.some_avg10) && !gov_known(p->s.psi_memory.some_avg10));
    T_EQ(p->s.cgroup.version, 0);
    T_TRUE(!gov_known(p->s.cgroup.quota_cpus) && !p->s.cgroup.cpus.known);
}

TEST(everything_gone_at_once_and_back)
{
    for (enum board b = 0; b < BOARD_COUNT; b++) {
        tree_auto struct tree t = board_new(b);
        probe_auto struct probe *p = probe_new(&t);
        char away[96];

        probe_sample(p, 3);
        size_t policies = p->s.policy_count, zones = p->s.zone_count, sources = p->s.energy_count;
        snprintf(away, sizeof(away), "%s-away", t.root);
        T_EQ(rename(t.root, away), 0); /* the open files stay as they are */
        probe_sample(p, 20);
        T_EQ(rename(away, t.root), 0);
        probe_sample(p, 20);
        T_EQ(p->s.policy_count, policies);
        struct tree copy = t;
        tree_deinit(&copy);
        probe_sample(p, 20);
        everything_is_unknown(p);
        T_EQ(mkdir(t.root, 0755), 0);
        struct tree again = board_new(b);
        T_EQ(rmdir(t.root), 0);
        T_EQ(rename(again.root, t.root), 0);
        probe_sample(p, 20);
        T_EQ(p->s.policy_count, policies);
        T_EQ(p->s.zone_count, zones);
        T_EQ(p->s.energy_count, sources);
        T_TRUE(p->s.online.known);
    }
}

TEST(nothing_at_all)
{
    tree_auto struct tree t = tree_new("other = 1");
    struct tree missing = {"/nonexistent/tree"};
    probe_auto struct probe *p = probe_new(&t);
    probe_auto struct probe *q = probe_new(&missing);

    probe_sample(p, 3);
    everything_is_unknown(p);
    probe_sample(q, 3);
    everything_is_unknown(q);
    T_TRUE(!gov_known(p->s.joules));
}

static int spoil_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
    static const char huge[8192] = {[0 ... 8190] = '7'};
    static const struct {
        const char *bytes;
        size_t count;
    } garbage[] = {{"", 0},
                   {"banana\n", 7},
                   {"\0\1\2", 3},
                   {"-999999999999999999999\n", 23},
                   {"0\n", 2},
                   {"18446744073709551615\n", 21},
                   {huge, 8192},
                   {"1 2 3\n", 6},
                   {"some avg10=", 11},
                   {"some avg10=1e9 total=-1\n", 24},
                   {"0::\n", 4},
                   {"0::/x/../../..\n", 15}};
    size_t pick = (size_t)t_range(0, (int64_t)base_array_count(garbage) + 2);

    (void)st;
    (void)where;
    if (type != FTW_F) {
        return 0;
    }
    if (pick < base_array_count(garbage)) {
        FILE *f = fopen(path, "w");

        if (!f || fwrite(garbage[pick].bytes, 1, garbage[pick].count, f) != garbage[pick].count ||
            fclose(f) != 0) {
            abort();
        }
    } else if (pick == base_array_count(garbage)) {
        remove(path);
    } else if (pick == base_array_count(garbage) + 1) {
        remove(path);
        mkdir(path, 0755);
    } else {
        remove(path);
        if (mkfifo(path, 0644) != 0) {
            abort();
        }
    }
    return 0;
}

static void values_are_sane(const struct gov_snapshot *s)
{
    for (size_t i = 0; i < s->policy_count; i++) {
        const struct gov_policy *p = &s->policies[i];

        T_TRUE(p->now_khz > 0 && (p->now_khz == GOV_UNKNOWN || p->now_khz <= 100000000));
        T_TRUE(p->max_khz > 0 && p->hardware_khz > 0);
        T_TRUE(!gov_known(p->pressure) || (p->pressure >= 0 && p->pressure <= 1));
        T_TRUE(memchr(p->governor, '\0', sizeof(p->governor)) != NULL);
    }
    for (size_t i = 0; i < s->zone_count; i++) {
        T_TRUE(s->zones[i].temp_mdegc == GOV_UNKNOWN_MDEGC ||
               (s->zones[i].temp_mdegc >= -273150 && s->zones[i].temp_mdegc <= 1000000));
        T_TRUE(s->zones[i].trip_count <= GOV_TRIP_MAX);
    }
    T_TRUE(!gov_known(s->psi_cpu.some_avg10) ||
           (s->psi_cpu.some_avg10 >= 0 && s->psi_cpu.some_avg10 <= 100));
    T_TRUE(!gov_known(s->cgroup.quota_cpus) || s->cgroup.quota_cpus > 0);
    T_TRUE(!gov_known(s->joules) || (s->joules >= 0 && s->joules < 1e6));
}

/* Any content of any file gives a snapshot with values that can be. */
TEST(garbled_files)
{
    for (int round = 0; round < 2; round++) {
        for (enum board b = 0; b < BOARD_COUNT; b++) {
            tree_auto struct tree t = board_new(b);
            probe_auto struct probe *p = probe_new(&t);

            nftw(t.root, spoil_one, 16, FTW_PHYS);
            probe_sample(p, 12);
            values_are_sane(&p->s);
            probe_auto struct probe *fresh = probe_new(&t);
            values_are_sane(&fresh->s);
        }
    }
}

TEST(tables_are_bounded)
{
    tree_auto struct tree t = tree_new("present = 0-8191\nonline = 0-8191\n");
    char file[96];

    for (unsigned i = 0; i < 300; i++) {
        snprintf(file, sizeof(file), POLICY "%u/scaling_governor", 3 * i);
        tree_put(&t, file, "powersave");
        snprintf(file, sizeof(file), THERMAL "thermal_zone%u/temp", 299 - i);
        tree_put(&t, file, "1000");
        snprintf(file, sizeof(file), THERMAL "cooling_device%u/cur_state", i);
        tree_put(&t, file, "0");
        snprintf(file, sizeof(file), "/sys/class/hwmon/hwmon%u/name", i);
        tree_put(&t, file, "ina219");
        snprintf(file, sizeof(file), "/sys/class/hwmon/hwmon%u/power1_input", i);
        tree_put(&t, file, "1000000");
    }
    tree_put(&t, POLICY "99999999999999999999/scaling_governor", "x");
    tree_put(&t, POLICY "7x/scaling_governor", "x");
    tree_put(&t, POLICY "03/scaling_governor", "x");
    probe_auto struct probe *p = probe_new(&t);
    T_EQ(p->s.policy_count, GOV_POLICY_MAX);
    T_EQ(p->s.cpu_count, GOV_CPU_MAX);
    T_EQ(p->s.zone_count, GOV_ZONE_MAX);
    T_EQ(p->s.cooling_count, GOV_COOLING_MAX);
    T_EQ(p->s.energy_count, GOV_ENERGY_MAX);
    T_EQ(p->s.policies[255].number, 765);
    T_EQ(p->s.zones[31].number, 31);
    T_STR(p->s.policies[255].governor, "powersave");
    tree_put(&t, POLICY "765/scaling_governor", "performance");
    probe_sample(p, 11); /* in turns */
    T_STR(p->s.policies[255].governor, "performance");
}

TEST(few_descriptors)
{
    tree_auto struct tree t = board_new(BOARD_HYBRID);
    struct rlimit before, few;
    probe_auto struct probe *p = NULL;

    T_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = 20;
    T_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    p = probe_new(&t);
    probe_sample(p, 12);
    T_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    T_TRUE(p->s.online.known);
    probe_sample(p, 12);
    T_STR(probe_policy(p, 15)->governor, "powersave");
}

/* Whatever this machine has, it is read, and the CPU that runs this is online and allowed. */
TEST(this_machine)
{
    struct tree root = {"/"};
    probe_auto struct probe *p = probe_new(&root);
    cpu_set_t set;

    probe_sample(p, 3);
    T_EQ(p->s.sequence, 4);
    T_TRUE(p->s.allowed.known);
    T_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        T_EQ(CPU_ISSET(cpu, &set) != 0, gov_cpuset_has(&p->s.allowed.set, cpu));
    }
    values_are_sane(&p->s);
}

TEST_MAIN()
