/* SPDX-License-Identifier: Apache-2.0 */
/* A model's rates and memory, and its work once a second. */
#include <malloc.h>

#include "daemon/config/config.h"
#include "daemon/machine/machine.h"
#include "daemon/models/models.h"
#include "daemon/models/process_memory.h"
#include "daemon/service/listeners.h"

#define SETTLED_NS (10 * BASE_NS_PER_S) /* a plan that serves this long will stay for a while */

double dmn_model_fps(const struct dmn_model *m, uint64_t now_ns)
{
    const struct dmn_model_stats *s = &m->stats;
    uint64_t since = 0, answered = 0;

    for (size_t i = 0; i < DMN_RATE_SAMPLES; i++) { /* find the oldest sample */
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

bool dmn_model_team(const struct dmn_model *m, size_t i, struct pl_team_stats *ret)
{
    bool there = i < pl_team_count(m->pipe) && i < PL_TEAM_MAX;

    if (there) {
        pl_team_stats(m->pipe, i, ret);
    }
    return there;
}

/* The period of the slowest stage; the rates of its teams add up. */
static uint64_t period(const struct dmn_model *m)
{
    double rate[PL_STAGE_MAX] = {0}, slowest = 0;
    struct pl_team_stats t;
    size_t stages = 0;

    for (size_t i = 0; dmn_model_team(m, i, &t); i++) {
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

/* Frees packed weights that the present plan does not run, once it has served for some time and no
 * other plan is on trial. */
static void settle_memory(struct dmn_model *m, uint64_t now_ns)
{
    uint32_t epoch = pl_epoch(m->pipe);

    if (m->settling_epoch != epoch || m->of->planner->changing(m) || pl_switching(m->pipe)) {
        m->settling_epoch = epoch;
        m->settling_ns = now_ns;
    } else if (m->settled_epoch != epoch && now_ns - m->settling_ns >= SETTLED_NS) {
        m->settled_epoch = epoch;
        krn_net_trim(m->net);
        (void)malloc_trim(0);
    }
}

struct dmn_memory dmn_memory_now(const struct dmn_models *models)
{
    struct dmn_process_memory process = dmn_process_memory();
    struct dmn_memory t = {
        .resident_bytes = process.resident_bytes,
        .peak_bytes = process.peak_bytes,
    };

    t.for_models_bytes =
        (uint64_t)dmn_config_int(dmn_machine_config(models->machine), DMN_KEY_BOARDS_MEMORY_MIB)
        << 20;
    if (t.for_models_bytes == 0) {
        t.for_models_bytes = dmn_memory_room("", t.resident_bytes);
    }
    for (const struct dmn_model *m = models->models; m; m = m->next) {
        t.weight_bytes += m->model->weight_bytes;
        t.packed_bytes += krn_net_packed_bytes(m->net);
        t.arena_bytes += pl_arena_bytes(m->pipe);
    }
    return t;
}

void dmn_model_tick(struct dmn_model *m, uint64_t now_ns)
{
    struct dmn_model_stats *s = &m->stats;
    struct pl_team_stats t;

    s->rate[s->rate_at].at_ns = now_ns;
    s->rate[s->rate_at].answered = s->answered;
    s->rate_at = (s->rate_at + 1) % DMN_RATE_SAMPLES;
    m->period_ns = period(m);
    m->busy[1] = m->busy[0];
    m->busy[0].at_ns = now_ns;
    m->busy[0].epoch = pl_epoch(m->pipe);
    for (size_t i = 0; dmn_model_team(m, i, &t); i++) {
        m->busy[0].busy_ns[i] = t.busy_ns;
    }
    settle_memory(m, now_ns);
    DMN_TELL(m->of->listeners, second, m, now_ns);
}
