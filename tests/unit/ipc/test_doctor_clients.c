/* SPDX-License-Identifier: Apache-2.0 */
/* What pipectl doctor finds of clients, models and plans. */
#include <string.h>

#include "apps/pipectl/doctor/doctor.h"
#include "tests/harness.h"
#include "tests/unit/ipc/calm_sample.h"

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
