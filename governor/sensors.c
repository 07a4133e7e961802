/* SPDX-License-Identifier: Apache-2.0 */
#include "governor/sensors.h"

#include <math.h>
#include <sys/resource.h>

#include "base/base.h"
#include "governor/sampler.h"

#define SCAN_EVERY 10u /* samples */

/* ---- pressure stall information ---- */

static void pressure_scan(struct gov_sensors *s)
{
    if (s->psi_cpu.path[0] == '\0') {
        gov_file_set(&s->files, &s->psi_cpu, "proc/pressure/cpu");
        gov_file_set(&s->files, &s->psi_memory, "proc/pressure/memory");
    }
}

/* "12.34", always with a point, whatever the locale. Return: it, or NAN. */
static double parse_percent(const char *text)
{
    size_t whole = strspn(text, "0123456789");
    size_t part = text[whole] == '.' ? strspn(text + whole + 1, "0123456789") : 0;

    if (whole < 1 || whole > 3 || part < 1 || part > 6) {
        return NAN;
    }
    double value = atoi(text), digit = 0.1;
    for (size_t i = 0; i < part; i++, digit /= 10) {
        value += digit * (text[whole + 1 + i] - '0');
    }
    return value <= 100 ? value : NAN;
}

/* Documentation/accounting/psi.rst: "some avg10=0.00 avg60=0.00 avg300=0.00 total=0" */
static struct gov_psi read_psi(struct gov_sensors *s, struct gov_file *f)
{
    struct gov_psi psi = {NAN, GOV_UNKNOWN};
    char text[512], digits[24];

    if (gov_file_read(&s->files, f, text, sizeof(text)) < 0 || strncmp(text, "some ", 5) != 0) {
        return psi;
    }
    text[strcspn(text, "\n")] = '\0';
    const char *avg = strstr(text, " avg10="), *total = strstr(text, " total=");
    if (!avg || !total ||
        gov_line_parse(total + 7, strcspn(total + 7, " "), digits, sizeof(digits)) != 0 ||
        gov_u64_parse(digits, 0, GOV_UNKNOWN - 1, &psi.some_total_us) != 0) {
        return (struct gov_psi){NAN, GOV_UNKNOWN};
    }
    psi.some_avg10 = parse_percent(avg + 7);
    return psi;
}

static void pressure_sample(struct gov_sensors *s)
{
    s->now.psi_cpu = read_psi(s, &s->psi_cpu);
    s->now.psi_memory = read_psi(s, &s->psi_memory);
}

/* ---- the sampler ---- */

static const struct {
    void (*scan)(struct gov_sensors *s), (*sample)(struct gov_sensors *s);
} SOURCES[] = {
#define ROW(name) {gov_##name##_scan, gov_##name##_sample},
    GOV_SOURCES(ROW)
#undef ROW
        {pressure_scan, pressure_sample}};

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
        gov_files_close(&s->files);
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
    for (size_t i = 0; i < base_array_count(SOURCES); i++) {
        SOURCES[i].scan(s);
    }
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
    for (size_t i = 0; i < base_array_count(SOURCES); i++) {
        SOURCES[i].sample(s);
    }
    gov_cpufreq_heat(s);
    n->throttled = find_throttled(s);
    if (online_changed(s) || s->files.vanished) {
        s->since_scan = SCAN_EVERY;
    }
    *ret = *n;
}
