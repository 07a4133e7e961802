/* SPDX-License-Identifier: Apache-2.0 */
/* Thermal zones, their trip points, and cooling devices. */
#include "base/base.h"
#include "governor/sampler.h"

#define DIR "sys/class/thermal/"
#define MDEGC_MIN (-273150)
#define MDEGC_MAX 1000000
#define ZONES_A_SAMPLE 8u
#define COOLING_A_SAMPLE 16u
#define FACTS_A_SCAN 2u /* zones whose trip points are read again */

/* One file that is not kept open. */
static int read_once(struct gov_sensors *s, struct gov_file *f, int32_t *ret_mdegc)
{
    int64_t value;
    int r = gov_file_i64(&s->files, f, MDEGC_MIN, MDEGC_MAX, &value);

    gov_file_close(&s->files, f);
    if (r == 0) {
        *ret_mdegc = (int32_t)value;
    }
    return r;
}

/* Documentation/driver-api/thermal/sysfs-api.rst: trip_point_[0-*]_type and _temp */
static void read_trips(struct gov_sensors *s, struct gov_zone *z)
{
    static const struct {
        const char *name;
        enum gov_trip trip;
    } names[] = {
        {"passive", GOV_TRIP_PASSIVE}, {"hot", GOV_TRIP_HOT}, {"critical", GOV_TRIP_CRITICAL}};
    struct gov_file f = {0};

    z->trip_count = 0;
    for (unsigned trip = 0; trip < GOV_TRIP_MAX; trip++) {
        char type[GOV_NAME_MAX];
        int32_t mdegc;

        if (gov_sysfs_text(s->root, type, sizeof(type), DIR "thermal_zone%u/trip_point_%u_type",
                           z->number, trip) != 0) {
            break;
        }
        gov_file_set(&s->files, &f, DIR "thermal_zone%u/trip_point_%u_temp", z->number, trip);
        /* 0 and below: a trip point that nobody has set, as x86_pkg_temp's are at first
         * (Documentation/driver-api/thermal/x86_pkg_temperature_thermal.rst) */
        if (read_once(s, &f, &mdegc) != 0 || mdegc <= 0) {
            continue;
        }
        z->trip_type[z->trip_count] = GOV_TRIP_OTHER;
        for (size_t i = 0; i < base_array_count(names); i++) {
            if (strcmp(type, names[i].name) == 0) {
                z->trip_type[z->trip_count] = names[i].trip;
            }
        }
        z->trip_mdegc[z->trip_count++] = mdegc;
    }
}

static void read_type(struct gov_sensors *s, const char *prefix, uint32_t number,
                      char ret[GOV_NAME_MAX])
{
    if (gov_sysfs_text(s->root, ret, GOV_NAME_MAX, DIR "%s%u/type", prefix, number) != 0) {
        ret[0] = '\0';
    }
}

static void scan_zones(struct gov_sensors *s)
{
    struct gov_snapshot *n = &s->now;
    uint32_t numbers[GOV_ZONE_MAX];
    size_t count = gov_dir_numbers(s->root, DIR, "thermal_zone", numbers, GOV_ZONE_MAX);

    if (gov_same_numbers(&n->zones[0].number, sizeof(n->zones[0]), n->zone_count, numbers, count)) {
        for (size_t i = 0; i < base_min(count, (size_t)FACTS_A_SCAN); i++) {
            struct gov_zone *z = &n->zones[gov_turn(&s->next_zone_facts, count)];

            read_type(s, "thermal_zone", z->number, z->type);
            read_trips(s, z);
        }
        return;
    }
    for (size_t i = 0; i < n->zone_count; i++) {
        gov_file_close(&s->files, &s->zone_temps[i]);
    }
    n->zone_count = count;
    for (size_t i = 0; i < count; i++) {
        n->zones[i] = (struct gov_zone){
            .number = numbers[i], .temp_mdegc = GOV_UNKNOWN_MDEGC, .past_passive = GOV_MAYBE};
        gov_file_set(&s->files, &s->zone_temps[i], DIR "thermal_zone%u/temp", numbers[i]);
        read_type(s, "thermal_zone", numbers[i], n->zones[i].type);
        read_trips(s, &n->zones[i]);
    }
    s->next_zone = 0;
}

