/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What pipectl doctor finds in recorded answers: nothing in those of a calm machine, and in each
 * that differs in one thing that thing, with its figures.
 */
#include <stdlib.h>
#include <string.h>

#include "ipc/pipectl/doctor.h"
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

static json_t *json_of(const char *text)
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

static json_t *calm(void)
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

/* Sets what is at a path of keys and indices, as in "after.models.0.fps". */
static void set(json_t *sample, const char *path, const char *value)
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

static const char *text_of(const json_t *f, const char *key)
{
    const char *text = json_string_value(json_object_get(f, key));

    return text ? text : "-";
}

/* The only finding must be @name with that share (negative: unknown), and say @words. */
static void finds_nothing(json_t *sample)
{
    json_t *findings = doctor_judge(sample);

    if (json_array_size(findings)) {
        json_dumpf(findings, stderr, JSON_INDENT(1));
    }
    T_EQ(json_array_size(findings), 0);
    json_decref(findings);
    json_decref(sample);
}

static void finds(json_t *sample, const char *name, double share, const char *words)
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

TEST(a_calm_machine_is_well)
{
    json_t *sample = calm(), *findings = doctor_judge(sample), *figures = doctor_figures(sample);
    json_t *machine = doctor_machine(sample), *f = json_array_get(figures, 0);

    if (json_array_size(findings)) {
        json_dumpf(findings, stderr, JSON_INDENT(1));
    }
    T_EQ(json_array_size(findings), 0);
    T_TRUE(doctor_is_well(findings));
    T_EQ(json_array_size(figures), 1);
    T_NEAR(json_number_value(json_object_get(f, "fps")), 100, 1e-9);
    T_NEAR(json_number_value(json_object_get(f, "busy")), 1, 1e-9);
    T_NEAR(json_number_value(json_object_get(f, "off_core")), 0, 1e-9);
    T_STR(text_of(f, "stage"), "0-1");
    T_EQ(json_array_size(json_object_get(machine, "clocks")), 2);
    json_decref(sample);
    json_decref(findings);
    json_decref(figures);
    json_decref(machine);
}

TEST(segments_are_named_in_words)
{
    json_t *sample = calm(), *figures = doctor_figures(sample);

    T_TRUE(json_is_null(json_object_get(json_array_get(figures, 0), "segment")));
    json_decref(figures);
    set(sample, "after.models.0.segment",
        "{'of': 'sq', 'first_unit': 10, 'last_unit': 25, 'board': 'head'}");
    figures = doctor_figures(sample);
    T_STR(text_of(json_array_get(figures, 0), "segment"), "sq, units 10-25 for board head");
    json_decref(figures);
    json_decref(sample);
}

TEST(nothing_known_is_nothing_found)
{
    json_t *sample = json_object(), *findings = doctor_judge(sample);

    T_EQ(json_array_size(findings), 0);
    json_decref(findings);
    json_decref(sample);
    sample =
        json_of("{'before': 3, 'after': {'models': [{}, 5, {'stages': [{}, 7]}], 'clients': [1,"
                " {'opened': [2, {}]}], 'refusals': [{}, null], 'sensors': {'policies': [{}]}},"
                " 'models': [{}], 'units': [], 'events': {}, 'explanations': 1, 'config': [{}]}");
    findings = doctor_judge(sample);
    json_decref(findings);
    findings = doctor_figures(sample);
    json_decref(findings);
    json_decref(sample);
}

TEST(a_model_that_answered_nothing_has_no_latency)
{
    json_t *s = calm(), *figures = doctor_figures(s);

    T_NEAR(json_number_value(json_object_get(json_array_get(figures, 0), "p50_ms")), 12.5, 1e-9);
    json_decref(figures);
    set(s, "after.models.0.frames.answered", "0");
    figures = doctor_figures(s);
    T_TRUE(json_is_null(json_object_get(json_array_get(figures, 0), "p50_ms")));
    T_TRUE(json_is_null(json_object_get(json_array_get(figures, 0), "p99_ms")));
    json_decref(figures);
    json_decref(s);
}

