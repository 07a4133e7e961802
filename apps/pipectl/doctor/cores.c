/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl doctor: who else runs on the cores, and stages that are slow for another reason. */
#include <math.h>

#include "apps/pipectl/doctor/facts.h"

#define TAKEN 0.05  /* share of a stage's time that is worth a word */
#define SLOWER 0.2  /* by how much more a stage takes than expected */
#define PROGRAMS 3u /* to name */

/* Writes "; busiest: cc1 (12) 93 % of a core, ...", and what the hypervisor took. */
static void culprits(const struct doctor *d, char *ret, size_t bytes)
{
    *ret = '\0';
    json_text_each(d->programs, i, p) {
        if (i < PROGRAMS) {
            base_append(ret, bytes, "%s %s (%.0f) %.0f %% of a core",
                        i ? "," : " Busiest:", ctl_text(p, "name"), ctl_real(p, "pid"),
                        100 * ctl_value(p, "cores"));
        }
    }
    base_append(ret, bytes, "%s", *ret ? "." : "");
    if (ctl_value(d->sample, "steal") >= TAKEN) {
        base_append(ret, bytes, " The hypervisor took %.0f %% of the CPUs' time.",
                    100 * ctl_value(d->sample, "steal"));
    }
}

void doctor_shared_cores(struct doctor *d)
{
    char who[256], also[96] = "", advice[DOCTOR_TEXT];

    double waited = doctor_waited(d, "cpu_some_total_us");

    culprits(d, who, sizeof(who));
    snprintf(advice, sizeof(advice),
             "Stop %s, or move them to other cores (taskset -p, CPUAffinity= or AllowedCPUs= of "
             "their units), or keep the daemon on cores of its own (the key eps). A client on the "
             "same cores counts, too.",
             json_array_size(d->programs) ? "these programs" : "other programs there");
    if (waited >= 0) {
        snprintf(also, sizeof(also), "; tasks waited for a CPU for %.0f %% of the time",
                 100 * waited);
    }
    DOCTOR_EACH_MODEL(d, i, m) {
        struct doctor_stage s;
        const char *other;
        double taken;

        if (!doctor_busiest(d, m, &s)) {
            continue;
        }
        taken = s.off_core - doctor_contended(d, m, &s, &other) - doctor_throttled(d);
        if (!(taken >= TAKEN)) {
            continue;
        }
        doctor_find(d, ctl_text(m, "name"), doctor_winnable(taken, s.busy), advice,
                    "Cores are shared: for %.0f %% of the time that stage %s held a frame on %s, "
                    "its cores ran tasks of others%s.%s",
                    100 * taken, ctl_text(s.status, "units"),
                    ctl_cpus("cpu", json_object_get(s.status, "cpus")).text, also, who);
    }
}

void doctor_contention(struct doctor *d)
{
    DOCTOR_EACH_MODEL(d, i, m) {
        const char *other, *name = ctl_text(m, "name");
        char advice[DOCTOR_TEXT];
        struct doctor_stage s;
        double taken;

        if (!doctor_busiest(d, m, &s)) {
            continue;
        }
        taken = base_min(doctor_contended(d, m, &s, &other) + s.waits, 1.0);
        if (taken < TAKEN || !other) {
            continue;
        }
        snprintf(advice, sizeof(advice),
                 "Say what each is to have, or which goes first: pipectl models set %s --class 1. "
                 "Or give each cores of its own: name places in the key eps, then pipectl plan set "
                 "--model %s PLAN on one and --model %s on another. Or send fewer frames to one.",
                 name, name, other);
        doctor_find(d, name, doctor_winnable(taken, base_min(s.busy / (1 - s.waits), 1.0)), advice,
                    "Two models contend for the same cores: for %.0f %% of the time that stage %s "
                    "had a frame on %s, %s ran there.",
                    100 * taken, ctl_text(s.status, "units"),
                    ctl_cpus("cpu", json_object_get(s.status, "cpus")).text, other);
    }
}

void doctor_slow_stage(struct doctor *d)
{
    DOCTOR_EACH_MODEL(d, i, m) {
        struct doctor_stage s;
        double own_ms;

        if (!doctor_busiest(d, m, &s) || ctl_is(m, "tuning")) {
            continue; /* a search adds frames of its own */
        }
        /* without pictures, which the table does not know */
        own_ms = s.cpu_ms * (1 - doctor_pictures_share(d, m));
        if (!(own_ms > (1 + SLOWER) * s.expected_ms)) {
            continue;
        }
        doctor_find(
            d, ctl_text(m, "name"), doctor_winnable((1 - s.expected_ms / own_ms) * s.runs, s.busy),
            "If clocks and other programs are not to blame, its teams compete for memory or "
            "caches, which the cost table does not know: pipectl retune tries plans on live "
            "frames.",
            "Stage %s takes %.2f ms of CPU time for a frame; the planner expected %.2f ms.",
            ctl_text(s.status, "units"), own_ms, s.expected_ms);
    }
}