/* By the types that the kernel's drivers give: cpufreq_cooling.c, processor_thermal.c,
 * cpuidle_cooling.c, intel_powerclamp.c. */
static void tell_cooling(struct gov_cooling *c, struct gov_cooling_files *f)
{
    static const char *const names[] = {"cpufreq-",     "thermal-cpufreq", "Processor",
                                        "thermal-idle", "idle-cpu",        "intel_powerclamp"};
    uint64_t cpu;

    c->of_cpu = false;
    for (size_t i = 0; i < base_array_count(names); i++) {
        c->of_cpu |= strncmp(c->type, names[i], strlen(names[i])) == 0;
    }
    f->cpu = -1;
    if (strncmp(c->type, "cpufreq-cpu", 11) == 0 &&
        gov_u64_parse(c->type + 11, 0, GOV_CPU_NUMBER_MAX - 1, &cpu) == 0) {
        f->cpu = (int32_t)cpu;
    }
}

static void scan_cooling(struct gov_sensors *s)
{
    struct gov_snapshot *n = &s->now;
    uint32_t numbers[GOV_COOLING_MAX];
    size_t count = gov_dir_numbers(s->root, DIR, "cooling_device", numbers, GOV_COOLING_MAX);

    if (gov_same_numbers(&n->cooling[0].number, sizeof(n->cooling[0]), n->cooling_count, numbers,
                         count)) {
        return;
    }
    for (size_t i = 0; i < n->cooling_count; i++) {
        gov_file_close(&s->files, &s->cooling[i].state);
    }
    n->cooling_count = count;
    for (size_t i = 0; i < count; i++) {
        struct gov_cooling *c = &n->cooling[i];

        *c = (struct gov_cooling){
            .number = numbers[i], .state = GOV_UNKNOWN, .max_state = GOV_UNKNOWN};
        gov_file_set(&s->files, &s->cooling[i].state, DIR "cooling_device%u/cur_state", numbers[i]);
        read_type(s, "cooling_device", numbers[i], c->type);
        tell_cooling(c, &s->cooling[i]);
        (void)gov_sysfs_u64(s->root, 0, UINT32_MAX, &c->max_state, DIR "cooling_device%u/max_state",
                            numbers[i]);
    }
    s->next_cooling = 0;
}

void gov_thermal_scan(struct gov_sensors *s)
{
    scan_zones(s);
    scan_cooling(s);
}

static enum gov_answer past_passive(const struct gov_zone *z)
{
    if (z->temp_mdegc == GOV_UNKNOWN_MDEGC) {
        return GOV_MAYBE;
    }
    for (size_t i = 0; i < z->trip_count; i++) {
        if (z->trip_type[i] == GOV_TRIP_PASSIVE && z->temp_mdegc >= z->trip_mdegc[i]) {
            return GOV_YES;
        }
    }
    return GOV_NO;
}

void gov_thermal_sample(struct gov_sensors *s)
{
    struct gov_snapshot *n = &s->now;
    size_t zones = gov_share(n, n->zone_count, ZONES_A_SAMPLE);
    size_t cooling = gov_share(n, n->cooling_count, COOLING_A_SAMPLE);
    int64_t mdegc;

    for (size_t i = 0; i < zones; i++) {
        size_t at = gov_turn(&s->next_zone, n->zone_count);
        struct gov_zone *z = &n->zones[at];

        z->temp_mdegc =
            gov_file_i64(&s->files, &s->zone_temps[at], MDEGC_MIN, MDEGC_MAX, &mdegc) == 0
                ? (int32_t)mdegc
                : GOV_UNKNOWN_MDEGC;
        z->past_passive = past_passive(z);
    }
    for (size_t i = 0; i < cooling; i++) {
        size_t at = gov_turn(&s->next_cooling, n->cooling_count);

        n->cooling[at].state = gov_known_u64(s, &s->cooling[at].state, 0, UINT32_MAX);
    }
}
