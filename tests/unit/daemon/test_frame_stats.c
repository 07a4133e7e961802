/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of answered frames: buckets and sums are exact, and all counts agree with each other. */
#include <string.h>

#include "base/base.h"
#include "daemon/frames/clients.h"
#include "tests/harness.h"

static uint64_t count_of(const struct dmn_histogram *h)
{
    uint64_t count = 0;

    for (size_t i = 0; i <= DMN_BUCKETS; i++) {
        count += h->count[i];
    }
    return count;
}

TEST(bounds_are_five_a_decade)
{
    T_EQ(dmn_histogram_ns[0], 10000);
    T_EQ(dmn_histogram_ns[DMN_BUCKETS - 1], 25000000000ull);
    for (size_t i = 1; i < DMN_BUCKETS; i++) {
        double ratio = (double)dmn_histogram_ns[i] / (double)dmn_histogram_ns[i - 1];

        T_TRUE(ratio > 1.55 && ratio <= 1.6001);
    }
    for (size_t i = 5; i < DMN_BUCKETS; i++) {
        T_EQ(dmn_histogram_ns[i], 10 * dmn_histogram_ns[i - 5]);
    }
}

TEST(a_bound_is_in_its_bucket)
{
    struct dmn_histogram h = {0};

    for (size_t i = 0; i < DMN_BUCKETS; i++) {
        uint64_t before = h.count[i], next = h.count[i + 1];

        dmn_histogram_add(&h, dmn_histogram_ns[i]);
        T_EQ(h.count[i], before + 1);
        dmn_histogram_add(&h, dmn_histogram_ns[i] + 1);
        T_EQ(h.count[i + 1], next + 1);
    }
    dmn_histogram_add(&h, 0);
    T_EQ(h.count[0], 2);
    T_EQ(count_of(&h), 2 * DMN_BUCKETS + 1);
}

TEST(random_times_are_in_the_bucket_that_a_plain_search_finds)
{
    for (size_t round = 0; round < 2000; round++) {
        uint64_t ns = (uint64_t)t_random() >> t_range(0, 40);
        struct dmn_histogram h = {0};
        size_t i = 0;

        while (i < DMN_BUCKETS && dmn_histogram_ns[i] < ns) {
            i++;
        }
        dmn_histogram_add(&h, ns);
        T_EQ(h.count[i], 1);
        T_EQ(count_of(&h), 1);
        T_EQ(h.sum_ns, ns);
    }
}

static struct dmn_frame_end random_end(void)
{
    struct dmn_frame_end e = {.policy = (enum ipc_policy)t_range(0, IPC_POLICY_COUNT - 1),
                              .why = (enum dmn_no_result)t_range(0, DMN_NO_RESULT_COUNT - 1),
                              .arrival_ns = 1000,
                              .queue_ns = (uint64_t)t_range(0, 1000000000),
                              .compute_ns = (uint64_t)t_range(0, 1000000000),
                              .prepare_ns = (uint64_t)t_range(0, 1)};

    e.status = dmn_no_results[e.why].status;
    e.done_ns = e.arrival_ns + e.queue_ns + e.compute_ns;
    return e;
}

TEST(all_counts_agree)
{
    struct dmn_client_stats s;
    uint64_t frames = 3000, statuses = 0, policies = 0, reasons = 0, prepared = 0;

    memset(&s, 0, sizeof(s));
    for (uint64_t i = 0; i < frames; i++) {
        struct dmn_frame_end e = random_end();

        prepared += e.status == IPC_OK && e.prepare_ns;
        dmn_client_stats_answered(&s, &e);
    }
    for (size_t i = 0; i < IPC_STATUS_COUNT; i++) {
        statuses += s.by_status[i];
        for (size_t p = 0; p < IPC_POLICY_COUNT; p++) {
            policies += s.by_policy[p][i];
        }
    }
    for (size_t i = 0; i < DMN_NO_RESULT_COUNT; i++) {
        reasons += s.by_reason[i];
    }
    T_EQ(statuses, frames);
    T_EQ(policies, frames);
    T_EQ(reasons, frames - s.by_status[IPC_OK]);
    T_EQ(s.by_reason[DMN_NO_RESULT_NONE], 0);
    T_EQ(count_of(&s.latency), s.by_status[IPC_OK]);
    T_EQ(count_of(&s.queue), s.by_status[IPC_OK]);
    T_EQ(count_of(&s.compute), s.by_status[IPC_OK]);
    T_EQ(count_of(&s.preparing), prepared);
    T_EQ(s.latency.sum_ns, s.queue.sum_ns + s.compute.sum_ns);
    T_EQ(s.latency_count, s.by_status[IPC_OK]);
}

TEST(every_reason_has_a_name_and_a_status)
{
    for (int i = DMN_NO_RESULT_NONE + 1; i < DMN_NO_RESULT_COUNT; i++) {
        T_TRUE(dmn_no_results[i].name != NULL);
        T_TRUE(dmn_no_results[i].status != IPC_OK);
        for (int k = 0; k < i; k++) {
            T_TRUE(strcmp(dmn_no_results[i].name, dmn_no_results[k].name) != 0);
        }
    }
}

TEST_MAIN()
