/* SPDX-License-Identifier: Apache-2.0 */
/* Energy and power: RAPL, hwmon and INA sensors, batteries; and how busy CPUs were meanwhile. */
#include <math.h>

#include "base/base.h"
#include "governor/sampler.h"

#define POWERCAP "sys/class/powercap"
#define HWMON "sys/class/hwmon"
#define HWMON_MAX 32u /* chips that are looked at */
#define SUPPLY "sys/class/power_supply"
#define SUPPLY_MAX 16u
#define STAT_BYTES 32768u               /* of proc/stat: the CPUs come first */
#define RAPL_MAX 16u                    /* packages, and domains of one */
#define CHANNELS 3u                     /* of an INA3221 */
#define WATTS_MAX 1.0e4                 /* more from one source is a counter that was reset */
#define GAP_MAX_NS (60 * BASE_NS_PER_S) /* longer ones are not filled by a mean power */

/* What a scan found: at most as many sources as the table has. */
struct found {
    size_t count;
    struct source {
        char name[GOV_NAME_MAX * 2], value[64], current[64];
        enum gov_energy_kind kind;
        uint64_t range_uj; /* of a counter; 0: unknown */
        bool rapl, battery;
    } rows[GOV_ENERGY_MAX];
};

/* Documentation/power/powercap/powercap.rst: name, energy_uj, max_energy_range_uj */
static void find_rapl_domain(const struct gov_sensors *s, const char *zone, const char *parent,
                             struct found *f)
{
    char name[GOV_NAME_MAX];

    if (f->count == GOV_ENERGY_MAX ||
        gov_sysfs_text(s->root, name, sizeof(name), POWERCAP "/%s/name", zone) != 0) {
        return;
    }
    struct source *source = &f->rows[f->count++];
    *source = (struct source){.kind = GOV_ENERGY_COUNTER, .rapl = true};
    snprintf(source->name, sizeof(source->name), "%.20s%s%.20s", parent, parent[0] ? " " : "",
             name);
    snprintf(source->value, sizeof(source->value), POWERCAP "/%s/energy_uj", zone);
    (void)gov_sysfs_u64(s->root, 1, UINT64_MAX / 2, &source->range_uj,
                        POWERCAP "/%s/max_energy_range_uj", zone);
}

static void find_rapl(const struct gov_sensors *s, struct found *f)
{
    uint32_t packages[RAPL_MAX], domains[RAPL_MAX];
    size_t count = gov_dir_numbers(s->root, POWERCAP, "intel-rapl:", packages, RAPL_MAX);

    for (size_t i = 0; i < count; i++) {
        char zone[32], prefix[32], parent[GOV_NAME_MAX];

        snprintf(zone, sizeof(zone), "intel-rapl:%u", packages[i]);
        if (gov_sysfs_text(s->root, parent, sizeof(parent), POWERCAP "/%s/name", zone) != 0) {
            continue;
        }
        find_rapl_domain(s, zone, "", f);
        snprintf(prefix, sizeof(prefix), "intel-rapl:%u:", packages[i]);
        size_t parts = gov_dir_numbers(s->root, POWERCAP, prefix, domains, RAPL_MAX);
        for (size_t k = 0; k < parts; k++) {
            snprintf(zone, sizeof(zone), "intel-rapl:%u:%u", packages[i], domains[k]);
            find_rapl_domain(s, zone, parent, f);
        }
    }
}

/* @label: file of the chip's folder with the name of the rail. */
static void add_rail(const struct gov_sensors *s, uint32_t chip, const char *chip_name,
                     const char *label, enum gov_energy_kind kind, const char *value,
                     const char *current, struct found *f)
{
    char text[GOV_NAME_MAX];

    if (f->count == GOV_ENERGY_MAX) {
        return;
    }
    struct source *source = &f->rows[f->count++];
    if (gov_sysfs_text(s->root, text, sizeof(text), HWMON "/hwmon%u/%s", chip, label) != 0) {
        snprintf(text, sizeof(text), "%u", chip);
    }
    *source = (struct source){.kind = kind};
    snprintf(source->name, sizeof(source->name), "%.20s %.24s", chip_name, text);
    snprintf(source->value, sizeof(source->value), HWMON "/hwmon%u/%s", chip, value);
    if (current[0]) {
        snprintf(source->current, sizeof(source->current), HWMON "/hwmon%u/%s", chip, current);
    }
}

