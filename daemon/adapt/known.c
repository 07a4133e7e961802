/* SPDX-License-Identifier: Apache-2.0 */
/* States of the machine seen before, and the plans that served well in them. */

#include "daemon/adapt/adapter_private.h"

/* Plans closer than this are equally good: two measurements of one plan differ by as much. */
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

/* The place of this state, else a free one, else the one unused for longest. */
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

const struct pl_plan *dmn_adapt_known_plan(struct dmn_model *m)
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

/* Return: a plan can be known for the state in the decision, and the decision may be replaced. */
static bool may_return(const struct dmn_model *m, const struct tun_decision *d)
{
    bool clocks = d->cause == TUN_CAUSE_GOVERNOR || d->cause == TUN_CAUSE_FREQUENCY ||
                  d->cause == TUN_CAUSE_THERMAL;
    bool quota = m->adapt->quota != m->adapt->quota_decided && tun_cause_felt(d->cause);

    return (clocks || quota) && !d->must && d->after_ns > 0 && d->hold != TUN_HOLD_BUDGET &&
           d->hold != TUN_HOLD_BOUNDS;
}

bool dmn_adapt_prefer_known(struct dmn_model *m, const struct tun_record *r, struct tun_decision *d)
{
    const struct pl_plan *known = may_return(m, d) ? dmn_adapt_known_plan(m) : NULL;
    double otherwise_ns = d->replan ? d->after_ns : d->before_ns;
    struct tun_outcome o;

    if (!known || pl_plan_equal(known, &r->plan) || d->corrected.ep_count != r->problem.ep_count ||
        !tun_fits(&d->corrected, known) || tun_eval(&d->corrected, known, &o) != 0 ||
        o.bottleneck_ns > (1 + NOISE) * otherwise_ns) {
        return false;
    }
    d->replan = true;
    d->hold = TUN_HOLD_NONE;
    d->plan = *known;
    d->gain = d->before_ns / o.bottleneck_ns - 1;
    d->after_ns = o.bottleneck_ns;
    return true;
}