TEST(what_is_not_served)
{
    json_t *s = calm();

    set(s, "after.failed_models",
        "[{'name': 'b', 'path': '/m/b.onnx', 'error': '/m/b.onnx: no graph'}]");
    finds(s, "failed-model", 1, "could not be loaded: /m/b.onnx: no graph.");
    s = calm();
    set(s, "after.models", "[]");
    finds(s, "no-model", 1, "every frame is refused");
    s = calm();
    set(s, "after.models.0.warnings", "['a stage makes no progress']");
    set(s, "after.models.0.warning_kinds", "['stalled']");
    finds(s, "stuck", 1, "a stage makes no progress");
    s = calm();
    set(s, "after.models.0.warnings", "['teams share cores']");
    set(s, "after.models.0.warning_kinds", "['cores']");
    finds(s, "crowded-plan", -1, "teams share cores");
    s = calm();
    set(s, "after.models.0.warnings", "['could not be pinned']");
    set(s, "after.models.0.warning_kinds", "['pinning']");
    finds(s, "unpinned", -1, "could not be pinned");
}

/* finds(): and nothing else, whose reasons and advice would be wrong. */
TEST(what_is_not_served_as_meant)
{
    static const char *const cases[][3] = {
        {"declared", "declared", "output y is f32 [1, 4], and the file declares f32 [1, 5]"},
        {"pictures", "no-sidecar", "no sidecar says how; they stay 0 to 255"},
        {"activation", "sidecar", "the sidecar applies softmax to output y"},
        {"labels", "sidecar", "the sidecar has 2 labels, and output y has 10 classes"}};

    for (size_t i = 0; i < base_array_count(cases); i++) {
        json_t *s = calm();
        char kinds[64], texts[128];

        snprintf(kinds, sizeof(kinds), "['%s']", cases[i][0]);
        snprintf(texts, sizeof(texts), "['%s']", cases[i][2]);
        set(s, "models.0.warnings", texts);
        set(s, "models.0.warning_kinds", kinds);
        if (i != 1) { /* in Status, too */
            set(s, "after.models.0.warnings", texts);
            set(s, "after.models.0.warning_kinds", kinds);
        }
        finds(s, cases[i][1], -1, cases[i][2]);
    }
}

TEST(notes_do_not_make_it_unwell)
{
    json_t *s = calm();

    set(s, "before.uptime_s", "1.0");
    set(s, "after.uptime_s", "3.0");
    finds(s, "starting", -1, "3 s only");
    s = calm();
    set(s, "after.models.0.adapt.state", "'verifying'");
    finds(s, "adapting", -1, "(verifying)");
    s = calm();
    set(s, "after.models.0.tuning", "true");
    finds(s, "adapting", -1, "(a search runs)");
    s = calm();
    set(s, "before.models.0.frames.answered", "300");
    set(s, "after.models.0.in_flight", "0");
    finds(s, "idle", -1, "No frame was answered in 2.0 s");
    s = calm();
    set(s, "explanations.net.table.predicted", "20");
    finds(s, "guessed-costs", -1, "20 of 26 figures");
    s = calm();
    set(s, "models.0.integers", "0");
    finds(s, "heavy-units", 9 / 18.5 * (1 - 1 / 1.3),
          "Unit 0 takes 49 % of a frame, 9.00 of 18.50");
}

