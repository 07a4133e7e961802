/* SPDX-License-Identifier: Apache-2.0 */
/* What a snapshot says of groups of cores, and the one name of such a state. */
#include <math.h>
#include <string.h>

#include "governor/machine_state.h"
#include "tests/harness.h"

static const uint16_t BIG[] = {0, 1}, LITTLE[] = {4, 5, 6};
static const struct gov_cores CORES[] = {{"big", BIG, 2}, {"little", LITTLE, 3}};

/* Two policies: 0 (cores 0, 1) and 4 (cores 4 to 6). */
static void snapshot(struct gov_snapshot *s)
{
    static const uint16_t cpus[] = {0, 1, 4, 5, 6};

    memset(s, 0, sizeof(*s));
    s->cpu_count = 5;
    s->policy_count = 2;
    for (size_t i = 0; i < 5; i++) {
        s->cpus[i] = (struct gov_cpu_now){.cpu = cpus[i],
                                          .policy = i < 2 ? 0 : 1,
                                          .core_throttle = GOV_UNKNOWN,
                                          .package_throttle = GOV_UNKNOWN};
    }
    for (size_t i = 0; i < 2; i++) {
        s->policies[i] = (struct gov_policy){.number = i ? 4 : 0,
                                             .governor = "schedutil",
                                             .max_khz = i ? 1800000 : 2400000,
                                             .hardware_khz = i ? 1800000 : 2400000,
                                             .now_khz = 1000000,
                                             .firmware_khz = GOV_UNKNOWN,
                                             .limit_khz = i ? 1800000 : 2400000,
                                             .by_heat = GOV_NO};
    }
    s->cgroup.quota_cpus = INFINITY;
}

static const struct gov_topology NOTHING;

static uint64_t id_of(const struct gov_snapshot *s)
{
    static struct gov_machine_state state;

    gov_machine_state(s, &NOTHING, CORES, 2, &state);
    return state.id;
}

TEST(a_state_says_cores_governors_limits_and_quota)
{
    static struct gov_machine_state state;
    static struct gov_snapshot s;

    snapshot(&s);
    s.cgroup.quota_cpus = 1.5;
    gov_machine_state(&s, &NOTHING, CORES, 2, &state);
    T_STR(state.eps, "big:0-1;little:4-6");
    T_STR(state.governors, "big:schedutil:2400000;little:schedutil:1800000");
    T_STR(state.limits, "big:2441;little:1808;quota:1.5");
    T_TRUE(state.id != 0);
}

TEST(anything_that_counts_is_another_state)
{
    static struct gov_snapshot s;
    uint64_t id;

    snapshot(&s);
    id = id_of(&s);
    T_TRUE(id_of(&s) == id);
    s.policies[1].limit_khz = 1200000;
    T_TRUE(id_of(&s) != id);
    snapshot(&s);
    memcpy(s.policies[0].governor, "powersave", sizeof("powersave"));
    T_TRUE(id_of(&s) != id);
    snapshot(&s);
    s.cgroup.quota_cpus = 1.5;
    T_TRUE(id_of(&s) != id);
    snapshot(&s);
    s.policies[0].hardware_khz = 2600000;
    T_TRUE(id_of(&s) != id);
}

TEST(the_clock_of_the_moment_is_no_state)
{
    static struct gov_snapshot s;
    uint64_t id;

    snapshot(&s);
    id = id_of(&s);
    s.policies[0].now_khz = 2000000;
    s.policies[0].heated = true;
    s.sequence = 7;
    T_TRUE(id_of(&s) == id);
    s.policies[0].limit_khz = 2410000; /* nearer than 5 % */
    T_TRUE(id_of(&s) == id);
}

TEST(a_firmware_limit_is_one_for_everybody)
{
    static struct gov_snapshot s;
    struct gov_cores_now now;
    uint64_t id;

    snapshot(&s);
    id = id_of(&s);
    s.policies[0].firmware_khz = s.policies[0].limit_khz = 1200000;
    gov_cores_now(&s, &CORES[0], &now);
    T_NEAR(now.limit_khz, 1200000, 0);
    T_TRUE(id_of(&s) != id);
}

TEST(a_group_is_as_limited_as_its_most_limited_policy)
{
    static const uint16_t mixed[] = {1, 4};
    static struct gov_snapshot s;
    struct gov_cores_now now;

    snapshot(&s);
    s.policies[0].now_khz = 3000000; /* a request above the limit */
    s.policies[1].heated = true;
    s.cpus[1].core_throttle = 3;
    s.cpus[2].core_throttle = 4;
    gov_cores_now(&s, &(struct gov_cores){"mixed", mixed, 2}, &now);
    T_NEAR(now.limit_khz, 1800000, 0);
    T_NEAR(now.hardware_khz, 2400000, 0);
    T_NEAR(now.khz, (2400000.0 + 1000000.0) / 2, 0);
    T_TRUE(now.heated);
    T_EQ(now.throttles, 7);
}

TEST(without_a_snapshot_the_topology_tells)
{
    static struct gov_topology t = {.ep_count = 1,
                                    .eps = {{.name = "big",
                                             .cpu_count = 2,
                                             .cpus = {0, 1},
                                             .governor = "performance",
                                             .max_freq_khz = 2000000}}};
    static struct gov_machine_state state;
    struct gov_cores_now now;

    gov_machine_state(NULL, &t, CORES, 2, &state);
    T_STR(state.governors, "big:performance:2000000;little:unknown:0");
    T_STR(state.limits, "");
    gov_cores_now(NULL, &CORES[0], &now);
    T_NEAR(now.limit_khz, 0, 0);
    T_TRUE(!now.heated && now.policies_id == 0);
}

TEST_MAIN()
