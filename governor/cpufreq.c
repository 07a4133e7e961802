/* SPDX-License-Identifier: Apache-2.0 */
/* Frequencies, their limits, and what limits them. */
#include <math.h>

#include "base/base.h"
#include "governor/sampler.h"

#define DIR "sys/devices/system/cpu/cpufreq/"
#define KHZ_MAX 100000000u /* 100 GHz: more is garbage */
#define POLICIES_A_SAMPLE 24u
#define FACTS_A_SCAN 4u /* of policies that were there before */

void gov_cpufreq_close(struct gov_sensors *s)
{
    for (size_t i = 0; i < s->now.policy_count; i++) {
        for (size_t k = 0; k < GOV_POLICY_FILES; k++) {
            gov_file_close(&s->files, &s->policies[i][k]);
        }
    }
}

/* What hardly ever changes. A CPU that two policies claim stays with the first. */
static void read_facts(struct gov_sensors *s, size_t at)
{
    struct gov_snapshot *n = &s->now;
    struct gov_policy *p = &n->policies[at];
    struct gov_cpuset members;

    p->hardware_khz = p->min_khz = GOV_UNKNOWN; /* and stays so on failure */
    (void)gov_sysfs_u64(s->root, 1, KHZ_MAX, &p->hardware_khz, DIR "policy%u/cpuinfo_max_freq",
                        p->number);
    (void)gov_sysfs_u64(s->root, 1, KHZ_MAX, &p->min_khz, DIR "policy%u/scaling_min_freq",
                        p->number);
    gov_policy_cpus(s->root, p->number, &members);
    p->cpu_count = 0;
    for (size_t i = 0; i < n->cpu_count; i++) {
        struct gov_cpu_now *c = &n->cpus[i];

        if (c->policy == (int)at && !gov_cpuset_has(&members, c->cpu)) {
            c->policy = -1;
        } else if (c->policy < 0 && gov_cpuset_has(&members, c->cpu)) {
            c->policy = (int16_t)at;
        }
        p->cpu_count += c->policy == (int)at;
    }
}

static void set_policy(struct gov_sensors *s, size_t at, uint32_t number)
{
    static const char *const names[] = {[GOV_POLICY_GOVERNOR] = "scaling_governor",
                                        [GOV_POLICY_LIMIT] = "scaling_max_freq",
                                        [GOV_POLICY_NOW] = "scaling_cur_freq",
                                        [GOV_POLICY_FIRMWARE] = "bios_limit"};
    struct gov_file *files = s->policies[at];

    s->now.policies[at] = (struct gov_policy){.number = number,
                                              .max_khz = GOV_UNKNOWN,
                                              .now_khz = GOV_UNKNOWN,
                                              .firmware_khz = GOV_UNKNOWN,
                                              .limit_khz = GOV_UNKNOWN,
                                              .pressure = NAN,
                                              .by_heat = GOV_MAYBE};
    for (size_t i = 0; i < GOV_POLICY_FILES; i++) {
        gov_file_set(&s->files, &files[i], DIR "policy%u/%s", number, names[i]);
    }
    files[GOV_POLICY_FIRMWARE].rare = true;
}

void gov_cpufreq_scan(struct gov_sensors *s)
{
    struct gov_snapshot *n = &s->now;
    uint32_t numbers[GOV_POLICY_MAX];
    size_t count = gov_dir_numbers(s->root, DIR, "policy", numbers, GOV_POLICY_MAX);

    if (gov_same_numbers(&n->policies[0].number, sizeof(n->policies[0]), n->policy_count, numbers,
                         count)) {
        for (size_t i = 0; i < base_min(count, (size_t)FACTS_A_SCAN); i++) {
            read_facts(s, gov_turn(&s->next_policy_facts, count));
        }
        return;
    }
    gov_cpufreq_close(s);
    for (size_t i = 0; i < n->cpu_count; i++) {
        n->cpus[i].policy = -1;
    }
    n->policy_count = count;
    for (size_t i = 0; i < count; i++) {
        set_policy(s, i, numbers[i]);
        read_facts(s, i);
    }
    s->next_policy = 0;
}

static double pressure_of(const struct gov_policy *p)
{
    if (p->limit_khz == GOV_UNKNOWN || p->hardware_khz == GOV_UNKNOWN) {
        return NAN;
    }
    return p->limit_khz < p->hardware_khz ? 1 - (double)p->limit_khz / (double)p->hardware_khz : 0;
}

void gov_cpufreq_sample(struct gov_sensors *s)
{
    struct gov_snapshot *n = &s->now;
    size_t count = gov_share(n, n->policy_count, POLICIES_A_SAMPLE);

    for (size_t i = 0; i < count; i++) {
        size_t at = gov_turn(&s->next_policy, n->policy_count);
        struct gov_policy *p = &n->policies[at];
        struct gov_file *files = s->policies[at];

        if (gov_file_text(&s->files, &files[GOV_POLICY_GOVERNOR], p->governor,
                          sizeof(p->governor)) != 0) {
            p->governor[0] = '\0';
        }
        p->max_khz = gov_known_u64(s, &files[GOV_POLICY_LIMIT], 1, KHZ_MAX);
        p->now_khz = gov_known_u64(s, &files[GOV_POLICY_NOW], 1, KHZ_MAX);
        p->firmware_khz = gov_known_u64(s, &files[GOV_POLICY_FIRMWARE], 1, KHZ_MAX);
        p->limit_khz = base_min(p->max_khz, p->firmware_khz); /* unknown is the largest number */
        p->pressure = pressure_of(p);
    }
}

/* Does a cooling device that may stand for policy @at work? GOV_MAYBE: no state is known. */
static enum gov_answer is_cooled(const struct gov_sensors *s, size_t at)
{
    const struct gov_snapshot *n = &s->now;
    enum gov_answer answer = GOV_MAYBE;

    for (size_t i = 0; i < n->cooling_count; i++) {
        bool its = s->cooling[i].cpu < 0;

        for (size_t k = 0; !its && k < n->cpu_count; k++) {
            its = n->cpus[k].cpu == s->cooling[i].cpu && n->cpus[k].policy == (int)at;
        }
        if (!its || !n->cooling[i].of_cpu || n->cooling[i].state == GOV_UNKNOWN) {
            continue;
        }
        if (n->cooling[i].state > 0) {
            return GOV_YES;
        }
        answer = GOV_NO;
    }
    return answer;
}

static bool past_passive(const struct gov_snapshot *n)
{
    for (size_t z = 0; z < n->zone_count; z++) {
        if (n->zones[z].past_passive == GOV_YES) {
            return true;
        }
    }
    return false;
}

void gov_cpufreq_heat(struct gov_sensors *s)
{
    struct gov_snapshot *n = &s->now;
    bool hot = past_passive(n);

    for (size_t i = 0; i < n->policy_count; i++) {
        struct gov_policy *p = &n->policies[i];

        p->by_heat = !gov_known(p->pressure) ? GOV_MAYBE
                     : p->pressure == 0      ? GOV_NO
                                             : is_cooled(s, i);
        p->heated = p->by_heat == GOV_YES || (hot && p->pressure > 0);
    }
}