TEST(clocks_that_are_held_down)
{
    json_t *s = calm();

    set(s, "after.sensors.policies.0.governor", "'powersave'");
    set(s, "after.sensors.policies.0.freq_khz", "1200000");
    finds(s, "governor", 0.5, "Governor powersave holds cpu0-1 at 1.2 of 2.4 GHz");
    s = calm(); /* intel_pstate's powersave follows the load */
    set(s, "after.sensors.policies.1.governor", "'powersave'");
    set(s, "after.sensors.policies.1.min_khz", "400000");
    set(s, "after.sensors.policies.1.freq_khz", "900000");
    finds_nothing(s);
    s = calm();
    set(s, "after.sensors.policies.1.governor", "'powersave'");
    set(s, "after.models.0.stages.1.busy_s", "4.0"); /* two teams for 75 % of 2 s */
    set(s, "after.models.0.stages.1.cpu_s", "4.0");
    set(s, "after.sensors.policies.1.min_khz", "600000");
    set(s, "after.sensors.policies.1.freq_khz", "600000");
    finds(s, "governor", 2 / 3.0, "Governor powersave holds cpu2-3 at 0.6 of 1.8 GHz");
    s = calm(); /* on x86 each CPU has a policy of its own */
    set(s, "after.sensors.policies",
        "[{'policy': 0, 'cpus': [0], 'governor': 'powersave', 'freq_khz': 900000, 'limit_khz':"
        " 1800000, 'max_freq_khz': 1800000}, {'policy': 1, 'cpus': [1], 'governor': 'powersave',"
        " 'freq_khz': 1200000, 'limit_khz': 1800000, 'max_freq_khz': 1800000}]");
    finds(s, "governor", 0.5, "Governor powersave holds cpu0-1 at 0.9 of 1.8 GHz");
    s = calm(); /* the load is low there */
    set(s, "after.sensors.policies.1.governor", "'schedutil'");
    set(s, "after.sensors.policies.1.freq_khz", "600000");
    finds_nothing(s);
    s = calm();
    set(s, "after.sensors.policies.0.freq_khz", "1200000");
    set(s, "read_only", "[0]");
    json_t *found = doctor_judge(s);
    T_TRUE(strstr(text_of(json_array_get(found, 0), "advice"), "cannot be written from here"));
    json_decref(found);
    finds(s, "governor", 0.5, "Governor schedutil");
    s = calm();
    set(s, "after.sensors.policies.0.limit_khz", "1800000");
    set(s, "after.sensors.policies.0.freq_khz", "1800000");
    finds(s, "frequency-limit", 0.25, "holds cpu0-1 at 1.8 of 2.4 GHz");
    s = calm();
    set(s, "after.sensors.policies.0.limit_khz", "1800000");
    set(s, "after.sensors.policies.0.freq_khz", "1800000");
    set(s, "after.sensors.policies.0.by_heat", "true");
    set(s, "after.sensors.thermal.0", "{'type': 'soc', 'temp_c': 85.0, 'past_trip': true}");
    finds(s, "heat", 0.25, "1.8 of 2.4 GHz (soc 85 C, above its trip point)");
    s = calm();
    set(s, "after.sensors.throttled", "true");
    finds(s, "heat", -1, "by how much is not known");
}

TEST(quota_and_memory)
{
    json_t *s = calm();

    set(s, "after.sensors.cgroup",
        "{'quota_cpus': 1.5, 'nr_periods': 20, 'nr_throttled': 10, 'throttled_us': 500000}");
    finds(s, "quota", 0.25, "allows 1.50 CPUs; its quota stopped the daemon in 10 of 20 periods");
    s = calm();
    set(s, "after.memory.limit_bytes", "110100480");
    finds(s, "memory", -1, "has 100 of the 105 MiB");
    s = calm();
    set(s, "before.sensors.psi", "null"); /* a kernel without PSI, as on a Raspberry Pi */
    set(s, "after.sensors.psi", "null");
    finds_nothing(s);
    s = calm();
    set(s, "after.sensors.psi.memory_some_total_us", "500070");
    finds(s, "memory", 0.25, "waited for memory for 25 %");
}