/* Documentation/hwmon/ina2xx.rst (power1_input in uW), ina238.rst (energy1_input in uJ),
 * ina3221.rst (inN_input in mV, currN_input in mA, no power). */
static void find_ina(const struct gov_sensors *s, uint32_t chip, const char *name, struct found *f)
{
    static const char *const whole[] = {
        [GOV_ENERGY_COUNTER] = "energy1_input", [GOV_ENERGY_POWER] = "power1_input"};
    char path[64];

    for (size_t i = 0; i < base_array_count(whole); i++) {
        snprintf(path, sizeof(path), HWMON "/hwmon%u/%s", chip, whole[i]);
        if (gov_exists(s->root, path)) {
            add_rail(s, chip, name, "label", (enum gov_energy_kind)i, whole[i], "", f);
            return;
        }
    }
    for (unsigned channel = 1; channel <= CHANNELS; channel++) {
        char label[16], volts[16], current[16];

        snprintf(label, sizeof(label), "in%u_label", channel);
        snprintf(volts, sizeof(volts), "in%u_input", channel);
        snprintf(current, sizeof(current), "curr%u_input", channel);
        snprintf(path, sizeof(path), HWMON "/hwmon%u/%s", chip, current);
        if (gov_exists(s->root, path)) {
            add_rail(s, chip, name, label, GOV_ENERGY_VOLTS, volts, current, f);
        }
    }
}

static void find_hwmon(const struct gov_sensors *s, struct found *f)
{
    uint32_t chips[HWMON_MAX];
    size_t count = gov_dir_numbers(s->root, HWMON, "hwmon", chips, HWMON_MAX);

    for (size_t i = 0; i < count; i++) {
        char name[GOV_NAME_MAX];

        if (gov_sysfs_text(s->root, name, sizeof(name), HWMON "/hwmon%u/name", chips[i]) == 0 &&
            strncmp(name, "ina", 3) == 0) {
            find_ina(s, chips[i], name, f);
        }
    }
}

/* Documentation/ABI/testing/sysfs-class-power: type, scope ("Device": of a mouse, say), power_now
 * in uW, voltage_now in uV, current_now in uA. */
static void find_batteries(const struct gov_sensors *s, struct found *f)
{
    char names[SUPPLY_MAX][GOV_NAME_MAX];
    size_t count = gov_dir_names(s->root, SUPPLY, names, SUPPLY_MAX);

    for (size_t i = 0; i < count && f->count < GOV_ENERGY_MAX; i++) {
        struct source *source = &f->rows[f->count];
        char text[GOV_NAME_MAX];

        if (gov_sysfs_text(s->root, text, sizeof(text), SUPPLY "/%s/type", names[i]) != 0 ||
            strcmp(text, "Battery") != 0 ||
            (gov_sysfs_text(s->root, text, sizeof(text), SUPPLY "/%s/scope", names[i]) == 0 &&
             strcmp(text, "Device") == 0)) {
            continue;
        }
        *source = (struct source){.kind = GOV_ENERGY_POWER, .battery = true};
        snprintf(source->name, sizeof(source->name), "battery %.23s", names[i]);
        snprintf(source->value, sizeof(source->value), SUPPLY "/%.23s/power_now", names[i]);
        if (!gov_exists(s->root, source->value)) {
            source->kind = GOV_ENERGY_VOLTS;
            snprintf(source->value, sizeof(source->value), SUPPLY "/%.23s/voltage_now", names[i]);
            snprintf(source->current, sizeof(source->current), SUPPLY "/%.23s/current_now",
                     names[i]);
        }
        f->count++;
    }
}

static bool same_sources(const struct gov_sensors *s, const struct found *f)
{
    bool same = s->now.energy_count == f->count;

    for (size_t i = 0; same && i < f->count; i++) {
        same = strcmp(s->now.energy[i].name, f->rows[i].name) == 0 &&
               strcmp(s->energy[i].value.path, f->rows[i].value) == 0;
    }
    return same;
}

static void close_sources(struct gov_sensors *s)
{
    for (size_t i = 0; i < s->now.energy_count; i++) {
        gov_file_close(&s->files, &s->energy[i].value);
        gov_file_close(&s->files, &s->energy[i].current);
        gov_file_close(&s->files, &s->energy[i].status);
    }
}

static double joules_before(const struct gov_energy_source *rows, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(rows[i].name, name) == 0) {
            return rows[i].joules;
        }
    }
    return NAN;
}

