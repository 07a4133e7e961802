/* SPDX-License-Identifier: Apache-2.0 */
#include "governor/machine_state.h"

#include <math.h>

#include "base/base.h"

#define LIMIT_STEP 0.05 /* of the logarithm: limits nearer than this are one */
#define FNV_BASIS 0xcbf29ce484222325ull
#define FNV_PRIME 0x100000001b3ull

static uint64_t mix(uint64_t id, const char *text)
{
    for (; *text; text++) {
        id = (id ^ (unsigned char)*text) * FNV_PRIME;
    }
    return (id ^ 0xff) * FNV_PRIME; /* between texts: no byte of one */
}

static uint64_t known_khz(uint64_t khz)
{
    return khz == GOV_UNKNOWN ? 0 : khz;
}

static double khz_or_0(uint64_t khz)
{
    return (double)known_khz(khz);
}

static uint64_t throttles(const struct gov_snapshot *s, const struct gov_cores *cores)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < s->cpu_count; i++) {
        for (size_t c = 0; c < cores->count; c++) {
            if (cores->cpus[c] == s->cpus[i].cpu && s->cpus[i].core_throttle != GOV_UNKNOWN) {
                sum += s->cpus[i].core_throttle;
            }
        }
    }
    return sum;
}

/* A group whose cores have several policies is as fast as their mean, and as limited as the most
 * limited one. */
void gov_cores_now(const struct gov_snapshot *s, const struct gov_cores *cores,
                   struct gov_cores_now *ret)
{
    const struct gov_policy *previous = NULL;
    struct gov_cores_now n = {0};
    size_t known = 0;

    for (size_t c = 0; s && c < cores->count; c++) {
        const struct gov_policy *p = gov_snapshot_policy(s, cores->cpus[c]);
        double limit = p ? khz_or_0(p->limit_khz) : 0, khz = p ? khz_or_0(p->now_khz) : 0;

        if (!p) {
            continue;
        }
        if (p != previous && p->governor[0]) {
            n.policies_id ^= mix(FNV_BASIS, p->governor) + p->number;
        }
        previous = p;
        if (khz > 0) {
            n.khz += limit > 0 ? base_min(khz, limit) : khz;
            known++;
        }
        n.limit_khz = limit > 0 && (n.limit_khz == 0 || limit < n.limit_khz) ? limit : n.limit_khz;
        n.hardware_khz = base_max(n.hardware_khz, khz_or_0(p->hardware_khz));
        n.heated |= p->heated;
    }
    n.khz = known ? n.khz / (double)known : 0;
    n.throttles = s ? throttles(s, cores) : 0;
    *ret = n;
}

const struct gov_ep *gov_topology_ep(const struct gov_topology *t, uint16_t cpu)
{
    for (size_t i = 0; i < t->ep_count; i++) {
        for (size_t k = 0; k < t->eps[i].cpu_count; k++) {
            if (t->eps[i].cpus[k] == cpu) {
                return &t->eps[i];
            }
        }
    }
    return NULL;
}

struct gov_clock gov_clock_of(const struct gov_snapshot *s, const struct gov_topology *t,
                              const struct gov_cores *cores)
{
    const struct gov_policy *p = s && cores->count ? gov_snapshot_policy(s, cores->cpus[0]) : NULL;
    const struct gov_ep *e = cores->count ? gov_topology_ep(t, cores->cpus[0]) : NULL;

    if (p) {
        return (struct gov_clock){p->number, p->governor, known_khz(p->now_khz),
                                  known_khz(p->hardware_khz)};
    }
    if (e) {
        return (struct gov_clock){e->policy, e->governor, e->freq_khz, e->max_freq_khz};
    }
    return (struct gov_clock){.policy = -1, .governor = ""};
}

double gov_quota_cpus(const struct gov_snapshot *s)
{
    return s && isfinite(s->cgroup.quota_cpus) ? s->cgroup.quota_cpus : 0;
}

static void name_governor(char *to, size_t bytes, const struct gov_snapshot *s,
                          const struct gov_topology *t, const struct gov_cores *cores)
{
    struct gov_clock c = gov_clock_of(s, t, cores);

    base_append(to, bytes, "%s:%s:%llu", cores->name, c.governor[0] ? c.governor : "unknown",
                (unsigned long long)c.max_khz);
}

static void name_limit(char *to, size_t bytes, const struct gov_snapshot *s,
                       const struct gov_cores *cores)
{
    struct gov_cores_now now;

    gov_cores_now(s, cores, &now);
    if (now.limit_khz > 0) {
        double mhz = exp(round(log(now.limit_khz / 1e3) / LIMIT_STEP) * LIMIT_STEP);

        base_append(to, bytes, "%s:%ld;", cores->name, lround(mhz));
    }
}

void gov_machine_state(const struct gov_snapshot *s, const struct gov_topology *t,
                       const struct gov_cores *cores, size_t count, struct gov_machine_state *ret)
{
    ret->eps[0] = ret->governors[0] = ret->limits[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        char cpus[512];

        gov_cpulist_format(cores[i].cpus, cores[i].count, cpus, sizeof(cpus));
        base_append(ret->eps, sizeof(ret->eps), "%s%s:%s", i ? ";" : "", cores[i].name, cpus);
        base_append(ret->governors, sizeof(ret->governors), "%s", i ? ";" : "");
        name_governor(ret->governors, sizeof(ret->governors), s, t, &cores[i]);
        name_limit(ret->limits, sizeof(ret->limits), s, &cores[i]);
    }
    if (gov_quota_cpus(s) > 0) {
        base_append(ret->limits, sizeof(ret->limits), "quota:%.1f", gov_quota_cpus(s));
    }
    ret->id = mix(mix(mix(FNV_BASIS, ret->eps), ret->governors), ret->limits);
    ret->id = ret->id ? ret->id : 1;
}