TEST(cores_that_others_use)
{
    json_t *s = calm();

    set(s, "after.models.0.stages.0.cpu_s", "2.5"); /* of 2 s that it held frames it ran 1 s */
    set(s, "after.sensors.psi.cpu_some_total_us", "1005000");
    set(s, "programs", "[{'pid': 4, 'name': 'cc1', 'cores': 0.93}]");
    set(s, "steal", "0.1");
    finds(s, "shared-cores", 0.5,
          "for 50 % of the time that stage 0-1 held a frame on cpu0-1, its cores ran tasks of "
          "others; "
          "tasks waited for a CPU for 50 % of the time. Busiest: cc1 (4) 93 % of a core. The "
          "hypervisor took 10 %");
    s = calm(); /* another model ran for all of that */
    set(s, "after.models.0.stages.0.cpu_s", "2.5");
    json_t *other =
        json_deep_copy(json_array_get(json_object_get(json_object_get(s, "after"), "models"), 0));
    json_object_set_new(other, "name", json_string("b"));
    json_array_append_new(json_object_get(json_object_get(s, "before"), "models"), other);
    other = json_deep_copy(other);
    json_array_append_new(json_object_get(json_object_get(s, "after"), "models"), other);
    set(s, "before.models.1.stages.0.busy_s", "1.0");
    set(s, "before.models.1.stages.0.cpu_s", "1.0");
    set(s, "after.models.1.stages.0.busy_s", "2.0");
    set(s, "after.models.1.stages.0.cpu_s", "2.0");
    set(s, "after.models.1.stages.1", "{}");
    other = json_deep_copy(s);
    finds(s, "contention", 0.5,
          "for 50 % of the time that stage 0-1 held a frame on cpu0-1, b ran there");
    /* it ran for a half of the time on each core, not at once: a team needs both */
    set(other, "after.models.0.stages.0.cpu_s", "2.0");
    finds(other, "contention", 0.75, "for 75 % of the time");
    s = calm();
    set(s, "after.models.0.stages.0.expected_ms", "5.0");
    finds(s, "slow-stage", 0.5,
          "takes 10.00 ms of CPU time for a frame; the planner expected 5.00");
}

/* One stage is busy for a tenth of the time: no more can be won by what slows it. */
TEST(no_more_can_be_won_than_the_stage_is_busy)
{
    static const char *const kinds[][3] = {
        {"after.models.0.stages.0.cpu_s", "1.52", "shared-cores"},
        {"after.models.0.stages.0.expected_ms", "0.2", "slow-stage"},
        {"after.sensors.policies.0.limit_khz", "1200000", "frequency-limit"},
        {"models.0.integers", "0", "heavy-units"},
        {"after.models.0.algorithm", "'manual'", "better-plan"}};

    for (size_t i = 0; i < base_array_count(kinds); i++) {
        json_t *s = calm();

        set(s, "after.models.0.stages.0.busy_s", "1.7");
        set(s, "after.models.0.stages.0.cpu_s", "1.7");
        set(s, "after.models.0.stages.0.expected_ms", "2.0");
        set(s, kinds[i][0], kinds[i][1]);
        finds(s, kinds[i][2], 0.1, "");
    }
    json_t *s = calm(); /* pictures are converted beside the stage for 60 % of the time */
    set(s, "after.models.0.stages.0.busy_s", "1.7");
    set(s, "after.models.0.stages.0.cpu_s", "1.52");
    set(s, "after.models.0.stages.0.expected_ms", "2.0");
    set(s, "after.models.0.pictures_beside_s", "1.2");
    json_t *f = doctor_judge(s);
    T_EQ(json_array_size(f), 2);
    T_STR(text_of(json_array_get(f, 0), "name"), "pictures");
    T_NEAR(json_number_value(json_object_get(json_array_get(f, 0), "share")), 0.7, 1e-6);
    T_STR(text_of(json_array_get(f, 1), "name"), "shared-cores");
    T_NEAR(json_number_value(json_object_get(json_array_get(f, 1), "share")), 0.1, 1e-6);
    json_decref(f);
    json_decref(s);
}