void gov_energy_scan(struct gov_sensors *s)
{
    struct gov_energy_source before[GOV_ENERGY_MAX];
    size_t before_count = s->now.energy_count;
    struct found found = {0};

    find_rapl(s, &found);
    find_hwmon(s, &found);
    find_batteries(s, &found);
    if (same_sources(s, &found)) {
        return;
    }
    memcpy(before, s->now.energy, sizeof(before));
    close_sources(s);
    s->now.energy_count = found.count;
    for (size_t i = 0; i < found.count; i++) {
        struct gov_energy_files *e = &s->energy[i];
        struct gov_energy_source *source = &s->now.energy[i];

        *source = (struct gov_energy_source){.state = GOV_ENERGY_GONE};
        memcpy(source->name, found.rows[i].name, sizeof(source->name));
        source->joules = joules_before(before, before_count, source->name);
        *e = (struct gov_energy_files){.kind = found.rows[i].kind,
                                       .range_uj = found.rows[i].range_uj,
                                       .rapl = found.rows[i].rapl,
                                       .battery = found.rows[i].battery};
        gov_file_set(&s->files, &e->value, "%s", found.rows[i].value);
        gov_file_set(&s->files, &e->current, "%s", found.rows[i].current);
        if (e->battery) {
            gov_file_set(&s->files, &e->status, "%.*s/status",
                         (int)(strrchr(found.rows[i].value, '/') - found.rows[i].value),
                         found.rows[i].value);
        }
    }
}

/* Energy since the reading before. What a counter cannot have counted in that time is a reset of
 * it, and nothing. */
static double counter_step(const struct gov_energy_files *e, uint64_t uj, uint64_t now_ns)
{
    uint64_t step;

    if (uj >= e->last_uj) {
        step = uj - e->last_uj;
    } else if (e->range_uj > e->last_uj && uj <= e->range_uj) {
        step = e->range_uj - e->last_uj + uj;
    } else {
        return 0;
    }
    double joules = (double)step / 1e6;
    if (now_ns <= e->last_ns) {
        return uj >= e->last_uj ? joules : 0;
    }
    return joules <= WATTS_MAX * (double)(now_ns - e->last_ns) / 1e9 ? joules : 0;
}

/* Trapezoid of two readings of power. */
static double power_step(const struct gov_energy_files *e, double watts, uint64_t now_ns)
{
    if (now_ns <= e->last_ns || now_ns - e->last_ns > GAP_MAX_NS) {
        return 0;
    }
    return (e->last_w + watts) / 2 * (double)(now_ns - e->last_ns) / 1e9;
}

/* What a rail or a battery gives, in watts. Return: false: there is no reading. */
static bool read_power(struct gov_sensors *s, struct gov_energy_files *e, double *ret)
{
    double scale = e->kind == GOV_ENERGY_VOLTS && e->battery ? 1e-12 : 1e-6;
    int64_t value = 0, current = 1, most = e->battery ? 1000000000 : 1000000;
    char status[GOV_NAME_MAX];

    /* drivers of batteries do not agree on the sign; the status tells the direction */
    if ((e->battery && (gov_file_text(&s->files, &e->status, status, sizeof(status)) != 0 ||
                        strcmp(status, "Discharging") != 0)) ||
        gov_file_i64(&s->files, &e->value, e->battery ? -INT64_MAX : 0, INT64_MAX, &value) != 0 ||
        (e->kind == GOV_ENERGY_VOLTS &&
         gov_file_i64(&s->files, &e->current, -most, most, &current) != 0)) {
        return false;
    }
    /* a rail that feeds back, or noise around zero, may read negative */
    *ret = (double)value * (double)current * scale;
    *ret = e->battery ? fabs(*ret) : base_max(*ret, 0.0);
    return *ret <= WATTS_MAX;
}

/* Return: the step in joules, NAN if there is no reading. */
static double read_source(struct gov_sensors *s, struct gov_energy_files *e, uint64_t now_ns)
{
    uint64_t counter = 0;
    double watts = 0, step = 0;

    if (e->kind == GOV_ENERGY_COUNTER
            ? gov_file_u64(&s->files, &e->value, 0, UINT64_MAX / 2, &counter) != 0
            : !read_power(s, e, &watts)) {
        e->has_last &= !e->battery; /* what was charged meanwhile is not known */
        return NAN;
    }
    if (e->has_last) {
        step = e->kind == GOV_ENERGY_COUNTER ? counter_step(e, counter, now_ns)
                                             : power_step(e, watts, now_ns);
    }
    e->has_last = true;
    e->last_uj = counter;
    e->last_w = watts;
    e->last_ns = now_ns;
    return step;
}

