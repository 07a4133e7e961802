/* SPDX-License-Identifier: Apache-2.0 */
/* The ring of events: what is kept, what can be completed, what is dropped. */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "daemon/control/json.h"
#include "daemon/plans/plans.h"
#include "daemon/plans/switch.h"
#include "tests/harness.h"

static struct dmn_history_event *add(struct dmn_history *h, const char *model,
                                     struct dmn_decided *decided)
{
    return dmn_history_add(h, &(struct dmn_history_event){.model = model,
                                                          .cause = DMN_CAUSE_REQUEST,
                                                          .origin = DMN_ORIGIN_EXACT,
                                                          .plan_before = "0-1@big",
                                                          .plan_after = "0-0@big|1-1@big",
                                                          .fps_before = 10,
                                                          .fps_after = -1,
                                                          .outcome = DMN_OUTCOME_SWITCHED,
                                                          .decided = decided});
}

static struct dmn_decided *decided(void)
{
    struct tun_record r = TUN_RECORD_NULL;
    struct tun_decision d = {.cause = TUN_CAUSE_GOVERNOR};

    return dmn_decided_new(&r, &d);
}

TEST(the_ring_has_its_own_strings)
{
    char model[] = "digits", detail[] = "why";
    struct dmn_history h;

    T_EQ(dmn_history_init(&h, 2), 0);
    T_TRUE(dmn_history_get(&h, 0) == NULL);
    T_TRUE(dmn_history_add(&h, &(struct dmn_history_event){.model = model,
                                                           .detail = detail,
                                                           .cause = DMN_CAUSE_GPIO,
                                                           .plan_after = "0-1@big",
                                                           .outcome = DMN_OUTCOME_NOTED}) != NULL);
    model[0] = detail[0] = 'x';
    T_STR(dmn_history_get(&h, 0)->model, "digits");
    T_STR(dmn_history_get(&h, 0)->detail, "why");
    T_TRUE(dmn_history_get(&h, 0)->plan_before == NULL);
    T_EQ(dmn_history_get(&h, 0)->id, 1);
    T_TRUE(dmn_history_get(&h, 1) == NULL);
    dmn_history_deinit(&h);
}

TEST(the_newest_pushes_the_oldest_out)
{
    struct dmn_history h;

    T_EQ(dmn_history_init(&h, 3), 0);
    for (int i = 0; i < 7; i++) {
        T_TRUE(add(&h, "a", NULL) != NULL);
    }
    for (size_t i = 0; i < 3; i++) {
        T_EQ(dmn_history_get(&h, i)->id, 7 - i);
    }
    T_TRUE(dmn_history_get(&h, 3) == NULL);
    dmn_history_deinit(&h);
}

TEST(an_event_is_completed_even_when_it_was_pushed_out)
{
    struct dmn_history_event *e;
    struct dmn_history h;

    T_EQ(dmn_history_init(&h, 1), 0);
    e = dmn_event_ref(add(&h, "a", NULL));
    T_TRUE(add(&h, "b", NULL) != NULL);
    dmn_event_measured(e, DMN_OUTCOME_SWITCHED, 50, 120, 1);
    T_TRUE(e->fps_after > 49.9 && e->fps_after < 50.1);
    T_EQ(e->lost, 1);
    T_EQ(e->trial_count, 1);
    T_STR(e->trials[0].plan, "0-0@big|1-1@big");
    T_EQ(e->trials[0].frames, 120);
    T_TRUE(e->trials[0].kept);
    T_EQ((int)(e->trials[0].bottleneck_ns / 1e4 + 0.5), 2000);
    T_STR(dmn_history_get(&h, 0)->model, "b");
    dmn_event_unref(e);
    dmn_history_deinit(&h);
}

TEST(a_plan_that_is_rolled_back_gives_way_to_the_one_before)
{
    struct dmn_history_event *e;
    struct dmn_history h;

    T_EQ(dmn_history_init(&h, 1), 0);
    e = add(&h, "a", NULL);
    dmn_event_measured(e, DMN_OUTCOME_ROLLED_BACK, -1, 3, 0);
    T_STR(e->plan_after, "0-1@big");
    T_STR(e->trials[0].plan, "0-0@big|1-1@big");
    T_TRUE(!e->trials[0].kept);
    dmn_history_deinit(&h);
}

/* What a search tried stays, and one of it is marked: the newest of the plan that serves. */
TEST(a_plan_that_a_search_found_is_measured_beside_its_trials)
{
    static const char *const plans[] = {"before", "found"};
    struct dmn_history h;
    struct dmn_history_event *e;
    struct dmn_history_trial *trials = calloc(2, sizeof(*trials));

    T_EQ(dmn_history_init(&h, 4), 0);
    for (size_t i = 0; i < 2; i++) {
        trials[i] = (struct dmn_history_trial){.plan = strdup(plans[i]), .kept = i == 1};
    }
    e = dmn_history_add(&h, &(struct dmn_history_event){.model = "m",
                                                        .plan_before = plans[0],
                                                        .plan_after = plans[1],
                                                        .searched = true,
                                                        .trials = trials,
                                                        .trial_count = 2,
                                                        .lost = 3});
    dmn_event_measured(e, DMN_OUTCOME_SWITCHED, 50, 120, 1);
    T_EQ(e->trial_count, 3);
    T_EQ(e->lost, 3);
    T_EQ(e->trials[2].role, DMN_ROLE_SERVING);
    T_TRUE(e->trials[2].kept && !e->trials[1].kept);
    dmn_event_measured(e, DMN_OUTCOME_ROLLED_BACK, 40, 10, 0);
    T_EQ(e->trial_count, 4);
    T_STR(e->plan_after, "before");
    T_TRUE(e->trials[0].kept && !e->trials[2].kept && !e->trials[3].kept);
    dmn_history_deinit(&h);
}