/* A flood of cheap messages beside a camera; a user alone is not put off for anybody. */
TEST(a_user_who_rests_is_named)
{
    static const char before[] = "[{'uid': 5, 'spent_s': 1.0, 'put_off': 7},"
                                 " {'uid': 6, 'spent_s': 10.0, 'put_off': 1000}]";
    static const char after[] = "[{'uid': 5, 'spent_s': 1.1, 'put_off': 7},"
                                " {'uid': 6, 'spent_s': 10.8, 'put_off': 1500}]";
    static const char new_one[] = "[{'uid': 5, 'spent_s': 1.1, 'put_off': 7},"
                                  " {'uid': 7, 'spent_s': 0.5, 'put_off': 90}]";
    static const char alone[] = "[{'uid': 5, 'spent_s': 1.001, 'put_off': 7},"
                                " {'uid': 6, 'spent_s': 10.8, 'put_off': 1500}]";
    json_t *s = calm();

    set(s, "before.loop", before);
    set(s, "after.loop", after);
    finds(s, "loop-user", -1,
          "User 6 keeps the daemon's loop at work for 40 % of the time, and was made to rest 500 "
          "times in 2.0 s so that others come first. Its clients: none for frames; calls of the "
          "control socket.");
    s = calm();
    set(s, "before.loop", before);
    set(s, "after.loop", new_one);
    finds(s, "loop-user", -1, "User 7 keeps the daemon's loop at work for 25 % of the time");
    s = calm();
    set(s, "before.loop", before);
    set(s, "after.loop", alone);
    finds_nothing(s);
    s = calm();
    set(s, "before.loop", before);
    set(s, "after.loop",
        "[{'uid': 5, 'spent_s': 1.5, 'put_off': 77},"
        " {'uid': 6, 'spent_s': 10.1, 'put_off': 1000}]");
    finds(s, "loop-user", -1, "Its clients: \"cam\" (pid 9).");
}

/* Nobody asks about a model that is idle beside others. */
TEST(what_cannot_be_won_is_not_told)
{
    json_t *s = calm(), *f, *idle, *m = json_object_get(json_object_get(s, "after"), "models");

    idle = json_deep_copy(json_array_get(m, 0));
    json_object_set_new(idle, "name", json_string("idle"));
    json_array_append(m, idle);
    json_array_append_new(json_object_get(json_object_get(s, "before"), "models"), idle);
    set(s, "explanations.idle",
        "{'objective': 'throughput', 'runners_up': [], 'table': "
        "{'measured': 0, 'saved': 0, 'predicted': 6}}");
    f = doctor_judge(s);
    T_EQ(json_array_size(f), 0);
    json_decref(f);
    set(s, "models.0.integers", "0"); /* heavy, but it answers a frame a minute */
    set(s, "after.models.0.stages.0.busy_s", "1.501");
    set(s, "after.models.0.stages.1.busy_s", "1.001");
    f = doctor_judge(s);
    for (size_t i = 0; i < json_array_size(f); i++) {
        T_TRUE(strcmp(text_of(json_array_get(f, i), "name"), "heavy-units") != 0);
    }
    json_decref(f);
    json_decref(s);
}

/* The share of pictures is of wall time, which others may have taken. */
TEST(no_unit_takes_more_than_a_frame)
{
    json_t *s = calm(), *f;

    set(s, "models.0.integers", "0");
    set(s, "after.models.0.pictures_s", "1.8");
    set(s, "units.net.1.weight_bytes", "10");
    f = doctor_judge(s);
    T_EQ(json_array_size(f), 2);
    T_STR(text_of(json_array_get(f, 1), "name"), "heavy-units");
    T_TRUE(strstr(text_of(json_array_get(f, 1), "text"),
                  "Unit 1 takes 95 % of a frame, 9.00 of 9.50 ms"));
    json_decref(f);
    json_decref(s);
}

