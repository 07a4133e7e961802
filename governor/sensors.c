/* SPDX-License-Identifier: Apache-2.0 */
#include "governor/sensors.h"

#include <math.h>
#include <sys/resource.h>

#include "base/base.h"
#include "governor/allowed.h"
#include "governor/cgroup.h"
#include "governor/cpufreq.h"
#include "governor/cpus.h"
#include "governor/energy.h"
#include "governor/pressure.h"
#include "governor/thermal.h"

#define SCAN_EVERY 10u /* samples */

static size_t open_files_max(void)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_NOFILE, &limit) == 0
               ? base_min((size_t)limit.rlim_cur / 2, (size_t)GOV_FILES_OPEN_MAX)
               : 0;
}

int gov_sensors_new(const char *root, struct gov_sensors **ret)
{
    struct gov_sensors *s = calloc(1, sizeof(*s));

    if (!s || !(s->root = strdup(root))) {
        free(s);
        return -ENOMEM;
    }
    s->files.root = s->root;
    s->files.open_max = open_files_max();
    s->files.live = gov_root_is_live(root);
    s->since_scan = SCAN_EVERY;
    s->now.joules = NAN;
    *ret = s;
    return 0;
}

struct gov_sensors *gov_sensors_free(struct gov_sensors *s)
{
    if (s) {
        gov_cpus_close(s);
        gov_cpufreq_close(s);
        gov_thermal_close(s);
        gov_pressure_close(s);
        gov_cgroup_close(s);
        gov_energy_close(s);
        free(s->root);
        free(s);
    }
    return NULL;
}

static bool online_changed(struct gov_sensors *s)
{
    bool same = memcmp(&s->last_online, &s->now.online, sizeof(s->last_online)) == 0;

    s->last_online = s->now.online;
    return !same && s->now.sequence > 1;
}

static void scan(struct gov_sensors *s)
{
    gov_cpus_scan(s);
    gov_cpufreq_scan(s);
    gov_thermal_scan(s);
    gov_pressure_scan(s);
    gov_cgroup_scan(s);
    gov_energy_scan(s);
    s->files.vanished = false;
    s->since_scan = 0;
}

/* The signs that tell of throttling, and whether there is any that could. */
static enum gov_answer find_throttled(const struct gov_sensors *s)
{
    const struct gov_snapshot *n = &s->now;
    bool told = s->counters_known;

    if (s->throttle_rose) {
        return GOV_YES;
    }
    for (size_t i = 0; i < n->policy_count; i++) {
        const struct gov_policy *p = &n->policies[i];

        if (p->by_heat == GOV_YES ||
            (p->firmware_khz != GOV_UNKNOWN && p->hardware_khz != GOV_UNKNOWN &&
             p->firmware_khz < p->hardware_khz)) {
            return GOV_YES;
        }
    }
    for (size_t i = 0; i < n->cooling_count; i++) {
        bool idles = strncmp(n->cooling[i].type, "thermal-idle", 12) == 0 ||
                     strncmp(n->cooling[i].type, "idle-", 5) == 0 ||
                     strcmp(n->cooling[i].type, "intel_powerclamp") == 0;

        if (n->cooling[i].of_cpu && n->cooling[i].state != GOV_UNKNOWN) {
            told = true;
            if (idles && n->cooling[i].state > 0) {
                return GOV_YES;
            }
        }
    }
    return told ? GOV_NO : GOV_MAYBE;
}

void gov_sensors_sample(struct gov_sensors *s, uint64_t now_ns, struct gov_snapshot *ret)
{
    struct gov_snapshot *n = &s->now;

    if (s->since_scan >= SCAN_EVERY) {
        scan(s);
    }
    s->since_scan++;
    n->sequence++;
    n->at_ns = now_ns;
    n->allowed.known = gov_allowed_cpus(s->root, &n->allowed.set) == 0;
    if (!n->allowed.known) {
        memset(&n->allowed.set, 0, sizeof(n->allowed.set));
    }
    gov_cpus_sample(s);
    gov_cpufreq_sample(s);
    gov_thermal_sample(s);
    gov_cpufreq_heat(s);
    gov_pressure_sample(s);
    gov_cgroup_sample(s);
    gov_energy_sample(s, now_ns);
    n->throttled = find_throttled(s);
    if (online_changed(s) || s->files.vanished) {
        s->since_scan = SCAN_EVERY;
    }
    s->last_ns = now_ns;
    *ret = *n;
}
