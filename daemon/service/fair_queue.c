/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/service/fair_queue.h"

#include <assert.h>

#include "base/base.h"

/* Virtual time of 1 ns for a flow of weight 1, so that a short turn of a heavy flow is not 0. */
#define UNIT 16u
/* No flow owes this much, so a tag that is further ahead is an old one that time has overtaken by
 * half its range: 18 years of computing. */
#define DEBT_MOST (3600u * BASE_NS_PER_S * UNIT)

static bool before(uint64_t a, uint64_t b)
{
    return (int64_t)(a - b) < 0;
}

static uint64_t virtual_time(uint64_t ns, unsigned weight)
{
    const uint64_t most = 600 * BASE_NS_PER_S, units = base_min(ns, most) * UNIT;

    return weight > 1 ? units / weight : units; /* a division takes longer than all the rest */
}

/* Return: the tag with which an idle flow begins to wait. */
static uint64_t from(const struct dmn_fair_queue *q, const struct dmn_flow *f)
{
    return before(f->start, q->now) || f->start - q->now > DEBT_MOST ? q->now : f->start;
}

/* New tags are mostly late ones, so the place is found from the end. */
static void insert(struct dmn_fair_queue *q, struct dmn_flow *f)
{
    struct dmn_flow *at = TAILQ_LAST(&q->flows, dmn_flow_list);

    while (at && before(f->start, at->start)) {
        at = TAILQ_PREV(at, dmn_flow_list, linked);
    }
    if (at) {
        TAILQ_INSERT_AFTER(&q->flows, at, f, linked);
    } else {
        TAILQ_INSERT_HEAD(&q->flows, f, linked);
    }
}

static void move(struct dmn_fair_queue *q, struct dmn_flow *f, uint64_t start)
{
    if (f->waiting) {
        TAILQ_REMOVE(&q->flows, f, linked);
    }
    f->start = start;
    if (f->waiting) {
        insert(q, f);
    }
}

void dmn_fair_queue_init(struct dmn_fair_queue *q)
{
    TAILQ_INIT(&q->flows);
    q->now = 0;
}

void dmn_flow_add(struct dmn_fair_queue *q, struct dmn_flow *f)
{
    if (f->waiting++ == 0) {
        f->start = from(q, f);
        insert(q, f);
    }
}

void dmn_flow_drop(struct dmn_fair_queue *q, struct dmn_flow *f)
{
    assert(f->waiting > 0);
    if (--f->waiting == 0) {
        TAILQ_REMOVE(&q->flows, f, linked);
    }
}

void dmn_flow_taken(struct dmn_fair_queue *q, struct dmn_flow *f, uint64_t cost_ns, unsigned weight)
{
    q->now = before(q->now, f->start) ? f->start : q->now;
    dmn_flow_drop(q, f);
    f->step = virtual_time(cost_ns, weight);
    move(q, f, f->start + f->step);
}

void dmn_flow_correct(struct dmn_fair_queue *q, struct dmn_flow *f, int64_t more_ns,
                      unsigned weight)
{
    if (more_ns > 0) {
        move(q, f, f->start + virtual_time((uint64_t)more_ns, weight));
    } else if (more_ns < 0) {
        move(q, f, f->start - virtual_time(0 - (uint64_t)more_ns, weight));
    }
}

void dmn_flow_charge(struct dmn_fair_queue *q, struct dmn_flow *f, uint64_t cost_ns,
                     unsigned weight)
{
    move(q, f, (f->waiting ? f->start : from(q, f)) + virtual_time(cost_ns, weight));
}

bool dmn_flow_behind(const struct dmn_fair_queue *q, const struct dmn_flow *f)
{
    return before(q->now, f->start);
}

bool dmn_flow_others(const struct dmn_fair_queue *q, const struct dmn_flow *f)
{
    const struct dmn_flow *first = dmn_flow_next(q);

    return first && (first != f || TAILQ_NEXT(first, linked));
}

size_t dmn_flow_before(const struct dmn_fair_queue *q, const struct dmn_flow *f, size_t own)
{
    uint64_t tag = (f->waiting ? f->start : from(q, f)) + own * f->step;
    const struct dmn_flow *other;
    size_t count = 0;

    TAILQ_FOREACH(other, &q->flows, linked) {
        if (before(tag, other->start)) {
            break; /* they are sorted */
        }
        if (other != f) {
            count += other->step ? (size_t)base_min((tag - other->start) / other->step + 1,
                                                    (uint64_t)other->waiting)
                                 : other->waiting;
        }
    }
    return count;
}
