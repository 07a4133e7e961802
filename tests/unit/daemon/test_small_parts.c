/* SPDX-License-Identifier: Apache-2.0 */
/* Small parts: arguments, history, log limits, refusals, what streams wait for. */
#include "base/base.h"
#include "daemon/control/json.h"
#include "daemon/daemon.h"
#include "daemon/frames/peer.h"
#include "daemon/frames/stream.h"
#include "daemon/plans/history.h"
#include "daemon/service/log.h"
#include "tests/harness.h"

TEST(model_names_from_arguments)
{
    static const struct {
        const char *text, *name, *file;
    } cases[] = {
        {"a=/x/y.onnx", "a", "/x/y.onnx"},  {"/x/y.onnx", "y", "/x/y.onnx"},
        {"y.v2.onnx", "y.v2", "y.v2.onnx"}, {"/x=1/y.onnx", "y", "/x=1/y.onnx"},
        {"noext", "noext", "noext"},        {"=x", "", "x"},
        {"/x/.onnx", ".onnx", "/x/.onnx"},  {"a=b=c", "a", "b=c"},
    };

    for (size_t i = 0; i < base_array_count(cases); i++) {
        char name[64];

        T_STR(dmn_args_model_name(cases[i].text, name, sizeof(name)), cases[i].file);
        T_STR(name, cases[i].name);
    }
}

TEST(history_keeps_the_newest)
{
    struct dmn_history h;
    json_t *list;

    T_EQ(dmn_history_init(&h, 4), 0);
    list = dmn_history_json(&h, "", 10);
    T_EQ(json_array_size(list), 0);
    json_decref(list);
    for (int i = 1; i <= 10; i++) {
        T_TRUE(dmn_history_add(&h, &(struct dmn_history_event){.model = i % 2 ? "odd" : "even",
                                                               .cause = DMN_CAUSE_REQUEST,
                                                               .origin = DMN_ORIGIN_EXACT,
                                                               .plan_after = "0-1@big",
                                                               .fps_before = -1,
                                                               .outcome = DMN_OUTCOME_SWITCHED}) !=
               NULL);
    }
    list = dmn_history_json(&h, "", 10);
    T_EQ(json_array_size(list), 4);
    T_EQ(json_integer_value(json_object_get(json_array_get(list, 0), "id")), 7);
    T_EQ(json_integer_value(json_object_get(json_array_get(list, 3), "id")), 10);
    T_TRUE(json_is_null(json_object_get(json_array_get(list, 0), "fps_before")));
    T_TRUE(json_is_null(json_object_get(json_array_get(list, 0), "plan_before")));
    json_decref(list);
    list = dmn_history_json(&h, "odd", 1);
    T_EQ(json_array_size(list), 1);
    T_EQ(json_integer_value(json_object_get(json_array_get(list, 0), "id")), 9);
    json_decref(list);
    dmn_history_deinit(&h);
}

TEST(log_limit_counts_what_it_holds_back)
{
    struct dmn_log_limit limit = {0};
    uint64_t now = 1000;
    int allowed = 0;

    for (int i = 0; i < 100; i++) {
        allowed += dmn_log_allowed(&limit, now + (uint64_t)i);
    }
    T_EQ(allowed, 10);
    T_EQ(limit.suppressed, 90);
    T_TRUE(dmn_log_allowed(&limit, now + 11 * BASE_NS_PER_S));
    T_EQ(limit.suppressed, 0);
}

TEST(equal_refusals_share_an_entry_and_the_quietest_gives_way)
{
    struct dmn_refused_client all[DMN_REFUSALS] = {0};
    struct dmn_refused_client r = {
        .pid = 1, .what = DMN_REFUSED_FRAME, .status = IPC_DROPPED, .why = "a", .last_ns = 100};

    dmn_refusals_add(all, &r);
    r.last_ns = 900;
    r.why[0] = 'b';
    dmn_refusals_add(all, &r);
    T_EQ(all[0].count, 2);
    T_STR(all[0].why, "b");
    for (size_t i = 1; i < DMN_REFUSALS; i++) {
        r.pid++;
        r.last_ns = 100 + i;
        dmn_refusals_add(all, &r);
    }
    for (size_t i = 0; i < DMN_REFUSALS; i++) {
        T_EQ(all[i].pid, (pid_t)i + 1);
    }
    r.status = IPC_UNAVAILABLE; /* the newest process, for another reason */
    r.last_ns = 1000;
    dmn_refusals_add(all, &r);
    T_EQ(all[0].count, 2); /* the first is not the oldest any more */
    T_EQ(all[1].pid, (pid_t)DMN_REFUSALS);
    T_EQ(all[1].count, 1);
    T_EQ(all[DMN_REFUSALS - 1].count, 1);
}

TEST(a_stream_counts_for_how_long_it_waits)
{
    struct ipc_flow flow = {.credits = 2};
    struct dmn_stream_use u = {0};

    dmn_stream_use_until(&u, &flow, 1000); /* nothing was known before */
    flow.unanswered = 1;
    dmn_stream_use_until(&u, &flow, 1010);
    flow.unanswered = 2;
    dmn_stream_use_until(&u, &flow, 1030);
    flow.unanswered = 0;
    dmn_stream_use_until(&u, &flow, 1100);
    dmn_stream_use_until(&u, &flow, 1090); /* clocks of two cores */
    T_EQ(u.some_ns, 30);
    T_EQ(u.more_ns, 20);
    T_EQ(u.full_ns, 20);
}

TEST_MAIN()
