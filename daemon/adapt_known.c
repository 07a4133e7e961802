/* SPDX-License-Identifier: Apache-2.0 */
/* States of the machine that were seen before, and what served well in them. */
#include <string.h>

#include "base.h"
#include "daemon/adapt_private.h"

/* Plans nearer than this are equally good: two measurements of one plan differ by as much. */
#define NOISE 0.03

void dmn_adapt_remember(struct dmn_model *m, uint64_t now_ns)
{
    struct dmn_adapt_model *a = m->adapt;
    struct dmn_adapt_known *to = &a->known[0];

    for (size_t i = 0; i < DMN_ADAPT_KNOWN; i++) {
        struct dmn_adapt_known *k = &a->known[i];

        if (k->id == a->state_id) {
            to = k;
            break;
        }
        if (k->at_ns < to->at_ns) { /* a free one, or the one that was not seen for longest */
            to = k;
        }
    }
    *to = (struct dmn_adapt_known){
        .id = a->state_id, .at_ns = now_ns, .plan = *pl_current_plan(m->pipe)};
}

const struct pl_plan *dmn_adapt_known(const struct dmn_model *m)
{
    const struct dmn_adapt_model *a = m->adapt;

    for (size_t i = 0; i < DMN_ADAPT_KNOWN; i++) {
        if (a->known[i].id != 0 && a->known[i].id == a->state_id) {
            return &a->known[i].plan;
        }
    }
    return NULL;
}

void dmn_adapt_prefer_known(const struct dmn_model *m, const struct tun_record *r,
                            struct tun_decision *d)
{
    const struct pl_plan *known = dmn_adapt_known(m);
    bool clocks = d->cause == TUN_CAUSE_GOVERNOR || d->cause == TUN_CAUSE_FREQUENCY ||
                  d->cause == TUN_CAUSE_THERMAL;
    struct tun_outcome o;

    if (!d->replan || d->must || !clocks || !known || pl_plan_equal(known, &r->plan) ||
        d->corrected.kind_count != r->problem.kind_count || !tun_fits(&d->corrected, known) ||
        tun_eval(&d->corrected, known, &o) != 0 || o.bottleneck_ns > (1 + NOISE) * d->after_ns) {
        return;
    }
    d->plan = *known;
    d->gain = (1 + d->gain) * d->after_ns / o.bottleneck_ns - 1;
    d->after_ns = o.bottleneck_ns;
}
