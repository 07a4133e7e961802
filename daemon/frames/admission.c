/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/frames/admission.h"

#include <assert.h>

#include "base/base.h"

#define FIRST_COST_NS BASE_NS_PER_MS /* before anything was measured all frames cost the same */

void dmn_admission_init(struct dmn_admission *a)
{
    *a = (struct dmn_admission){.spare = {.uid = (uid_t)-1, .weight = 1}};
    dmn_fair_queue_init(&a->users);
    dmn_fair_queue_init(&a->spare.streams);
    LIST_INIT(&a->shares);
}

static void forget(struct dmn_share *s)
{
    LIST_REMOVE(s, linked);
    free(s);
}

void dmn_admission_deinit(struct dmn_admission *a)
{
    while (!LIST_EMPTY(&a->shares)) {
        assert(LIST_FIRST(&a->shares)->stream_count == 0);
        forget(LIST_FIRST(&a->shares));
    }
}

void dmn_queue_init(struct dmn_queue *q, unsigned priority)
{
    *q = DMN_QUEUE_NULL;
    q->weight = 1u << base_min(priority, 3u);
}

/* Return: the user's share; others who left and owe nothing are forgotten. */
static struct dmn_share *share_of(struct dmn_admission *a, uid_t uid)
{
    struct dmn_share *found = NULL, *s, *next;

    for (s = LIST_FIRST(&a->shares); s; s = next) {
        next = LIST_NEXT(s, linked);
        if (s->uid == uid) {
            found = s;
        } else if (s->stream_count == 0 && !dmn_flow_behind(&a->users, &s->flow)) {
            forget(s);
        }
    }
    if (!found && (found = calloc(1, sizeof(*found)))) {
        found->uid = uid;
        dmn_fair_queue_init(&found->streams);
        LIST_INSERT_HEAD(&a->shares, found, linked);
    }
    return found ? found : &a->spare;
}

void dmn_queue_join(struct dmn_admission *a, struct dmn_queue *q, uid_t uid, unsigned weight)
{
    q->share = share_of(a, uid);
    q->share->weight = q->share == &a->spare ? 1 : weight;
    q->share->stream_count++;
    q->flow = DMN_FLOW_NULL; /* another admission has another virtual time */
}

void dmn_queue_leave(struct dmn_queue *q)
{
    if (q->share) {
        assert(q->flow.waiting == 0);
        q->share->stream_count--;
        q->share = NULL;
    }
}

bool dmn_admission_others(const struct dmn_admission *a, const struct dmn_queue *q)
{
    const struct dmn_share *s;

    LIST_FOREACH(s, &a->shares, linked) {
        if (s != q->share && s->stream_count > 0) {
            return true;
        }
    }
    return q->share != &a->spare && a->spare.stream_count > 0;
}

void dmn_admission_add(struct dmn_admission *a, struct dmn_queue *q)
{
    a->waiting++;
    dmn_flow_add(&q->share->streams, &q->flow);
    dmn_flow_add(&a->users, &q->share->flow);
}

void dmn_admission_drop(struct dmn_admission *a, struct dmn_queue *q)
{
    a->waiting--;
    dmn_flow_drop(&q->share->streams, &q->flow);
    dmn_flow_drop(&a->users, &q->share->flow);
}

struct dmn_queue *dmn_admission_next(const struct dmn_admission *a)
{
    struct dmn_flow *user = dmn_flow_next(&a->users);
    const struct dmn_share *s = user ? base_container_of(user, struct dmn_share, flow) : NULL;

    return s ? base_container_of(dmn_flow_next(&s->streams), struct dmn_queue, flow) : NULL;
}

static unsigned user_weight(const struct dmn_queue *q)
{
    return q->share->weight * q->weight;
}

uint64_t dmn_admission_taken(struct dmn_admission *a, struct dmn_queue *q)
{
    uint64_t cost_ns = q->cost_ns ? q->cost_ns : a->cost_ns ? a->cost_ns : FIRST_COST_NS;

    a->waiting--;
    dmn_flow_taken(&q->share->streams, &q->flow, cost_ns, q->weight);
    dmn_flow_taken(&a->users, &q->share->flow, cost_ns, user_weight(q));
    return cost_ns;
}

static void average(uint64_t *mean, uint64_t value)
{
    *mean = *mean ? *mean - *mean / 8 + value / 8 : value;
}

void dmn_admission_correct(struct dmn_admission *a, struct dmn_queue *q, int64_t more_ns)
{
    dmn_flow_correct(&q->share->streams, &q->flow, more_ns, q->weight);
    dmn_flow_correct(&a->users, &q->share->flow, more_ns, user_weight(q));
}

void dmn_admission_measured(struct dmn_admission *a, struct dmn_queue *q, uint64_t expected_ns,
                            uint64_t cost_ns)
{
    dmn_admission_correct(a, q, (int64_t)(cost_ns - expected_ns));
    average(&q->cost_ns, cost_ns);
    average(&a->cost_ns, cost_ns);
}

/* Fair to those who wait, at either level. If nobody does, to the streams of this user. */
bool dmn_admission_has_turn(const struct dmn_admission *a, const struct dmn_queue *q)
{
    bool users = dmn_flow_others(&a->users, &q->share->flow);
    bool streams = !users || dmn_flow_others(&q->share->streams, &q->flow);

    return !(users && dmn_flow_behind(&a->users, &q->share->flow)) &&
           !(streams && dmn_flow_behind(&q->share->streams, &q->flow));
}

size_t dmn_admission_ahead(const struct dmn_admission *a, const struct dmn_queue *q, size_t own)
{
    size_t here = own + dmn_flow_before(&q->share->streams, &q->flow, own);

    return here + dmn_flow_before(&a->users, &q->share->flow, here);
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
