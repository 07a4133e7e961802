/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/frames/admission.h"

#include "base.h"

void dmn_admission_init(struct dmn_admission *a)
{
    TAILQ_INIT(&a->turns);
    a->waiting = 0;
}

void dmn_queue_init(struct dmn_queue *q, unsigned priority)
{
    *q = DMN_QUEUE_NULL;
    q->weight = 1u << base_min(priority, 3u);
}

void dmn_admission_add(struct dmn_admission *a, struct dmn_queue *q)
{
    a->waiting++;
    if (q->waiting++ == 0) {
        q->turn = q->weight;
        TAILQ_INSERT_TAIL(&a->turns, q, linked);
    }
}

void dmn_admission_drop(struct dmn_admission *a, struct dmn_queue *q)
{
    a->waiting--;
    if (--q->waiting == 0) {
        TAILQ_REMOVE(&a->turns, q, linked);
    }
}

struct dmn_queue *dmn_admission_next(const struct dmn_admission *a)
{
    return TAILQ_FIRST(&a->turns);
}

void dmn_admission_taken(struct dmn_admission *a, struct dmn_queue *q)
{
    a->waiting--;
    if (--q->waiting == 0) {
        TAILQ_REMOVE(&a->turns, q, linked);
    } else if (--q->turn == 0) {
        q->turn = q->weight;
        TAILQ_REMOVE(&a->turns, q, linked);
        TAILQ_INSERT_TAIL(&a->turns, q, linked);
    }
}

bool dmn_admission_misses_deadline(uint64_t deadline_ns, uint64_t now_ns, size_t ahead,
                                   uint64_t period_ns, uint64_t latency_ns)
{
    uint64_t left, need;

    if (deadline_ns == 0) {
        return false;
    }
    if (now_ns >= deadline_ns) {
        return true;
    }
    if (ahead == 0 || period_ns == 0) {
        return false;
    }
    left = deadline_ns - now_ns;
    return __builtin_mul_overflow(period_ns, (uint64_t)ahead, &need) ||
           __builtin_add_overflow(need, latency_ns, &need) || need > left;
}
