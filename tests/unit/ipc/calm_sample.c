/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/ipc/calm_sample.h"

#include <stdlib.h>
#include <string.h>

#include "apps/pipectl/doctor/doctor.h"
#include "tests/harness.h"

/* Two seconds of a model of two stages on four cores. %d, %d: 0 and 0, then 1 and 2. */
static const char STATUS[] =
    "{'pid': 7, 'uptime_s': %d00, 'state': 'serving', 'failed_models': [], 'models': [{"
    " 'name': 'net', 'plan': '0-1@bigx2|2-3@little*2', 'epoch': 3, 'algorithm': 'exact',"
    " 'load_ms': 12.5,"
    " 'fps': 50, 'latency_ms': {'p50': 12.5, 'p99': 15.25}, 'in_flight': 2, 'tuning': false,"
    " 'frames': {'admitted': %d00, 'answered': %d00, 'dropped': 0, 'failed': 0},"
    " 'pictures_s': 0.0, 'pictures_beside_s': 0.0, 'warnings': [], 'adapt': {'state': 'watching'},"
    " 'stages': [{'units': '0-1', 'cpus': [0, 1], 'replicas': 1, 'busy': 0.9, 'busy_s': %d.5,"
    "   'cpu_s': %d.5, 'frames': %d00, 'service_ms': 10.5, 'expected_ms': 10.0}, {'units': '2-3', "
    "'cpus': [2, 3],"
    "   'replicas': 2, 'busy': 0.3, 'busy_s': 1.0, 'cpu_s': 1.0, 'service_ms': 12.0,"
    "   'expected_ms': 12.0}]}],"
    " 'sensors': {'policies': [{'policy': 0, 'cpus': [0, 1], 'governor': 'schedutil',"
    "   'freq_khz': 2400000, 'limit_khz': 2400000, 'max_freq_khz': 2400000, 'by_heat': false},"
    "   {'policy': 2, 'cpus': [2, 3], 'governor': 'performance', 'freq_khz': 1800000,"
    "   'limit_khz': 1800000, 'max_freq_khz': 1800000, 'by_heat': false}],"
    "  'thermal': [{'type': 'soc', 'temp_c': 45.0, 'past_trip': false}], 'throttled': false,"
    "  'psi': {'cpu_some_total_us': 5000, 'memory_some_total_us': 70},"
    "  'cgroup': {'quota_cpus': 'none', 'nr_periods': 0, 'nr_throttled': 0, 'throttled_us': 0}},"
    " 'memory': {'resident_bytes': 104857600, 'limit_bytes': null},"
    " 'clients': [{'client': 'cam', 'pid': 9, 'uid': 5, 'opened': [{'stream': 1, 'model': 'net',"
    "   'pixfmt': 'rgb24', 'policy': 'block', 'picture': [64, 48], 'credits': 6,"
    "   'some_s': %d.9, 'more_s': %d.9, 'full_s': 1.0, 'fills': 4}],"
    "   'answered': 100}],"
    " 'refusals': []}";
static const char REST[] =
    "{'models': [{'name': 'net', 'integers': 0, 'warnings': [], 'preprocess': {'width': 64,"
    "   'height': 48}}],"
    " 'units': {'net': [{'unit': 0, 'ewma_ms': 9.0, 'weight_bytes': 10}, {'unit': 1, 'ewma_ms': "
    "9.0,"
    "   'weight_bytes': 0}, {'unit': 2, 'ewma_ms': 0.5, 'weight_bytes': 10}]},"
    " 'explanations': {'net': {'objective': 'throughput', 'runners_up': [{'plan': '0-3@bigx2',"
    "   'gain': 0.25}], 'table': {'measured': 4, 'saved': 2, 'predicted': 6}}},"
    " 'config': [{'key': 'limits.inline_mib', 'value': 16}], 'events': [], 'programs': [],"
    " 'read_only': [], 'steal': 0.0}";

json_t *json_of(const char *text)
{
    char quoted[8192];
    json_error_t e;
    json_t *v;

    snprintf(quoted, sizeof(quoted), "%s", text);
    for (char *at = quoted; *at; at++) {
        *at = *at == '\'' ? '"' : *at;
    }
    v = json_loads(quoted, JSON_DECODE_ANY, &e);
    if (!v) {
        fprintf(stderr, "%s at %d: %s\n", e.text, e.position, quoted);
        abort();
    }
    return v;
}

static json_t *status_of(int second)
{
    char text[8192];

    snprintf(text, sizeof(text), STATUS, second, second, second, second, second, second, second,
             second);
    return json_of(text);
}

json_t *calm(void)
{
    json_t *sample = json_of(REST), *before = status_of(1), *after = status_of(3);

    json_object_set_new(after, "uptime_s", json_real(102));
    json_object_set_new(sample, "before", before);
    json_object_set_new(sample, "after", after);
    /* heavy units, which an f32 model nearly always has */
    json_object_set_new(json_array_get(json_object_get(sample, "models"), 0), "integers",
                        json_integer(2));
    return sample;
}

void set(json_t *sample, const char *path, const char *value)
{
    char copy[128], *at = copy, *part, *next;

    snprintf(copy, sizeof(copy), "%s", path);
    for (part = strsep(&at, "."); (next = strsep(&at, ".")); part = next) {
        sample = json_is_array(sample) ? json_array_get(sample, (size_t)atoi(part))
                                       : json_object_get(sample, part);
    }
    if (json_is_array(sample)) {
        json_array_set_new(sample, (size_t)atoi(part), json_of(value));
    } else {
        json_object_set_new(sample, part, json_of(value));
    }
}

const char *text_of(const json_t *f, const char *key)
{
    const char *text = json_string_value(json_object_get(f, key));

    return text ? text : "-";
}

void finds_nothing(json_t *sample)
{
    json_t *findings = doctor_judge(sample);

    if (json_array_size(findings)) {
        json_dumpf(findings, stderr, JSON_INDENT(1));
    }
    T_EQ(json_array_size(findings), 0);
    json_decref(findings);
    json_decref(sample);
}

void finds(json_t *sample, const char *name, double share, const char *words)
{
    json_t *findings = doctor_judge(sample), *f = json_array_get(findings, 0);
    const json_t *is = json_object_get(f, "share");

    if (json_array_size(findings) != 1 || strcmp(text_of(f, "name"), name) != 0 ||
        !strstr(text_of(f, "text"), words)) {
        json_dumpf(findings, stderr, JSON_INDENT(1));
        fprintf(stderr, "\nwanted %s: %s\n", name, words);
    }
    T_EQ(json_array_size(findings), 1);
    T_STR(text_of(f, "name"), name);
    T_TRUE(strstr(text_of(f, "text"), words) != NULL);
    T_TRUE(strlen(text_of(f, "advice")) > 10);
    if (share < 0) {
        T_TRUE(json_is_null(is));
    } else {
        T_NEAR(json_number_value(is), share, 1e-6);
    }
    T_EQ(doctor_is_well(findings), strcmp(text_of(f, "severity"), "note") == 0);
    json_decref(findings);
    json_decref(sample);
}