TEST(a_client_that_keeps_its_slots)
{
    json_t *s = calm();

    set(s, "after.models.0.stages.0.busy_s", "1.6"); /* 5 % */
    set(s, "after.models.0.stages.0.cpu_s", "1.6");
    set(s, "after.models.0.stages.0.expected_ms", "2.0");
    set(s, "after.clients.0.opened.0.some_s", "2.0");
    set(s, "after.clients.0.opened.0.more_s", "2.0");
    set(s, "after.clients.0.answered", "120");
    finds_nothing(json_deep_copy(s)); /* a camera of 10 frames a second */
    set(s, "after.clients.0.opened.0.fills", "7");
    finds(s, "slow-client", 0.95,
          "\"cam\" (pid 9) keeps its 6 slots and takes an answer every 100 ms; its frames are "
          "in the daemon for 5 % of the time, and the daemon is idle for 95 %");
}

TEST(models_without_frames_have_no_notes)
{
    json_t *s = calm();
    json_t *after = json_object_get(json_object_get(s, "after"), "models");
    json_t *other = json_deep_copy(json_array_get(after, 0));

    set(s, "explanations.net.table.predicted", "20");
    json_object_set_new(other, "name", json_string("b"));
    json_array_append(json_object_get(json_object_get(s, "before"), "models"), other);
    json_array_append_new(after, other);
    set(s, "after.models.1.in_flight", "0");
    set(s, "explanations.b",
        "{'objective': 'throughput', 'table': {'measured': 0, 'saved': 0, 'predicted': 12}}");
    set(s, "units.b", "[{'unit': 0, 'ewma_ms': 9.0, 'weight_bytes': 10}]");
    set(s, "models.1", "{'name': 'b', 'integers': 0, 'warnings': []}");
    finds(s, "guessed-costs", -1, "20 of 26 figures");
}

TEST(clients)
{
    json_t *s = calm();

    set(s, "after.models.0.stages.0.busy_s", "2.5"); /* half of the time */
    set(s, "after.models.0.stages.0.cpu_s", "2.5");
    set(s, "after.clients.0.opened.0.more_s", "1.9");
    finds(s, "client-waits", 0.5, "has one frame in flight and waits for its answer for 100 %");
    s = calm();
    set(s, "after.models.0.stages.0.busy_s", "2.5");
    set(s, "after.models.0.stages.0.cpu_s", "2.5");
    set(s, "after.clients.0.opened.0.credits", "3");
    set(s, "after.clients.0.opened.0.full_s", "2.8");
    finds(s, "client-waits", 0.5, "own credits for 90 % of the time: it has 3, the plan needs 6");
    s = calm();
    set(s, "after.refusals",
        "[{'client': 'c', 'pid': 3, 'uid': 4, 'what': 'frame', 'status': 'resource_exhausted', "
        "'why':"
        " 'no memory: limits.inline_mib', 'count': 200, 'ago_s': 0.1}]");
    finds(s, "refused", 0.5,
          "200 frames refused, the last 0 s ago, as resource_exhausted: no memory: "
          "limits.inline_mib (limits.inline_mib is 16).");
    s = calm();
    set(s, "after.refusals",
        "[{'client': 'c', 'pid': 3, 'uid': 4, 'what': 'stream', 'status': 'no_such_model', 'why':"
        " 'no model net2; did you mean net?', 'count': 2, 'ago_s': 6}]");
    set(s, "before.refusals",
        "[{'pid': 3, 'what': 'stream', 'status': 'no_such_model', "
        "'count': 2}]");
    finds(s, "refused", -1,
          "(pid 3, user 4): 2 streams refused, the last 6 s ago, as no_such_model: no model net2; "
          "did you mean net?");
    s = calm();
    set(s, "after.refusals",
        "[{'client': 'c', 'pid': 3, 'what': 'frame', 'status': 'deadline_exceeded', 'why': 'late',"
        " 'count': 200, 'ago_s': 0.1}]");
    finds(s, "deadlines", 0.5, "200 frames in 2.0 s, 50 % of all, missed their deadline: late");
    s = calm();
    set(s, "before.refusals", "[{'pid': 3, 'what': 'frame', 'status': 'dropped', 'count': 100}]");
    set(s, "after.refusals",
        "[{'client': '\\u001b[2J', 'pid': 3, 'uid': 4, 'what': 'frame', 'status': 'dropped', "
        "'why': 'newer',"
        " 'count': 300, 'ago_s': 0.1}]");
    finds(s, "dropped", 0.5, "\"?[2J\" (pid 3, user 4): 200 frames");
    s = calm(); /* long ago */
    set(s, "before.refusals", "[{'pid': 3, 'what': 'stream', 'status': 'not_found', 'count': 1}]");
    set(s, "after.refusals",
        "[{'pid': 3, 'what': 'stream', 'status': 'not_found', 'count': 1, 'ago_s': 61}]");
    json_t *none = doctor_judge(s);
    T_EQ(json_array_size(none), 0);
    json_decref(none);
    json_decref(s);
    s = calm();
    set(s, "after.models.0.pictures_s", "1.0");
    finds(s, "pictures", 0.5,
          "takes 50 % of a frame: pictures of up to 64x48 (rgb24) become 64x48");
}

