/* SPDX-License-Identifier: Apache-2.0 */
/* What a model did so far, and what happens once a second. */
#include <string.h>

#include "base.h"
#include "daemon/daemon.h"
#include "daemon/memory.h"
#include "daemon/models.h"

/* What was learned is kept so often, beside every change of plan and the end. */
#define SAVE_NS (300 * BASE_NS_PER_S)

void dmn_model_account(struct dmn_model *m, const struct dmn_record *r)
{
    struct dmn_model_stats *s = &m->stats;

    s->by_status[r->status]++;
    if (r->status == IPC_OK) {
        double ms = r->done_ns > r->arrival_ns ? (double)(r->done_ns - r->arrival_ns) / 1e6 : 0;

        s->answered++;
        s->latency_ms[s->latency_count++ % DMN_LATENCIES] = (float)ms;
        s->latency_sum_s += ms / 1e3;
    } else if (r->status == IPC_DROPPED || r->status == IPC_DEADLINE_EXCEEDED ||
               r->status == IPC_CANCELLED || r->status == IPC_RESOURCE_EXHAUSTED) {
        s->dropped++;
    } else {
        s->failed++;
    }
}

double dmn_model_fps(const struct dmn_model *m, uint64_t now_ns)
{
    const struct dmn_model_stats *s = &m->stats;
    uint64_t since = 0, answered = 0;

    for (size_t i = 0; i < DMN_RATE_SAMPLES; i++) { /* the oldest sample */
        if (s->rate[i].at_ns && (since == 0 || s->rate[i].at_ns < since)) {
            since = s->rate[i].at_ns;
            answered = s->rate[i].answered;
        }
    }
    if (now_ns <= since + BASE_NS_PER_MS) {
        return 0;
    }
    return (double)(s->answered - answered) * 1e9 / (double)(now_ns - since);
}

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

void dmn_model_latency(const struct dmn_model *m, double ret[4])
{
    size_t n = (size_t)base_min(m->stats.latency_count, (uint64_t)DMN_LATENCIES);
    static const double quantile[3] = {0.50, 0.95, 0.99};
    float sorted[DMN_LATENCIES];

    memset(ret, 0, 4 * sizeof(*ret));
    if (n == 0) {
        return;
    }
    memcpy(sorted, m->stats.latency_ms, n * sizeof(sorted[0]));
    qsort(sorted, n, sizeof(sorted[0]), by_value);
    for (size_t i = 0; i < 3; i++) {
        ret[i] = (double)sorted[(size_t)(quantile[i] * (double)(n - 1) + 0.5)];
    }
    ret[3] = (double)sorted[n - 1];
}

/* The slowest stage: its teams' rates add up. */
static uint64_t period(const struct dmn_model *m)
{
    double rate[PL_STAGE_MAX] = {0}, slowest = 0;
    size_t stages = 0;

    for (size_t i = 0; i < pl_team_count(m->pipe); i++) {
        struct pl_team_stats t;

        pl_team_stats(m->pipe, i, &t);
        if (t.service.count == 0 || t.service.ewma_ns <= 0 || t.stage >= PL_STAGE_MAX) {
            continue;
        }
        rate[t.stage] += 1 / t.service.ewma_ns;
        stages = base_max(stages, (size_t)t.stage + 1);
    }
    for (size_t i = 0; i < stages; i++) {
        if (rate[i] > 0 && 1 / rate[i] > slowest) {
            slowest = 1 / rate[i];
        }
    }
    return (uint64_t)slowest;
}

void dmn_model_tick(struct dmn_model *m, uint64_t now_ns)
{
    struct dmn_model_stats *s = &m->stats;

    s->rate[s->rate_at].at_ns = now_ns;
    s->rate[s->rate_at].answered = s->answered;
    s->rate_at = (s->rate_at + 1) % DMN_RATE_SAMPLES;
    m->period_ns = period(m);
    m->busy[1] = m->busy[0];
    m->busy[0].at_ns = now_ns;
    m->busy[0].epoch = pl_epoch(m->pipe);
    for (size_t i = 0; i < pl_team_count(m->pipe) && i < PL_TEAM_MAX; i++) {
        struct pl_team_stats t;

        pl_team_stats(m->pipe, i, &t);
        m->busy[0].busy_ns[i] = t.busy_ns;
    }
    dmn_memory_settle(m, now_ns);
    dmn_planner_learn(m);
    if (!m->expects) { /* nothing was known when the plan began */
        m->expects = dmn_planner_expect(m, pl_current_plan(m->pipe), &m->expected);
    }
    if (m->clocks.learned && now_ns - m->clocks.saved_ns > SAVE_NS && !m->retune) {
        dmn_state_save(m);
    }
}
