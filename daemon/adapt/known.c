/* SPDX-License-Identifier: Apache-2.0 */
/* States of the machine that were seen before, and what served well in them. */
#include <string.h>

#include "base.h"
#include "daemon/adapt_private.h"

/* Plans nearer than this are equally good: two figures of one plan differ by as much. */
#define NOISE 0.05

static struct dmn_adapt_known *find(struct dmn_adapt_model *a)
{
    for (size_t i = 0; i < DMN_ADAPT_KNOWN; i++) {
        if (a->known[i].id != 0 && a->known[i].id == a->state_id) {
            return &a->known[i];
        }
    }
    return NULL;
}

/* That of this state, a free one, or the one that was not seen for longest. */
static struct dmn_adapt_known *place(struct dmn_adapt_model *a)
{
    struct dmn_adapt_known *to = find(a);

    for (size_t i = 0; !to && i < DMN_ADAPT_KNOWN; i++) {
        to = a->known[i].id == 0 ? &a->known[i] : NULL;
    }
    for (size_t i = 0; !to && i < DMN_ADAPT_KNOWN; i++) {
        bool oldest = true;

        for (size_t k = 0; k < DMN_ADAPT_KNOWN; k++) {
            oldest &= a->known[i].at_ns <= a->known[k].at_ns;
        }
        to = oldest ? &a->known[i] : NULL;
    }
    return to;
}

void dmn_adapt_remember(struct dmn_model *m, uint64_t now_ns)
{
    struct dmn_adapt_model *a = m->adapt;
    const struct pl_plan *plan = pl_current_plan(m->pipe);
    struct dmn_adapt_known *k = find(a);
    bool news = !k || !pl_plan_equal(&k->plan, plan);

    *place(a) = (struct dmn_adapt_known){.id = a->state_id, .at_ns = now_ns, .plan = *plan};
    if (news) {
        dmn_state_save(m);
    }
}

const struct pl_plan *dmn_adapt_known(struct dmn_model *m)
{
    struct dmn_adapt_known *k = find(m->adapt);
    struct pl_plan plan;

    if (!k && m->adapt->state_id != 0 && dmn_state_plan(m, &plan)) {
        k = place(m->adapt);
        *k = (struct dmn_adapt_known){
            .id = m->adapt->state_id, .at_ns = base_now_ns(), .plan = plan};
    }
    return k ? &k->plan : NULL;
}

/* Is the decision about a state that a plan can be known for, and free to be another one. */
static bool may_return(const struct dmn_model *m, const struct tun_decision *d)
{
    bool clocks = d->cause == TUN_CAUSE_GOVERNOR || d->cause == TUN_CAUSE_FREQUENCY ||
                  d->cause == TUN_CAUSE_THERMAL;
    bool quota = m->adapt->quota != m->adapt->quota_decided &&
                 (d->cause == TUN_CAUSE_CONTENTION || d->cause == TUN_CAUSE_THROUGHPUT);

    return (clocks || quota) && !d->must && d->after_ns > 0 && d->hold != TUN_HOLD_BUDGET &&
           d->hold != TUN_HOLD_BOUNDS;
}

bool dmn_adapt_prefer_known(struct dmn_model *m, const struct tun_record *r, struct tun_decision *d)
{
    const struct pl_plan *known = may_return(m, d) ? dmn_adapt_known(m) : NULL;
    const char *algorithm = dmn_config_string(m->daemon->config, DMN_KEY_PLANNER_ALGORITHM);
    double otherwise_ns = d->replan ? d->after_ns : d->before_ns;
    struct tun_outcome o;

    if (strcmp(algorithm, "exact") != 0) { /* measured by a search: the table has less to say */
        otherwise_ns = base_max(d->before_ns, otherwise_ns);
    }
    if (!known || pl_plan_equal(known, &r->plan) ||
        d->corrected.kind_count != r->problem.kind_count || !tun_fits(&d->corrected, known) ||
        tun_eval(&d->corrected, known, &o) != 0 || o.bottleneck_ns > (1 + NOISE) * otherwise_ns) {
        return false;
    }
    d->replan = true;
    d->hold = TUN_HOLD_NONE;
    d->plan = *known;
    d->gain = d->before_ns / o.bottleneck_ns - 1;
    d->after_ns = o.bottleneck_ns;
    return true;
}