/* A command that is repeated runs as a new process each time. */
TEST(one_reason_is_said_once)
{
    json_t *s = calm();

    set(s, "before.refusals",
        "[{'client': 'p', 'pid': 3, 'uid': 4, 'what': 'stream', 'status': 'not_found', 'count': "
        "1}]");
    set(s, "after.refusals",
        "[{'client': 'p', 'pid': 3, 'uid': 4, 'what': 'stream', 'status': 'not_found', 'why': 'no "
        "x',"
        "  'count': 1, 'ago_s': 5},"
        " {'client': 'p', 'pid': 9, 'uid': 4, 'what': 'stream', 'status': 'not_found', 'why': 'no "
        "x',"
        "  'count': 1, 'ago_s': 1},"
        " {'client': 'p', 'pid': 7, 'uid': 4, 'what': 'stream', 'status': 'not_found', 'why': 'no "
        "x',"
        "  'count': 1, 'ago_s': 2}]");
    finds(
        s, "refused", -1,
        "Client \"p\" (3 processes, the last pid 9, user 4): 2 streams refused in 2.0 s, 3 in all, "
        "the last 1 s ago, as not_found: no x.");
    s = calm();
    set(s, "after.refusals",
        "[{'client': 'p', 'pid': 3, 'uid': 4, 'what': 'stream', 'status': 'not_found', 'why': 'no "
        "x',"
        "  'count': 1, 'ago_s': 5},"
        " {'client': 'p', 'pid': 9, 'uid': 5, 'what': 'stream', 'status': 'not_found', 'why': 'no "
        "x',"
        "  'count': 1, 'ago_s': 1},"
        " {'client': 'p', 'pid': 7, 'uid': 4, 'what': 'stream', 'status': 'not_found', 'why': 'no "
        "y',"
        "  'count': 1, 'ago_s': 2}]");
    json_t *f = doctor_judge(s);
    T_EQ(json_array_size(f), 3); /* another user, another reason */
    json_decref(f);
    json_decref(s);
}

TEST(plans_of_users)
{
    json_t *s = calm();

    set(s, "after.models.0.algorithm", "'manual'");
    finds(s, "better-plan", 0.2, "is a user's; 0-3@bigx2 is predicted to serve 25 % more frames/s");
    s = calm();
    set(s, "after.models.0.algorithm", "'config'");
    set(s, "events",
        "[{'model': 'net', 'trials': [{'plan': '0-3@big', 'bottleneck_ms': 10.0}, {'plan':"
        " '0-1@bigx2|2-3@little*2', 'bottleneck_ms': 20.0}]}, {'model': 'x', 'trials': []}]");
    finds(s, "better-plan", 0.5, "the configuration's; 0-3@big is measured to serve 100 % more");
}