TEST(only_the_newest_decisions_keep_their_inputs)
{
    struct dmn_decided *d = decided();
    struct dmn_history h;
    size_t with = 0;

    T_EQ(dmn_history_init(&h, DMN_HISTORY_DECISIONS + 8), 0);
    for (size_t i = 0; i < DMN_HISTORY_DECISIONS + 4; i++) {
        T_TRUE(add(&h, "a", d) != NULL);
    }
    T_EQ(d->references, DMN_HISTORY_DECISIONS + 1); /* ours, too */
    for (size_t i = 0; i < DMN_HISTORY_DECISIONS + 4; i++) {
        with += dmn_history_get(&h, i)->decided != NULL;
        T_EQ(dmn_history_get(&h, i)->decided != NULL, i < DMN_HISTORY_DECISIONS);
    }
    T_EQ(with, DMN_HISTORY_DECISIONS);
    dmn_history_deinit(&h);
    T_EQ(d->references, 1);
    dmn_decided_unref(d);
}

TEST(events_have_the_keys_that_scripts_read)
{
    static const char *const keys[] = {
        "id",        "at",     "model",          "cause",       "detail",
        "algorithm", "trials", "plan_before",    "plan_after",  "fps_before",
        "fps_after", "lost",   "predicted_gain", "duration_ms", "outcome",
    };
    struct dmn_history_event *e;
    struct dmn_history h;
    json_t *j, *t;

    T_EQ(dmn_history_init(&h, 1), 0);
    e = add(&h, "a", NULL);
    e->predicted_gain = INFINITY;
    j = dmn_event_json(e);
    for (size_t i = 0; i < base_array_count(keys); i++) {
        T_TRUE(json_object_get(j, keys[i]) != NULL);
    }
    T_EQ(json_object_size(j), base_array_count(keys));
    T_STR(json_string_value(json_object_get(j, "cause")), "request");
    T_STR(json_string_value(json_object_get(j, "algorithm")), "exact");
    T_STR(json_string_value(json_object_get(j, "outcome")), "switched");
    T_TRUE(json_is_null(json_object_get(j, "predicted_gain")));
    T_TRUE(json_is_null(json_object_get(j, "fps_after")));
    json_decref(j);
    dmn_event_measured(e, DMN_OUTCOME_SWITCHED, 4, 8, 0);
    e->trials[0].role = DMN_ROLE_SEARCH;
    e->trials[0].stopped = true;
    e->searched = true;
    e->asked = 9;
    j = dmn_event_json(e);
    t = json_array_get(json_object_get(j, "trials"), 0);
    T_STR(json_string_value(json_object_get(t, "role")), "search");
    T_EQ((int)json_real_value(json_object_get(t, "bottleneck_ms")), 250);
    T_TRUE(json_is_true(json_object_get(t, "stopped")));
    T_TRUE(json_is_null(json_object_get(t, "latency_ms")));
    T_EQ(json_integer_value(json_object_get(j, "trial_count")), 9);
    T_STR(json_string_value(json_object_get(j, "objective")), "throughput");
    json_decref(j);
    dmn_history_deinit(&h);
}

TEST(every_cause_and_origin_has_its_name)
{
    static const char *const origins[] = {"none", "exact", "shisha", "manual", "config", "saved"};

    for (int i = 0; i < DMN_CAUSE_COUNT; i++) {
        for (int k = 0; k <= i; k++) {
            T_EQ(strcmp(dmn_cause_name((enum dmn_cause)i), dmn_cause_name((enum dmn_cause)k)) == 0,
                 i == k);
        }
    }
    for (size_t i = 0; i < base_array_count(origins); i++) {
        struct dmn_origin o = dmn_origin_find(origins[i]);

        T_STR(dmn_origin_name(o), origins[i]);
        T_EQ(dmn_origin_pinned(o),
             strcmp(origins[i], "manual") == 0 || strcmp(origins[i], "config") == 0);
        T_EQ(o.algorithm == &tun_exact, strcmp(origins[i], "exact") == 0);
    }
    T_EQ(dmn_origin_find("no such search").from, DMN_FROM_NOBODY);
}