static bool is_package(const struct gov_energy_source *e)
{
    return strncmp(e->name, "package", 7) == 0 && !strchr(e->name, ' ');
}

/* A package includes its cores and graphics, not its memory; a board's input includes its rails; a
 * battery includes all. */
static void choose_counted(struct gov_sensors *s)
{
    struct gov_snapshot *n = &s->now;
    bool packages = false, rapl = false, input = false, rails = false;

    for (size_t i = 0; i < n->energy_count; i++) {
        bool ok = n->energy[i].state == GOV_ENERGY_OK;

        packages |= ok && s->energy[i].rapl && is_package(&n->energy[i]);
        rapl |= ok && s->energy[i].rapl;
        input |= ok && !s->energy[i].rapl && base_ends_with(n->energy[i].name, "_IN");
        rails |= ok && !s->energy[i].rapl && !s->energy[i].battery;
    }
    for (size_t i = 0; i < n->energy_count; i++) {
        struct gov_energy_source *e = &n->energy[i];

        if (packages) {
            e->counted = s->energy[i].rapl && (is_package(e) || base_ends_with(e->name, " dram"));
        } else if (rapl) {
            e->counted = s->energy[i].rapl && !strchr(e->name, ' ');
        } else {
            e->counted = !s->energy[i].rapl && s->energy[i].battery == !rails &&
                         (!input || base_ends_with(e->name, "_IN"));
        }
        e->counted &= e->state == GOV_ENERGY_OK;
    }
}

/* Documentation/filesystems/proc.rst, 1.7: "cpuN user nice system idle iowait irq softirq ...", in
 * ticks. What a hypervisor takes (steal) is not ours. */
static void read_busy(struct gov_sensors *s)
{
    const uint64_t tick_ns = BASE_NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);
    char text[STAT_BYTES];
    const char *line = text;
    struct gov_snapshot *n = &s->now;
    unsigned long long t[7];
    unsigned cpu;

    if (s->stat.path[0] == '\0') {
        gov_file_set(&s->files, &s->stat, "proc/stat");
    }
    for (size_t i = 0; i < n->cpu_count; i++) {
        n->cpus[i].busy_ns = GOV_UNKNOWN;
    }
    if (n->energy_count == 0 || gov_file_head(&s->files, &s->stat, text, sizeof(text)) < 0) {
        return;
    }
    for (size_t i = 0; (line = strchr(line, '\n')) != NULL && strncmp(++line, "cpu", 3) == 0;) {
        if (sscanf(line, "cpu%u %llu %llu %llu %llu %llu %llu %llu", &cpu, &t[0], &t[1], &t[2],
                   &t[3], &t[4], &t[5], &t[6]) != 8) {
            return;
        }
        while (i < n->cpu_count && n->cpus[i].cpu < cpu) {
            i++;
        }
        if (i < n->cpu_count && n->cpus[i].cpu == cpu) {
            n->cpus[i].busy_ns = (t[0] + t[1] + t[2] + t[5] + t[6]) * tick_ns;
        }
    }
}

void gov_energy_sample(struct gov_sensors *s)
{
    struct gov_snapshot *n = &s->now;
    double steps[GOV_ENERGY_MAX];

    for (size_t i = 0; i < n->energy_count; i++) {
        struct gov_energy_source *e = &n->energy[i];
        int error;

        steps[i] = read_source(s, &s->energy[i], n->at_ns);
        error = s->energy[i].value.error ? s->energy[i].value.error : s->energy[i].current.error;
        if (gov_known(steps[i])) {
            e->state = GOV_ENERGY_OK;
            e->joules = gov_known(e->joules) ? e->joules + steps[i] : 0;
        } else {
            e->state = error == EACCES || error == EPERM ? GOV_ENERGY_DENIED : GOV_ENERGY_GONE;
        }
    }
    choose_counted(s);
    read_busy(s);
    for (size_t i = 0; i < n->energy_count; i++) {
        if (n->energy[i].counted) {
            n->joules = gov_known(n->joules) ? n->joules + steps[i] : 0;
        }
    }
}
