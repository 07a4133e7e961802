/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What pipectl doctor finds in recorded answers: nothing in those of a calm machine, and in each
 * that differs in one thing that thing, with its figures.
 */
#include <string.h>

#include "apps/pipectl/doctor/doctor.h"
#include "tests/harness.h"
#include "tests/unit/ipc/calm_sample.h"

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
          "for 50 % of the time that stage 0-1 had a frame on cpu0-1, b ran there");
    /* it ran for a half of the time on each core, not at once: a team needs both */
    set(other, "after.models.0.stages.0.cpu_s", "2.0");
    json_t *turns = json_deep_copy(other);
    finds(other, "contention", 0.75, "for 75 % of the time");
    /* taking turns, it had the core whenever it held a frame, and waited as long */
    set(turns, "after.models.0.stages.0.cpu_s", "3.5");
    set(turns, "before.models.0.stages.0.waited_s", "1.0");
    set(turns, "after.models.0.stages.0.waited_s", "3.0");
    finds(turns, "contention", 0.5, "for 50 % of the time that stage 0-1 had a frame");
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

TEST_MAIN()
