/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl doctor: clocks, heat, quotas and memory. */
#include <math.h>

#include "apps/pipectl/doctor/facts.h"

#define NEARLY 0.95    /* clocks above this share of the maximum are not worth a word */
#define LOW 0.9        /* a clock that moves is low below this share of its limit */
#define LOADED 0.5     /* a governor that follows the load should give such cores all */
#define NEAR_LEAST 1.1 /* times its minimum: a slower clock is held there */
#define PAUSED 0.02    /* shares of the time for which a quota or memory stopped tasks */
#define WAITED 0.05
#define NEARLY_FULL 0.9 /* of the memory that the control group allows */

/* Return: a plan uses cores of the policy. */
static bool used(const struct doctor *d, const json_t *policy)
{
    return !isnan(doctor_load_of(d, json_object_get(policy, "cpus")));
}

static double lowest(const json_t *policy)
{
    double limit = ctl_value(policy, "limit_khz");

    return isnan(limit) ? ctl_value(policy, "max_freq_khz") : limit;
}

/* These hold the clock down whatever the load is. That of the driver intel_pstate is called
 * powersave, too, and follows the load: then the clock is above its minimum under load. */
static bool is_steady(const json_t *policy)
{
    const char *governor = ctl_text(policy, "governor");

    if (strcmp(governor, "powersave") == 0) {
        return !(ctl_value(policy, "freq_khz") > NEAR_LEAST * ctl_value(policy, "min_khz"));
    }
    return strcmp(governor, "userspace") == 0 || strcmp(governor, "conservative") == 0;
}

static bool governor_holds(const struct doctor *d, const json_t *p)
{
    double load = doctor_load_of(d, json_object_get(p, "cpus"));

    return ctl_value(p, "freq_khz") < LOW * lowest(p) && used(d, p) &&
           (load >= LOADED || is_steady(p)) && strcmp(ctl_text(p, "governor"), "performance") != 0;
}

/* Return: one sentence says both: on x86 each CPU has a policy. */
static bool alike(const json_t *a, const json_t *b)
{
    return strcmp(ctl_text(a, "governor"), ctl_text(b, "governor")) == 0 &&
           fabs(lowest(a) - lowest(b)) < 1;
}

/* Finds all policies that are like number @first, if that is the first of them. */
static void find_governor(struct doctor *d, const json_t *policies, size_t first)
{
    const json_t *p = json_array_get(policies, first);
    json_auto_t *all = json_array();
    double now = ctl_value(p, "freq_khz"), most = lowest(p), load = 0;
    json_int_t number = json_integer_value(json_object_get(p, "policy"));
    char which[32], advice[DOCTOR_TEXT];
    size_t count = 0;

    json_text_each(policies, i, q) {
        const json_t *own = json_object_get(q, "cpus");

        if (!governor_holds(d, q) || !alike(p, q)) {
            continue;
        }
        if (i < first) {
            return;
        }
        json_array_extend(all, (json_t *)own);
        now = base_min(now, ctl_value(q, "freq_khz"));
        load = base_max(load, doctor_load_of(d, own));
        count++;
    }
    snprintf(which, sizeof(which), "%lld", (long long)number);
    snprintf(advice, sizeof(advice),
             "As root: %s/sys/devices/system/cpu/cpufreq/policy%s/"
             "scaling_governor (or cpupower frequency-set -g performance).%s",
             count > 1 ? "echo performance | tee " : "echo performance > ", count > 1 ? "*" : which,
             doctor_has_cpu(json_object_get(d->sample, "read_only"), number)
                 ? " The file cannot be written from here: do it on the host of this container."
                 : "");
    doctor_find(d, NULL, doctor_winnable(1 - now / most, load), advice,
                "Governor %s holds %s at %.1f of %.1f GHz; their teams are busy for %.0f %% of "
                "the time.",
                ctl_text(p, "governor"), ctl_cpus("cpu", all).text, now / 1e6, most / 1e6,
                100 * load);
}

void doctor_governor(struct doctor *d)
{
    const json_t *policies = json_text_at(d->after, "sensors.policies");

    json_text_each(policies, i, p) {
        if (governor_holds(d, p)) {
            find_governor(d, policies, i);
        }
    }
}

