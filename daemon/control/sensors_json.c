/* SPDX-License-Identifier: Apache-2.0 */
/* What the sensors say, as JSON and as metrics. */
#include "base/base.h"
#include "daemon/control/control.h"
#include "daemon/control/json.h"
#include "daemon/control/metrics_text.h"
#include "daemon/machine/machine.h"

static json_t *number(uint64_t value)
{
    return value != GOV_UNKNOWN ? json_integer((json_int_t)value) : json_null();
}

static json_t *answer(enum gov_answer a)
{
    return a == GOV_MAYBE ? json_null() : json_boolean(a == GOV_YES);
}

static json_t *text(const char *t)
{
    return t[0] ? json_string(t) : json_null();
}

static json_t *cpus(const struct gov_known_set *s)
{
    json_t *list = s->known ? json_array() : json_null();

    for (int32_t cpu = s->known ? gov_cpuset_next(&s->set, 0) : -1; cpu >= 0;
         cpu = gov_cpuset_next(&s->set, (size_t)cpu + 1)) {
        json_array_append_new(list, json_integer(cpu));
    }
    return list;
}

static json_t *thermal_json(const struct gov_snapshot *s)
{
    json_t *list = json_array();

    for (size_t i = 0; i < s->zone_count; i++) {
        const struct gov_zone *z = &s->zones[i];

        json_array_append_new(list, json_pack("{s:i, s:o, s:o, s:o}", "zone", (int)z->number,
                                              "type", text(z->type), "temp_c",
                                              z->temp_mdegc == GOV_UNKNOWN_MDEGC
                                                  ? json_null()
                                                  : json_real(z->temp_mdegc / 1000.0),
                                              "past_trip", answer(z->past_passive)));
    }
    return list;
}

static json_t *cooling_json(const struct gov_snapshot *s)
{
    json_t *list = json_array();

    for (size_t i = 0; i < s->cooling_count; i++) {
        const struct gov_cooling *c = &s->cooling[i];

        json_array_append_new(list,
                              json_pack("{s:i, s:o, s:o, s:o, s:b}", "device", (int)c->number,
                                        "type", text(c->type), "state", number(c->state),
                                        "max_state", number(c->max_state), "of_cpu", c->of_cpu));
    }
    return list;
}

static json_t *policies_json(const struct gov_snapshot *s)
{
    json_t *list = json_array();

    for (size_t i = 0; i < s->policy_count; i++) {
        const struct gov_policy *p = &s->policies[i];
        json_t *members = json_array();

        for (size_t k = 0; k < s->cpu_count; k++) {
            if (s->cpus[k].policy == (int)i) {
                json_array_append_new(members, json_integer(s->cpus[k].cpu));
            }
        }
        json_array_append_new(
            list,
            json_pack("{s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "policy", (int)p->number,
                      "cpus", members, "governor", text(p->governor), "freq_khz",
                      number(p->now_khz), "min_khz", number(p->min_khz), "limit_khz",
                      number(p->limit_khz), "max_freq_khz", number(p->hardware_khz), "pressure",
                      json_text_number(p->pressure), "by_heat", answer(p->by_heat)));
    }
    return list;
}

static json_t *psi_json(const struct gov_snapshot *s)
{
    if (s->psi_cpu.some_total_us == GOV_UNKNOWN && s->psi_memory.some_total_us == GOV_UNKNOWN) {
        return json_null();
    }
    return json_pack("{s:o, s:o, s:o, s:o}", "cpu_some_avg10",
                     json_text_number(s->psi_cpu.some_avg10), "cpu_some_total_us",
                     number(s->psi_cpu.some_total_us), "memory_some_avg10",
                     json_text_number(s->psi_memory.some_avg10), "memory_some_total_us",
                     number(s->psi_memory.some_total_us));
}

static json_t *cgroup_json(const struct gov_snapshot *s)
{
    const struct gov_cgroup *c = &s->cgroup;

    if (c->version == 0) {
        return json_null();
    }
    return json_pack("{s:i, s:o, s:o, s:o, s:o, s:o}", "version", c->version, "quota_cpus",
                     isinf(c->quota_cpus) ? json_string("none") : json_text_number(c->quota_cpus),
                     "nr_periods", number(c->nr_periods), "nr_throttled", number(c->nr_throttled),
                     "throttled_us", number(c->throttled_us), "cpus", cpus(&c->cpus));
}

static json_t *energy_json(const struct dmn_machine *m, const struct gov_snapshot *s)
{
    static const char *const states[] = {"ok", "denied", "gone"};
    char names[GOV_ENERGY_MAX * GOV_NAME_MAX * 2] = "";
    json_t *list = json_array();

    for (size_t i = 0; i < s->energy_count; i++) {
        const struct gov_energy_source *e = &s->energy[i];

        if (e->counted) {
            base_append(names, sizeof(names), "%s%s", *names ? ", " : "", e->name);
        }
        json_array_append_new(list, json_pack("{s:s, s:s, s:o, s:b}", "name", e->name, "state",
                                              states[e->state], "joules",
                                              json_text_number(e->joules), "counted", e->counted));
    }
    if (s->energy_count == 0) {
        json_decref(list);
        return json_null();
    }
    return json_pack("{s:o, s:o, s:o, s:o}", "source", text(names), "joules",
                     json_text_number(s->joules), "joules_per_frame",
                     json_text_number(dmn_sensors_joules_per_frame(m)), "sources", list);
}