/* A loss of an idle model is below a note of one that clients ask. */
TEST(models_that_nobody_asks_come_last)
{
    json_t *s = calm(), *f, *idle;

    for (size_t i = 0; i < 2; i++) {
        json_t *models = json_object_get(json_object_get(s, i ? "after" : "before"), "models");

        idle = json_deep_copy(
            json_array_get(json_object_get(json_object_get(s, "after"), "models"), 0));
        json_object_set_new(idle, "name", json_string("aside"));
        json_array_insert_new(models, 0, idle);
    }
    set(s, "after.models.0.warnings", "['teams share cores']");
    set(s, "after.models.0.warning_kinds", "['cores']");
    set(s, "after.models.1.adapt", "{'state': 'deciding'}");
    f = doctor_judge(s);
    T_EQ(json_array_size(f), 2);
    T_STR(text_of(json_array_get(f, 0), "name"), "adapting");
    T_STR(text_of(json_array_get(f, 1), "name"), "crowded-plan");
    T_TRUE(!doctor_is_well(f)); /* it is said all the same */
    json_decref(f);
    json_decref(s);
}

TEST(the_costliest_is_first)
{
    json_t *s = calm(), *f;

    set(s, "after.models.0.pictures_s", "0.5");
    set(s, "after.sensors.cgroup", "{'quota_cpus': 1.5, 'throttled_us': 800000}");
    set(s, "after.models.0.warnings", "['teams share cores']");
    set(s, "after.models.0.warning_kinds", "['cores']");
    set(s, "after.failed_models", "[{'name': 'b'}]");
    set(s, "explanations.net.table.predicted", "20");
    static const char *const wanted[] = {"failed-model", "quota", "pictures", "crowded-plan",
                                         "guessed-costs"};
    f = doctor_judge(s);
    T_EQ(json_array_size(f), 5);
    for (size_t i = 0; i < 5; i++) {
        T_STR(text_of(json_array_get(f, i), "name"), wanted[i]);
    }
    json_decref(f);
    json_decref(s);
}

TEST(a_restart_meanwhile_gives_no_rates)
{
    json_t *s = calm(), *figures;

    set(s, "after.pid", "8");
    set(s, "after.models.0.stages.0.cpu_s", "0.0");
    figures = doctor_figures(s);
    T_TRUE(json_is_null(json_object_get(json_array_get(figures, 0), "fps")));
    T_TRUE(json_is_null(json_object_get(json_array_get(figures, 0), "off_core")));
    json_decref(figures);
    T_NEAR(doctor_seconds(s), 0, 0);
    finds(s, "restarted", -1, "Another process serves than at first");
    s = calm(); /* in a container every daemon is process 1 */
    set(s, "before.uptime_s", "500.0");
    T_NEAR(doctor_seconds(s), 0, 0);
    finds(s, "restarted", -1, "was started again");
}

TEST(figures_of_a_model_that_was_loaded_again_begin_then)
{
    json_t *s = calm(), *figures;

    set(s, "after.models.0.load_ms", "12.75"); /* more frames than before, but others */
    figures = doctor_figures(s);
    T_NEAR(json_real_value(json_object_get(json_array_get(figures, 0), "fps")), 150, 1e-9);
    json_decref(figures);
    finds(s, "adapting", -1, "loaded again meanwhile");
    s = calm();
    set(s, "after.models.0.frames.admitted", "90");
    set(s, "after.models.0.frames.answered", "80");
    set(s, "after.models.0.in_flight", "8");
    figures = doctor_figures(s);
    T_NEAR(json_real_value(json_object_get(json_array_get(figures, 0), "fps")), 40, 1e-9);
    json_decref(figures);
    finds(s, "adapting", -1, "loaded again meanwhile");
}

TEST(a_frame_holds_a_team_for_the_time_that_was_watched)
{
    json_t *s = calm(), *figures = doctor_figures(s);
    const json_t *f = json_array_get(figures, 0);

    /* in two seconds 200 frames held one team for two; its last value is 10.5 */
    T_NEAR(json_real_value(json_object_get(f, "busy")), 1, 1e-9);
    T_NEAR(json_real_value(json_object_get(f, "service_ms")), 10, 1e-9);
    json_decref(figures);
    json_decref(s);
}

TEST_MAIN()