/* As adapt/ does it: it switches, measures, and goes back. */
TEST(each_outcome_of_an_event_is_counted_once)
{
    struct dmn_plans plans = {0};
    struct dmn_planning planning = {.of = &plans};
    struct dmn_model m = {.name = "digits", .planning = &planning};
    const uint64_t *of = planning.counts.events[TUN_CAUSE_CONTENTION];
    const struct dmn_history_event event = {.cause = dmn_cause_of(TUN_CAUSE_CONTENTION),
                                            .plan_before = "0-0@big|1-1@big",
                                            .plan_after = "0-1@big",
                                            .outcome = DMN_OUTCOME_SWITCHED};
    struct dmn_history_event *e;

    T_EQ(dmn_history_init(&plans.history, 4), 0);
    e = dmn_plan_event(&m, &event);
    T_STR(e->model, "digits");
    dmn_plan_event_measured(&m, e, DMN_OUTCOME_SWITCHED, 50, 10, 0);
    T_EQ(of[DMN_OUTCOME_SWITCHED], 1);
    dmn_plan_event_measured(&m, e, DMN_OUTCOME_ROLLED_BACK, 40, 10, 0);
    T_EQ(of[DMN_OUTCOME_SWITCHED], 1);
    T_EQ(of[DMN_OUTCOME_ROLLED_BACK], 1);
    T_EQ(e->outcome, DMN_OUTCOME_ROLLED_BACK);
    dmn_plan_event_measured(&m, NULL, DMN_OUTCOME_SWITCHED, 0, 0, 0);
    T_EQ(of[DMN_OUTCOME_SWITCHED], 1);
    dmn_history_deinit(&plans.history);
}

static void add_of(struct dmn_history *h, const char *before, const char *after,
                   enum dmn_cause cause, enum dmn_event_outcome outcome)
{
    T_TRUE(dmn_history_add(h, &(struct dmn_history_event){.model = "a",
                                                          .cause = cause,
                                                          .origin = DMN_ORIGIN_EXACT,
                                                          .plan_before = before,
                                                          .plan_after = after,
                                                          .outcome = outcome}) != NULL);
}

static uint64_t chosen(const struct dmn_history *h, const char *plan)
{
    const struct dmn_history_event *e = dmn_history_chosen(h, "a", plan);

    return e ? e->id : 0;
}

TEST(the_event_that_chose_the_plan_is_found)
{
    struct dmn_history h;

    T_EQ(dmn_history_init(&h, 6), 0);
    T_EQ(chosen(&h, "0-1@big"), 0);
    add_of(&h, NULL, "0-1@big", DMN_CAUSE_START, DMN_OUTCOME_SERVING);
    add_of(&h, "0-1@big", "0-1@big", DMN_CAUSE_REQUEST, DMN_OUTCOME_KEPT);
    add(&h, "another", NULL);
    T_EQ(chosen(&h, "0-1@big"), 1);
    T_EQ(chosen(&h, "0-1@little"), 0); /* on trial */
    add_of(&h, "0-1@big", "0-1@little", DMN_CAUSE_REQUEST, DMN_OUTCOME_DEADLINE);
    add_of(&h, "0-1@little", "0-0@b2|1-1@here", DMN_CAUSE_BOARD, DMN_OUTCOME_SWITCHED);
    T_EQ(chosen(&h, "0-1@little"), 4);
    T_EQ(chosen(&h, "0-1@big"), 0); /* not any more */
    add_of(&h, "0-1@big", "0-1@big", dmn_cause_of(TUN_CAUSE_CONTENTION), DMN_OUTCOME_ROLLED_BACK);
    T_EQ(chosen(&h, "0-1@big"), 6); /* again */
    for (int i = 0; i < 6; i++) {
        add_of(&h, "0-1@big", "0-1@big", DMN_CAUSE_REQUEST, DMN_OUTCOME_KEPT);
    }
    T_EQ(chosen(&h, "0-1@big"), 0); /* dropped */
    dmn_history_deinit(&h);
}

TEST(who_chose_a_plan_has_a_name)
{
    const struct dmn_origin user = {.from = DMN_FROM_USER}, config = {.from = DMN_FROM_CONFIG};
    const struct {
        struct dmn_history_event e;
        const char *name;
    } rows[] = {
        {{.outcome = DMN_OUTCOME_SERVING, .cause = DMN_CAUSE_REQUEST, .origin = user}, "start"},
        {{.cause = DMN_CAUSE_REQUEST, .origin = user}, "hand"},
        {{.cause = DMN_CAUSE_CONFIG, .origin = config}, "config"},
        {{.cause = DMN_CAUSE_REQUEST, .origin = DMN_ORIGIN_EXACT}, "request"},
        {{.cause = DMN_CAUSE_REQUEST, .origin = DMN_ORIGIN_EXACT, .searched = true}, "retune"},
        {{.cause = DMN_CAUSE_GPIO, .origin = DMN_ORIGIN_EXACT, .searched = true}, "retune"},
        {{.cause = dmn_cause_of(TUN_CAUSE_THERMAL), .searched = true}, "adaptation"},
        {{.cause = dmn_cause_of(TUN_CAUSE_CONTENTION), .origin = user}, "adaptation"},
    };

    for (size_t i = 0; i < base_array_count(rows); i++) {
        T_STR(dmn_event_chooser(&rows[i].e), rows[i].name);
    }
}

TEST_MAIN()