static json_t *gpio_json(const struct dmn_machine *m)
{
    struct dmn_gpio_state g;

    if (!dmn_gpio_state(m, &g)) {
        return json_null();
    }
    return json_pack(
        "{s:s, s:s, s:o?, s:o?, s:s?, s:I, s:s}", "state", g.open ? "open" : "unknown", "chip",
        g.chip, "button",
        g.has_button ? json_pack("{s:o?, s:I}", "pressed", g.open ? json_boolean(g.pressed) : NULL,
                                 "presses", (json_int_t)g.presses)
                     : NULL,
        "power", g.power_known ? json_boolean(g.power) : NULL, "led",
        g.has_led ? gov_led_names[g.led] : NULL, "opened", (json_int_t)g.opened, "why", g.problem);
}

json_t *dmn_sensors_json(const struct dmn_machine *m)
{
    const struct gov_snapshot *s = dmn_sensors_now(m);

    return json_pack("{s:o?, s:o?, s:o?, s:o?, s:o?, s:o?, s:o?, s:o?, s:o?, s:o?, s:o}", "thermal",
                     s ? thermal_json(s) : NULL, "cooling", s ? cooling_json(s) : NULL, "throttled",
                     s ? answer(s->throttled) : NULL, "policies", s ? policies_json(s) : NULL,
                     "online", s ? cpus(&s->online) : NULL, "allowed", s ? cpus(&s->allowed) : NULL,
                     "isolated", s ? cpus(&s->isolated) : NULL, "psi", s ? psi_json(s) : NULL,
                     "cgroup", s ? cgroup_json(s) : NULL, "energy", s ? energy_json(m, s) : NULL,
                     "gpio", gpio_json(m));
}

/* ---- metrics ---- */

static void one(FILE *to, const char *name, const char *type, const char *help, double value)
{
    if (gov_known(value)) {
        dmn_metric(to, name, type, help, value);
    }
}

static double counted(uint64_t value, double unit)
{
    return value != GOV_UNKNOWN ? (double)value * unit : NAN;
}

static void policies(FILE *to, const struct gov_snapshot *s)
{
    dmn_metric_head(to, "cpu_frequency_hertz", "gauge", "Frequency of a cpufreq policy.");
    for (size_t i = 0; i < s->policy_count; i++) {
        if (s->policies[i].now_khz != GOV_UNKNOWN) {
            dmn_metric_row(to, "cpu_frequency_hertz", (double)s->policies[i].now_khz * 1000,
                           "policy=\"%u\"", s->policies[i].number);
        }
    }
    dmn_metric_head(to, "cpu_frequency_pressure", "gauge",
                    "Share of the highest frequency that a policy may not use.");
    for (size_t i = 0; i < s->policy_count; i++) {
        if (gov_known(s->policies[i].pressure)) {
            dmn_metric_row(to, "cpu_frequency_pressure", s->policies[i].pressure, "policy=\"%u\"",
                           s->policies[i].number);
        }
    }
}

static void zones(FILE *to, const struct gov_snapshot *s)
{
    char type[4 * GOV_NAME_MAX];

    dmn_metric_head(to, "temperature_celsius", "gauge", "Temperature of a thermal zone.");
    for (size_t i = 0; i < s->zone_count; i++) {
        if (s->zones[i].temp_mdegc != GOV_UNKNOWN_MDEGC) {
            dmn_metric_row(to, "temperature_celsius", s->zones[i].temp_mdegc / 1000.0,
                           "zone=\"%u\",type=\"%s\"", s->zones[i].number,
                           dmn_metric_label(s->zones[i].type, type, sizeof(type)));
        }
    }
}

static void energy(FILE *to, const struct dmn_machine *m, const struct gov_snapshot *s)
{
    char name[4 * GOV_NAME_MAX];

    dmn_metric_head(to, "energy_joules_total", "counter", "Energy of a source since the start.");
    for (size_t i = 0; i < s->energy_count; i++) {
        if (gov_known(s->energy[i].joules)) {
            dmn_metric_row(
                to, "energy_joules_total", s->energy[i].joules, "source=\"%s\",counted=\"%d\"",
                dmn_metric_label(s->energy[i].name, name, sizeof(name)), s->energy[i].counted);
        }
    }
    one(to, "joules_per_frame", "gauge", "Energy a frame over the last ten seconds.",
        dmn_sensors_joules_per_frame(m));
}

void dmn_sensors_metrics(FILE *to, const struct dmn_control *control)
{
    const struct gov_snapshot *s = dmn_sensors_now(control->machine);

    if (!s) {
        return;
    }
    policies(to, s);
    zones(to, s);
    one(to, "throttled", "gauge", "1 while heat or firmware holds the CPUs back.",
        s->throttled == GOV_MAYBE ? NAN : s->throttled == GOV_YES);
    one(to, "pressure_cpu_some_ratio", "gauge",
        "Share of the last ten seconds in which a task waited for a CPU.",
        s->psi_cpu.some_avg10 / 100);
    one(to, "pressure_cpu_some_seconds_total", "counter", "Time in which a task waited for a CPU.",
        counted(s->psi_cpu.some_total_us, 1e-6));
    one(to, "pressure_memory_some_ratio", "gauge",
        "Share of the last ten seconds in which a task waited for memory.",
        s->psi_memory.some_avg10 / 100);
    one(to, "cgroup_quota_cpus", "gauge", "CPUs' worth of time that the control group allows.",
        isinf(s->cgroup.quota_cpus) ? NAN : s->cgroup.quota_cpus);
    one(to, "cgroup_throttled_seconds_total", "counter",
        "Time for which the control group's quota stopped its tasks.",
        counted(s->cgroup.throttled_us, 1e-6));
    energy(to, control->machine, s);
}
