/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/admission.h"

#include "base.h"

void dmn_queue_init(struct dmn_queue *q, unsigned priority)
{
    *q = DMN_QUEUE_NULL;
    q->weight = 1u << base_min(priority, 3u);
}

void dmn_admission_add(struct dmn_admission *a, struct dmn_queue *q)
{
    a->waiting++;
    if (q->waiting++ > 0) {
        return;
    }
    q->turn = q->weight;
    if (!a->head) {
        q->next = q->prev = q;
        a->head = q;
        return;
    }
    q->next = a->head; /* behind all others */
    q->prev = a->head->prev;
    q->prev->next = q;
    a->head->prev = q;
}

static void unlist(struct dmn_admission *a, struct dmn_queue *q)
{
    if (q->next == q) {
        a->head = NULL;
    } else {
        q->prev->next = q->next;
        q->next->prev = q->prev;
        if (a->head == q) {
            a->head = q->next;
        }
    }
    q->next = q->prev = NULL;
}

void dmn_admission_drop(struct dmn_admission *a, struct dmn_queue *q)
{
    a->waiting--;
    if (--q->waiting == 0) {
        unlist(a, q);
    }
}

struct dmn_queue *dmn_admission_next(const struct dmn_admission *a)
{
    return a->head;
}

void dmn_admission_taken(struct dmn_admission *a, struct dmn_queue *q)
{
    a->waiting--;
    if (--q->waiting == 0) {
        unlist(a, q);
    } else if (--q->turn == 0) {
        q->turn = q->weight;
        a->head = q->next;
    }
}

bool dmn_admission_hopeless(uint64_t deadline_ns, uint64_t now_ns, size_t ahead, uint64_t period_ns,
                            uint64_t latency_ns)
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