/* Finds the clocks that a limit holds down. @why: what ends the sentence. Return: how many. */
static size_t find_limits(struct doctor *d, bool by_heat, const char *advice, const char *why)
{
    size_t found = 0;

    json_text_each(json_text_at(d->after, "sensors.policies"), i, p) {
        double limit = ctl_value(p, "limit_khz"), most = ctl_value(p, "max_freq_khz");
        const json_t *cpus = json_object_get(p, "cpus");

        if (limit < NEARLY * most && ctl_is(p, "by_heat") == by_heat && (by_heat || used(d, p))) {
            doctor_find(d, NULL, doctor_winnable(1 - limit / most, doctor_load_of(d, cpus)), advice,
                        "%s holds %s at %.1f of %.1f GHz%s.", by_heat ? "Heat" : "A limit",
                        ctl_cpus("cpu", cpus).text, limit / 1e6, most / 1e6, why);
            found++;
        }
    }
    return found;
}

void doctor_frequency_limit(struct doctor *d)
{
    find_limits(d, false,
                "See who set scaling_max_freq of that policy: a power profile (powerprofilesctl, "
                "tlp, thermald), the firmware, or somebody by hand. cpupower frequency-set -u sets "
                "it.",
                ", and it is not for heat");
}

/* The hottest zone, in parentheses. */
static void hottest(const struct doctor *d, char *ret, size_t bytes)
{
    const json_t *most = NULL;

    json_text_each(json_text_at(d->after, "sensors.thermal"), i, z) {
        if (ctl_value(z, "temp_c") > (most ? ctl_value(most, "temp_c") : -300)) {
            most = z;
        }
    }
    snprintf(ret, bytes, " (no temperature is known)");
    if (most) {
        snprintf(ret, bytes, " (%s %.0f C%s)", ctl_text(most, "type"), ctl_value(most, "temp_c"),
                 ctl_is(most, "past_trip") ? ", above its trip point" : "");
    }
}

void doctor_heat(struct doctor *d)
{
    static const char advice[] =
        "Cool it: heat sink, fan, air, a cooler place. Else ask less of it: a lower rate of "
        "frames, pipectl retune --objective power --fps F, or a smaller model.";
    char zone[160];

    hottest(d, zone, sizeof(zone));
    if (find_limits(d, true, advice, zone) == 0 && ctl_is(d->after, "sensors.throttled")) {
        doctor_find(d, NULL, NAN, advice,
                    "Heat, power or firmware holds the CPUs back%s; by how much is not known.",
                    zone);
    }
}

void doctor_quota(struct doctor *d)
{
    const json_t *group = json_text_at(d->after, "sensors.cgroup");
    const json_t *before = json_text_at(d->before, "sensors.cgroup");
    double share = doctor_throttled(d);

    if (share < PAUSED) {
        return;
    }
    doctor_find(d, NULL, share,
                "Raise the quota (CPUQuota= of the unit or its slice, --cpus of the container, "
                "limits.cpu of the pod), or set a plan of no more cores than it allows.",
                "The control group allows %.2f CPUs; its quota stopped the daemon in %.0f of %.0f "
                "periods, for %.2f s in %.1f s.",
                ctl_value(group, "quota_cpus"), doctor_more(before, group, "nr_throttled"),
                doctor_more(before, group, "nr_periods"),
                doctor_more(before, group, "throttled_us") / 1e6, d->seconds);
}

void doctor_memory(struct doctor *d)
{
    const json_t *memory = json_object_get(d->after, "memory");
    double now = ctl_value(memory, "resident_bytes"), most = ctl_value(memory, "limit_bytes");
    double waited = doctor_waited(d, "memory_some_total_us");

    if (now > NEARLY_FULL * most) {
        doctor_find(d, NULL, NAN,
                    "Raise MemoryMax= (or the container's limit), unload a model, or lower "
                    "limits.inline_total_mib. At the limit the kernel reclaims pages of weights, "
                    "then ends the daemon.",
                    "The daemon has %.0f of the %.0f MiB that its control group allows.",
                    now / (1 << 20), most / (1 << 20));
    }
    if (waited > WAITED) {
        doctor_find(d, NULL, waited,
                    "Free memory: see free -m and pipectl status --json (memory); stop a program "
                    "or unload a model.",
                    "Tasks waited for memory for %.0f %% of the time.", 100 * waited);
    }
}
